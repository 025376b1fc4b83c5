"""Who plays the lanes, when it is not the native engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from warpzone.config.checks import Refusal, flag
from warpzone.env.backends.interface import RAM_SIZE
from warpzone.env.backends.select import NATIVE, RETRO, check_name, is_factory

if TYPE_CHECKING:
    from warpzone.config import TrainConfig

#: Each holds an interpreter and an emulator, some 100 MiB.
MOST_WORKERS = 128


@dataclass(frozen=True)
class BackendConfig:
    """Who plays the lanes, when it is not the native engine."""

    backend: str = "native"
    """native, nes-py, retro, or module:factory (any Gymnasium environment of the game)."""
    force_sync: bool = False
    """Play another back-end's lanes in this process instead of one worker process each."""
    env_start_method: Literal["auto", "forkserver", "spawn", "fork"] = "auto"
    """How worker processes are started; auto is forkserver, or spawn where there is none."""
    worker_start_delay: float = 0.2
    """Seconds between the starts of two worker processes."""
    env_reset_timeout: float = 120.0
    """Seconds a worker may take to make or reset its game before it is replaced."""
    env_step_timeout: float = 60.0
    """Seconds a worker may take for a step before it is replaced."""
    parent_prewarm: bool = False
    """Make and drop a game in this process before the workers start."""
    parent_prewarm_all: bool = False
    """The same with one game for each stage."""
    env_diag_dir: str = ""
    """Folder that keeps the workers' diagnostics; if not given, only those of failures are kept."""
    enable_ram_x_parse: bool = False
    """Read x from RAM where a module:factory's info does not tell it."""
    ram_x_high_addr: str = "0x006D"
    """RAM address of the high byte of x."""
    ram_x_low_addr: str = "0x0086"
    """RAM address of the low byte of x."""


def ram_address(text: str) -> int:
    """An address written in decimal, or in hexadecimal with 0x."""
    return int(text, 0)


def refusals(config: TrainConfig) -> Iterator[Refusal]:
    """What is wrong with these fields, or does not go with others."""
    wrong = check_name(config.backend)
    yield wrong is not None, wrong or ""
    for name in ("ram_x_high_addr", "ram_x_low_addr"):
        text = getattr(config, name)
        try:
            fits = 0 <= ram_address(text) < RAM_SIZE
        except ValueError:
            fits = False
        yield not fits, f"{flag(name)} must be an address in 0x0000..0x07FF, not {text!r}"
    other = config.backend != NATIVE
    yield (
        other and config.archive_share > 0,
        f"--archive-share saves lanes, which --backend {config.backend} cannot; use native",
    )
    yield (
        other and config.observation != "pixels",
        f"--observation {config.observation} is made by the native engine, not by --backend "
        f"{config.backend}",
    )
    yield (
        other and not config.force_sync and config.num_envs > MOST_WORKERS,
        f"--backend {config.backend} starts a process for each lane; --num-envs {config.num_envs} "
        f"is more than {MOST_WORKERS}",
    )
    yield (
        config.backend == RETRO and config.force_sync and config.num_envs > 1,
        "stable-retro holds one game in a process; leave out --force-sync",
    )
    yield (
        config.enable_ram_x_parse and not is_factory(config.backend),
        f"--enable-ram-x-parse is for --backend module:factory; {config.backend} always tells x",
    )
