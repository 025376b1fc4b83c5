"""A rollout as minibatches of single steps or whole lanes, with the network's outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from warpzone.algo.algorithm import Batch
from warpzone.algo.losses import log_prob_of
from warpzone.algo.returns import Returns, steps_of
from warpzone.collect.actor import autocast
from warpzone.config import TrainConfig
from warpzone.data.stacking import stack_frames, stack_sequence
from warpzone.data.types import Rollout
from warpzone.learn.augment import Augmentation, Change
from warpzone.model.agent import Agent
from warpzone.model.compiling import compiled


class Network:
    """The network that learns, and the preparation of its observations."""

    def __init__(self, config: TrainConfig, agent: Agent, device: torch.device) -> None:
        self.augmentation = Augmentation(config, device)
        self._config = config
        self._device = device
        self._act = compiled(agent.act, config)
        self._forward = compiled(agent.forward, config)

    def steps(
        self, rollout: Rollout, steps: Tensor, lanes: Tensor, change: Change | None
    ) -> tuple[Tensor, Tensor]:
        """Logits and values of single steps, int64 [N] each."""
        obs = stack_frames(rollout.frames, rollout.age, steps, lanes)
        obs = self.augmentation.steps(obs, change)
        starts = rollout.age[steps, lanes] == 0
        with autocast(self._config, self._device):
            output = self._act(obs, rollout.previous_actions[steps, lanes], (), starts)
        return output.logits.float(), output.value.float()

    def sequence(self, rollout: Rollout, change: Change | None = None) -> tuple[Tensor, Tensor]:
        """Logits and values of every observation, the one after the last step included."""
        obs = self.augmentation.sequences(stack_sequence(rollout.frames, rollout.age), change)
        with autocast(self._config, self._device):
            output = self._forward(obs, rollout.previous_actions, rollout.state, rollout.starts)
        return output.logits.float(), output.value.float()


class Batches(Protocol):
    """A rollout in parts that can be taken in any order."""

    #: How many parts there are.
    total: int

    def free(self, index: Tensor) -> Tensor:
        """bool: the steps of some parts that the policy chose."""

    def returns(self, index: Tensor) -> Returns | None:
        """What was prepared for some parts."""

    def batch(self, index: Tensor, change: Change | None = None) -> Batch:
        """A minibatch of some parts, augmented and passed through the network."""


class StepBatches:
    """The parts are single steps, `step * lanes + lane`: for networks without memory."""

    def __init__(self, network: Network, rollout: Rollout, returns: Returns | None) -> None:
        self.total = rollout.length * rollout.lanes
        self._network = network
        self._rollout = rollout
        self._returns = returns

    def _place(self, index: Tensor) -> tuple[Tensor, Tensor]:
        return index // self._rollout.lanes, index % self._rollout.lanes

    def free(self, index: Tensor) -> Tensor:
        return ~self._rollout.forced[self._place(index)]

    def returns(self, index: Tensor) -> Returns | None:
        if self._returns is None:
            return None
        place = self._place(index)
        return Returns(*(values[place] for values in self._returns))

    def batch(self, index: Tensor, change: Change | None = None) -> Batch:
        place = self._place(index)
        logits, values = self._network.steps(self._rollout, *place, change)
        return Batch(
            logits=logits,
            log_prob=log_prob_of(logits, self._rollout.actions[place]),
            values=values,
            old_log_prob=self._rollout.log_prob[place],
            free=self.free(index),
            shown=self._rollout.shown[place],
            returns=self.returns(index),
        )


class LaneBatches:
    """The parts are whole lanes: for networks with memory, and algorithms that look along them."""

    def __init__(
        self,
        network: Network,
        rollout: Rollout,
        returns: Returns | None,
        *,
        proximal: Tensor | None = None,
        weights: Tensor | None = None,
        burn_in: int = 0,
        warmed_up: Callable[[Rollout], Rollout] | None = None,
    ) -> None:
        """proximal: [T, B], for `Batch.proximal`. Of replayed lanes: their importance weights, the
        first steps that are not learned from, and what gives lanes without these steps."""
        self.total = rollout.lanes
        self._network = network
        self._rollout = rollout
        self._returns = returns
        self._proximal = proximal
        self._weights = weights
        self._burn_in = burn_in
        self._warmed_up = warmed_up

    def free(self, index: Tensor) -> Tensor:
        return ~self._rollout.forced[self._burn_in :, index]

    def returns(self, index: Tensor) -> Returns | None:
        if self._returns is None:
            return None
        return Returns(*(values[:, index] for values in self._returns))

    def batch(self, index: Tensor, change: Change | None = None) -> Batch:
        part = self._rollout.select(index)
        if self._warmed_up is not None:
            part = self._warmed_up(part)
        logits, values = self._network.sequence(part, change)
        logits, values, last = logits[:-1], values[:-1], values[-1]
        return Batch(
            logits=logits,
            log_prob=log_prob_of(logits, part.actions),
            values=values,
            old_log_prob=part.log_prob,
            free=~part.forced,
            shown=part.shown,
            returns=self.returns(index),
            steps=steps_of(part)._replace(values=values.detach(), last_value=last.detach()),
            weights=None if self._weights is None else self._weights[index],
            proximal=None if self._proximal is None else self._proximal[:, index],
        )
