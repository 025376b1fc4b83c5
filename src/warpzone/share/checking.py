"""The description of an agent that comes from elsewhere, rebuilt of what was looked at: fields of
other names are dropped, and none of its text can steer a terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from warpzone.config import from_dict
from warpzone.eval.card import PRECISIONS, STAGES
from warpzone.eval.cases import BASELINES, POLICIES, parse_delays
from warpzone.rom import KNOWN
from warpzone.run.shipped import ACTING, FORMAT, KIND

#: Characters of a text, entries of a list.
MOST_TEXT, MOST_ENTRIES = 4000, 64
#: Larger than all counts here.
MOST_NUMBER = 1 << 60


def checked(said: Any) -> dict[str, Any]:
    """A description with the fields that this version knows; ValueError if it is not one."""
    if not isinstance(said, dict):
        raise ValueError("its description is no object")
    about = said
    if about.get(KIND) != FORMAT:
        raise ValueError("its description is not one of this version of warpzone")
    training = _object(about.get("training"), "training")
    return {
        KIND: FORMAT,
        "name": _text(about.get("name"), "name"),
        "sha256": _hash(about.get("sha256")),
        "bytes": _count(about.get("bytes"), "bytes"),
        "parameters": _count(about.get("parameters"), "parameters"),
        "precision": _precision(about.get("precision", "half")),
        "network": _text(about.get("network"), "network"),
        "config": _config(about.get("config")),
        "training": {
            **{name: _text(training.get(name), name) for name in ("command", "from")},
            **{name: _text(training.get(name), name) for name in ("commit", "hardware")},
            **{name: _count(training.get(name), name) for name in ("seed", "start_delay", "steps")},
            "seconds": _seconds(training.get("seconds")),
        },
        "notes": [_text(note, "notes") for note in _list(about.get("notes"), "notes")],
        "measured_on": _text(about.get("measured_on"), "measured_on"),
        "measured": [_measured(one) for one in _list(about.get("measured"), "measured")],
        "games": {
            policy: _games(one) for policy, one in _keyed(about.get("games"), "games", POLICIES)
        },
        "sample": [],
    }


def _precision(said: Any) -> str:
    found: str = _need(lambda value: value in list(PRECISIONS), said, "precision")
    return found


def _config(said: Any) -> dict[str, Any]:
    """The settings it acts with: a network of ours, a ROM that has a name, no code of others."""
    values = _object(said, "config")
    if values.keys() - set(ACTING):
        raise ValueError("its configuration has fields that acting does not need")
    if values.get("network") or ":" in str(values.get("reward", "")):
        raise ValueError("it names code, which is not run")
    if values.get("rom") is not None and values["rom"] not in list(KNOWN):
        raise ValueError("it names a ROM that has no name here")
    try:
        config = from_dict(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"its configuration cannot be used: {_plain(str(error))}") from error
    return {name: getattr(config, name) for name in ACTING}


def _measured(said: Any) -> dict[str, Any]:
    one = _object(said, "measured")
    delays = _text(one.get("delays"), "delays")
    count = len(parse_delays(delays))
    policies = (*POLICIES, *BASELINES)
    clears = _keyed(one.get("clears"), "clears", policies)
    if not clears or not all(stages for _, stages in clears):
        # A share of nothing.
        raise _wrong("clears")
    return {
        "rom": _text(one.get("rom"), "rom"),
        "delays": delays,
        "seed": _count(one.get("seed"), "seed"),
        "clears": {
            policy: {
                stage: _digits(digits, count) for stage, digits in _keyed(stages, policy, STAGES)
            }
            for policy, stages in clears
        },
        "fails": {
            stage: _place(place) for stage, place in _keyed(one.get("fails"), "fails", STAGES)
        },
    }


def _games(said: Any) -> dict[str, Any]:
    one = _object(said, "games")
    counts = ["games", "won", "best"]
    # Older descriptions do not say it.
    counts += ["different"] if "different" in one else []
    return {
        **{name: _count(one.get(name), name) for name in counts},
        "mean": _seconds(one.get("mean")) or 0.0,
        "ended": {
            stage: _count(times, "ended")
            for stage, times in _keyed(one.get("ended"), "ended", STAGES)
        },
    }


def _digits(said: Any, count: int) -> str:
    if not (isinstance(said, str) and re.fullmatch(r"[01]+", said) and len(said) == count):
        raise ValueError("its description has clears that are not one digit for each start delay")
    return said


def _place(said: Any) -> list[int]:
    if not (isinstance(said, list) and len(said) == 3):
        raise ValueError("its description has a place that is not three numbers")
    return [_count(number, "fails") for number in said]


# --- single values --------------------------------------------------------------------------------
def _wrong(name: str) -> ValueError:
    return ValueError(f"its description has no usable {name}")


def _need(good: Callable[[Any], bool], said: Any, name: str) -> Any:
    if not good(said):
        raise _wrong(name)
    return said


def _object(said: Any, name: str) -> dict[str, Any]:
    found: dict[str, Any] = _need(lambda value: isinstance(value, dict), said, name)
    return found


def _list(said: Any, name: str) -> list[Any]:
    found: list[Any] = _need(
        lambda value: isinstance(value, list) and len(value) <= MOST_ENTRIES, said, name
    )
    return found


def _keyed(said: Any, name: str, keys: tuple[str, ...]) -> list[tuple[str, Any]]:
    """The entries of an object whose keys are known."""
    found = _object(said, name)
    if found.keys() - set(keys):
        raise _wrong(name)
    return list(found.items())


def _text(said: Any, name: str) -> str:
    """A line that can be printed: no control character moves a cursor or rings a bell."""
    found: str = _need(
        lambda value: isinstance(value, str) and value.isprintable() and len(value) <= MOST_TEXT,
        said,
        name,
    )
    return found


def _plain(text: str) -> str:
    return "".join(one if one.isprintable() else "?" for one in text)[:200]


def _count(said: Any, name: str) -> int:
    found: int = _need(lambda value: type(value) is int and 0 <= value < MOST_NUMBER, said, name)
    return found


def _seconds(said: Any) -> float | None:
    if said is None:
        return None
    if isinstance(said, bool) or not isinstance(said, int | float):
        raise _wrong("time")
    return float(said) if math.isfinite(said) and 0 <= said < MOST_NUMBER else None


def _hash(said: Any) -> str:
    if not (isinstance(said, str) and re.fullmatch(r"[0-9a-f]{64}", said)):
        raise _wrong("sha256")
    return said
