"""What the board of 32 stages shows: how often each is cleared, whether that gets better, and where
its episodes end."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import Any

from warpzone.env.stages import NUM_STAGES, stage_name

#: Episodes in the clear rate of a stage.
RECENT = 200
#: Episodes that make one point of a stage's trend, and points that are kept.
TREND_EPISODES, TREND_POINTS = 50, 24
#: Ends this close together, in pixels, are one place.
PLACE = 64
#: Pixels in a bin of the death map: one block of the level.
BIN = 16
#: Upper bound of a stage in pixels; larger values are ignored.
MOST_X = 8192
EPISODES_KEPT = 500
#: How ends are drawn: everything that is neither flag nor death is a stall.
KINDS = ("flag", "death", "stall")
POLICIES = ("argmax", "sampled")
STAGES = frozenset(stage_name(index) for index in range(NUM_STAGES))


class StageCounts:
    """What happened on one stage."""

    def __init__(self) -> None:
        self.episodes = 0
        self.ends: Counter[str] = Counter()
        #: Of the episodes that began at the door, the newest: whether they reached the flag, and
        #: where those ended that did not.
        self.recent: deque[tuple[bool, int | None]] = deque(maxlen=RECENT)
        #: Clear rates of the door's episodes, one for each so many of them, and the unfinished one.
        self.trend: deque[float] = deque(maxlen=TREND_POINTS)
        self._block: list[bool] = []
        self.furthest = 0
        self.bins: dict[str, Counter[int]] = {kind: Counter() for kind in KINDS}
        #: Cleared and played in the newest evaluation, by policy, and where the others ended.
        self.evaluated: dict[str, list[int]] = {}
        self.failed: dict[str, Counter[int]] = {}
        #: The same of all evaluations, by policy and step.
        self.history: dict[str, dict[int, list[int]]] = {}

    def from_the_door(self, cleared: bool, x: int | None) -> None:
        """One more episode that began at the start of the stage."""
        self.recent.append((cleared, x))
        self._block.append(cleared)
        if len(self._block) == TREND_EPISODES:
            self.trend.append(sum(self._block) / TREND_EPISODES)
            self._block = []

    def shown(self) -> dict[str, Any]:
        """For the board."""
        clears = sum(cleared for cleared, _ in self.recent)
        places = Counter(
            x // PLACE * PLACE for cleared, x in self.recent if not cleared and x is not None
        )
        trends = {
            policy: [pair[0] / pair[1] for _, pair in sorted(steps.items())]
            for policy, steps in self.history.items()
        }
        return {
            "episodes": self.episodes,
            "rate": clears / len(self.recent) if self.recent else None,
            "recent": len(self.recent),
            "ends": dict(self.ends),
            "furthest": self.furthest,
            "evaluated": self.evaluated,
            "trend": {"recent": list(self.trend), **trends},
            "worst": {
                name: list(found.most_common(1)[0])
                for name, found in {"recent": places, **self.failed}.items()
                if found
            },
        }


class Stages:
    """All stages of a run, and its newest episodes."""

    def __init__(self) -> None:
        self.counts: dict[str, StageCounts] = {}
        self.episodes: deque[dict[str, Any]] = deque(maxlen=EPISODES_KEPT)
        self.total = 0

    def clear_episodes(self) -> None:
        """Forgets the episodes of training; what evaluations found stays."""
        before = self.counts
        self.counts = {}
        for name, counts in before.items():
            if counts.history or counts.evaluated:
                kept = self.counts[name] = StageCounts()
                kept.history, kept.evaluated = counts.history, counts.evaluated
                kept.failed = counts.failed
        self.episodes.clear()
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
            place = x if isinstance(x, int) and 0 <= x < MOST_X else None
            if not row.get("restart"):
                counts.from_the_door(kind == "flag", place)
            if place is not None:
                counts.furthest = max(counts.furthest, place)
                counts.bins[kind][place // BIN] += 1

    def evaluated(self, rows: Iterable[dict[str, Any]]) -> None:
        """The rows of the newest evaluation."""
        for counts in self.counts.values():
            counts.evaluated, counts.failed = {}, {}
        for row in rows:
            if (found := self._of(row)) is None:
                continue
            counts, policy = found
            cleared, x = bool(row.get("cleared")), row.get("x")
            pair = counts.evaluated.setdefault(policy, [0, 0])
            pair[0] += cleared
            pair[1] += 1
            if not cleared and isinstance(x, int) and 0 <= x < MOST_X:
                counts.failed.setdefault(policy, Counter())[x // PLACE * PLACE] += 1

    def remember(self, rows: Iterable[dict[str, Any]]) -> None:
        """Rows of evaluations, of any number of them, each row once."""
        for row in rows:
            step = row.get("global_step")
            if not isinstance(step, int) or (found := self._of(row)) is None:
                continue
            counts, policy = found
            steps = counts.history.setdefault(policy, {})
            pair = steps.setdefault(step, [0, 0])
            pair[0] += bool(row.get("cleared"))
            pair[1] += 1
            if len(steps) > TREND_POINTS:
                del steps[min(steps)]

    def forget_evaluations(self) -> None:
        """The file of evaluations begins anew."""
        for counts in self.counts.values():
            counts.history = {}

    def _of(self, row: dict[str, Any]) -> tuple[StageCounts, str] | None:
        """What a row of an evaluation is about; None for one that is none."""
        name, policy = row.get("stage"), row.get("policy")
        if not isinstance(name, str) or name not in STAGES or policy not in POLICIES:
            return None
        return self.counts.setdefault(name, StageCounts()), str(policy)

    def grid(self) -> dict[str, Any]:
        """For the board; stages that nobody has played are not in it."""
        return {name: counts.shown() for name, counts in sorted(self.counts.items())}

    def ends(self, stage: str) -> dict[str, Any]:
        """Where episodes of a stage ended, as pairs of bin and count."""
        counts = self.counts.get(stage, StageCounts())
        bins = {kind: sorted(found.items()) for kind, found in counts.bins.items()}
        return {"bin": BIN, "furthest": counts.furthest, "ends": bins}
