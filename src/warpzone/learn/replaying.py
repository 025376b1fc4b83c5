"""The replay of a run: built from the configuration, fed by rollouts, read by the learner."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from warpzone.collect.actor import autocast
from warpzone.collect.ranks import ALONE, Ranks
from warpzone.collect.streams import stream_seed
from warpzone.config import ConfigError, TrainConfig
from warpzone.data.replay.replay import Replay, ReplaySpec, SegmentBatch, segment_priorities
from warpzone.data.replay.sampler import BetaSchedule
from warpzone.data.replay.shared import Part, joined
from warpzone.data.replay.storage import SegmentSpec, state_layout
from warpzone.data.stacking import stack_sequence
from warpzone.data.types import Rollout
from warpzone.model.agent import Agent
from warpzone.model.cpu import computing_with

GIB = 2**30


def replay_spec(config: TrainConfig, agent: Agent) -> ReplaySpec:
    """A segment is what one lane does in one rollout, so that the memory before it is known."""
    segment = SegmentSpec(
        length=config.rollout_steps,
        stack=config.frame_stack,
        picture=config.picture,
        actions=agent.spec.actions,
        state=state_layout(agent.initial_state(1, device="cpu")),
    )
    memory = int(config.per_memory_gb * GIB)
    try:
        return ReplaySpec(
            segment=segment,
            memory_bytes=memory,
            alpha=config.per_alpha,
            beta=BetaSchedule(config.per_beta, config.per_beta_final),
            sample_interval=config.per_sample_interval,
            max_interval=config.per_interval_max,
            min_segments=min(config.per_segments, segment.capacity(memory)),
            device_sampler=config.per_gpu_sample,
            fallback_ms=config.per_gpu_sample_fallback_ms or None,
        )
    except ValueError as error:
        raise ConfigError(f"--per-memory-gb {config.per_memory_gb:g}: {error}") from error


class Replaying:
    """Segments are stored on the learner's device, so that samples need no transfer."""

    def __init__(
        self, config: TrainConfig, agent: Agent, device: torch.device, ranks: Ranks = ALONE
    ) -> None:
        spec = replay_spec(config, agent)
        there, need = _memory(device), spec.memory_bytes
        if ranks.size > 1:
            need = need // ranks.size * (1 if device.type == "cuda" else ranks.local_size)
        if need > there:
            raise ConfigError(
                f"--per-memory-gb {config.per_memory_gb:g} is more than the "
                f"{there / GIB:.1f} GiB of memory there are on {device}"
            )
        self.config = config
        self.agent = agent
        self.device = device
        self._ranks = ranks
        self.replay = Replay(
            spec,
            storage_device=device,
            device=device,
            seed=stream_seed(config.seed, "replay"),
            part=Part(ranks.rank, ranks.size, config.num_envs) if ranks.size > 1 else None,
            agree=(lambda slow: bool(ranks.most(slow))) if ranks.size > 1 else None,
        )

    def exchange(self, rollout: Rollout, progress: float) -> SegmentBatch | None:
        """Stores the rollout; every `per_sample_interval`-th time it gives a batch in return."""
        return self.replay.push_and_sample(rollout, self.config.per_segments, progress)

    def warmed_up(self, segments: Rollout) -> Rollout:
        """The segments without their burn-in, with the memory that the present network has after
        it."""
        return without_burn_in(self.agent, segments, self.config, self.device)

    def own(self, batch: SegmentBatch) -> Tensor | None:
        """bool [N]: the segments of a batch that are this rank's; None if there are no others."""
        return self.replay.own(batch)

    def errors(self, batch: SegmentBatch, pieces: list[Tensor]) -> Tensor:
        """The value errors of a batch, [steps, segments], from pieces of them. Of several ranks
        each has those of its own segments, if there are any, and all get those of all."""
        own = self.own(batch)
        if own is None:
            return torch.cat(pieces, 1)
        steps = self.config.rollout_steps - self.config.per_burn_in
        errors = torch.zeros((steps, len(own)), device=self.device)
        if pieces:
            errors[:, own] = torch.cat(pieces, 1)
        self._ranks.sum(errors)
        return errors

    def learned(self, batch: SegmentBatch, errors: Tensor) -> None:
        """Sets priorities from the value errors [steps, segments] of a batch."""
        # On several ranks the same bits come out, whatever their numbers of threads.
        with computing_with(1 if self._ranks.size > 1 else 0):
            self.replay.update_priorities(batch, segment_priorities(errors))
            self.replay.interval.observe(errors)

    def metrics(self) -> dict[str, float]:
        """Numbers for the metrics row."""
        stats = self.replay.stats()
        return {
            "replay_fill_rate": stats.fill,
            "replay_last_unique_ratio": stats.unique,
            "replay_avg_unique_ratio": stats.avg_unique,
            "replay_push_total": float(stats.push_total),
            "replay_sample_total": float(stats.samples),
            "replay_priority_mean": stats.priority_mean,
            "replay_priority_p50": stats.priority_p50,
            "replay_priority_p90": stats.priority_p90,
            "replay_priority_p99": stats.priority_p99,
            "replay_sample_time_ms": stats.sample_ms,
            "replay_sample_search_ms": stats.search_ms,
            "replay_sample_gather_ms": stats.gather_ms,
            "replay_sample_copy_ms": stats.copy_ms,
            "replay_gpu_sample": float(stats.on_device),
            "replay_interval": float(self.replay.interval.value),
        }

    def stat_line(self) -> str:
        """The line that logs carry."""
        return self.replay.stats().stat_line()


def joined_replay(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The stored segments of all ranks, as one process would save them."""
    return joined(parts)


@torch.no_grad()
def without_burn_in(
    agent: Agent, segments: Rollout, config: TrainConfig, device: torch.device
) -> Rollout:
    """Kapturowski et al. 2019: the memory stored with a segment is that of an old network; playing
    the first steps through the present one replaces it, and teaches nothing."""
    steps = config.per_burn_in
    if steps == 0:
        return segments
    state = segments.state
    if state:
        seen = segments.frames[: steps + segments.stack - 1]
        obs = stack_sequence(seen, segments.age[:steps])
        with autocast(config, device):
            output = agent(obs, segments.previous_actions[:steps], state, segments.starts[:steps])
        state = output.state
    rest = {
        name: value if name == "last_value" else value[steps:]
        for name, value in zip(segments._fields, segments, strict=True)
        if isinstance(value, Tensor)
    }
    return Rollout(**rest, state=state)


def _memory(device: torch.device) -> int:
    """What is free on a GPU; all there is on the CPU, where it is taken as it fills."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
