"""Where episodes end: clear rates for the grid of 32 stages, and deaths along each of them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import Any

from warpzone.env.stages import NUM_STAGES, stage_name

#: Episodes in the clear rate of a stage.
RECENT = 200
#: Pixels in a bin of the death map: one block of the level.
BIN = 16
#: Upper bound of a stage in pixels; larger values are ignored.
MOST_X = 8192
EPISODES_KEPT = 500
#: How ends are drawn: everything that is neither flag nor death is a stall.
KINDS = ("flag", "death", "stall")
POLICIES = ("argmax", "sampled")


class StageCounts:
    """What happened on one stage."""

    def __init__(self) -> None:
        self.episodes = 0
        self.ends: Counter[str] = Counter()
        self.recent: deque[bool] = deque(maxlen=RECENT)
        self.furthest = 0
        self.bins: dict[str, Counter[int]] = {kind: Counter() for kind in KINDS}
        #: Cleared and played in the newest evaluation, by policy.
        self.evaluated: dict[str, list[int]] = {}


class Stages:
    """All stages of a run, and its newest episodes."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Clears all data."""
        self.counts: dict[str, StageCounts] = {}
        self.episodes: deque[dict[str, Any]] = deque(maxlen=EPISODES_KEPT)
        self.total = 0

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Finished episodes of training."""
        for row in rows:
            stage, reason, x = row.get("stage"), row.get("reason"), row.get("furthest_x")
            if (
                not isinstance(stage, int)
                or not 0 <= stage < NUM_STAGES
                or not isinstance(reason, str)
            ):
                continue
            self.total += 1
            name = stage_name(stage)
            self.episodes.append({**row, "stage": name, "number": self.total})
            counts = self.counts.setdefault(name, StageCounts())
            counts.episodes += 1
            kind = reason if reason in KINDS else "stall"
            counts.ends[kind] += 1
            counts.recent.append(kind == "flag")
            if isinstance(x, int) and 0 <= x < MOST_X:
                counts.furthest = max(counts.furthest, x)
                counts.bins[kind][x // BIN] += 1

    def evaluated(self, rows: Iterable[dict[str, Any]]) -> None:
        """The rows of the newest evaluation."""
        for counts in self.counts.values():
            counts.evaluated = {}
        for row in rows:
            name, policy = row.get("stage"), row.get("policy")
            if not isinstance(name, str) or len(name) > 8 or policy not in POLICIES:
                continue
            counts = self.counts.setdefault(name, StageCounts())
            pair = counts.evaluated.setdefault(policy, [0, 0])
            pair[0] += bool(row.get("cleared"))
            pair[1] += 1

    def grid(self) -> dict[str, Any]:
        """For the 4 x 8 grid."""
        return {
            name: {
                "episodes": counts.episodes,
                "rate": sum(counts.recent) / len(counts.recent) if counts.recent else None,
                "recent": len(counts.recent),
                "ends": dict(counts.ends),
                "furthest": counts.furthest,
                "evaluated": counts.evaluated,
            }
            for name, counts in sorted(self.counts.items())
        }

    def ends(self, stage: str) -> dict[str, Any]:
        """Where episodes of a stage ended, as pairs of bin and count."""
        counts = self.counts.get(stage, StageCounts())
        bins = {kind: sorted(found.items()) for kind, found in counts.bins.items()}
        return {"bin": BIN, "furthest": counts.furthest, "ends": bins}
