"""Episode accounting: what ended, how, and how far it came."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warpzone.train.lanes import COLUMN, LaneGroup

WINDOW = 500


@dataclass(frozen=True)
class Episode:
    """One finished episode."""

    lane: int
    stage: int
    start_delay: int
    episode_return: float
    steps: int
    furthest_x: int
    reason: str


class EpisodeLog:
    """Running sums of every lane, and the episodes that ended lately."""

    def __init__(self, lanes: int) -> None:
        self.returns = np.zeros(lanes, np.float64)
        self.steps = np.zeros(lanes, np.int64)
        self.recent: deque[Episode] = deque(maxlen=WINDOW)
        self.total = 0
        self.fresh: list[Episode] = []

    def add(self, group: LaneGroup) -> NDArray[np.bool_]:
        """Counts one step of a group; returns which of its lanes ended."""
        ended = group.terminated | group.truncated
        self.returns[group.lanes] += group.rewards
        self.steps[group.lanes] += 1
        for index in np.flatnonzero(ended):
            self._close(group, int(index))
        return ended

    def take(self) -> list[Episode]:
        """Episodes that ended since the last call."""
        fresh, self.fresh = self.fresh, []
        return fresh

    def _close(self, group: LaneGroup, index: int) -> None:
        lane = group.lanes.start + index
        info = group.final_info[index]
        if group.terminated[index]:
            reason = "flag" if info[COLUMN["flag_get"]] else "death"
        else:
            reason = "timeout"
        episode = Episode(
            lane=lane,
            stage=int(info[COLUMN["start_stage"]]),
            start_delay=int(info[COLUMN["start_delay"]]),
            episode_return=float(self.returns[lane]),
            steps=int(self.steps[lane]),
            furthest_x=int(info[COLUMN["furthest_x"]]),
            reason=reason,
        )
        self.returns[lane] = 0.0
        self.steps[lane] = 0
        self.recent.append(episode)
        self.fresh.append(episode)
        self.total += 1

    def summary(self) -> dict[str, float]:
        """Numbers over the recent episodes; empty until one has ended."""
        if not self.recent:
            return {}
        returns = np.array([e.episode_return for e in self.recent])
        reasons = Counter(e.reason for e in self.recent)
        p50, p90, p99 = np.percentile(returns, [50, 90, 99])
        count = len(self.recent)
        furthest = np.array([e.furthest_x for e in self.recent])
        return {
            "avg_return": float(returns.mean()),
            "recent_return_p50": float(p50),
            "recent_return_p90": float(p90),
            "recent_return_p99": float(p99),
            "clear_rate": reasons["flag"] / count,
            "episode_end_flag_ratio": reasons["flag"] / count,
            "episode_end_death_ratio": reasons["death"] / count,
            "episode_end_timeout_ratio": reasons["timeout"] / count,
            "episode_length_mean": float(np.mean([e.steps for e in self.recent])),
            "env_mean_x_pos": float(furthest.mean()),
            "env_max_x_pos": float(furthest.max()),
            "episodes_completed": float(self.total),
        }
