"""One trial: make the lanes, play them, and check that the real game was played."""

from __future__ import annotations

import datetime
import time
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone import _engine
from warpzone import rom as roms
from warpzone.env.actions import ACTION_SETS
from warpzone.env.backends.events import Report
from warpzone.env.backends.interface import BackendError, Lanes
from warpzone.env.backends.opening import RomFile, agree, make_spec, open_lanes
from warpzone.env.backends.select import NES_PY, prewarm
from warpzone.env.backends.shared_rows import layout
from warpzone.env.backends.worker_lanes import WorkerSettings
from warpzone.env.options import Options
from warpzone.env.seeds import lane_seeds

STEPS = 16
OPTIONS = Options(stages="1-1", frame_stack=1, start_delay=(0, 10))
_FORWARD = ACTION_SETS["simple"].index("RIGHT+B")
#: Least shades of gray in a picture of the game, and least pixels gained by running to the right.
_SHADES, _PIXELS = 4, 40


class StubError(BackendError):
    """The real game was not played."""


@dataclass(frozen=True)
class Trial:
    """What to try."""

    backend: str = NES_PY
    num_envs: int = 4
    seed: int = 0
    sync: bool = True
    #: Environments that are made and dropped in this process first.
    prewarm_count: int = 0
    settings: WorkerSettings = field(default_factory=WorkerSettings)
    steps: int = STEPS

    def row(self) -> dict[str, Any]:
        """The initial row of the report."""
        return {
            "timestamp": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "kind": "sync" if self.sync else "async",
            "backend": self.backend,
            "num_envs": self.num_envs,
            "seed": self.seed,
            "reset_ok": False,
            "game_ok": False,
            "duration": 0.0,
            "construct_time": None,
            "reset_time": None,
            "step_time": None,
            "error": None,
        }


def run(trial: Trial, report: Report | None = None) -> dict[str, Any]:
    """Plays a trial. Errors of a back-end are stored in the row."""
    row = trial.row()
    began = time.monotonic()
    file = RomFile(roms.find(None))
    try:
        _play(trial, file, row, report or (lambda event: None))
    except (BackendError, OSError, EOFError) as error:
        row["error"] = f"{type(error).__name__}: {error}"
    finally:
        file.close()
    row["duration"] = round(time.monotonic() - began, 3)
    return row


def _play(trial: Trial, file: RomFile, row: dict[str, Any], report: Report) -> None:
    agree(trial.backend)
    spec = make_spec(trial.backend, file, OPTIONS, trial.num_envs)
    for _ in range(trial.prewarm_count):
        prewarm(spec, every_stage=False)
    clock = time.monotonic()
    lanes = open_lanes(spec, trial.settings, sync=trial.sync, report=report)
    try:
        clock = _lap(row, "construct_time", clock)
        arrays = _arrays(lanes)
        seeds = lane_seeds(trial.seed, trial.num_envs)
        lanes.seed(seeds)
        lanes.reset(None, arrays["obs"], arrays["info"])
        clock = _lap(row, "reset_time", clock)
        row["reset_ok"] = True
        check_game(lanes, arrays, trial.steps)
        _lap(row, "step_time", clock)
        if trial.backend == NES_PY:
            check_native(lanes, arrays, seeds, trial.steps)
        row["game_ok"] = True
    finally:
        lanes.close()


def check_game(lanes: Lanes, arrays: dict[str, NDArray[Any]], steps: int) -> None:
    """Runs to the right and demands what only the game shows: pictures and RAM that change with
    every step, and an x that grows."""
    everyone = range(lanes.num_lanes)
    frames, rams = [arrays["obs"].copy()], [lanes.ram(everyone)]
    start = arrays["info"][:, _column("x_pos")].copy()
    furthest = start.copy()
    for _ in range(steps):
        lanes.step(np.full(lanes.num_lanes, _FORWARD, np.int64), *arrays.values())
        furthest = np.maximum(furthest, arrays["info"][:, _column("x_pos")])
        frames.append(arrays["obs"].copy())
        rams.append(lanes.ram(everyone))
    for lane in everyone:
        if len(np.unique(frames[0][lane])) < _SHADES:
            raise StubError(f"the picture of lane {lane} is empty")
        _demand_change(f"the RAM of lane {lane}", [ram[lane] for ram in rams], steps)
        _demand_change(f"the picture of lane {lane}", [frame[lane] for frame in frames], steps)
        if furthest[lane] - start[lane] < _PIXELS:
            raise StubError(f"lane {lane} did not move to the right")


def check_native(
    lanes: Lanes, arrays: dict[str, NDArray[Any]], seeds: list[int], steps: int
) -> None:
    """The native engine, timed as nes-py is, must hold the same RAM and the same results after the
    same seeds and actions: no stub can know them."""
    options = replace(OPTIONS, timing="nes-py")
    same_step = _engine.Autoreset.SAME_STEP
    vector = options.make_vector(roms.find(None), lanes.num_lanes, autoreset=same_step)
    ours = {name: np.zeros_like(array) for name, array in arrays.items()}
    vector.seed(seeds)
    vector.reset(None, ours["obs"], ours["info"])
    for _ in range(steps):
        vector.step(np.full(lanes.num_lanes, _FORWARD, np.int64), *ours.values())
    for name in ("obs", "reward", "terminated", "truncated", "info"):
        if not np.array_equal(ours[name], arrays[name]):
            raise StubError(f"{name} differs from that of the native engine")
    everyone = range(lanes.num_lanes)
    if not np.array_equal(vector.ram(list(everyone)), lanes.ram(everyone)):
        raise StubError("RAM differs from that of the native engine")
    vector.close()


def _demand_change(what: str, states: list[NDArray[Any]], steps: int) -> None:
    changed = sum(not np.array_equal(before, after) for before, after in pairwise(states))
    if changed < steps * 3 // 4:
        raise StubError(f"{what} changed in {changed} of {steps} steps only")


def _arrays(lanes: Lanes) -> dict[str, NDArray[Any]]:
    return {
        name: np.zeros((lanes.num_lanes, *shape), kind)
        for name, shape, kind in layout(lanes.obs_shape)
    }


def _column(name: str) -> int:
    return _engine.INFO_FIELDS.index(name)


def _lap(row: dict[str, Any], name: str, began: float) -> float:
    now = time.monotonic()
    row[name] = round(now - began, 3)
    return now
