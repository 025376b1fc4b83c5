"""Other back-ends than the native engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from warpzone.config.bounds import Above, AtLeast, Lasts, Refusal, flag
from warpzone.env.backends.interface import RAM_SIZE
from warpzone.env.backends.select import check_name


@dataclass(frozen=True)
class BackendConfig:
    """Other back-ends than the native engine."""

    backend: str = "native"
    """native, nes-py, retro, or module:factory (any Gymnasium environment of the game)."""
    force_sync: bool = False
    """Play another back-end's lanes in this process instead of one worker process each."""
    env_start_method: Literal["auto", "forkserver", "spawn", "fork"] = "auto"
    """How worker processes are started; auto is forkserver, or spawn if that is missing."""
    worker_start_delay: Annotated[float, AtLeast(0), Lasts("seconds")] = 0.2
    """Seconds between the starts of two worker processes."""
    env_reset_timeout: Annotated[float, Above(0), Lasts("seconds")] = 120.0
    """Seconds a worker may take to make or reset its game before it is replaced."""
    env_step_timeout: Annotated[float, Above(0), Lasts("seconds")] = 60.0
    """Seconds a worker may take for a step before it is replaced."""
    parent_prewarm: bool = False
    """Make and drop a game in this process before the workers start."""
    parent_prewarm_all: bool = False
    """The same with one game for each stage."""
    env_diag_dir: str = ""
    """Folder that keeps the workers' diagnostics; if not given, only those of failures are kept."""
    enable_ram_x_parse: bool = False
    """Read x from RAM if the info of a module:factory lacks it; other back-ends provide it."""
    ram_x_high_addr: str = "0x006D"
    """RAM address of the high byte of x."""
    ram_x_low_addr: str = "0x0086"
    """RAM address of the low byte of x."""


def ram_address(text: str) -> int:
    """An address written in decimal, or in hexadecimal with 0x."""
    return int(text, 0)


def refusals(config: BackendConfig) -> Iterator[Refusal]:
    """Fields of this section that do not go together."""
    wrong = check_name(config.backend)
    yield wrong is not None, wrong or ""
    for name in ("ram_x_high_addr", "ram_x_low_addr"):
        text = getattr(config, name)
        try:
            fits = 0 <= ram_address(text) < RAM_SIZE
        except ValueError:
            fits = False
        yield not fits, f"{flag(name)} must be an address in 0x0000..0x07FF, not {text!r}"
