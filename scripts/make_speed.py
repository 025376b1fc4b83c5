"""Writes the table of speeds into README and its translation, between `<!-- speed -->` and
`<!-- /speed -->`, from benchmarks/speed_eu.json, speed_world.json and the ledger.

    make speed                                # measures both ROMs, then does this
    python scripts/make_speed.py              # from benchmarks/speed_eu.json and speed_world.json
    python scripts/make_speed.py --check      # whether all is as it would be written

Rates are those of a second of CPU time, in one thread: on a machine that others use too they are
nearly those of an idle one, where rates by the clock are not. The files have both, and the load.
"""

import argparse
import json
import sys
import tomllib
from pathlib import Path
from statistics import median
from typing import Any

from make_results import filled, write_out

ROOT = Path(__file__).parents[1]
#: Case here, case of nes-py, in the order of the table.
ROWS = (
    ("steps translated 16x1", "steps nes-py"),
    ("steps translated 16x1 avx2", "steps nes-py"),
    ("steps interpreter 16x1", "steps nes-py"),
    ("raw translated", "raw nes-py"),
)
FRAME_SKIP = 4
#: What the ledger has of a machine with many cores.
MANY = {"cores": 16, "lanes": 1024}

#: Pages and their words.
PAGES: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "benchmarks" / "speed.toml").read_text())
#: What the interpreter is meant to reach, and its row.
INTERPRETER = (90, 2)


def measured(rom: str) -> dict[str, Any]:
    """The result of `warpzone bench engine` for one ROM, with its cases by name."""
    result: dict[str, Any] = json.loads((ROOT / "benchmarks" / f"speed_{rom}.json").read_text())
    if result["rom"] != rom:
        raise ValueError(f"benchmarks/speed_{rom}.json was measured with ROM {result['rom']}")
    return {**result, "cases": {case["name"]: case for case in result["cases"]}}


def ratios(result: dict[str, Any], rates: str = "cpu_rates") -> list[float]:
    """Of each row: the median of the ratios of each round."""
    cases = result["cases"]
    return [
        median(a / b for a, b in zip(cases[one][rates], cases[other][rates], strict=True))
        for one, other in ROWS
    ]


def many_threads() -> tuple[float, float]:
    """The latest measurement of many lanes on many cores: steps/s, and times one thread."""
    lanes, cores = MANY["lanes"], MANY["cores"]
    names = [f"steps translated {lanes}x{threads}" for threads in (cores, 1)]
    lines = (ROOT / "benchmarks" / "ledger.jsonl").read_text().splitlines()
    for row in map(json.loads, reversed(lines)):
        rates = {case["name"]: case["median"] for case in row.get("cases", ())}
        if row["machine"]["cores"] == cores and set(names) <= set(rates):
            what = f"{cores} threads / 1, {lanes} lanes"
            times = next(one["value"] for one in row["checks"] if one["what"] == what)
            return rates[names[0]], times
    raise ValueError(f"the ledger has no measurement of {lanes} lanes on {cores} cores")


def block(words: dict[str, Any]) -> str:
    """The table and what is said below it."""
    eu, world = measured("eu"), measured("world")
    cases, machine = eu["cases"], eu["machine"]
    lines = [words["head"].format(nes_py=machine["nes_py"]), "|---|---|---|---|"]
    for number, ((one, other), times) in enumerate(zip(ROWS, ratios(eu), strict=True)):
        rate, theirs = (cases[name]["median_per_cpu_second"] for name in (one, other))
        bold = "" if number else "**"
        frames = "" if number else words["frames"].format(frames=_round(FRAME_SKIP * rate, 3))
        lines.append(
            f"| {words['rows'][number]} | {bold}{rate:,.0f}{bold}{frames} | {theirs:,.0f} | "
            f"{bold}{times:.0f}x{bold} |"
        )
    fast, times = many_threads()
    wanted, row = INTERPRETER
    reached = ratios(eu)[row] >= wanted and ratios(world)[row] >= wanted
    shown = {
        "cores": machine["cores"],
        "cpu": machine["cpu"],
        "rounds": len(cases[ROWS[0][0]]["rates"]),
        "load": machine["load"],
        "load_after": eu["load_after"],
        "wall": words["comma"].join(f"{value:.0f}x" for value in ratios(eu, "rates")),
        "world": words["comma"].join(f"{value:.0f}x" for value in ratios(world)),
        "interpreter": words["reached" if reached else "missed"],
        "many": MANY["cores"],
        "lanes": MANY["lanes"],
        "fast": _round(fast, 2),
        "times": times,
        "reset": 1e6 / cases["reset"]["median_per_cpu_second"],
        "memory": eu["costs"]["memory_mib"],
    }
    return "\n".join((*lines, "", words["below"].strip().format(**shown)))


def _round(value: float, digits: int) -> int:
    return int(float(f"{value:.{digits}g}"))


def main() -> int:
    """Writes, or says what is not as it would be written."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing, fail if it differs")
    parser.add_argument(
        "--dry-run", action="store_true", help="say what is to be written, and stop"
    )
    args = parser.parse_args()
    wanted = {}
    for page, words in PAGES.items():
        text = filled((ROOT / page).read_text(), {"speed": block(words)})
        if "<!-- speed -->" not in text:
            raise ValueError(f"{page} has no place for the speeds")
        wanted[ROOT / page] = text
    return write_out(wanted, args, ROOT)


if __name__ == "__main__":
    sys.exit(main())
