"""Code from outside the package, named `module:name`: where it is, whether it may run, its import.

A run, a preset or an agent may come from somebody else, and naming code must not be enough to have
it run. A module is imported if it is installed or on the Python path, outside the current folder. A
file of the current folder is imported if the user named it on the command line or in a program
(`remember`), now or earlier with the same content.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from warpzone.rom.paths import cache_dir, read_plain
from warpzone.rom.trusted import UntrustedError, open_file, open_folder

#: Bytes of a source file.
MOST_SOURCE = 16 << 20
#: What sentences call the kinds whose word differs from their flag.
_WORDS = {"backend": "back-end"}
_agreed: set[str] = set()
#: Files of the current folder that were imported, by module, with the digest of their content.
_loaded: dict[str, tuple[Path, str, ModuleType]] = {}


class OutsideError(ValueError):
    """Why code from outside cannot or may not run, in one sentence."""


@dataclass(frozen=True)
class Code:
    """Code from outside that was found, and not imported."""

    #: The flag that names it, without hyphens.
    kind: str
    #: `module:name`.
    name: str
    file: Path
    #: Whether the file is one of the current folder.
    here: bool
    #: SHA-256 of the file.
    digest: str

    def __str__(self) -> str:
        return title(self.kind, self.name)

    def remember(self) -> None:
        """The user has named it: it may run from now on, as it is now. For this process in any
        case, for later ones if the folder can be written."""
        _agreed.add(self.digest)
        try:
            folder = open_folder(agreed_folder())
        except (OSError, UntrustedError):
            return
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            os.close(os.open(self.digest, flags, 0o600, dir_fd=folder))
        except OSError:
            return
        finally:
            os.close(folder)

    def check(self, recorded: str = "") -> None:
        """OutsideError unless it may run. recorded: the digest that a run was trained with."""
        if recorded not in ("", self.digest):
            raise OutsideError(
                f"{self} has changed: {self.file} is not the file that the run was trained with; "
                f"put that one back, or give --{self.kind} {self.name} to use it as it is now"
            )
        if self.here and not _known(self.digest):
            raise OutsideError(
                f"{self} is code in {self.file} that you have not used yet; read it, and give "
                f"--{self.kind} {self.name} if it may run"
            )

    def load(self) -> Any:
        """What `module:name` is. `check` has been asked before."""
        module, _, attribute = self.name.partition(":")
        try:
            found: Any = self._from_file(module) if self.here else importlib.import_module(module)
        except ImportError as error:
            raise OutsideError(f"{self} cannot be imported: {error}") from error
        for part in attribute.split("."):
            if not hasattr(found, part):
                raise OutsideError(f"{self}: {self.file.name} has no {part!r}")
            found = getattr(found, part)
        return found

    def _from_file(self, module: str) -> ModuleType:
        """A file of the current folder as a module; once, while it stays the same."""
        if module in _loaded and _loaded[module][:2] == (self.file, self.digest):
            return _loaded[module][2]
        spec = importlib.util.spec_from_file_location(module, self.file)
        if spec is None or spec.loader is None:
            raise ImportError(f"{self.file} is no Python module")
        made = importlib.util.module_from_spec(spec)
        # Classes look their module up while they are made.
        sys.modules[module] = made
        with ExitStack() as failing:
            failing.callback(sys.modules.pop, module)
            spec.loader.exec_module(made)
            failing.pop_all()
        _loaded[module] = self.file, self.digest, made
        return made


def title(kind: str, name: str) -> str:
    """What sentences call it."""
    return f"the {_WORDS.get(kind, kind)} {name}"


def locate(kind: str, name: str) -> Code | None:
    """Code by its name; None if it is nowhere. Nothing is imported but packages outside the current
    folder."""
    module = name.partition(":")[0]
    here = Path.cwd() / f"{module}.py"
    first = module.partition(".")[0]
    try:
        spec = None if first in _loaded else importlib.util.find_spec(first)
        if spec is not None and not _in(Path.cwd(), spec):
            whole = importlib.util.find_spec(module)
            if whole is not None and whole.origin is not None and Path(whole.origin).is_file():
                return _code(kind, name, Path(whole.origin), here=False)
    except (ImportError, ValueError) as error:
        raise OutsideError(f"{title(kind, name)} cannot be imported: {error}") from error
    return _code(kind, name, here, here=True) if here.is_file() else None


def nowhere(name: str) -> str:
    """Where code was looked for that is not there."""
    module = name.partition(":")[0]
    return f"there is no module {module} on the Python path, and no {module}.py in {Path.cwd()}"


def _code(kind: str, name: str, file: Path, *, here: bool) -> Code:
    try:
        digest = hashlib.sha256(read_plain(file, MOST_SOURCE)).hexdigest()
    except OSError as error:
        raise OutsideError(f"{title(kind, name)} cannot be read: {error}") from error
    return Code(kind, name, file, here, digest)


def _in(folder: Path, spec: ModuleSpec) -> bool:
    """Whether a module or package lies directly in a folder."""
    places = [Path(place) for place in spec.submodule_search_locations or ()]
    if not places and spec.origin is not None:
        places = [Path(spec.origin)]
    return any(place.absolute().parent == folder for place in places)


# --- what was agreed to ---------------------------------------------------------------------------
def agreed_folder() -> Path:
    """One empty file for each content that the user agreed to, named after its digest."""
    return cache_dir() / "plugins"


def _known(digest: str) -> bool:
    if digest in _agreed:
        return True
    place = agreed_folder()
    if not place.is_dir():
        return False
    try:
        folder = open_folder(place)
    except (OSError, UntrustedError):
        return False
    try:
        os.close(open_file(folder, place / digest))
    except (OSError, UntrustedError):
        return False
    finally:
        os.close(folder)
    return True
