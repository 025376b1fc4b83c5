"""The ROM: finding, installing, verifying; the translated code that is made from it."""

from warpzone.rom.rom import (
    CUSTOM,
    OVERRIDES,
    VARIANTS,
    WHEEL,
    Rom,
    RomError,
    RomMissingError,
    find,
    identify,
    install,
    installed,
    load_stored,
    locate,
    stored_path,
)

__all__ = [
    "CUSTOM",
    "OVERRIDES",
    "VARIANTS",
    "WHEEL",
    "Rom",
    "RomError",
    "RomMissingError",
    "find",
    "identify",
    "install",
    "installed",
    "load_stored",
    "locate",
    "stored_path",
]
