"""Descriptions from elsewhere: what is kept, and what is refused."""

import copy
from typing import Any

import pytest

from warpzone.run.shipped import read_description
from warpzone.share.checking import checked


@pytest.fixture(scope="module")
def good() -> dict[str, Any]:
    return read_description("all")


def test_a_good_one_is_kept_but_for_what_is_unknown(good: dict[str, Any]) -> None:
    found = checked({**copy.deepcopy(good), "more": {"code": "import os"}})
    assert "more" not in found
    assert {**found, "sample": good["sample"], "precision": "half"} == {**good, "precision": "half"}


@pytest.mark.parametrize("precision", ["half", "single", "mixed"])
def test_the_precision_is_kept(good: dict[str, Any], precision: str) -> None:
    assert checked({**good, "precision": precision})["precision"] == precision
    older = {name: value for name, value in good.items() if name != "precision"}
    assert checked(older)["precision"] == "half"


WRONG: list[tuple[str, Any, str]] = [
    ("warpzone_agent", 2, "not one of this version"),
    ("sha256", "ABC", "no usable sha256"),
    ("bytes", -1, "no usable bytes"),
    ("bytes", True, "no usable bytes"),
    ("parameters", 1 << 70, "no usable parameters"),
    ("precision", "double", "no usable precision"),
    ("precision", ["half"], "no usable precision"),
    ("name", "a\nb", "no usable name"),
    ("network", "x" * 5000, "no usable network"),
    ("notes", ["ok", "\x1b[2J"], "no usable notes"),
    ("notes", [""] * 100, "no usable notes"),
    ("training", None, "no usable training"),
    ("training.steps", "many", "no usable steps"),
    ("training.seconds", "long", "no usable time"),
    ("training.command", ["warpzone"], "no usable command"),
    ("config", [], "no usable config"),
    ("config.notify", "http://x", "fields that acting does not need"),
    ("config.network", "mine:Net", "it names code"),
    ("config.reward", "mine:reward", "it names code"),
    ("config.rom", "/dev/zero", "a ROM that has no name here"),
    ("config.size", -4, "cannot be used"),
    ("measured", {}, "no usable measured"),
    ("measured.0.delays", "0..9999", "start delays are in"),
    ("measured.0.clears.argmax.1-1", "012", "one digit for each start delay"),
    ("measured.0.clears.argmax.9-9", "1" * 31, "no usable argmax"),
    ("measured.0.clears.guess", {}, "no usable clears"),
    ("measured.0.fails.1-2", [1, 2], "not three numbers"),
    ("games.argmax.won", 0.5, "no usable won"),
    ("games.argmax.different", -1, "no usable different"),
    ("games.argmax.ended.4-3", None, "no usable ended"),
]


@pytest.mark.parametrize(("place", "value", "sentence"), WRONG)
def test_what_is_wrong_is_refused(
    good: dict[str, Any], place: str, value: Any, sentence: str
) -> None:
    bad: Any = copy.deepcopy(good)
    *way, last = place.split(".")
    inner = bad
    for part in way:
        inner = inner[int(part)] if isinstance(inner, list) else inner[part]
    inner[last] = value
    with pytest.raises(ValueError, match=sentence) as refused:
        checked(bad)
    assert str(refused.value).isprintable()


def test_a_field_that_is_missing_is_refused(good: dict[str, Any]) -> None:
    for name in good.keys() - {"sample", "precision"}:
        with pytest.raises(ValueError, match=r"description|configuration"):
            checked({key: value for key, value in good.items() if key != name})
