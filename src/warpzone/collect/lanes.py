"""The lanes of a run, in groups: while one group plays, the network decides for another."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.collect.ranks import ALONE, Ranks
from warpzone.config import TrainConfig
from warpzone.config.reward import RewardConfig
from warpzone.env.options import STATUS_BAR_LINES, Options
from warpzone.env.rewards import Annealed, RewardSchedule, RewardWeights
from warpzone.env.stages import parse_stages, stage_name

# PyTorch is loaded when lanes are made: their options are checked without it.
if TYPE_CHECKING:
    import torch

#: Observations, rewards, terminated, truncated, info, final observations and their info.
Results = tuple[
    NDArray[np.uint8],
    NDArray[np.float32],
    NDArray[np.bool_],
    NDArray[np.bool_],
    NDArray[np.int32],
    NDArray[np.uint8],
    NDArray[np.int32],
]


def reward_schedule(config: RewardConfig) -> RewardSchedule:
    """The reward weights over the run."""
    start = config.death_penalty_start
    weights = RewardWeights(
        pixel=config.reward_distance_weight,
        step=config.reward_step,
        flag=config.reward_flag,
        death=config.reward_death if start is None else start,
        clip=config.reward_clip,
        score=config.reward_score_weight,
        scale=config.reward_scale_start,
        milestone=config.milestone_bonus,
        milestone_interval=config.milestone_interval,
    )
    return RewardSchedule(
        weights,
        pixel=Annealed(
            weights.pixel,
            config.reward_distance_weight_final,
            config.reward_distance_weight_anneal_steps,
        ),
        scale=Annealed(weights.scale, config.reward_scale_final, config.reward_scale_anneal_steps),
        death=Annealed(
            weights.death, config.death_penalty_final, config.death_penalty_anneal_steps
        ),
    )


def lane_stages(config: TrainConfig, lanes: slice) -> str | list[list[str]]:
    """The stages that each lane of a group draws from: all, or one of a span."""
    if not config.stage_span or config.random_stage:
        return config.stages
    names = [stage_name(index) for index in parse_stages(config.stages)]
    return [[names[lane % len(names)]] for lane in range(lanes.start, lanes.stop)]


def lane_options(config: TrainConfig, **changes: Any) -> Options:
    """Options of a training lane. Frames are stacked where the network runs, so the engine
    delivers the newest only."""
    crop = STATUS_BAR_LINES if config.crop_status_bar else 0
    values: dict[str, Any] = {
        "stages": config.stages,
        "actions": config.actions,
        "frame_skip": config.frame_skip,
        "frame_stack": 1,
        "size": config.size,
        "obs": config.observation,
        "gray": not config.color,
        "planar": config.color,
        "crop": (crop, 0, 0, 0),
        "mask_status_bar": config.mask_status_bar and not config.crop_status_bar,
        "max_last_two": config.max_last_two,
        "reward": config.base_reward,
        "reward_weights": reward_schedule(config).weights,
        "end": "setback" if config.end_on_setback else "life",
        "start_delay": (0, config.start_delay),
        "start_power": config.start_power,
        "start_halfway": config.start_halfway,
        "sticky": config.sticky,
        "time_limit": config.episode_timeout_steps,
        "stagnation_limit": config.stagnation_limit,
    }
    if config.whole_game:
        values["end"] = "game_over"
    if "stages" in changes:
        # Single stages, as in evaluations, are played with one life and without help, from the
        # same start whatever the run is trained with.
        values |= {"end": "life", "start_power": "small", "start_halfway": 0.0}
    return Options(**{**values, **changes})


class LaneGroup:
    """Some lanes with the arrays of their results. At most one step is in progress."""

    def __init__(
        self, vector: _engine.Vector, lanes: slice, *, first: int | None = None, pinned: bool
    ) -> None:
        """lanes: its lanes among those of this rank; first: the number of the first of them in the
        run, which is the same unless there are other ranks."""
        import torch

        count = vector.num_lanes
        _, height, width = vector.obs_shape
        self.vector = vector
        self.lanes = lanes
        self.first = lanes.start if first is None else first
        self.count = count
        #: Newest frame of each lane, ready to be copied to the device.
        self.frames = torch.empty((count, height, width), dtype=torch.uint8, pin_memory=pinned)
        #: Last frame of an episode that ended with this step.
        self.final_frames = torch.empty_like(self.frames, pin_memory=pinned)
        self.rewards = np.zeros(count, np.float32)
        self.terminated = np.zeros(count, np.bool_)
        self.truncated = np.zeros(count, np.bool_)
        self.info = np.zeros((count, len(_engine.INFO_FIELDS)), np.int32)
        self.final_info = np.zeros_like(self.info)
        self._obs = self.frames.numpy()[:, None]
        self._final_obs = self.final_frames.numpy()[:, None]

    def reset(self, seeds: Sequence[int]) -> None:
        """Resets every lane."""
        self.vector.seed(list(seeds))
        self.vector.reset(None, self._obs, self.info)

    def start(self, actions: NDArray[np.int64]) -> None:
        """Starts a step; the engine works while the caller does something else."""
        self.vector.start(actions, *self._results())

    def finish(self) -> None:
        """Waits for the step; raises an error of the engine."""
        self.vector.finish()

    def save(self) -> list[bytes]:
        """Every lane between two steps: its machine, episode and random numbers."""
        return [self.vector.save(lane) for lane in range(self.count)]

    def load(self, states: Sequence[bytes]) -> None:
        """Restores lanes; ValueError if their ROM or options differ."""
        for lane, state in enumerate(states):
            self.vector.load(lane, state)

    def _results(self) -> Results:
        """Where a step writes to, as the engine takes it."""
        return (
            self._obs,
            self.rewards,
            self.terminated,
            self.truncated,
            self.info,
            self._final_obs,
            self.final_info,
        )

    def close(self) -> None:
        """Ends the step under way, and the lanes."""
        self.vector.close()


class Lanes(Sequence[LaneGroup]):
    """All groups of a run; closes them."""

    def __init__(
        self,
        groups: Sequence[LaneGroup],
        rom: bytes = b"",
        native: _engine.NativeProgram | None = None,
    ) -> None:
        self._groups = tuple(groups)
        #: ROM and translated code of the lanes, for trials beside them.
        self.rom = rom
        self.native = native

    def __len__(self) -> int:
        return len(self._groups)

    @overload
    def __getitem__(self, index: int) -> LaneGroup: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[LaneGroup, ...]: ...
    def __getitem__(self, index: int | slice) -> LaneGroup | tuple[LaneGroup, ...]:
        return self._groups[index]

    def counters(self) -> dict[str, float]:
        """Counters of handled failures; always empty here."""
        return {}

    def take_events(self) -> list[dict[str, Any]]:
        """Events of construction and of lost workers since the last call; always empty here."""
        return []

    def close(self) -> None:
        """Ends the steps in progress and every thread. Closing twice is allowed."""
        for group in self._groups:
            group.close()


def make_groups(
    config: TrainConfig,
    rom: bytes,
    native: _engine.NativeProgram | None,
    device: torch.device,
    ranks: Ranks = ALONE,
) -> Lanes:
    """The run's lanes, or this rank's of them. The groups share the engine's threads, which step
    them in the order in which they were started: the end of one group's step is the beginning of
    the next one's.

    device: where the network decides."""
    beside_gpu = device.type == "cuda"
    if config.backend != "native":
        from warpzone.collect.backend_lanes import make_backend_groups

        return make_backend_groups(config, rom, pinned=beside_gpu, ranks=ranks)
    cores = max(1, _cores() // ranks.local_size)
    # A core is left to the thread that launches and accounts: the engine waits for it.
    free = max(1, cores - 1) if beside_gpu else cores
    own = ranks.lanes(config.num_envs)
    threads = _engine.Threads(min(config.num_threads or free, own.stop - own.start))
    groups: list[LaneGroup] = []
    with ExitStack() as undo:
        for lanes, numbers in group_lanes(config, ranks):
            options = lane_options(config)
            options = replace(options, stages=lane_stages(config, numbers))
            vector = options.make_vector(
                rom,
                lanes.stop - lanes.start,
                autoreset=_engine.Autoreset.SAME_STEP,
                native=native,
                num_threads=threads,
            )
            group = LaneGroup(vector, lanes, first=numbers.start, pinned=beside_gpu)
            undo.callback(group.close)
            groups.append(group)
            group.reset(lane_seeds(config.seed, numbers))
        undo.pop_all()
    return Lanes(groups, rom, native)


def group_lanes(config: TrainConfig, ranks: Ranks) -> list[tuple[slice, slice]]:
    """The lanes of each group: their places among this rank's lanes, and their numbers in the
    run."""
    own = ranks.lanes(config.num_envs)
    share = (own.stop - own.start) // config.groups
    places = [slice(index * share, (index + 1) * share) for index in range(config.groups)]
    return [(p, slice(own.start + p.start, own.start + p.stop)) for p in places]


def lane_seeds(seed: int, lanes: slice) -> list[int]:
    """A 64-bit seed for each lane; it depends on the lane's number in the run, not on its group or
    rank."""
    words = np.random.SeedSequence(seed).generate_state(lanes.stop, np.uint64)
    return [int(word) for word in words[lanes]]


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
