"""The agent that learns, the one that plays, and the one that is evaluated."""

from __future__ import annotations

import copy

import torch

from warpzone.algo.ema import Ema
from warpzone.collect.streams import generator, stream_seed
from warpzone.config import TrainConfig
from warpzone.env.actions import action_table
from warpzone.model.agent import Agent
from warpzone.model.own import make_agent


class Policies:
    """One agent that plays and learns; with overlap an acting copy plays, one update behind."""

    def __init__(self, config: TrainConfig, device: torch.device) -> None:
        torch.manual_seed(stream_seed(config.seed, "weights"))
        #: The one that learns.
        self.agent = make_agent(config, len(action_table(config.actions).masks))
        self.agent.to(device)
        #: The one that plays.
        self.acting = copy.deepcopy(self.agent) if config.overlap_collect else self.agent
        self.noise = generator(config.seed, "noise")

    @torch.no_grad()
    def hand_over(self) -> None:
        """Before a rollout: the policy that plays gets the newest weights, and new noise."""
        if self.acting is not self.agent:
            pairs = zip(self.acting.parameters(), self.agent.parameters(), strict=True)
            for played, learned in pairs:
                played.copy_(learned)
        self.acting.resample_noise(self.noise)

    @torch.no_grad()
    def take_noise(self) -> None:
        """After a rollout: it is learned from with the noise it was played with."""
        if self.acting is not self.agent:
            for learned, played in zip(self.agent.buffers(), self.acting.buffers(), strict=True):
                learned.copy_(played)

    def evaluated(self, average: Ema | None) -> Agent:
        """The averaged weights if there are any, and no noise."""
        if average is None and not self.agent.spec.noisy:
            return self.agent
        agent = copy.deepcopy(self.agent)
        if average is not None:
            average.copy_to(agent)
        agent.zero_noise()
        return agent
