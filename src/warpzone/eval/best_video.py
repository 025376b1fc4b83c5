"""A video of the best episode of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from warpzone import rom
from warpzone.env.actions import action_table
from warpzone.env.stages import parse_stages, stage_index, stage_name
from warpzone.eval.cases import DELAYS, Case, Outcome
from warpzone.eval.evaluate import evaluate_cases
from warpzone.eval.overlay import Panel
from warpzone.eval.performance import Performance
from warpzone.eval.video_frames import single
from warpzone.eval.weights import find_agent
from warpzone.media.video import write_video
from warpzone.rom import native
from warpzone.run.names import BEST_VIDEO, EVALS
from warpzone.run.reader import RunReader

#: Rounding on another device can change an episode: this many candidates are played, and the best
#: one is shown.
ATTEMPTS = 4


def write_best(
    run: Path, path: Path | None = None, device: str = "cpu", *, overlay: Sequence[str] = ()
) -> tuple[Path, Outcome]:
    """Writes the video of a run's best weights into its folder; returns its path and the
    episode."""
    found = find_agent(run)
    agent, config = found.agent.to(device), found.config
    image = rom.find(config.rom)
    program = native.load(image)
    stages = [stage_name(index) for index in parse_stages(config.stages)] or ["1-1"]
    cases = [
        Case(stage_index(stage), "argmax", delay)
        for stage, delay in candidates(_evaluated(run, found.global_step), stages)[:ATTEMPTS]
    ]
    outcomes = evaluate_cases(agent, config, image, program, cases)
    best = max(range(len(cases)), key=lambda index: _value(outcomes[index], index))
    performance = Performance(agent, config, image, program, [cases[best]])
    panel = Panel(action_table(config.actions).names, overlay)
    path = path or run / BEST_VIDEO
    write_video(path, single(performance.frames(), panel), scale=1)
    return path, outcomes[best]


def candidates(rows: Sequence[dict[str, Any]], stages: Sequence[str]) -> list[tuple[str, int]]:
    """Candidate stages and start delays, best first: clears (later stages, then faster ones),
    then the longest distances."""
    argmax = [row for row in rows if row["policy"] == "argmax"]
    if not argmax:
        return [(stage, delay) for stage in stages for delay in DELAYS]

    def worth(row: dict[str, Any]) -> tuple[Any, ...]:
        if row["cleared"]:
            return True, row["stage"], -row["steps"]
        return False, "", row["furthest_x"]

    ordered = sorted(argmax, key=worth, reverse=True)
    return [(row["stage"], row["start_delay"]) for row in ordered]


def _value(outcome: Outcome, place: int) -> tuple[bool, int, int]:
    """Clears first, in the order of the candidates; then by distance."""
    return outcome.cleared, 0 if outcome.cleared else outcome.furthest_x, -place


def _evaluated(run: Path, global_step: int | None) -> list[dict[str, Any]]:
    """Rows of the evaluation that the weights of a step come from."""
    rows = RunReader(run).rows(EVALS)
    return [row for row in rows if row.get("global_step") == global_step]
