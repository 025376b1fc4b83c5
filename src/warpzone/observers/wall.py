"""Pictures of some lanes for viewers of the run: the newest steps of the newest rollout, as the
network saw them, or the screens that the game shows now, in one file, replaced atomically."""

from __future__ import annotations

import contextlib
import json
import time
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from warpzone.env.actions import action_table
from warpzone.env.infos import COLUMN
from warpzone.media.pictures import ram_block
from warpzone.observers.observer import ObservedRun, Observer
from warpzone.run.files import own_folder, replace_unflushed
from warpzone.run.names import WALL, WALL_PICTURES, WALL_SCREENS, WALL_WANTED

if TYPE_CHECKING:
    from warpzone.collect.collector import Collected

#: Seconds after which a touch of the request file expires.
WANTED_FOR = 10.0
#: Seconds between two files, at least.
LEAST_GAP = 0.5
#: Pixels in one file, at most.
MOST_PIXELS = 16_000_000


class WallObserver(Observer):
    """Writes `wall/latest.bin`: a line of JSON, then uint8 pictures [steps, lanes, height,
    width], with `colors` 3 also [..., 3]. Without viewers it costs one stat of a file for each
    update."""

    def __init__(self, lanes: int, rate: float) -> None:
        self.lanes = lanes
        self.rate = rate
        self._last = 0.0
        self._count = 0

    def updated(self, run: ObservedRun, row: dict[str, Any], collected: Collected) -> None:
        now = time.monotonic()
        if now - self._last < LEAST_GAP or not _wanted(run.folder.path / WALL / WALL_WANTED):
            return
        gap = min(now - self._last, 60.0) if self._last else 0.0
        self._last = now
        self._count += 1
        # A failure to write pictures, on a full disk for example, must not end the run.
        with contextlib.suppress(OSError):
            if _wanted(run.folder.path / WALL / WALL_SCREENS) and has_screens(run):
                write_screens(run, self.lanes, self._count)
            else:
                write_wall(run, collected, self.lanes, max(1, round(self.rate * gap)), self._count)


def write_wall(run: ObservedRun, collected: Collected, lanes: int, steps: int, number: int) -> None:
    """The last `steps` steps of a rollout, of lanes spread over the run."""
    rollout, config = collected.rollout, run.config
    chosen = _spread(rollout.lanes, lanes)
    fits = MOST_PIXELS // (len(chosen) * prod(config.picture))
    steps = max(1, min(steps, rollout.length, fits))
    first = rollout.length - steps
    index = torch.from_numpy(chosen).to(rollout.frames.device)
    # Frames have `stack - 1` older ones in front, and the one after the last step behind.
    begin = config.frame_stack - 1 + first
    frames = rollout.frames[begin : begin + steps].index_select(1, index).cpu().numpy()
    frames = gray(frames) if config.color else frames
    frames = ram_block(frames) if config.observation == "ram" else frames
    values = rollout.values[first:].index_select(1, index).cpu().numpy()
    actions = rollout.actions[first:].index_select(1, index).cpu().numpy()
    header = {
        **_header(run, chosen, number),
        "shape": list(frames.shape),
        "actions": actions.tolist(),
        "values": np.round(values.astype(float), 3).tolist(),
    }
    _write(run, header, frames)


def has_screens(run: ObservedRun) -> bool:
    """Whether screens can be taken: the native engine's, while its lanes rest, in this process."""
    return run.between and run.config.backend == "native" and not run.config.actors


def write_screens(run: ObservedRun, lanes: int, number: int) -> None:
    """What the game shows now, in its own colours and size."""
    chosen = _spread(sum(group.count for group in run.collector.groups), lanes)
    screens = []
    for lane in chosen:
        group = next(g for g in run.collector.groups if g.lanes.start <= lane < g.lanes.stop)
        screens.append(group.vector.screen(int(lane) - group.lanes.start))
    pictures = np.stack(screens)[None]
    shape, colors = list(pictures.shape[:4]), pictures.shape[4]
    header = {**_header(run, chosen, number), "shape": shape, "colors": colors, "actions": []}
    _write(run, header, pictures)


def _spread(all_lanes: int, count: int) -> NDArray[np.int64]:
    """So many lanes, from all groups."""
    return np.unique(np.linspace(0, all_lanes - 1, min(count, all_lanes)).astype(np.int64))


def _header(run: ObservedRun, chosen: NDArray[np.int64], number: int) -> dict[str, Any]:
    return {
        "number": number,
        "timestamp": time.time(),
        "update": run.global_update,
        "step_seconds": run.config.frame_skip / 60.0988,
        "lanes": [{"lane": int(lane), **_place(run, int(lane))} for lane in chosen],
        "names": action_table(run.config.actions).names,
    }


def _write(run: ObservedRun, header: dict[str, Any], pictures: NDArray[np.uint8]) -> None:
    folder = run.folder.path / WALL
    own_folder(folder)
    content = json.dumps(header).encode() + b"\n" + pictures.tobytes()
    replace_unflushed(folder / WALL_PICTURES, content)


def gray(frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Gray levels of planar RGB, [..., 3 * height, width]."""
    red, green, blue = np.split(frames.astype(np.uint16), 3, -2)
    return ((77 * red + 150 * green + 29 * blue) >> 8).astype(np.uint8)


def _place(run: ObservedRun, lane: int) -> dict[str, Any]:
    for group in run.collector.groups:
        if group.lanes.start <= lane < group.lanes.stop:
            info = group.info[lane - group.lanes.start]
            # The current stage, not the first one, which a whole game does not have.
            world, stage, x = (int(info[COLUMN[name]]) for name in ("world", "stage", "x_pos"))
            return {"stage": f"{world}-{stage}", "x": x}
    raise IndexError(f"there is no lane {lane}")


def _wanted(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime < WANTED_FOR
    except OSError:
        return False
