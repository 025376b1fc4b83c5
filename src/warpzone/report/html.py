"""HTML by function calls. Text is always escaped; only what these functions made is not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from html import escape


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | Markup | int | float
#: Elements without an end tag.
_VOID = ("img", "input", "meta")


def tag(element: str, /, *children: Child, **attributes: str | int | float | None) -> Markup:
    """An element. `class_` is `class`, `stroke_width` is `stroke-width`; None leaves one out."""
    opened = f"<{element}"
    for key, value in attributes.items():
        if value is not None:
            opened += f' {_attribute(key)}="{escape(str(value))}"'
    if element in _VOID:
        return Markup(f"{opened}>")
    return Markup(f"{opened}>{join(children)}</{element}>")


@cache
def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def join(children: Iterable[Child], between: str = "") -> Markup:
    """Children one after the other."""
    # A page has thousands of elements: one list is much quicker than a call for each child.
    parts = [child if type(child) is Markup else escape(str(child)) for child in children]
    return Markup(between.join(parts))


def text(child: Child) -> Markup:
    """Escaped unless it is HTML already."""
    return child if isinstance(child, Markup) else Markup(escape(str(child)))


def table(head: Sequence[Child], rows: Iterable[Sequence[Child]], class_: str = "") -> Markup:
    """A table that scrolls by itself where it is too wide."""
    top = tag("tr", *(tag("th", cell, scope="col") for cell in head))
    body = [tag("tr", *(tag("td", cell) for cell in row)) for row in rows]
    inside = tag("table", tag("thead", top), tag("tbody", *body), class_=class_ or None)
    return tag("div", inside, class_="wide")


def section(title: str, *children: Child) -> Markup:
    """A heading and what belongs to it."""
    return tag("section", tag("h2", title), *children)
