"""Action sets: what an action id presses.

The named sets keep the order of gym-super-mario-bros, so agents trained there keep their meaning.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, cast

#: Bit of each button in a mask; the order of the controller's shift register.
BUTTONS: dict[str, int] = {
    "A": 1,
    "B": 2,
    "SELECT": 4,
    "START": 8,
    "UP": 16,
    "DOWN": 32,
    "LEFT": 64,
    "RIGHT": 128,
}

_RIGHT = ("NOOP", "RIGHT", "RIGHT+A", "RIGHT+B", "RIGHT+A+B")
_SIMPLE = (*_RIGHT, "A", "LEFT")
_COMPLEX = (*_SIMPLE, "LEFT+A", "LEFT+B", "LEFT+A+B", "DOWN", "UP")
_EXTENDED = (
    "NOOP",
    "START",
    "RIGHT",
    "RIGHT+B",
    "RIGHT+A",
    "RIGHT+A+B",
    "START+RIGHT",
    "START+RIGHT+B",
)

#: Names that `actions=` accepts.
ACTION_SETS: dict[str, tuple[str, ...]] = {
    "right": _RIGHT,
    "simple": _SIMPLE,
    "complex": _COMPLEX,
    "extended": _EXTENDED,
}

#: A name, a table such as `["NOOP", "RIGHT+A"]`, `[["NOOP"], ["right", "A"]]` or
#: `"NOOP;RIGHT+A"`, or raw masks.
ActionSpec = str | bytes | Sequence[str | Sequence[str]]

MAX_ACTIONS = 256


class ActionTable(NamedTuple):
    """Action id -> button mask, and a readable name of each."""

    masks: bytes
    names: tuple[str, ...]


def button_mask(buttons: str | Sequence[str]) -> int:
    """The mask of `"RIGHT+A"` or `["right", "A"]`; `NOOP` (or nothing) is 0."""
    names = buttons.split("+") if isinstance(buttons, str) else buttons
    if not isinstance(names, Sequence):
        raise TypeError(f"buttons are names such as 'RIGHT+A' or ['RIGHT', 'A'], not {buttons!r}")
    mask = 0
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"a button must be a name such as 'RIGHT', not {name!r}")
        key = name.strip().upper()
        if key in ("NOOP", "") and len(names) == 1:
            continue
        if key not in BUTTONS:
            known = ", ".join(BUTTONS)
            raise ValueError(f"unknown button {name!r}; the buttons are {known} (and NOOP alone)")
        mask |= BUTTONS[key]
    return mask


def mask_name(mask: int) -> str:
    """`"RIGHT+A"` for 129; directions first, `NOOP` for 0."""
    names = [name for name in reversed(BUTTONS) if mask & BUTTONS[name]]
    faces = sorted(name for name in names if name in "AB")
    return "+".join([name for name in names if name not in "AB"] + faces) or "NOOP"


def action_table(actions: ActionSpec) -> ActionTable:
    """The table behind an `actions=` argument."""
    if isinstance(actions, str):
        return _written_table(actions)
    if isinstance(actions, bytes | bytearray):
        masks = bytes(actions)
    elif isinstance(actions, Sequence):
        table = cast("Sequence[str | Sequence[str]]", actions)
        masks = bytes(button_mask(entry) for entry in table)
    else:
        raise TypeError(
            "actions must be the name of a set, a list of button lists, or bytes of masks, "
            f"not {type(actions).__name__}"
        )
    return _table(masks)


@lru_cache(64)
def _written_table(actions: str) -> ActionTable:
    """Of a set's name, or of buttons with `;` between them."""
    if ";" not in actions:
        if actions not in ACTION_SETS:
            known = ", ".join(ACTION_SETS)
            raise ValueError(
                f"unknown action set {actions!r}; use one of {known} or a list of button names "
                "such as NOOP;RIGHT;RIGHT+A"
            )
        return _table(bytes(button_mask(entry) for entry in ACTION_SETS[actions]))
    entries = actions.split(";")
    if not all(entry.strip() for entry in entries):
        raise ValueError(f"{actions!r} has an entry without buttons; to press none, write NOOP")
    return _table(bytes(button_mask(entry) for entry in entries))


def _table(masks: bytes) -> ActionTable:
    if not 1 <= len(masks) <= MAX_ACTIONS:
        raise ValueError(f"an action table has 1 to {MAX_ACTIONS} entries, this one {len(masks)}")
    return ActionTable(masks, tuple(mask_name(mask) for mask in masks))
