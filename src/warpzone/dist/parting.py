"""The last words of ranks: of all that end because of one failure, one says why."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

SAID = "said"
#: Seconds in which a store that is still there answers.
ANSWER = timedelta(seconds=5)


def claim(meeting: Path, *, gone: bool = True) -> bool:
    """Whether this rank is the first to say why the run ends. gone: whether it is, if the place has
    gone with the rank that made it."""
    try:
        os.close(os.open(meeting / SAID, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    except OSError:
        return gone
    return True


def claim_in(store: Store | None) -> bool:
    """The same for ranks that met in a store. Without one, or where it ended with rank 0, every
    rank speaks for itself."""
    if store is None:
        return True
    try:
        store.set_timeout(ANSWER)
        return int(store.add(SAID, 1)) == 1
    except RuntimeError:
        return True


class Heard:
    """What a rank that does not lead would have printed."""

    def __init__(self) -> None:
        self.text = io.StringIO()

    @property
    def last(self) -> str:
        """The last line: why it failed."""
        lines = self.text.getvalue().strip().splitlines()
        return lines[-1] if lines else ""


@contextmanager
def hushed() -> Iterator[Heard]:
    """Keeps back what is printed. An exception that leaves the block is printed as ever."""
    heard, out, err = Heard(), sys.stdout, sys.stderr
    sys.stdout = sys.stderr = heard.text
    try:
        yield heard
    finally:
        sys.stdout, sys.stderr = out, err


def say(text: str) -> None:
    """Writes a line to standard error, whoever holds it."""
    with suppress(OSError):
        os.write(2, f"{text}\n".encode(errors="replace"))
