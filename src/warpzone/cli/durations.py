"""Times on the command line: `90s`, `5m` and `2h` beside a plain number in the flag's own unit."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

from warpzone.config import TrainConfig
from warpzone.config.bounds import annotated, flag

SECONDS = {"s": 1, "m": 60, "h": 3600, "seconds": 1, "minutes": 60, "hours": 3600}
WRITTEN = re.compile(r"(-?(?:\d+\.?\d*|\.\d+))([smh])")


def units() -> dict[str, str]:
    """The flags of training that are times, and their units."""
    return {flag(field.name): field.unit for field in annotated(TrainConfig) if field.unit}


def demand(unit: str) -> str:
    """What a time should be; follows the name of its flag."""
    return f"must be a number of {unit}, or a time such as 90s, 5m or 2h"


def plain(words: Sequence[str]) -> list[str]:
    """The same words; those that are times with a unit as numbers in their flags' own."""
    known, found, before = units(), list[str](), ""
    for word in words:
        name, equals, value = word.partition("=")
        if before in known:
            found.append(in_unit(word, known[before]))
        elif equals and name in known:
            found.append(f"{name}={in_unit(value, known[name])}")
        else:
            found.append(word)
        before = word
    return found


def in_unit(text: str, unit: str) -> str:
    """A time with a unit as a number in another one; any other text as it is."""
    if not (written := WRITTEN.fullmatch(text)):
        return text
    return repr(float(written[1]) * SECONDS[written[2]] / SECONDS[unit])


def minutes(text: str) -> float:
    """A value of a flag that is in minutes, for argparse."""
    try:
        return float(in_unit(text, "minutes"))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{demand('minutes')}, not {text!r}") from error
