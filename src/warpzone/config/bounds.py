"""Bounds of configuration fields, stated in annotations and checked in one place: `lr:
Annotated[float, Above(0)]` is a finite number above 0. Everything else is refused with one
sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from math import isfinite
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Protocol, get_args, get_origin, get_type_hints

#: Whether something is wrong, and the sentence that says what.
Refusal = tuple[bool, str]
#: The default of a field that has none; no value is equal to it.
_NOTHING = object()


class Bound(Protocol):
    """A rule about one value."""

    def allows(self, value: Any) -> bool:
        """Whether the value is right. NaN never is."""

    def demand(self, value: Any) -> str:
        """What a wrong value should have been; follows the name of the flag."""


@dataclass(frozen=True)
class AtLeast:
    """This or more."""

    least: int

    def allows(self, value: Any) -> bool:
        return bool(value >= self.least)

    def demand(self, value: Any) -> str:
        return f"must be at least {self.least}, and is {value}"


@dataclass(frozen=True)
class AtMost:
    """This or less."""

    most: int

    def allows(self, value: Any) -> bool:
        return bool(value <= self.most)

    def demand(self, value: Any) -> str:
        return f"must be at most {self.most}, and is {value}"


@dataclass(frozen=True)
class Above:
    """More than this."""

    least: int

    def allows(self, value: Any) -> bool:
        return bool(value > self.least)

    def demand(self, value: Any) -> str:
        return f"must be above {self.least}, and is {value}"


@dataclass(frozen=True)
class Share:
    """0 to 1, both included."""

    def allows(self, value: Any) -> bool:
        return bool(0.0 <= value <= 1.0)

    def demand(self, value: Any) -> str:
        return f"must be in 0..1, and is {value}"


@dataclass(frozen=True)
class BelowOne:
    """0 to 1, 1 not included; `why` says what 1 would be."""

    why: str = ""

    def allows(self, value: Any) -> bool:
        return bool(0.0 <= value < 1.0)

    def demand(self, value: Any) -> str:
        return f"must be in 0..1 and not 1, not {value}{f': {self.why}' if self.why else ''}"


@dataclass(frozen=True)
class Lasts:
    """No bound: the value is a time in this unit (seconds, minutes or hours), which the command
    line also takes in another one."""

    unit: str


@dataclass(frozen=True)
class Field:
    """What one field may hold."""

    name: str
    kind: Any
    bounds: tuple[Bound, ...]
    #: Of a time; empty for what is none.
    unit: str = ""

    @cached_property
    def _fits(self) -> Callable[[object], bool]:
        """Made once: a configuration has hundreds of fields, and a reader of runs many of those."""
        return _test_of(self.kind)

    def problem(self, value: Any) -> str:
        """What is wrong with a value by itself, in one sentence; empty if nothing is."""
        if not self._fits(value):
            return f"{flag(self.name)} must be {_describe(self.kind)}, not {value!r}"
        if isinstance(value, float) and not isfinite(value):
            return f"{flag(self.name)} must be finite, not {value}"
        for bound in self.bounds:
            if value is not None and not bound.allows(value):
                return f"{flag(self.name)} {bound.demand(value)}"
        return ""


def flag(name: str) -> str:
    """A field's name on the command line."""
    return "--" + name.replace("_", "-")


@cache
def annotated(section: Any) -> tuple[Field, ...]:
    """The fields of a section of the configuration (its class), or of all of it, as they are
    annotated."""
    found = []
    for name, hint in get_type_hints(section, include_extras=True).items():
        kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        bounds = tuple(note for note in notes if not isinstance(note, Lasts))
        unit = next((note.unit for note in notes if isinstance(note, Lasts)), "")
        found.append(Field(name, kind, bounds, unit))
    return tuple(found)


def out_of_bounds(config: Any) -> Iterator[Refusal]:
    """Fields that are wrong by themselves: of another type, not finite, or out of bounds."""
    section: Any = type(config)
    for field, default in _with_defaults(section):
        value = getattr(config, field.name)
        # Most fields of most configurations; that defaults are right is a matter of the tests.
        if value == default and type(value) is type(default):
            continue
        problem = field.problem(value)
        yield bool(problem), problem


@cache
def _with_defaults(section: Any) -> tuple[tuple[Field, object], ...]:
    return tuple((field, getattr(section, field.name, _NOTHING)) for field in annotated(section))


def _test_of(kind: Any) -> Callable[[object], bool]:
    """Whether a value is of a kind."""
    if get_origin(kind) is Literal:
        words = get_args(kind)
        return lambda value: value in words
    if isinstance(kind, UnionType):
        tests = [_test_of(one) for one in get_args(kind)]
        return lambda value: any(test(value) for test in tests)
    if kind is float:
        return lambda value: isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return lambda value: isinstance(value, int) and not isinstance(value, bool)
    return lambda value: isinstance(value, kind)


def _describe(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, get_args(kind)))}"
    if isinstance(kind, UnionType):
        return " or ".join(_describe(one) for one in get_args(kind) if one is not NoneType)
    return {int: "a whole number", float: "a number", bool: "true or false"}.get(kind, "text")
