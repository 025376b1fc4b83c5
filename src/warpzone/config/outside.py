"""Loads plug-ins: code from outside the package, named `module:name`.

A run, a preset or an agent may come from somebody else, and naming code must not be enough to have
it run. A module is imported if it is installed or on the Python path, outside the current folder. A
file of the current folder is imported if the user named it on the command line or in a program
(`agree`), now or earlier with the same content.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Collection, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from warpzone.config import ConfigError, TrainConfig
from warpzone.config.plugins import as_record
from warpzone.rom.paths import cache_dir, read_plain
from warpzone.rom.trusted import UntrustedError, open_file, open_folder

#: Bytes of a source file.
MOST_SOURCE = 16 << 20
#: The field that names plug-ins of each kind.
KINDS = ("reward", "network", "observer")
_agreed: set[str] = set()
#: Files of the current folder that were imported, by module, with the digest of their content.
_loaded: dict[str, tuple[Path, str, ModuleType]] = {}


def plugins_of(config: TrainConfig) -> Iterator[tuple[str, str]]:
    """The plug-ins of a configuration: kind and `module:name`."""
    if config.own_reward:
        yield "reward", config.own_reward
    if config.network:
        yield "network", config.network
    for name in config.observers:
        yield "observer", name


def agree(
    config: TrainConfig, kinds: Collection[str] = KINDS, *, pinned: bool = False
) -> TrainConfig:
    """The configuration with the digests of its plug-ins of `kinds`, which the user has named:
    their code may run from now on, as it is now. Recorded digests of others stay, and with
    `pinned`, where the user has given the digests, all do."""
    digests = {}
    for kind, name in plugins_of(config):
        recorded = config.recorded.get(name, "")
        if kind in kinds:
            digest = _digest(kind, name, _place(kind, name)[0])
            recorded = recorded if pinned and recorded else digest
            if recorded == digest:
                _remember(digest)
        if recorded:
            digests[name] = recorded
    return config.replace(plugins_sha256=as_record(digests))


def load_plugin(kind: str, name: str, config: TrainConfig) -> Any:
    """What `module:name` is. ConfigError if it is missing, is not what the run recorded, or was
    never agreed to."""
    module_name, _, attribute = name.partition(":")
    file, here = _place(kind, name)
    digest = _digest(kind, name, file)
    recorded = config.recorded.get(name, digest)
    if digest != recorded:
        raise ConfigError(
            f"the {kind} {name} has changed: {file} is not the file that the run was trained with; "
            f"put that one back, or give --{kind} {name} to use it as it is now"
        )
    if here and not _known(digest):
        raise ConfigError(
            f"the {kind} {name} is code in {file} that you have not used yet; read it, and give "
            f"--{kind} {name} if it may run"
        )
    try:
        found: Any = _from_file(module_name, file, digest) if here else _import(module_name)
    except ImportError as error:
        raise ConfigError(f"the {kind} {name} cannot be imported: {error}") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ConfigError(f"the {kind} {name}: {file.name} has no {part!r}")
        found = getattr(found, part)
    return found


def _import(module: str) -> ModuleType:
    return importlib.import_module(module)


def _from_file(module: str, file: Path, digest: str) -> ModuleType:
    """A file of the current folder as a module; once, while it stays the same."""
    if module in _loaded and _loaded[module][:2] == (file, digest):
        return _loaded[module][2]
    spec = importlib.util.spec_from_file_location(module, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python module")
    made = importlib.util.module_from_spec(spec)
    # Classes look their module up while they are made.
    sys.modules[module] = made
    try:
        spec.loader.exec_module(made)
    except BaseException:
        del sys.modules[module]
        raise
    _loaded[module] = file, digest, made
    return made


def _place(kind: str, name: str) -> tuple[Path, bool]:
    """The source file of a plug-in, and whether it is one of the current folder. Nothing is
    imported but packages outside it."""
    module = name.partition(":")[0]
    here = Path.cwd() / f"{module}.py"
    first = module.partition(".")[0]
    try:
        spec = None if first in _loaded else importlib.util.find_spec(first)
        if spec is not None and not _in(Path.cwd(), spec):
            whole = importlib.util.find_spec(module)
            if whole is not None and whole.origin is not None and Path(whole.origin).is_file():
                return Path(whole.origin), False
    except (ImportError, ValueError) as error:
        raise ConfigError(f"the {kind} {name} cannot be imported: {error}") from error
    if here.is_file():
        return here, True
    raise ConfigError(
        f"the {kind} {name} is missing: there is no module {module} on the Python path, and no "
        f"{module}.py in {Path.cwd()}"
    )


def _in(folder: Path, spec: ModuleSpec) -> bool:
    """Whether a module or package lies directly in a folder."""
    places = [Path(place) for place in spec.submodule_search_locations or ()]
    if not places and spec.origin is not None:
        places = [Path(spec.origin)]
    return any(place.absolute().parent == folder for place in places)


def _digest(kind: str, name: str, file: Path) -> str:
    try:
        return hashlib.sha256(read_plain(file, MOST_SOURCE)).hexdigest()
    except OSError as error:
        raise ConfigError(f"the {kind} {name} cannot be read: {error}") from error


# --- what was agreed to ---------------------------------------------------------------------------
def agreed_folder() -> Path:
    """One empty file for each content that the user agreed to, named after its digest."""
    return cache_dir() / "plugins"


def _remember(digest: str) -> None:
    """For this process in any case, for later ones if the folder can be written."""
    _agreed.add(digest)
    try:
        folder = open_folder(agreed_folder())
    except (OSError, UntrustedError):
        return
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        os.close(os.open(digest, flags, 0o600, dir_fd=folder))
    except OSError:
        return
    finally:
        os.close(folder)


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
