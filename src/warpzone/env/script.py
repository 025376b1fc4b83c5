"""Button scripts: `RIGHT+B:180, RIGHT+A+B:20` presses each mask for that many frames."""

import os
from importlib import resources
from pathlib import Path

from warpzone.env.actions import BUTTONS, button_mask

MAX_FRAMES = 1_000_000


def parse_script(text: str) -> bytes:
    """One button mask for each frame. Lines starting with `#` are comments."""
    lines = [line.partition("#")[0] for line in text.splitlines()]
    masks = bytearray()
    for token in ",".join(lines).split(","):
        entry = token.strip()
        if not entry:
            continue
        buttons, colon, count = entry.partition(":")
        if not colon or not count.strip().isdecimal() or int(count) == 0:
            raise ValueError(f"{entry!r} is not BUTTONS:FRAMES, such as RIGHT+B:180")
        try:
            mask = button_mask(buttons)
        except ValueError as error:
            raise ValueError(f"in {entry!r}: {error}") from error
        if len(masks) + int(count) > MAX_FRAMES:
            raise ValueError(f"{entry!r} takes the script past {MAX_FRAMES} frames")
        masks += bytes([mask]) * int(count)
    if not masks:
        raise ValueError("the script is empty; write e.g. RIGHT+B:180")
    return bytes(masks)


def parse_start(text: str) -> bytes:
    """The script of an episode's start. START is left out of it: an episode begins where the game
    has been started already, and there the button would pause it."""
    return bytes(mask & ~BUTTONS["START"] for mask in load_script(text))


def script_names() -> list[str]:
    """The scripts that come with the package."""
    folder = resources.files("warpzone.env") / "scripts"
    return sorted(item.name.removesuffix(".txt") for item in folder.iterdir())


def load_script(name: str) -> bytes:
    """A script of the package by name, a file, or the script itself."""
    if not isinstance(name, str):
        raise TypeError(f"a script is text such as RIGHT+B:180, not {name!r}")
    known = script_names()
    if name in known:
        folder = resources.files("warpzone.env") / "scripts"
        return parse_script((folder / f"{name}.txt").read_text())
    # A script may be longer than the name of a file can be; this only says no then.
    if os.path.isfile(name):
        return parse_script(Path(name).read_text())
    if ":" in name:
        return parse_script(name)
    raise ValueError(
        f"there is no script {name!r}; write BUTTONS:FRAMES, such as RIGHT+B:180, or name a file "
        f"or one of the package's, which are {', '.join(known)}"
    )
