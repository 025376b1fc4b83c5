"""What is known about an agent, as data and as a page: evaluations as
`warpzone eval --json` wrote them in, tables with their uncertainty out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from warpzone.env.stages import NUM_STAGES, stage_name
from warpzone.eval.cases import parse_delays
from warpzone.eval.summary import wilson

STAGES = tuple(stage_name(index) for index in range(NUM_STAGES))
#: Of the evaluation that comes first: as in training and in every other table here.
USUAL = "0..30"
#: Episodes that tests play again: those that end soonest of stages that are always cleared, and of
#: stages that never are. The others hang by a hair, which another processor may cut.
SAMPLE_CLEARED, SAMPLE_FAILED = 4, 2
#: Stages below this share are listed as weak.
WEAK = 0.5
MIB = 2**20
#: How weights are kept, by the word of descriptions.
PRECISIONS = {
    "half": "half precision",
    "single": "single precision",
    "mixed": "half precision, large matrices in 8 bits",
}
#: Characters of a line of a command.
COMMAND_WIDTH = 92

Rows = Sequence[Mapping[str, Any]]


def measured(documents: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Evaluations, short: those of the same ROM, delays and seed are one, the usual one first. Of
    each stage and policy it keeps one digit for each start delay, 1 for a clear."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for document in documents:
        key = (document.get("rom") or "eu", document["delays"], document["seed"])
        one = found.setdefault(
            key, {"rom": key[0], "delays": key[1], "seed": key[2], "clears": {}, "fails": {}}
        )
        for policy in document["totals"]:
            rows = [row for row in document["episodes"] if row["policy"] == policy]
            one["clears"][policy] = _digits(rows, parse_delays(document["delays"]))
        one["fails"] |= {
            row["stage"]: [row["worst_x"], row["worst_count"], row["stuck"]]
            for row in document["stages"]
            if row["policy"] == "argmax" and row["worst_x"] is not None
        }
    return sorted(found.values(), key=lambda one: (one["rom"] != "eu", one["delays"] != USUAL))


def games(documents: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Whole games, by policy: how many stages in a row, where they ended."""
    rows = [row for document in documents for row in document["games"]]
    found = {}
    for policy in dict.fromkeys(row["policy"] for row in rows):
        chosen = [row for row in rows if row["policy"] == policy]
        counts = [row["stages_cleared"] for row in chosen]
        found[policy] = {
            "games": len(chosen),
            "won": sum(row["won"] for row in chosen),
            "mean": round(sum(counts) / len(counts), 2),
            "best": max(counts),
            "different": different(chosen),
            "ended": dict(Counter(row["stage"] for row in chosen).most_common()),
        }
    return found


def different(games: Rows) -> int:
    """How many of these games are not the very same one: near start delays play alike to the last
    step, and so many results are one."""
    return len({(one["stage"], one["x"], one["steps"], one["score"]) for one in games})


def sample(rows: Rows, clears: Mapping[str, str]) -> list[dict[str, Any]]:
    """Episodes of argmax for tests, each of another stage."""
    chosen = []
    for always, most in (("1", SAMPLE_CLEARED), ("0", SAMPLE_FAILED)):
        sure = [stage for stage, digits in clears.items() if set(digits) == {always}]
        best = {
            stage: min(
                (row for row in rows if row["stage"] == stage and row["policy"] == "argmax"),
                key=lambda row: row["steps"],
            )
            for stage in sure
        }
        soonest = sorted(best.values(), key=lambda row: row["steps"])[:most]
        chosen += [
            {name: row[name] for name in ("stage", "start_delay", "cleared")} for row in soonest
        ]
    return chosen


def count(digits: str) -> tuple[int, int]:
    """Clears and episodes."""
    return digits.count("1"), len(digits)


def total(clears: Mapping[str, str]) -> tuple[int, int]:
    """Clears and episodes of all stages."""
    return count("".join(clears.values()))


def rate(clears: int, episodes: int) -> str:
    """`765 of 992, 77.1 % (95 %: 74.4 to 79.6)`."""
    low, high = wilson(clears, episodes)
    share = f"{clears / episodes:.1%}".replace("%", " %")
    return f"{clears} of {episodes}, {share} (95 %: {100 * low:.1f} to {100 * high:.1f})"


# --- the page -------------------------------------------------------------------------------------
def render(about: Mapping[str, Any]) -> str:
    """The card of an agent, as Markdown."""
    name, training = about["name"], about["training"]
    precision = about.get("precision", "half")
    lines = [
        f"# Agent `{name}`",
        "",
        f"Plays {_stages(about['config']['stages'])} with one network, "
        f"from {about['config']['observation']} alone. "
        f"`warpzone play {name}`, `warpzone eval {name}`, `warpzone video {name}`, "
        f'`warpzone train --init {name}`, `warpzone.load_agent("{name}")`.',
        "",
        "| | |",
        "|---|---|",
        f"| network | {about['network']}, {about['parameters']:,} parameters |",
        f"| file | {about['bytes'] / MIB:.1f} MiB, {PRECISIONS[precision]}"
        f"{'' if precision == 'single' else ' (loading makes it single)'} |",
        f"| SHA-256 | `{about['sha256']}` |",
        f"| training | {_trained(training)} |",
        f"| start delays | 0 to {training['start_delay']} frames in training; those of {USUAL} "
        "chose the weights |",
        f"| hardware | {training['hardware']} |",
        f"| seed | {training['seed']} |",
        f"| commit | {training['commit']} |",
        "",
        "```sh",
        _wrapped(training["command"]),
        "```",
        "",
        *(f"{note}\n" for note in about["notes"]),
        "## What was measured",
        "",
        *_measurements(about, precision),
    ]
    return "\n".join(lines) + "\n"


