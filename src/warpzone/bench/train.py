"""`warpzone bench train`: engine, inference and learner alone, and training end to end.

The three parts and the two ways of putting them together take turns in every round, so that load
from other processes affects all of them equally. Ratios are medians of rounds.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from warpzone.collect.actor import Actor
from warpzone.collect.lanes import Lanes, make_groups
from warpzone.config import TrainConfig
from warpzone.data.types import Rollout
from warpzone.model.cpu import computing_with
from warpzone.observers.progress import Progress
from warpzone.train.loop import Run

STAGES = ("engine", "inference", "learner")
MODES = ("serial", "overlap")
#: Updates before anything is measured: graphs are recorded and caches filled in the first ones.
WARM_UP = 2
#: An end-to-end slice has at least this many updates.
LEAST_UPDATES = 2
_PLAN = 256


@dataclass(frozen=True)
class Plan:
    """How long to measure."""

    seconds: float = 1.0
    rounds: int = 5

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise ValueError(f"a median needs at least one round, not {self.rounds}")
        if not self.seconds > 0:
            raise ValueError(f"a slice must last longer than {self.seconds} s")


@dataclass
class Rates:
    """Steps/s of one thing in every round."""

    per_round: list[float] = field(default_factory=list)

    def summary(self, frame_skip: int) -> dict[str, Any]:
        """For JSON."""
        middle = median(self.per_round)
        return {
            "steps_per_sec": middle,
            "frames_per_sec": middle * frame_skip,
            "min": min(self.per_round),
            "max": max(self.per_round),
        }


class Watch(Progress):
    """Shows nothing and notes when each update ended."""

    def __init__(self, config: TrainConfig) -> None:
        super().__init__(config, "")
        self.ends: list[float] = []

    def update(self, row: dict[str, Any]) -> None:
        self.ends.append(time.perf_counter())

    def say(self, text: str) -> None:
        pass


class Rig:
    """A run of each mode, and the parts of the serial one for measuring them alone."""

    def __init__(self, config: TrainConfig, folder: str) -> None:
        quiet = config.replace(
            runs_dir=folder, eval_interval=0, stop_at=0.0, max_time=0.0, log_interval=1
        )
        self.config = config
        self.runs = {
            mode: Run(quiet.replace(run_name=mode, overlap_collect=mode == "overlap"))
            for mode in MODES
        }
        serial = self.runs["serial"]
        self.device = serial.device
        # Separate lanes: those of the run must stay where its collector left them.
        self.groups: Lanes = make_groups(config, serial.rom, serial.native, self.device)
        self.actors = [
            Actor(config, serial.agent, group.count, self.device) for group in self.groups
        ]
        for group, actor in zip(self.groups, self.actors, strict=True):
            actor.frame.copy_(group.frames)
        rng = np.random.default_rng(config.seed)
        actions = serial.agent.spec.actions
        self._plan: NDArray[np.int64] = rng.integers(
            0, actions, (_PLAN, len(self.groups), self.groups[0].count)
        )
        self._turn = 0
        self._rollout: Rollout = serial.collector.collect()

    def engine(self, seconds: float) -> tuple[int, float]:
        """All groups with random actions, no network; the next step always waits in line."""
        for group, actions in zip(self.groups, self._next_actions(), strict=True):
            group.start(actions)

        def once() -> int:
            for group, actions in zip(self.groups, self._next_actions(), strict=True):
                group.finish()
                group.start(actions)
            return self.config.num_envs

        measured = _for(seconds, once)
        for group in self.groups:
            group.finish()
        return measured

    def inference(self, seconds: float) -> tuple[int, float]:
        """Decisions on the same frames, with the copy of the actions to the host."""

        def once() -> int:
            for actor in self.actors:
                actor.decide()
                actor.action.cpu()
            return self.config.num_envs

        with computing_with(self.runs["serial"].collector.threads):
            return _for(seconds, once)

    def learner(self, seconds: float) -> tuple[int, float]:
        """Updates from one rollout. What they do to the agent is undone, or the policy that the
        end-to-end slices play with would be one that has seen a single rollout many times."""
        learner = self.runs["serial"].learner
        kept = [(tensor, tensor.clone()) for tensor in learner.updater.tensors()]

        def once() -> int:
            learner.update(self._rollout, 0.0)
            return self.config.steps_per_update

        measured = _for(seconds, once)
        with torch.no_grad():
            for tensor, value in kept:
                tensor.copy_(value)
        return measured

    def end_to_end(self, mode: str, updates: int) -> tuple[int, float]:
        """So many updates of the real loop. One more comes before, and one after: nothing is
        collected ahead while the first is awaited or the last is learned from."""
        run = self.runs[mode]
        watch = Watch(run.config)
        per_update = self.config.steps_per_update
        run.budget.max_steps = run.global_step + (updates + 2) * per_update
        run.learn(watch)
        if mode == "serial":
            self._rollout = run.collector.collect()
        return updates * per_update, watch.ends[updates] - watch.ends[0]

    def close(self) -> None:
        """Stops all engines."""
        self.groups.close()
        for run in self.runs.values():
            run.close()

    def _next_actions(self) -> list[NDArray[np.int64]]:
        self._turn = (self._turn + 1) % _PLAN
        return list(self._plan[self._turn])


def measure(config: TrainConfig, plan: Plan, tell: Callable[[str], None]) -> dict[str, Any]:
    """All rates, ready for JSON."""
    rates = {name: Rates() for name in (*STAGES, *MODES)}
    with tempfile.TemporaryDirectory(prefix="warpzone-bench-") as folder:
        tell("warming up")
        rig = Rig(config, folder)
        try:
            works = {"engine": rig.engine, "inference": rig.inference, "learner": rig.learner}
            updates = {mode: _warm_up(rig, mode, plan.seconds) for mode in MODES}
            for work in works.values():
                work(min(plan.seconds, 0.05))
            for number in range(plan.rounds):
                tell(f"round {number + 1} of {plan.rounds}")
                for name, work in works.items():
                    _add(rates[name], work(plan.seconds))
                for mode in MODES:
                    _add(rates[mode], rig.end_to_end(mode, updates[mode]))
        finally:
            rig.close()
    return {"config": _interesting(config), **_machine(rig.device), **summarise(rates, config)}


def summarise(rates: dict[str, Rates], config: TrainConfig) -> dict[str, Any]:
    """Medians, the slowest part alone, and how close to it each mode comes."""
    alone = {name: rates[name].summary(config.frame_skip) for name in STAGES}
    slowest = min(STAGES, key=lambda name: alone[name]["steps_per_sec"])
    ratios = {
        mode: median(
            ours / part
            for ours, part in zip(rates[mode].per_round, rates[slowest].per_round, strict=True)
        )
        for mode in MODES
    }
    return {
        "rounds": len(rates[slowest].per_round),
        "alone": alone,
        "end_to_end": {mode: rates[mode].summary(config.frame_skip) for mode in MODES},
        "slowest_alone": slowest,
        "ratio_to_slowest": ratios,
    }


def _warm_up(rig: Rig, mode: str, seconds: float) -> int:
    """Runs the first updates and says how many a slice of that length needs."""
    rig.end_to_end(mode, WARM_UP)
    steps, passed = rig.end_to_end(mode, 1)
    each = passed * rig.config.steps_per_update / steps
    return max(LEAST_UPDATES, round(seconds / each))


def _add(rates: Rates, measured: tuple[int, float]) -> None:
    steps, seconds = measured
    rates.per_round.append(steps / seconds)


def _for(seconds: float, once: Callable[[], int]) -> tuple[int, float]:
    began = time.perf_counter()
    done = once()
    while time.perf_counter() - began < seconds:
        done += once()
    return done, time.perf_counter() - began


def _interesting(config: TrainConfig) -> dict[str, Any]:
    names: tuple[str, ...] = (
        "algo",
        "encoder",
        "encoder_width",
        "encoder_channels",
        "hidden_size",
        "memory",
        "size",
        "frame_skip",
    )
    names += ("num_envs", "num_threads", "groups", "rollout_steps", "minibatch", "epochs", "per")
    names += ("amp", "cuda_graphs", "compile", "stages")
    return {name: getattr(config, name) for name in names}


def _machine(device: torch.device) -> dict[str, Any]:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    return {"device": name, "torch": torch.__version__, "torch_threads": torch.get_num_threads()}
