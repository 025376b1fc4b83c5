"""Summary of outcomes: clear rates with their uncertainty, by stage and policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, median

from warpzone.eval.cases import Outcome, stages_of

#: Two-sided 95 %.
Z = 1.959963984540054
#: Deaths this close together are one place.
PLACE = 64


@dataclass(frozen=True)
class StageSummary:
    """One stage under one policy."""

    stage: str
    policy: str
    episodes: int
    clears: int
    clear_rate: float
    #: Wilson's 95 % interval of the clear rate.
    low: float
    high: float
    furthest_x: int
    median_x: float
    mean_return: float
    mean_steps: float
    #: Of the clears; None without one.
    mean_time_left: float | None
    deaths: int
    stuck: int
    #: Where most episodes failed, as x in pixels, and how many did; None if all cleared.
    worst_x: int | None
    worst_count: int


def wilson(clears: int, episodes: int, z: float = Z) -> tuple[float, float]:
    """The interval that a chance lies in, having seen so many clears; (0, 1) without episodes."""
    if episodes == 0:
        return 0.0, 1.0
    rate, square = clears / episodes, z * z
    centre = rate + square / (2 * episodes)
    spread = z * sqrt(rate * (1 - rate) / episodes + square / (4 * episodes * episodes))
    scale = 1 + square / episodes
    # At the ends the formula is exact, and its rounding is not.
    low = 0.0 if clears == 0 else (centre - spread) / scale
    high = 1.0 if clears == episodes else (centre + spread) / scale
    return low, high


def summarize(outcomes: Sequence[Outcome]) -> list[StageSummary]:
    """One row for each stage and policy, stages in the game's order."""
    policies = dict.fromkeys(outcome.policy for outcome in outcomes)
    rows = []
    for stage in stages_of(outcomes):
        for policy in policies:
            chosen = [o for o in outcomes if o.stage == stage and o.policy == policy]
            if chosen:
                rows.append(_summary(stage, policy, chosen))
    return rows


def _summary(stage: str, policy: str, outcomes: Sequence[Outcome]) -> StageSummary:
    cleared = [outcome for outcome in outcomes if outcome.cleared]
    failed = [outcome for outcome in outcomes if not outcome.cleared]
    low, high = wilson(len(cleared), len(outcomes))
    places = Counter(outcome.x // PLACE for outcome in failed)
    place, count = places.most_common(1)[0] if places else (0, 0)
    return StageSummary(
        stage=stage,
        policy=policy,
        episodes=len(outcomes),
        clears=len(cleared),
        clear_rate=len(cleared) / len(outcomes),
        low=low,
        high=high,
        furthest_x=max(outcome.furthest_x for outcome in outcomes),
        median_x=median(outcome.furthest_x for outcome in outcomes),
        mean_return=fmean(outcome.episode_return for outcome in outcomes),
        mean_steps=fmean(outcome.steps for outcome in outcomes),
        mean_time_left=fmean(outcome.time_left for outcome in cleared) if cleared else None,
        deaths=sum(outcome.reason == "death" for outcome in outcomes),
        stuck=sum(outcome.reason in ("stuck", "limit") for outcome in outcomes),
        worst_x=place * PLACE + PLACE // 2 if count else None,
        worst_count=count,
    )


def overall(outcomes: Sequence[Outcome], policy: str) -> tuple[int, int, float, float]:
    """Clears, episodes and the interval over all stages of one policy."""
    chosen = [outcome for outcome in outcomes if outcome.policy == policy]
    count = sum(outcome.cleared for outcome in chosen)
    return count, len(chosen), *wilson(count, len(chosen))
