"""`warpzone agents`: the agents that come with the package, and those pulled from a hub."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "agents",
        help="list the agents of the package and those pulled from a hub, and show their cards",
        description="Lists the trained agents that come with the package and those that "
        "`warpzone hub pull` has fetched. Their names stand "
        "wherever an agent is taken: warpzone play NAME, eval NAME, video NAME, train --init NAME. "
        "With a name it prints the agent's card: how it was trained, and what was measured.",
    )
    parser.add_argument("name", nargs="?", help="the agent whose card is wanted")
    parser.add_argument("--json", action="store_true", help="print all that is known, as JSON")


def run(args: argparse.Namespace) -> int:
    from warpzone.run.shipped import agent_names, read_card, read_description

    if args.name is not None:
        if args.json:
            print(json.dumps(read_description(args.name)))
        else:
            print(read_card(args.name), end="")
        return 0
    found = {name: read_description(name) for name in agent_names()}
    if args.json:
        print(json.dumps(found))
    elif found:
        _show(found)
    else:
        print("warpzone agents: this installation has none", file=sys.stderr)
    return 0


def _show(found: dict[str, dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for name in ("name", "from", "stages", "argmax", "sampled", "steps", "size"):
        table.add_column(name, justify="left" if name in ("name", "from", "stages") else "right")
    for name, about in found.items():
        table.add_row(
            name,
            about["hub"]["repo"] if "hub" in about else "the package",
            str(about["config"]["stages"]),
            _clears(about, "argmax"),
            _clears(about, "sampled"),
            _steps(about["training"]["steps"]),
            f"{about['bytes'] / 2**20:.1f} MiB",
        )
    console = Console(width=None if sys.stdout.isatty() else 80)
    console.print(table)
    print("Clears are of start delays 0 to 30 unless the card says otherwise.")
    print("`warpzone agents NAME` shows the card.")


def _steps(steps: int) -> str:
    return f"{steps / 1e6:.0f}M" if steps >= 1e6 else f"{steps:,}"


def _clears(about: dict[str, Any], policy: str) -> str:
    """`765/992`; nothing if that was not measured."""
    from warpzone.eval.card import total

    clears = about["measured"][0]["clears"].get(policy) if about["measured"] else None
    return "" if clears is None else "{}/{}".format(*total(clears))
