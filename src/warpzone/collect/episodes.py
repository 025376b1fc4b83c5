"""Episode accounting: ends, reasons and distances."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import merge
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.collect.lanes import LaneGroup
from warpzone.env.infos import COLUMN
from warpzone.env.stages import stage_name

#: `restart` of an episode that began at its stage's halfway page: neither at the door nor from a
#: moment of the archive.
HALFWAY = _engine.HALFWAY_RESTART
#: Episodes in the clear rate of a stage.
STAGE_WINDOW = 100
REASONS = ("flag", "death", "setback", "timeout", "stagnation")


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
    #: The moment of the archive it started from; 0 is the start of its stage.
    restart: int = 0


class Ended(NamedTuple):
    """An episode, and the step of the rollout that ended it: the order in which they count."""

    step: int
    lane: int
    episode: Episode


def in_order(ranks: Iterable[list[Ended]]) -> list[Episode]:
    """The episodes of all ranks as one process would have seen them end."""
    return [ended.episode for ended in merge(*ranks, key=lambda ended: ended[:2])]


class EpisodeLog:
    """Running sums of this rank's lanes, and the recent episodes of all ranks."""

    def __init__(
        self, lanes: int, *, time_limit: int = 0, setbacks: bool = False, window: int = 500
    ) -> None:
        """time_limit: steps after which an episode is truncated; 0 is never. setbacks: whether a
        set-back ends an episode, too. window: how many episodes are recent."""
        self._setbacks = setbacks
        self.returns = np.zeros(lanes, np.float64)
        self.steps = np.zeros(lanes, np.int64)
        self.recent: deque[Episode] = deque(maxlen=window)
        #: Episodes that started from the archive; all other numbers are about those that did not.
        self.restarted: deque[Episode] = deque(maxlen=window)
        self.stages: dict[int, deque[Episode]] = defaultdict(lambda: deque(maxlen=STAGE_WINDOW))
        self.total = 0
        #: Counted, and not taken yet.
        self.fresh: list[Episode] = []
        #: Ended in this rollout, and not counted yet.
        self._ended: list[Ended] = []
        self._time_limit = time_limit

    def add(self, group: LaneGroup, step: int = 0) -> NDArray[np.bool_]:
        """Adds one step of a group, the rollout's `step`-th; returns which of its lanes ended."""
        ended = group.terminated | group.truncated
        self.returns[group.lanes] += group.rewards
        self.steps[group.lanes] += 1
        for index in ended.nonzero()[0].tolist():
            self._close(group, index, step)
        return ended

    def ended(self) -> list[Ended]:
        """Episodes that ended here and have not been counted: all ranks count them together."""
        ended, self._ended = self._ended, []
        return ended

    def count(self, episodes: Iterable[Episode]) -> None:
        """Counts episodes of all ranks, in their order."""
        for episode in episodes:
            if not episode.restart:
                self.recent.append(episode)
                self.stages[episode.stage].append(episode)
            elif episode.restart != HALFWAY:
                self.restarted.append(episode)
            self.fresh.append(episode)
            self.total += 1

    def take(self) -> list[Episode]:
        """Episodes counted since the last call."""
        fresh, self.fresh = self.fresh, []
        return fresh

    def _close(self, group: LaneGroup, index: int, step: int) -> None:
        lane = group.lanes.start + index
        info = group.final_info[index]
        if group.terminated[index]:
            reason = self._end(info)
        elif 0 < self._time_limit <= info[COLUMN["steps"]]:
            reason = "timeout"
        else:
            reason = "stagnation"
        episode = Episode(
            lane=group.first + index,
            stage=int(info[COLUMN["start_stage"]]),
            start_delay=int(info[COLUMN["start_delay"]]),
            episode_return=float(self.returns[lane]),
            steps=int(self.steps[lane]),
            furthest_x=int(info[COLUMN["furthest_x"]]),
            reason=reason,
            restart=int(info[COLUMN["restart"]]),
        )
        self.returns[lane] = 0.0
        self.steps[lane] = 0
        self._ended.append(Ended(step, episode.lane, episode))

    def _end(self, info: NDArray[np.int32]) -> str:
        """Why the game itself ended an episode."""
        if info[COLUMN["flag_get"]]:
            return "flag"
        died = info[COLUMN["dying"]] or info[COLUMN["game_over"]]
        return "death" if died or not self._setbacks else "setback"

    def clear_rates(self) -> dict[str, float]:
        """Share of flags in the last episodes of each stage that was played; `game` is the whole
        game."""
        return {
            _name(stage): sum(e.reason == "flag" for e in episodes) / len(episodes)
            for stage, episodes in sorted(self.stages.items())
        }

    def summary(self) -> dict[str, float]:
        """Numbers over the recent episodes; empty until one has ended."""
        row: dict[str, float] = {}
        if self.restarted:
            flags = sum(episode.reason == "flag" for episode in self.restarted)
            row["archive_clear_rate"] = flags / len(self.restarted)
        if not self.recent:
            return row
        returns = np.array([e.episode_return for e in self.recent])
        steps = np.array([e.steps for e in self.recent])
        furthest = np.array([e.furthest_x for e in self.recent])
        reasons = Counter(e.reason for e in self.recent)
        count = len(self.recent)
        p50, p90, p99 = np.percentile(returns, [50, 90, 99]).tolist()
        length50, length90, length99 = np.percentile(steps, [50, 90, 99]).tolist()
        return row | {
            "avg_return": float(returns.mean()),
            "recent_return_std": float(returns.std()),
            "recent_return_min": float(returns.min()),
            "recent_return_max": float(returns.max()),
            "recent_return_p50": p50,
            "recent_return_p90": p90,
            "recent_return_p99": p99,
            "clear_rate": reasons["flag"] / count,
            **{f"episode_end_{name}_ratio": reasons[name] / count for name in REASONS},
            "episode_length_mean": float(steps.mean()),
            "episode_length_p50": length50,
            "episode_length_p90": length90,
            "episode_length_p99": length99,
            "env_mean_x_pos": float(furthest.mean()),
            "env_max_x_pos": float(furthest.max()),
            "episodes_completed": float(self.total),
            **{
                f"clear_rate_{name.replace('-', '_')}": rate
                for name, rate in self.clear_rates().items()
            },
        }

    def state_dict(self) -> dict[str, Any]:
        """The complete state: plain numbers, text and lists of them."""
        return {
            "returns": self.returns.tolist(),
            "steps": self.steps.tolist(),
            "total": self.total,
            "recent": [list(dataclasses.astuple(e)) for e in self.recent],
            "restarted": [list(dataclasses.astuple(e)) for e in self.restarted],
            "stages": {
                stage: [list(dataclasses.astuple(e)) for e in episodes]
                for stage, episodes in self.stages.items()
            },
            "fresh": [list(dataclasses.astuple(e)) for e in self.fresh],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores `state_dict`."""
        self.returns[:] = state["returns"]
        self.steps[:] = state["steps"]
        self.total = int(state["total"])
        self.recent.clear()
        self.recent.extend(Episode(*row) for row in state["recent"])
        self.restarted.clear()
        self.restarted.extend(Episode(*row) for row in state.get("restarted", []))
        self.stages.clear()
        for stage, rows in state["stages"].items():
            self.stages[int(stage)].extend(Episode(*row) for row in rows)
        self.fresh = [Episode(*row) for row in state["fresh"]]


def _name(stage: int) -> str:
    return stage_name(stage) if stage >= 0 else "game"
