"""The address of a sweep's storage. Its password is kept out of messages, files and the list of
processes."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from warpzone.config import ConfigError
from warpzone.search.scrub import hide_parts, hide_passwords

#: Holds an address whose password is not to be seen.
VARIABLE = "WARPZONE_STORAGE"
_SCHEMES = ("postgresql", "sqlite")
#: USER:PASSWORD@HOST, which is no name of a file.
_NO_SCHEME = re.compile(r"[^/\\]*:[^/\\]*@")


@dataclass(frozen=True)
class Address:
    """Where trials are stored: a journal file, or the URL of a database."""

    text: str

    @property
    def is_file(self) -> bool:
        """Whether it is a journal file."""
        return "://" not in self.text

    @property
    def path(self) -> Path:
        """Of a journal file."""
        return Path(self.text)

    @property
    def shown(self) -> str:
        """Without the password."""
        return hide_passwords(self.text)

    def scrub(self, text: str) -> str:
        """A message without the URL and its parts; the name of a file may be said."""
        return text if self.is_file else hide_parts(text, self.text)

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"


def find_address(given: str | None, default: Path) -> Address:
    """The storage that a command asks for: by its flag, by the variable, or the default file.
    ConfigError if it is no address of a storage."""
    variable = os.environ.get(VARIABLE, "")
    if given is None or (variable and given == hide_passwords(variable)):
        given = variable or str(default)
    address = Address(given)
    if address.is_file:
        if not given or not address.path.name:
            raise ConfigError("--storage needs a file or the URL of a database")
        if _NO_SCHEME.match(given):
            raise ConfigError("--storage: the URL of a database begins with postgresql://")
        return address
    try:
        parts = urlsplit(given)
        _ = parts.port
    except ValueError as error:
        raise ConfigError("--storage: the URL has a host or port that cannot be") from error
    scheme = parts.scheme.partition("+")[0]
    if scheme not in _SCHEMES:
        raise ConfigError(
            f"--storage: {scheme or 'this'} is no kind of storage; it is a file (a journal), "
            "postgresql://USER@HOST/DATABASE or sqlite:///FILE"
        )
    return address


def leave_command_line(address: Address) -> None:
    """Starts this program again without the password among its words, which every user of the
    machine can read (`ps`). Returns where there is nothing to hide. Until now the password was
    there to see: the variable avoids that."""
    words = sys.orig_argv
    if address.shown == address.text or not any(address.text in word for word in words):
        return
    os.environ[VARIABLE] = address.text
    hidden = [word.replace(address.text, address.shown) for word in words]
    print(
        f"[sweep][warn] the password was on the command line for a moment; {VARIABLE} hides it "
        "from the start",
        file=sys.stderr,
        flush=True,
    )
    os.execv(sys.executable, [sys.executable, *hidden[1:]])  # noqa: S606 (itself, without a shell)