def _trained(training: Mapping[str, Any]) -> str:
    """How long; a file of weights need not say for how many seconds."""
    seconds = training["seconds"]
    took = "" if seconds is None else f" in {seconds:,.0f} s, evaluations included"
    return f"{training['steps']:,} steps{took}, from {training['from']}"


def _measurements(about: Mapping[str, Any], precision: str) -> list[str]:
    if not about["measured"]:
        return ["Nothing yet.", *game_lines(about["games"])]
    first, kept = about["measured"][0], PRECISIONS[precision].capitalize()
    place = f", on {about['measured_on']}" if about["measured_on"] else ""
    lines = [
        "One life, nothing done for particular stages; an episode is one start delay in frames. "
        f"{kept}{place}; another processor may round differently, and now and then that turns an "
        "episode.",
        "",
        *sums(about["measured"]),
        *game_lines(about["games"]),
        "",
        *_table(about["measured"]),
    ]
    if "argmax" in first["clears"]:
        lines += ["", "## Known failures", "", *_failures(first)]
    return lines


def _stages(text: str) -> str:
    return {"all": "all 32 stages", "game": "the whole game"}.get(text, f"stages {text}")


def _wrapped(command: str) -> str:
    """A command over several lines."""
    flags = command.split(" --")
    words = [flags[0], *(f"--{flag}" for flag in flags[1:])]
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) > COMMAND_WIDTH:
            lines.append("   ")
        lines[-1] += f" {word}" if lines[-1] else word
    return " \\\n".join(lines)


def label(one: Mapping[str, Any]) -> str:
    """What an evaluation was of."""
    world = {"eu": "", "world": ", World ROM"}.get(one["rom"], f", {one['rom']}")
    return f"delays {one['delays']}{world}"


def sums(evaluations: Rows) -> list[str]:
    """A line for each evaluation and policy."""
    lines = []
    for one in evaluations:
        for policy, clears in one["clears"].items():
            lines.append(f"- {label(one)}, {policy}: **{rate(*total(clears))}**")
    return lines


def game_lines(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A line for the whole games of each policy."""
    return [
        f"- the whole game from 1-1 with three lives, {policy}: {one['mean']} stages in a row on "
        f"average, {one['best']} at best, {one['won']} of {one['games']} games won"
        + (f" ({one['different']} of them different)" if "different" in one else "")
        + "; it ends in "
        + ", ".join(f"{stage} ({times})" for stage, times in one["ended"].items())
        for policy, one in found.items()
    ]


def _table(evaluations: Rows) -> list[str]:
    """One row for each stage: clears of the first evaluation with intervals, then of the others."""
    first = evaluations[0]
    head, under = ["stage"], ["---"]
    for policy in first["clears"]:
        head += [policy, "95 %"]
        under += ["--:", "--:"]
    others = [(one, policy) for one in evaluations[1:] for policy in one["clears"]]
    head += [f"{label(one)}, {policy}" for one, policy in others]
    under += ["--:"] * len(others)
    rows = [head, under]
    played = {stage for one in evaluations for clears in one["clears"].values() for stage in clears}
    for stage in (stage for stage in STAGES if stage in played):
        row = [stage]
        for clears in first["clears"].values():
            row += _cells(clears.get(stage, ""))
        row += [_cells(one["clears"][policy].get(stage, ""))[0] for one, policy in others]
        rows.append(row)
    rows[0].append("argmax fails at")
    rows[1].append("---")
    for row in rows[2:]:
        row.append(_place(first["fails"].get(row[0])))
    return [f"| {' | '.join(row)} |" for row in rows]


def _cells(digits: str) -> list[str]:
    if not digits:
        return ["", ""]
    clears, episodes = count(digits)
    low, high = wilson(clears, episodes)
    return [f"{clears}/{episodes}", f"{low:.0%}-{high:.0%}".replace("%", "") + " %"]


def _place(failing: Sequence[int] | None) -> str:
    if failing is None:
        return ""
    x, times, stuck = failing
    return f"x~{x} ({times})" + (f", {stuck} stuck" if stuck else "")


def _failures(one: Mapping[str, Any]) -> list[str]:
    clears = one["clears"]["argmax"]
    rates = {stage: count(digits) for stage, digits in clears.items()}
    never = [stage for stage, (cleared, _) in rates.items() if not cleared]
    weak = [stage for stage, (cleared, of) in rates.items() if 0 < cleared < WEAK * of]
    lines = [
        f"- {stage}: never cleared, most often ends at {_place(one['fails'].get(stage))}"
        for stage in never
    ]
    lines += [f"- {stage}: {rates[stage][0]} of {rates[stage][1]}" for stage in weak]
    return lines or ["None of the stages is cleared in fewer than half of the episodes."]


def _digits(rows: Rows, delays: Sequence[int]) -> dict[str, str]:
    """Of each stage, in the order of the delays."""
    known = {(row["stage"], row["start_delay"]): row["cleared"] for row in rows}
    played = {row["stage"] for row in rows}
    return {
        stage: "".join(str(int(known[stage, delay])) for delay in delays)
        for stage in STAGES
        if stage in played
    }
