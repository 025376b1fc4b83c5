"""The code from outside that a configuration names: plug-ins, and back-ends of the user's own.

`env/outside.py` has the rule which of it may run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from warpzone.config import ConfigError, TrainConfig
from warpzone.config.plugins import as_record
from warpzone.env.backends.select import is_factory
from warpzone.env.outside import Code, OutsideError, locate, nowhere, title

#: The flag that names code of each kind.
KINDS = ("reward", "network", "observer", "backend")


def plugins_of(config: TrainConfig) -> Iterator[tuple[str, str]]:
    """The code from outside of a configuration: kind and `module:name`."""
    if config.own_reward:
        yield "reward", config.own_reward
    if config.network:
        yield "network", config.network
    for name in config.observers:
        yield "observer", name
    if is_factory(config.backend):
        yield "backend", config.backend


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
            code = _found(kind, name)
            recorded = recorded if pinned and recorded else code.digest
            if recorded == code.digest:
                code.remember()
        if recorded:
            digests[name] = recorded
    return config.replace(plugins_sha256=as_record(digests))


def load_plugin(kind: str, name: str, config: TrainConfig) -> Any:
    """What `module:name` is. ConfigError if it is missing, is not what the run recorded, or was
    never agreed to."""
    code = _found(kind, name)
    try:
        code.check(config.recorded.get(name, ""))
        return code.load()
    except OutsideError as error:
        raise ConfigError(str(error)) from error


def check_backend(config: TrainConfig) -> None:
    """ConfigError if the back-end is code that is not what the run recorded, or was never agreed
    to. One that is missing is left to whoever makes it."""
    if not is_factory(config.backend):
        return
    try:
        code = locate("backend", config.backend)
        if code is not None:
            code.check(config.recorded.get(config.backend, ""))
    except OutsideError as error:
        raise ConfigError(str(error)) from error


def _found(kind: str, name: str) -> Code:
    try:
        code = locate(kind, name)
    except OutsideError as error:
        raise ConfigError(str(error)) from error
    if code is None:
        raise ConfigError(f"{title(kind, name)} is missing: {nowhere(name)}")
    return code
