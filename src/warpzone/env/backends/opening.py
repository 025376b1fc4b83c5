"""Opening lanes of a back-end: in this process or in workers, with the ROM in a file of its own."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from warpzone import rom as roms
from warpzone.env.backends.diagnostics import Diagnostics
from warpzone.env.backends.events import Report, say
from warpzone.env.backends.interface import BackendError, BackendSpec, Lanes, RamX
from warpzone.env.backends.select import check_installed, is_factory, make_lanes, prewarm
from warpzone.env.backends.worker_lanes import WorkerLanes, WorkerSettings
from warpzone.env.options import Options
from warpzone.env.stages import STAGES_PER_WORLD, lane_stages


class RomFile:
    """A ROM as a file for emulators that only read files. Only this user can read it; it goes with
    this object, at the latest with the process."""

    def __init__(self, rom: bytes) -> None:
        folder = Path(tempfile.mkdtemp(prefix="warpzone_rom_"))
        self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.path = folder / "rom.nes"
        self.path.write_bytes(rom)

    def close(self) -> None:
        """Removes it. Closing twice does no harm."""
        self._remove()


def make_spec(
    backend: str,
    rom: RomFile,
    options: Options,
    num_lanes: int,
    *,
    autoreset: bool = True,
    ram_x: RamX | None = None,
    before: int = 0,
    total: int = 0,
) -> BackendSpec:
    """Everything a process needs to make these lanes; `before` others were made, of `total`.
    BackendError if the back-end is code of the current folder that nobody agreed to."""
    if options.obs != "pixels":
        raise BackendError(f"the back-end {backend} shows pixels, not {options.obs}")
    if options.start_power != "small" or options.start_halfway:
        raise BackendError(
            f"the back-end {backend} begins as small Mario at the door; start_power and "
            "start_halfway need the native engine"
        )
    check_installed(backend)
    stages: Sequence[tuple[int, ...]] = lane_stages(options.stages, num_lanes)
    _check_stages(backend, rom, stages)
    spec = BackendSpec(
        backend,
        str(rom.path),
        options,
        tuple(stages),
        autoreset,
        ram_x or RamX(),
        before,
        total,
    )
    if is_factory(backend):
        from warpzone.env.backends import factory

        spec = replace(spec, digest=factory.digest(backend))
        factory.check_stages(spec)
    return spec


def agree(backend: str) -> None:
    """A program names this back-end: if it is code of the current folder, it may run."""
    if is_factory(backend):
        from warpzone.env.backends import factory

        factory.agree(backend)


def _check_stages(backend: str, rom: RomFile, stages: Sequence[tuple[int, ...]]) -> None:
    """Only the native engine reads from the ROM where its stages are; worlds of The Lost Levels
    after the first have them in other places than Super Mario Bros."""
    if all(stage < STAGES_PER_WORLD for lane in stages for stage in lane) or is_factory(backend):
        return
    if roms.identify(rom.path.read_bytes(), rom.path).variant in roms.LOST_LEVELS:
        raise BackendError(
            f"the back-end {backend} plays The Lost Levels as a whole game or in world 1; other "
            "stages need the native engine"
        )


def open_lanes(
    spec: BackendSpec,
    settings: WorkerSettings | None = None,
    *,
    sync: bool = False,
    report: Report = say,
) -> Lanes:
    """Lanes of the spec: one worker process each, or all in this process."""
    if not sync:
        return WorkerLanes(spec, settings, report)
    if settings is not None and (settings.prewarm or settings.prewarm_all):
        prewarm(spec, settings.prewarm_all)
    return make_lanes(spec, Diagnostics(), report)
