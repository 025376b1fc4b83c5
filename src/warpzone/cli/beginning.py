"""`--start-power` and `--start-halfway` of the commands that play a game."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import TypedDict

from warpzone.env.infos import BEGUN, HALFWAY
from warpzone.env.options import POWERS


class Start(TypedDict):
    """What an episode begins as, and where."""

    start_power: str
    start_halfway: float


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--start-power",
        choices=POWERS,
        default="small",
        help="what Mario begins as (default small); any draws one of the three",
    )
    parser.add_argument(
        "--start-halfway",
        action="store_true",
        help="begin at the stage's halfway page, small, as after a lost life",
    )


def start(args: argparse.Namespace) -> Start:
    """What the flags ask for, as options of an environment."""
    if args.start_halfway and args.start_power != "small":
        raise ValueError("--start-halfway begins as small Mario; leave out --start-power")
    return {"start_power": args.start_power, "start_halfway": float(args.start_halfway)}


def refuse_game() -> None:
    raise ValueError("--start-halfway is for single stages: the whole game begins at 1-1's door")


def say_door(args: argparse.Namespace, began: Iterable[tuple[str, str]]) -> None:
    """Says which stages have no middle to begin in. began: stages, and what they began as."""
    if not args.start_halfway:
        return
    say_doors(args.command, sorted({stage for stage, as_what in began if as_what != HALFWAY}))


def say_doors(command: str, doors: Sequence[str]) -> None:
    """The same of stages that are known to have none."""
    if doors:
        verb = "have" if len(doors) > 1 else "has"
        print(
            f"warpzone {command}: {', '.join(doors)} {verb} no halfway page; the game begins "
            "at the door there",
            file=sys.stderr,
        )


def in_words(began: str) -> str:
    """For the line that says how it ended; nothing for small Mario at the door."""
    if began == BEGUN[0]:
        return ""
    return ", from halfway" if began == HALFWAY else f", as {began}"
