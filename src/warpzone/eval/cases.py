"""Episodes of an evaluation, identified by stage, policy and start delay, and their outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warpzone.env.stages import LONGEST_DELAY, stage_name

DELAYS = tuple(range(31))
POLICIES = ("argmax", "sampled")
#: Players that have learned nothing: any action with the same chance; or running to the right and
#: jumping all the time.
BASELINES = ("random", "scripted")


@dataclass(frozen=True)
class Case:
    """One episode to play. Its outcome does not depend on what is played beside it."""

    stage: int
    policy: str
    start_delay: int

    @property
    def key(self) -> int:
        """The random key of the sampled policy."""
        return (self.stage + 1) << 20 | self.start_delay


@dataclass(frozen=True)
class Outcome:
    """One evaluated episode."""

    stage: str
    policy: str
    start_delay: int
    cleared: bool
    furthest_x: int
    steps: int
    time_left: int
    episode_return: float
    #: `flag`, `death`, `stuck` (no new ground for too long) or `limit` (too many steps).
    reason: str
    #: Where it ended: Mario's place in pixels, and the map that he was in.
    x: int = 0
    y: int = 0
    area_type: int = -1
    area_index: int = -1


def usual_start(evaluation: Mapping[str, Any]) -> bool:
    """Whether the episodes of an evaluation, as `warpzone eval --json` writes it, began like those
    of training: at the door, as small Mario. Clears from elsewhere do not count as those."""
    small = evaluation.get("start_power", "small") == "small"
    return small and not evaluation.get("start_halfway", False)


def make_cases(stages: Sequence[int], policies: Sequence[str], delays: Sequence[int]) -> list[Case]:
    """Every stage with every policy from every start delay, each once."""
    unique = dict.fromkeys(stages)
    return [Case(s, policy, delay) for delay in delays for s in unique for policy in policies]


def parse_delays(text: str) -> tuple[int, ...]:
    """`0..30`, `0,5,10` or a mixture; each once, in order."""
    found: set[int] = set()
    for token in text.split(","):
        first, dots, last = token.strip().partition("..")
        try:
            low, high = int(first), int(last if dots else first)
        except ValueError:
            raise ValueError(
                f"{token.strip()!r} is not a start delay; write e.g. 0..30 or 0,5,10"
            ) from None
        if not 0 <= low <= high <= LONGEST_DELAY:
            raise ValueError(
                f"start delays are in 0..{LONGEST_DELAY} and rise, not {token.strip()}"
            )
        found.update(range(low, high + 1))
    return tuple(sorted(found))


def clears(outcomes: Sequence[Outcome], policy: str = "argmax") -> int:
    """Episodes of one policy that reached the flag."""
    return sum(outcome.cleared for outcome in outcomes if outcome.policy == policy)


def stages_of(outcomes: Sequence[Outcome]) -> list[str]:
    """The stages that were played, in the game's order."""
    played = {outcome.stage for outcome in outcomes}
    return [name for name in map(stage_name, range(32)) if name in played]
