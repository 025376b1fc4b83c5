"""Code that somebody else left in the cache, or puts there at the worst moment, is never run."""

import ctypes
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from warpzone.rom import native, trusted

GOOD = "int wz_answer(void) { return 42; }\n"
EVIL = "int wz_answer(void) { return 666; }\n"
STRANGER = 4242

Foreign = Callable[[Path], None]


@pytest.fixture
def engine(folders: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    def emit(rom: bytes) -> None:
        raise RuntimeError("the stand-in emits nothing")

    engine = SimpleNamespace(
        translate=lambda rom: GOOD, native_abi=lambda: "1", NativeProgram=ctypes.CDLL, emit=emit
    )
    monkeypatch.setattr(native, "_engine", engine)
    return engine


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> Foreign:
    """Makes a file or folder look like another user's, whoever runs the tests."""
    theirs: set[tuple[int, int]] = set()

    def owner(info: os.stat_result) -> int:
        return STRANGER if (info.st_dev, info.st_ino) in theirs else info.st_uid

    def give_away(path: Path) -> None:
        info = path.lstat()
        theirs.add((info.st_dev, info.st_ino))

    monkeypatch.setattr(trusted, "owner", owner)
    return give_away


def answer() -> int:
    return int(native.load(b"rom").wz_answer())  # type: ignore[union-attr]


def plant(folder: Path, side_car: dict[str, str] | None = None) -> Path:
    """A library that does something else, with a side-car that has the right hash of it."""
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / f"{native.key(b'rom')}.so"
    source = folder.parent / "evil.c"
    source.write_text(EVIL)
    library.unlink(missing_ok=True)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    library.chmod(0o600)
    digest = hashlib.sha256(library.read_bytes()).hexdigest()
    library.with_suffix(".json").write_text(json.dumps({**(side_car or {}), "sha256": digest}))
    library.with_suffix(".json").chmod(0o600)
    return library


def test_library_planted_while_the_folder_was_open_is_not_run(
    folders: Path, engine: object
) -> None:
    folder = folders / "cache" / "native"
    plant(folder)
    folder.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="remove the folder"):
        assert native.load(b"rom") is None
    folder.chmod(0o700)
    assert native.cached(b"rom") is None
    assert answer() == 42


@pytest.mark.parametrize("part", [".so", ".json", "key"])
def test_file_of_another_user_is_refused(
    folders: Path, engine: object, foreign: Foreign, part: str
) -> None:
    native.load(b"rom")
    library = native.cached(b"rom")
    assert library is not None
    file = library.parent / "seal.key" if part == "key" else library.with_suffix(part)
    foreign(file)
    assert native.cached(b"rom") is None
    with pytest.warns(RuntimeWarning, match=r"written by another user.*rm -r"):
        assert native.load(b"rom") is None


@pytest.mark.parametrize("part", [".so", ".json", "key"])
@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_file_that_others_can_write_is_refused(
    folders: Path, engine: object, part: str, mode: int
) -> None:
    native.load(b"rom")
    library = native.cached(b"rom")
    assert library is not None
    file = library.parent / "seal.key" if part == "key" else library.with_suffix(part)
    file.chmod(mode)
    with pytest.warns(RuntimeWarning, match=r"can be written by others.*rm -r"):
        assert native.load(b"rom") is None


@pytest.mark.parametrize("how", ["readable", "linked"])
def test_key_that_others_know_is_refused(folders: Path, engine: object, how: str) -> None:
    native.load(b"rom")
    key = folders / "cache" / "native" / "seal.key"
    if how == "readable":
        key.chmod(0o640)
    else:
        os.link(key, folders / "second name")
    with pytest.warns(RuntimeWarning, match="can be read by others"):
        assert native.load(b"rom") is None


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_library_that_is_no_plain_file_is_refused(folders: Path, engine: object, kind: str) -> None:
    native.load(b"rom")
    library = native.cached(b"rom")
    assert library is not None
    library.rename(folders / "library")
    if kind == "link":
        library.symlink_to(folders / "library")
    elif kind == "pipe":
        os.mkfifo(library, 0o600)
    else:
        library.mkdir(0o700)
    with pytest.warns(RuntimeWarning, match="is not a plain file"):
        assert native.load(b"rom") is None


