"""What can be seen of a tiny run: the observables of `tests/unit/config/test_effects.py`.

Runs are remembered: two fields that change the same thing share the run that they change it from.
"""

from __future__ import annotations

import functools
import hashlib
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from tiny_runs import Recorder

from warpzone.config import TrainConfig
from warpzone.data.types import Rollout
from warpzone.observers.make import make_observers
from warpzone.run.reader import read_rows
from warpzone.train.loop import Run

#: Mario runs to the right whatever the policy chooses, and dies of the first enemy in step 27.
BASE: dict[str, Any] = {
    "actions": "RIGHT+B;RIGHT+B",
    "num_envs": 2,
    "groups": 1,
    "num_threads": 1,
    "rollout_steps": 40,
    "minibatch": 40,
    "epochs": 1,
    "observation": "tiles",
    "encoder_width": 0.125,
    "hidden_size": 16,
    "memory_length": 5,
    "memory_layers": 1,
    "memory_heads": 2,
    "start_delay": 0,
    "stagnation_limit": 0,
    "max_steps": 160,
    "lr": 0.01,
    "device": "cpu",
    "seed": 7,
    "monitor_interval": 0.0,
    "heartbeat_interval": 0.0,
    "stall_timeout": 0.0,
    "parquet_interval": 0.0,
    "checkpoint_minutes": 0.0,
    "wall_lanes": 0,
}
#: What a row says about the machine and not about the run.
CLOCKS = (
    *("time", "seconds", "eta", "env_steps", "env_frames", "updates_per", "update_time"),
    *("rollout_time", "learn_time", "replay_sample_"),
)
#: Calls by which lanes are told something.
TOLD = ("set_stage_weights", "set_restart_share", "set_script", "force", "set_reward_weights")


def config_of(**changes: Any) -> TrainConfig:
    return TrainConfig(**{**BASE, **changes})


@dataclass
class Seen:
    """One run."""

    frames: list[str] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    rewards: list[Any] = field(default_factory=list)
    #: Terminated and truncated, step by step.
    ends: list[Any] = field(default_factory=list)
    forced: list[Any] = field(default_factory=list)
    lengths: list[tuple[int, int]] = field(default_factory=list)
    weights: dict[str, str] = field(default_factory=dict)
    #: The weights that are evaluated.
    evaluated: dict[str, str] = field(default_factory=dict)
    episodes: list[dict[str, Any]] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    evals: list[dict[str, Any]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    #: What the lanes were told: calls and their arguments.
    told: list[Any] = field(default_factory=list)
    place: tuple[str, str] = ("", "")
    threads: int = 0
    groups: int = 0

    def column(self, name: str) -> list[Any]:
        """One field of the metrics, update by update."""
        return [row.get(name) for row in self.rows]

    @property
    def stages(self) -> list[int]:
        return sorted({episode["stage"] for episode in self.episodes})

    @property
    def restarts(self) -> list[int]:
        """Moments of the archive that episodes started from."""
        return [episode["restart"] for episode in self.episodes]

    @property
    def delays(self) -> list[int]:
        return [episode["start_delay"] for episode in self.episodes]

    @property
    def reasons(self) -> list[str]:
        return [episode["reason"] for episode in self.episodes]


class Telling:
    """Stands in front of an engine's vector and writes down what it is told."""

    def __init__(self, vector: Any, told: list[Any]) -> None:
        self._vector, self._told = vector, told

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._vector, name)
        if name not in TOLD:
            return call

        def noted(*arguments: Any) -> Any:
            self._told.append((name, [str(argument) for argument in arguments]))
            return call(*arguments)

        return noted


def learned(**changes: Any) -> Seen:
    """A run to the end of its budget, without its last evaluation."""
    return _remembered(json.dumps(changes, sort_keys=True), whole=False)


def whole(**changes: Any) -> Seen:
    """A run with everybody who looks at it, and its last evaluation."""
    return _remembered(json.dumps(changes, sort_keys=True), whole=True)


@functools.lru_cache(maxsize=64)
def _remembered(changes: str, whole: bool) -> Seen:
    with tempfile.TemporaryDirectory() as place:
        values = {"runs_dir": place, "run_name": "one", **json.loads(changes)}
        if not Path(values["runs_dir"]).is_absolute():
            values["runs_dir"] = str(Path(place) / values["runs_dir"])
        return _watched(config_of(**values), whole=whole)


def _watched(config: TrainConfig, *, whole: bool) -> Seen:
    seen, shown = Seen(), Recorder()
    run = Run(config, make_observers(config) if whole else ())
    for group in run.collector.groups:
        group.vector = Telling(group.vector, seen.told)  # type: ignore[assignment]
    collect = run.collector.collect

    def noted() -> Rollout:
        rollout = collect()
        _note(seen, rollout)
        return rollout

    run.collector.collect = noted  # type: ignore[method-assign]
    try:
        seen.groups = len(run.collector.groups)
        seen.threads = getattr(run.collector.groups[0].vector, "num_threads", 0)
        if whole:
            run.train(shown)  # type: ignore[arg-type]
        else:
            run.learn(shown)  # type: ignore[arg-type]
        folder = run.folder.path
        run.folder.flush()
        seen.episodes = list(read_rows(folder, "episodes.jsonl"))
        seen.evals = list(read_rows(folder, "evals.jsonl"))
        seen.rows = [_without_clocks(row) for row in read_rows(folder, "metrics.jsonl")]
        paths = (path for path in folder.rglob("*") if path.is_file())
        seen.files = sorted(str(path.relative_to(folder)) for path in paths)
    finally:
        run.close()
    seen.said = shown.said
    seen.weights = digests(run.agent.state_dict())
    seen.evaluated = digests(run.evaluated_agent().state_dict())
    seen.shapes = {name: tuple(part.shape) for name, part in run.agent.state_dict().items()}
    seen.place = folder.parent.name, folder.name
    return seen


def _note(seen: Seen, rollout: Rollout) -> None:
    seen.frames.append(digest(rollout.frames))
    seen.rewards.append(rollout.rewards.tolist())
    seen.ends.append((rollout.terminated.tolist(), rollout.truncated.tolist()))
    seen.forced.append(rollout.forced.tolist())
    seen.lengths.append((rollout.length, rollout.lanes))


def _without_clocks(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if not name.startswith(CLOCKS)}


def digest(tensor: torch.Tensor) -> str:
    return hashlib.sha256(tensor.contiguous().numpy().tobytes()).hexdigest()[:16]


def digests(state: dict[str, torch.Tensor]) -> dict[str, str]:
    return {name: digest(part) for name, part in state.items()}


def of(name: str, see: Callable[..., Seen] = learned) -> Callable[..., Any]:
    """The observable `name` of a run."""
    return lambda **changes: getattr(see(**changes), name)


def row(*names: str, see: Callable[..., Seen] = learned) -> Callable[..., Any]:
    """Fields of the metrics."""
    return lambda **changes: [see(**changes).column(name) for name in names]
