"""Plug-ins: a reward, a network and observers of the user's own, as `module:name`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from warpzone.config.bounds import Refusal
from warpzone.env.backends.select import is_factory

DIGITS = set("0123456789abcdef")
SHA256_DIGITS = 64


@dataclass(frozen=True)
class PluginConfig:
    """Plug-ins that observe, and the files that all plug-ins were read from."""

    observer: str = ""
    """Observers of your own, as module:Class; several with commas between them."""
    plugins_sha256: str = ""
    """The source files of plug-ins, as module:name=SHA-256; a run records them, and refuses
    others."""

    @property
    def observers(self) -> tuple[str, ...]:
        """`observer`, one by one."""
        return tuple(name.strip() for name in self.observer.split(",") if name.strip())

    @property
    def recorded(self) -> dict[str, str]:
        """`plugins_sha256`, by plug-in."""
        pairs = (part.partition("=") for part in self.plugins_sha256.split(",") if part)
        return {name.strip(): digest.strip() for name, _, digest in pairs}


def as_record(digests: Mapping[str, str]) -> str:
    """The value of `plugins_sha256`."""
    return ",".join(f"{name}={digest}" for name, digest in sorted(digests.items()))


def refusals(config: PluginConfig) -> Iterator[Refusal]:
    """Names that are none."""
    for name in config.observers:
        yield not is_factory(name), f"--observer must be module:Class, not {name!r}"
    for name, digest in config.recorded.items():
        yield (
            not is_factory(name) or len(digest) != SHA256_DIGITS or not set(digest) <= DIGITS,
            f"--plugins-sha256 has module:name=SHA-256 for each plug-in, not {name}={digest}",
        )
