"""Writes the totals of `make coverage` to one small file, by folder of engine and package."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

#: Lines and branches, all and covered, of the whole and of each folder.
Counts = dict[str, Counter[str]]


def engine(report: dict[str, Any]) -> Counts:
    """From gcovr's JSON summary, whose paths are relative to `engine`."""
    found: Counts = {}
    for file in report["files"]:
        counts = Counter(
            lines_covered=file["line_covered"],
            lines=file["line_total"],
            branches_covered=file["branch_covered"],
            branches=file["branch_total"],
        )
        _add(found, Path(file["filename"]).parts[0], counts)
    return found


def package(report: dict[str, Any]) -> Counts:
    """From coverage.py's JSON report, whose paths end like `warpzone/env/vector.py`."""
    found: Counts = {}
    for name, file in report["files"].items():
        parts = Path(name).parts
        below = parts[len(parts) - parts[::-1].index("warpzone") :]
        counts = Counter(
            lines_covered=file["summary"]["covered_lines"],
            lines=file["summary"]["num_statements"],
            branches_covered=file["summary"]["covered_branches"],
            branches=file["summary"]["num_branches"],
        )
        _add(found, below[0] if len(below) > 1 else "warpzone", counts)
    return found


def _add(found: Counts, folder: str, counts: Counter[str]) -> None:
    for key in ("total", folder):
        found[key] = found.get(key, Counter()) + counts


def shown(counts: Counts) -> dict[str, Any]:
    """Percentages, the total first."""
    ordered = sorted(counts, key=lambda name: (name != "total", name))
    return {name: _percentages(counts[name]) for name in ordered}


def _percentages(counts: Counter[str]) -> dict[str, float | int]:
    def percent(kind: str) -> float:
        return round(100 * counts[f"{kind}_covered"] / max(counts[kind], 1), 1)

    return {
        "lines": counts["lines"],
        "line_percent": percent("lines"),
        "branches": counts["branches"],
        "branch_percent": percent("branches"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", type=Path, required=True, help="gcovr --json-summary")
    parser.add_argument("--python", type=Path, required=True, help="coverage json")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dry-run", action="store_true", help="print the totals, write nothing")
    args = parser.parse_args()
    summary = {
        "engine": shown(engine(json.loads(args.engine.read_text()))),
        "python": shown(package(json.loads(args.python.read_text()))),
    }
    if not args.dry_run:
        args.out.write_text(json.dumps(summary, indent=1) + "\n")
    for name, folders in summary.items():
        total = folders["total"]
        print(
            f"{name}: {total['line_percent']} % of {total['lines']} lines, "
            f"{total['branch_percent']} % of {total['branches']} branches"
        )


if __name__ == "__main__":
    main()