def test_library_of_ones_own_without_the_seal_is_built_again(folders: Path, engine: object) -> None:
    """A file that somebody made the user write has the right owner and hash, but not the seal."""
    assert answer() == 42
    library = native.cached(b"rom")
    assert library is not None
    old = json.loads(library.with_suffix(".json").read_text())
    plant(library.parent, side_car={"seal": old["seal"]})
    assert native.cached(b"rom") is None
    assert answer() == 42


def test_library_of_another_rom_is_not_taken(folders: Path, engine: object) -> None:
    native.load(b"another rom")
    other = native.cached(b"another rom")
    assert other is not None
    library = other.with_name(f"{native.key(b'rom')}.so")
    for suffix in (".so", ".json"):
        shutil.copy2(other.with_suffix(suffix), library.with_suffix(suffix))
    assert native.cached(b"rom") is None


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_folder_above_that_others_can_write_to_is_refused(
    folders: Path, engine: object, mode: int
) -> None:
    """They could put another `native` in its place."""
    native.load(b"rom")
    (folders / "cache").chmod(mode)
    assert native.cached(b"rom") is None
    with pytest.warns(RuntimeWarning, match="others can write to .*cache,.*WARPZONE_CACHE"):
        assert native.load(b"rom") is None


def test_sticky_folder_above_is_as_good_as_private(folders: Path, engine: object) -> None:
    native.load(b"rom")
    (folders / "cache").chmod(0o1777)
    assert native.cached(b"rom") is not None


def test_folder_above_of_another_user_is_refused(
    folders: Path, engine: object, foreign: Foreign
) -> None:
    native.load(b"rom")
    foreign(folders)
    assert native.cached(b"rom") is None
    with pytest.warns(RuntimeWarning, match="belongs to another user,.*WARPZONE_CACHE"):
        assert native.load(b"rom") is None


def test_links_on_the_way(
    folders: Path, engine: object, foreign: Foreign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home folder may be a link; one of a stranger's leads where the stranger wants."""
    (folders / "real").mkdir()
    (folders / "to real").symlink_to("real")
    (folders / "to that").symlink_to(folders / "to real")
    monkeypatch.setenv("WARPZONE_CACHE", str(folders / "to that" / "cache"))
    assert answer() == 42
    assert (folders / "real" / "cache" / "native" / "seal.key").is_file()
    foreign(folders / "to real")
    with pytest.warns(RuntimeWarning, match="link .*to real belongs to another user"):
        assert native.load(b"rom") is None


def test_circle_of_links_is_refused(
    folders: Path, engine: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folders / "a").symlink_to("b")
    (folders / "b").symlink_to("a")
    monkeypatch.setenv("WARPZONE_CACHE", str(folders / "a"))
    with pytest.warns(RuntimeWarning, match="too many links"):
        assert native.load(b"rom") is None


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
def test_folder_exchanged_between_check_and_load(folders: Path, engine: SimpleNamespace) -> None:
    native.load(b"rom")
    folder = folders / "cache" / "native"

    def load(name: str) -> ctypes.CDLL:
        folder.rename(folders / "cache" / "away")
        plant(folder)
        return ctypes.CDLL(name)

    engine.NativeProgram = load
    assert answer() == 42


def test_libraries_are_told_apart_and_descriptors_do_not_pile_up(
    folders: Path, engine: SimpleNamespace
) -> None:
    """The loader knows a library by its name, here by its descriptor's number."""
    first = native.load(b"rom")
    engine.translate = lambda rom: EVIL
    other = native.load(b"another rom")
    assert first.wz_answer() == 42  # type: ignore[union-attr]
    assert other.wz_answer() == 666  # type: ignore[union-attr]
    kept = len(native._in_use)
    for _ in range(20):
        native.load(b"rom")
    assert len(native._in_use) == kept
