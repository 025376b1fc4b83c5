"""Scripted and probed starts: buttons before the policy takes over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from warpzone import _engine
from warpzone.collect.lanes import LaneGroup, lane_options
from warpzone.config import TrainConfig
from warpzone.env.actions import action_table, button_mask
from warpzone.env.infos import COLUMN
from warpzone.env.script import parse_start
from warpzone.env.stages import parse_stages, stage_name

#: Default forward actions, best first.
FORWARD = ("RIGHT+B", "RIGHT+A+B", "RIGHT", "RIGHT+A")


class Probe(NamedTuple):
    """Results of a probe of all actions."""

    #: The one that went furthest to the right.
    action: int
    #: Pixels that each went.
    distances: tuple[int, ...]


def probe(
    config: TrainConfig, rom: bytes, native: _engine.NativeProgram | None, steps: int
) -> Probe:
    """Plays every action for so many steps from the same moment of the first stage."""
    count = len(action_table(config.actions).masks)
    first = parse_stages(config.stages) or (0,)
    options = lane_options(
        config, stages=stage_name(first[0]), start_delay=0, sticky=0.0, stagnation_limit=0
    )
    disabled = _engine.Autoreset.DISABLED
    vector = options.make_vector(rom, count, native=native, autoreset=disabled)
    try:
        return _probe(vector, steps)
    finally:
        vector.close()


def _probe(vector: _engine.Vector, steps: int) -> Probe:
    count = vector.num_lanes
    obs = np.zeros((count, *vector.obs_shape), np.uint8)
    info = np.zeros((count, len(_engine.INFO_FIELDS)), np.int32)
    reward, lanes = np.zeros(count, np.float32), np.arange(count, dtype=np.int64)
    terminated, truncated = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    vector.seed([0] * count)
    vector.reset(None, obs, info)
    state = vector.save(0)
    for lane in range(count):
        vector.load(lane, state)
    start = info[0, COLUMN["x_pos"]]
    reached = np.full(count, start, np.int32)
    running = lanes
    for _ in range(steps):
        vector.send(running, running)
        size = len(running)
        done = np.zeros(size, np.int64)
        parts = (obs[:size], reward[:size], terminated[:size], truncated[:size], info[:size])
        vector.recv(*parts, done, None, None)
        reached[done] = np.maximum(reached[done], info[:size, COLUMN["x_pos"]])
        running = np.sort(done[~(terminated[:size] | truncated[:size])])
        if not len(running):
            break
    distances = tuple(int(x) for x in reached - start)
    return Probe(int(np.argmax(distances)), distances)


def forward_action(
    config: TrainConfig, rom: bytes, native: _engine.NativeProgram | None
) -> tuple[int, Probe | None]:
    """The forward action: configured, probed, or chosen by its buttons."""
    if config.forward_action_id is not None:
        return config.forward_action_id, None
    if config.probe_forward_actions:
        found = probe(config, rom, native, config.probe_forward_actions)
        return found.action, found
    masks = action_table(config.actions).masks
    for name in FORWARD:
        if button_mask(name) in masks:
            return masks.index(button_mask(name)), None
    right = button_mask("RIGHT")
    return next((action for action, mask in enumerate(masks) if mask & right), 0), None


class Starts:
    """The script of episodes, and the push when no lane moves."""

    def __init__(
        self, config: TrainConfig, rom: bytes, native: _engine.NativeProgram | None
    ) -> None:
        self.config = config
        moves = config.scripted_forward_frames or config.auto_bootstrap_frames
        self.action, self.probed = 0, None
        if moves or config.probe_forward_actions:
            self.action, self.probed = forward_action(config, rom, native)
        forward = action_table(config.actions).masks[self.action : self.action + 1]
        sequence = parse_start(config.scripted_sequence) if config.scripted_sequence else b""
        self.script = sequence + forward * config.scripted_forward_frames
        self._push = forward * config.auto_bootstrap_frames
        #: Whether the games of all lanes have begun and not been played yet.
        self.unplayed = True
        self._playing = False
        self._pushed_at = -1

    @property
    def pushes(self) -> bool:
        """Whether lanes may be pushed."""
        return bool(self._push)

    def before(self, groups: Sequence[LaneGroup], global_step: int) -> None:
        """Before a rollout: gives the script to the lanes, or takes it away. Games that have
        been reset but not played get theirs now."""
        wanted = bool(self.script) and global_step < self.config.script_ends
        unplayed, self.unplayed = self.unplayed, False
        if wanted == self._playing:
            return
        self._playing = wanted
        for group in groups:
            group.vector.set_script(self.script if wanted else b"")
            if wanted and unplayed:
                group.vector.force(range(group.count), self.script)

    def after(self, groups: Sequence[LaneGroup], updates: int, distance: float) -> None:
        """After a rollout, the `updates`-th: pushes all lanes forward, once, if none of them gained
        any ground."""
        threshold = self.config.auto_bootstrap_threshold
        if not threshold or updates < threshold or distance > 0 or self._pushed_at >= 0:
            return
        self._pushed_at = updates
        for group in groups:
            group.vector.force(range(group.count), self._push)

    def metrics(self, updates: int) -> dict[str, float]:
        """Numbers for the metrics row."""
        row: dict[str, float] = {}
        if self.probed is not None:
            row["probe_forward_action_selected"] = float(self.probed.action)
        if self.config.auto_bootstrap_threshold:
            frames = self.config.rollout_steps * self.config.frame_skip
            left = self.config.auto_bootstrap_frames - (updates - self._pushed_at) * frames
            row["auto_bootstrap_triggered"] = float(self._pushed_at >= 0)
            row["auto_bootstrap_remaining"] = float(max(0, left) if self._pushed_at >= 0 else 0)
            row["auto_bootstrap_action_id"] = float(self.action)
        return row

    def state_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        return {"pushed_at": self._pushed_at}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict`."""
        self._pushed_at = int(state["pushed_at"])
