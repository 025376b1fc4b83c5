"""What ranks, actors and old weights were measured to cost, in the words of a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]
Words = dict[str, Any]


def idle(machine: Row) -> bool:
    """Whether nothing else took the machine's cores when the measurement began."""
    return bool(machine["load"] < machine["cores"])


def one_rank(found: Row, words: Words) -> str:
    """found: ranks_overhead.json."""
    machine, cases = found["machine"], found["cases"]
    text: str = words["one rank"].format(
        **_over_a_plain_run(cases["ppo"]), preset=found["preset"], **machine
    )
    if "vtrace" in cases:
        text += words["one rank, V-trace"].format(**_over_a_plain_run(cases["vtrace"]))
    else:
        text += words["one rank, no V-trace"]
    text += words["one rank, idle" if idle(machine) else "one rank, busy"]
    return text.format(seconds=_seconds(cases, words))


def _over_a_plain_run(case: Row) -> Row:
    low, middle, high = (100 * (one - 1) for one in case["cpu_quartiles"])
    return {"low": low, "middle": middle, "high": high, "rounds": case["rounds"]}


def _seconds(cases: Row, words: Words) -> str:
    found = [f"{100 * (case['wall_ratio'] - 1):+.1f} %" for case in cases.values()]
    return str(words["and"].join(found))


def two_ranks(found: Row, words: Words) -> str:
    """found: two_ranks.json."""
    text: str = words["two ranks"].format(
        **found,
        one=found["steps_per_second"]["1"],
        two=found["steps_per_second"]["2"],
        share=100 * found["communication_time_share"],
        least=min(found["ratios"]),
        most=max(found["ratios"]),
    )
    return text


def actors(rows: Sequence[Row], older: int, words: Words) -> str:
    """rows: fleet.jsonl; the first `older` of them are of code before the present one."""
    lines = [words["actors"], "|---|---|---|---|---|---|"]
    for number, row in enumerate(rows, 1):
        kinds = {kind: one for kind, one in row["kinds"].items() if kind.startswith("actors")}
        cells = (
            f"{number}{words['older'] if number <= older else ''}",
            words["machine"].format(**row),
            str(row["rounds"]),
            words["and"].join(kind.removeprefix("actors ") for kind in kinds),
            words["and"].join(f"{1 / one['cpu_ratio']:.2f}" for one in kinds.values()),
            words["and"].join(f"{one['ratio']:.2f}" for one in kinds.values()),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", words["actors, idle" if idle(rows[-1]) else "actors, busy"]])


def lags(rows: Sequence[Row], words: Words) -> str:
    """rows: lags.jsonl. Of each seed, the last row of what a lag is compared by."""
    kinds = {
        (row["algo"], row["lag"], row["anchored"]): None
        for row in sorted(rows, key=lambda row: (row["algo"], row["lag"], row["anchored"]))
    }
    seeds = sorted({row["seed"] for row in rows})
    last = {
        seed: {
            (row["algo"], row["lag"], row["anchored"]): row for row in rows if row["seed"] == seed
        }
        for seed in seeds
    }
    heads = [words["seed"].format(seed=seed) for seed in seeds]
    lines = [f"| {words['lags']} | {' | '.join(heads)} |", "|---|" + "---|" * len(seeds)]
    for kind in kinds:
        algo, lag, anchored = kind
        # Without a lag both ways of measuring are the same.
        name = words["anchored" if anchored or lag == 0 else algo].format(lag=lag)
        cells = [_learned(last[seed].get(kind)) for seed in seeds]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _learned(row: Row | None) -> str:
    if row is None:
        return "-"
    return f"{row['avg_return']:.0f}, {row['env_mean_x_pos']:.0f} ({row['steps'] / 1e6:.2f}M)"
