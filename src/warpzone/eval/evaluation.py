"""Evaluating from Python: `warpzone.evaluate`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from warpzone.eval.cases import DELAYS, POLICIES, Outcome, clears
from warpzone.eval.loaded import LoadedAgent, load_agent
from warpzone.eval.results import as_document
from warpzone.eval.summary import StageSummary, overall, summarize
from warpzone.eval.weights import RUNS
from warpzone.rom.waiting import hushed


class HasAgent(Protocol):
    """Something with an agent, such as what `warpzone.train` returns."""

    @property
    def agent(self) -> LoadedAgent: ...


@dataclass(frozen=True)
class Evaluation:
    """Episodes of one agent, and what they sum up to."""

    agent: LoadedAgent
    outcomes: tuple[Outcome, ...]

    @property
    def stages(self) -> list[StageSummary]:
        """One row for each stage and policy."""
        return summarize(self.outcomes)

    def episodes(self, policy: str = "argmax") -> int:
        """Episodes that were played with a policy."""
        return overall(self.outcomes, policy)[1]

    def clears(self, policy: str = "argmax") -> int:
        """Those of them that reached the flag."""
        return clears(self.outcomes, policy)

    def rate(self, policy: str = "argmax") -> float:
        """Their share; 0 without episodes."""
        return self.clears(policy) / max(1, self.episodes(policy))

    def interval(self, policy: str = "argmax") -> tuple[float, float]:
        """Wilson's 95 % interval of the rate."""
        _, _, low, high = overall(self.outcomes, policy)
        return low, high

    def as_dict(self) -> dict[str, Any]:
        """What `warpzone eval --json` writes about the episodes."""
        about = {"weights": str(self.agent.path), "trained_on": self.agent.config.stages}
        return as_document(self.outcomes, about)

    def __str__(self) -> str:
        policies = dict.fromkeys(outcome.policy for outcome in self.outcomes)
        return "\n".join(
            f"{policy}: {self.clears(policy)} of {self.episodes(policy)} episodes reach the flag, "
            f"{self.rate(policy):.1%}"
            for policy in policies
        )


def evaluate(
    agent: LoadedAgent | HasAgent | str | os.PathLike[str],
    stages: str | None = None,
    *,
    delays: Sequence[int] = DELAYS,
    policies: Sequence[str] = POLICIES,
    seed: int = 0,
    rom: str | None = None,
    runs_dir: str | os.PathLike[str] = RUNS,
    quiet: bool = False,
    start_power: str = "small",
) -> Evaluation:
    """Plays what `warpzone eval` plays: every stage from every start delay, one life each, with
    both policies. The same agent gives the same outcomes every time.

    agent: what `load_agent` or `train` returned, or a name that `load_agent` takes.
    stages: `"1-1"`, `"1-1..2-4"`, `"all"` (default: what it was trained on).
    delays: frames without input before the agent takes over; 0 to 30 unless told otherwise.
    seed: of the sampled policy.
    quiet: without the line on a terminal that says how long it has been playing.
    start_power: what Mario begins as, `"small"`, `"big"`, `"fire"` or `"any"`, which draws one of
    them for each delay.
    """
    for policy in policies:
        if policy not in POLICIES:
            raise ValueError(f"policies are {' and '.join(POLICIES)}, not {policy!r}")
    if isinstance(agent, str | os.PathLike):
        loaded = load_agent(agent, runs_dir=runs_dir)
    else:
        loaded = agent if isinstance(agent, LoadedAgent) else agent.agent
    with hushed(quiet):
        outcomes = loaded.evaluate(
            stages, delays=delays, policies=policies, seed=seed, rom=rom, start_power=start_power
        )
    return Evaluation(loaded, tuple(outcomes))
