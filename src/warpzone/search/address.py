"""The address of a sweep's storage. Its password is kept out of messages, files and the list of
processes."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from warpzone.config import ConfigError

#: Holds an address whose password is not to be seen.
VARIABLE = "WARPZONE_STORAGE"
HIDDEN = "***"
_PASSWORD = re.compile(r"(?<=://)([^/@]*?):([^/]*)@")
_SCHEMES = ("postgresql", "sqlite")


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
        return hide(self.text)

    def scrub(self, text: str) -> str:
        """A message of the database without address and password."""
        password = _password(self.text)
        for secret in (self.text, password, unquote(password)):
            text = text.replace(secret, HIDDEN) if secret else text
        return text

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"


def hide(url: str) -> str:
    """A URL with `***` in place of its password."""
    return _PASSWORD.sub(rf"\1:{HIDDEN}@", url)


def _password(url: str) -> str:
    found = _PASSWORD.search(url)
    return found[2] if found else ""


def find_address(given: str | None, default: Path) -> Address:
    """The storage that a command asks for: by its flag, by the variable, or the default file.
    ConfigError if it is no address of a storage."""
    variable = os.environ.get(VARIABLE, "")
    if given is None or (variable and given == hide(variable)):
        given = variable or str(default)
    address = Address(given)
    if address.is_file:
        if not given or not address.path.name:
            raise ConfigError("--storage needs a file or the URL of a database")
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
    if not _password(address.text) or not any(address.text in word for word in words):
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
