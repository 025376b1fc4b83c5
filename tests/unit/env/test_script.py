"""Scripts in files: what the user named is read, plain and bounded, and never quoted."""

import os
from pathlib import Path

import pytest

from warpzone.env import script
from warpzone.env.script import UNREAD, kept_script, known_script, load_script, parse_script


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "script.txt"
    path.write_text("# warm up\nstart:2, right + b : 3\nRIGHT+A+B:1,RIGHT+A+B:2\n")
    return path


def test_a_file_is_kept_as_what_it_says(file: Path) -> None:
    masks = load_script(str(file))
    assert masks == bytes([8] * 2 + [130] * 3 + [131] * 3)
    kept = kept_script(str(file))
    assert kept == "START:2,RIGHT+B:3,RIGHT+A+B:3"
    assert (known_script(kept), kept_script(kept)) == (masks, kept)
    for text in ("demo-eu", "NOOP:2, right:3", f"{UNREAD}{file}"):
        assert kept_script(text) == text


def test_only_what_is_written_out_is_known(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="there is no script"):
        known_script(str(file))
    for load in (known_script, load_script):
        with pytest.raises(ValueError, match="only if you name it yourself; give --scripted"):
            load(f"{UNREAD}{file}")
    # A file cannot take the place of a script or of one of the package's.
    monkeypatch.chdir(file.parent)
    for name in ("RIGHT:3", "demo-eu", f"{UNREAD}x"):
        Path(name).write_text("LEFT:1")
    assert load_script("RIGHT:3") == bytes([128] * 3)
    assert len(load_script("demo-eu")) > 100
    with pytest.raises(ValueError, match="name it yourself"):
        load_script(f"{UNREAD}x")


@pytest.mark.parametrize("text", ["A:1\nadmin:x:0:0:bash\n", "A:1\nhunter2\n", "A:1\nA:1000000"])
def test_what_is_wrong_in_a_file_is_not_quoted(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(ValueError, match=r"line 2 of .*script\.txt is no script") as caught:
        load_script(str(file))
    said = repr((caught.value, caught.value.__cause__))
    assert not any(part in said for part in ("admin", "bash", "hunter2"))
    assert caught.value.__suppress_context__


@pytest.mark.limit(30)
def test_only_plain_files_of_a_bounded_size_are_read(file: Path) -> None:
    os.mkfifo(file.parent / "pipe")
    for name in (file.parent / "pipe", file.parent, Path("/dev/zero")):
        with pytest.raises(ValueError, match="there is no script"):
            load_script(str(name))
    with pytest.raises(ValueError, match="cannot be read: it is not a plain file"):
        script._read(file.parent / "pipe")
    file.write_bytes(b"\xff:1")
    with pytest.raises(ValueError, match="not text"):
        load_script(str(file))
    file.write_text("#" * script.MOST_BYTES + "\nA:1")
    with pytest.raises(ValueError, match="more than 65,536 bytes"):
        load_script(str(file))


def test_the_largest_script_fits_into_a_configuration(file: Path) -> None:
    file.write_text(",".join([":1", "A:1"] * 9_000))
    kept = kept_script(str(file))
    assert parse_script(kept) == bytes([0, 1]) * 9_000
    assert len(kept) < 1 << 18
