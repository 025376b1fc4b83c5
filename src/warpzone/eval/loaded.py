"""A trained agent for use in programs: observations in, actions out; made by
`warpzone.load_agent`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from warpzone import rom as roms
from warpzone.collect.lanes import lane_options
from warpzone.config import TrainConfig
from warpzone.env.actions import action_table
from warpzone.env.options import Options
from warpzone.env.stages import StageSpec
from warpzone.env.vector import MarioVectorEnv
from warpzone.eval.cases import DELAYS, POLICIES, Outcome
from warpzone.eval.evaluate import evaluate
from warpzone.eval.policy import batch_size, decide_lanes
from warpzone.eval.weights import RUNS, Found, find_agent
from warpzone.eval.whole_game import STANDING, begins_anew
from warpzone.model.memory import State
from warpzone.rom import native
from warpzone.rom.waiting import loading

#: What lanes are told, as opposed to the vector that they are in.
LANE_OPTIONS = tuple(field.name for field in fields(Options))
#: Lanes of `make_env` are played as they are, without the help and the limits of training.
PLAIN = {"start_delay": 0, "sticky": 0.0, "time_limit": 0, "stagnation_limit": 0}


def load_agent(
    name: str | os.PathLike[str],
    *,
    policy: str = "argmax",
    seed: int = 0,
    device: str = "cpu",
    runs_dir: str | os.PathLike[str] = RUNS,
    network: str = "",
) -> LoadedAgent:
    """The agent that a word names: a file of weights, a run's folder, `"latest"`, a run in
    `runs_dir`, or one that is shipped, such as `"all"`. ValueError if there is none of that name or
    it fits to nothing, OSError if its file is damaged.

    policy: `argmax` takes the likeliest action, `sampled` draws one, with `seed`.
    network: `module:Class`, the code of a network of your own, where it is not the file that the
    run was trained with.
    """
    if policy not in POLICIES:
        raise ValueError(f"policy must be {' or '.join(POLICIES)}, not {policy!r}")
    found = find_agent(name if isinstance(name, str) else Path(name), Path(runs_dir), network)
    try:
        found.agent.to(device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"the agent cannot be put on device {device!r}: {reason}") from error
    return LoadedAgent(found, policy=policy, seed=seed)


class LoadedAgent:
    """An agent and what it remembers of the lanes it plays: its memory and its previous actions.

    It decides as in `warpzone eval`, whatever the number of lanes: the network is asked about
    batches of the same size, each computed by one thread.
    """

    def __init__(self, found: Found, *, policy: str, seed: int) -> None:
        self.network = found.agent
        #: What it was trained with, and therefore what it must see.
        self.config: TrainConfig = found.config
        #: The weights.
        self.path: Path = found.path
        self.policy = policy
        spec = found.agent.spec
        self._shape = (spec.stack, spec.height * spec.colors, spec.width)
        self._device = next(found.agent.parameters()).device
        self._chance = np.random.default_rng(seed)
        # Of all lanes; there are none yet.
        self._state: State = ()
        self._previous = torch.zeros(0, dtype=torch.int64)
        self._starts = torch.zeros(0, dtype=torch.bool)
        #: Lanes that see only the newest frame of the next observation.
        self._anew = np.zeros(0, np.bool_)

    @property
    def action_names(self) -> tuple[str, ...]:
        """The buttons that each action presses."""
        return action_table(self.config.actions).names

    def act(self, obs: ArrayLike, starts: ArrayLike | None = None) -> NDArray[np.int64]:
        """One action for each lane.

        obs: uint8 [lanes, stack, height, width], as an environment of `make_env` shows it; or
        [stack, height, width], and the answer is a single number.
        starts: true for the lanes in which an episode begins with this observation. With the first
        call it begins in all of them, later only where it is said, here or to `reset`.
        """
        seen = np.asarray(obs)
        alone = seen.shape == self._shape
        seen = seen[None] if alone else seen
        if seen.dtype != np.uint8 or seen.shape[1:] != self._shape or not len(seen):
            raise ValueError(
                f"the agent sees uint8 [lanes, {', '.join(map(str, self._shape))}], not "
                f"{seen.dtype} {list(seen.shape)}; make_env() shows it what it must see"
            )
        if not len(self._starts):
            self._begin(len(seen))
        elif len(seen) != len(self._starts):
            raise ValueError(
                f"the agent plays {len(self._starts)} lanes and is shown {len(seen)}; call "
                "reset() before it plays another number of them"
            )
        if starts is not None:
            self.reset(starts)
        if self._anew.any():
            seen = np.where(self._anew[:, None, None, None], seen[:, -1:], seen)
        scores = self._decide(seen)
        if self.policy == "sampled":
            # The largest of logits with Gumbel noise is a draw from the policy.
            scores += self._chance.gumbel(size=scores.shape)
        chosen: NDArray[np.int64] = scores.argmax(-1)
        self._previous = torch.from_numpy(chosen).to(self._device)
        self._starts.zero_()
        self._anew[:] = False
        return chosen.reshape(()) if alone else chosen

    def reset(self, mask: ArrayLike | None = None) -> None:
        """Forgets: lanes of the mask begin an episode with the next observation; without a mask all
        do, and there may be another number of them."""
        if mask is None:
            self._begin(0)
            return
        chosen = np.asarray(mask)
        if chosen.dtype != np.bool_ or chosen.shape != (len(self._starts),):
            raise ValueError(
                f"a mask has one bool for each of the {len(self._starts)} lanes, and not "
                f"{chosen.dtype} {list(chosen.shape)}"
            )
        self._starts |= torch.from_numpy(chosen).to(self._device)

    def begin_anew(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """To be called after each step of whole games, with the infos before and after it. Lanes in
        which a stage or a life begins are reset as in `warpzone eval --whole-game`: of the next
        observation, whose other frames are older, they see only the newest one. If the agent was
        trained on whole games, there are none."""
        old, new = (
            np.stack([np.atleast_1d(infos[name]) for name in STANDING], -1)
            for infos in (before, after)
        )
        begun = begins_anew(self.config, old, new)
        self.reset(begun)
        self._anew |= begun

    def make_env(
        self, num_envs: int = 1, stages: StageSpec | None = None, **options: Any
    ) -> MarioVectorEnv:
        """Lanes that show what the agent was trained to see, to be played as in an evaluation: one
        life, no limits, small Mario at the stage's door, no delay unless `start_power` and
        `start_delay` say so. Where an episode ends the next one begins within the same step, so
        that `starts` is `terminated | truncated`.

        stages: `"1-1"`, `"1-1..2-4"`, `"all"`, … (default: what it was trained on); other options
        are those of `MarioVectorEnv`.
        """
        config = self.config
        played = {"stages": config.stages if stages is None else stages, **PLAIN}
        played["frame_stack"] = config.frame_stack
        played["end"] = "game_over" if played["stages"] == "game" else "life"
        played |= {name: value for name, value in options.items() if name in LANE_OPTIONS}
        lanes = lane_options(config, **played)
        others = {name: value for name, value in options.items() if name not in LANE_OPTIONS}
        return MarioVectorEnv(
            num_envs,
            **{"rom": config.rom, "autoreset_mode": "same_step", **others},
            **{name: getattr(lanes, name) for name in LANE_OPTIONS},
        )

    def evaluate(
        self,
        stages: str | None = None,
        *,
        delays: Sequence[int] = DELAYS,
        policies: Sequence[str] = POLICIES,
        seed: int = 0,
        rom: str | None = None,
        start_power: str = "small",
    ) -> list[Outcome]:
        """What `warpzone eval` plays: every stage from every start delay, one life each."""
        image = roms.find(rom or self.config.rom)
        program = native.load(image)
        with loading("playing"):
            return evaluate(
                self.network,
                self.config,
                image,
                program,
                stages=stages,
                delays=delays,
                policies=policies,
                seed=seed,
                start_power=start_power,
            )

    def _begin(self, lanes: int) -> None:
        """Lanes of which nothing is known yet."""
        self._state = self.network.initial_state(lanes, self._device)
        self._previous = torch.zeros(lanes, dtype=torch.int64, device=self._device)
        self._starts = torch.ones(lanes, dtype=torch.bool, device=self._device)
        self._anew = np.zeros(lanes, np.bool_)

    @torch.no_grad()
    def _decide(self, seen: NDArray[np.uint8]) -> NDArray[np.float64]:
        # Copied, because a caller's array may be one that must not be written to.
        obs = torch.tensor(seen, device=self._device)

        def stacks(lanes: Tensor) -> Tensor:
            # The order in memory that evaluations use: another one may round differently.
            return obs[lanes].contiguous(memory_format=torch.channels_last)

        lanes = torch.arange(len(seen), device=self._device)
        with _one_thread():
            logits = [
                decide_lanes(self.network, part, stacks, self._previous, self._state, self._starts)[
                    0
                ]
                for part in torch.split(lanes, batch_size(self._device))
            ]
        return torch.cat(logits).cpu().numpy().astype(np.float64)


@contextmanager
def _one_thread() -> Iterator[None]:
    """PyTorch computes with one thread; afterwards with as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
