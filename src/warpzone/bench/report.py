"""Benchmark results as tables."""

import importlib.util
from collections.abc import Sequence
from typing import Any

Rows = list[tuple[str, ...]]


def render(result: dict[str, Any]) -> None:
    """Prints the tables of one run."""
    machine = result["machine"]
    print(
        f"warpzone {machine['warpzone']}, ROM {result['rom']}, {machine['cpu']}, "
        f"{machine['cores']} cores, steps through {result['api']}"
    )
    _table(("case", "median", "min", "max", "unit"), _case_rows(result["cases"]))
    costs = [(name, _number(value)) for name, value in result["costs"].items()]
    _table(("cost", "value"), costs)
    _table(("target", "measured", "wanted", "met"), _check_rows(result["checks"]))


def _case_rows(cases: list[dict[str, Any]]) -> Rows:
    keys = ("median", "min", "max")
    return [(c["name"], *(_number(c[key]) for key in keys), c["unit"]) for c in cases]


def _check_rows(checks: list[dict[str, Any]]) -> Rows:
    rows: Rows = []
    for check in checks:
        wanted = f">= {check['at_least']:g}" if "at_least" in check else f"< {check['below']:g}"
        rows.append(
            (check["what"], _number(check["value"]), wanted, "yes" if check["ok"] else "NO")
        )
    return rows


def _number(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    if importlib.util.find_spec("rich") is None:
        for row in (heads, *rows):
            print(
                "  ".join(f"{cell:<34}" if not i else f"{cell:>12}" for i, cell in enumerate(row))
            )
        print()
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*heads)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        table.add_row(*row)
    Console().print(table)
