"""Button scripts: `RIGHT+B:180, RIGHT+A+B:20` presses each mask for that many frames."""

import os
from importlib import resources
from itertools import groupby
from pathlib import Path

from warpzone.env.actions import BUTTONS, button_mask, mask_name
from warpzone.rom.paths import read_plain

MAX_FRAMES = 1_000_000
#: Bytes of a file. Its script must fit into a configuration, whatever its entries are.
MOST_BYTES = 1 << 16
#: Before the name of a file that a saved configuration names: it is not read.
UNREAD = "file:"


def parse_script(text: str) -> bytes:
    """One button mask for each frame. Lines starting with `#` are comments."""
    masks = bytearray()
    for line in text.splitlines():
        _add(masks, line)
    return _some(masks)


def _add(masks: bytearray, line: str) -> None:
    """The masks of one line; ValueError quotes the entry that is wrong."""
    for token in line.partition("#")[0].split(","):
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


def _some(masks: bytearray) -> bytes:
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
    """A script of the package by name, the script itself, or a file, which the user has named."""
    try:
        return known_script(name)
    except ValueError:
        # A script may be longer than the name of a file can be; this only says no then.
        if unread(name) or not os.path.isfile(name):
            raise
    return _read(Path(name))


def known_script(name: str) -> bytes:
    """A script of the package by name, or the script itself: whatever the text is, no other file is
    looked at."""
    if not isinstance(name, str):
        raise TypeError(f"a script is text such as RIGHT+B:180, not {name!r}")
    if problem := unread(name):
        raise ValueError(problem)
    known = script_names()
    if name in known:
        folder = resources.files("warpzone.env") / "scripts"
        return parse_script((folder / f"{name}.txt").read_text())
    if ":" in name:
        return parse_script(name)
    raise ValueError(
        f"there is no script {name!r}; write BUTTONS:FRAMES, such as RIGHT+B:180, or name a file "
        f"or one of the package's, which are {', '.join(known)}"
    )


def kept_script(text: str) -> str:
    """A script as a configuration keeps it: of a file its content, so that a run that goes on, here
    or elsewhere, reads no file. ValueError if there is no such script."""
    try:
        known_script(text)
    except ValueError:
        if not unread(text):
            masks = load_script(text)
            return ",".join(f"{mask_name(mask)}:{len(list(run))}" for mask, run in groupby(masks))
    return text


def unread(text: str) -> str:
    """Why a script of a saved configuration cannot be played; empty if it can."""
    if not text.startswith(UNREAD):
        return ""
    name = text.removeprefix(UNREAD)
    return (
        f"the script is that of the file {name!r}, which is read only if you name it yourself; "
        f"give --scripted-sequence {name}, and --resume-relax-match to go on with a run"
    )


def _read(path: Path) -> bytes:
    """The script in a plain file of bounded size. What is wrong with it is said without quoting it:
    it may be a file of another kind, with secrets in it."""
    try:
        lines = read_plain(path, MOST_BYTES).decode().splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"the file {path} is not text, and so no script") from None
    except OSError as error:
        raise ValueError(f"the script {path} cannot be read: {error.strerror}") from error
    masks = bytearray()
    for number, line in enumerate(lines, 1):
        try:
            _add(masks, line)
        except ValueError:
            raise ValueError(
                f"line {number} of {path} is no script; write BUTTONS:FRAMES, such as RIGHT+B:180, "
                f"of at most {MAX_FRAMES} frames in all"
            ) from None
    return _some(masks)
