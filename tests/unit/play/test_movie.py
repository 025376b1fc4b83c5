"""Reading button movies and playing them from power-on."""

import base64
import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpzone import _engine
from warpzone.cli.main import main
from warpzone.play import movie
from warpzone.play.movie import (
    Movie,
    MovieError,
    MovieFrame,
    Reset,
    parse_movie,
    play_movie,
    read_movie,
)

FM2 = """\
version 3
emuVersion 20604
rerecordCount 17868
palFlag 0
romFilename game
romChecksum base64:{checksum}
guid 00000000-0000-0000-0000-000000000000
fourscore 0
port0 1
port1 {port1}
port2 0
comment author somebody
subtitle 120 |not a frame|
|0|........|{second}||
|0|R......A|{second}||
|1|RLDUTSBA|{second}||
|2|....T...|{second}||
"""


def fm2(port1: int = 0, second: str = "", checksum: str = "AAAAAAAAAAAAAAAAAAAAAA==") -> bytes:
    return FM2.format(port1=port1, second=second, checksum=checksum).encode()


def masks(*values: int) -> Movie:
    return Movie(tuple(MovieFrame(value) for value in values))


def test_fm2() -> None:
    read = parse_movie(fm2())
    assert read.frames == (
        MovieFrame(0),
        MovieFrame(128 | 1),
        MovieFrame(255, 0, Reset.SOFT),
        MovieFrame(8, 0, Reset.POWER),
    )
    assert read.rom_md5 == bytes(16)


def test_fm2_second_controller_and_windows_line_ends() -> None:
    read = parse_movie(fm2(1, "..D...B.").replace(b"\n", b"\r\n"))
    assert [frame.buttons2 for frame in read.frames] == [32 | 2] * 4
    assert read.frames[1].buttons1 == 128 | 1


def test_fm2_with_an_unplugged_second_controller_ignores_its_column() -> None:
    assert parse_movie(fm2(0, "RRRRRRRR")).frames[0].buttons2 == 0


def test_fm2_with_four_controllers_reads_two() -> None:
    data = b"version 3\nfourscore 1\n|0|.......A|......B.|R.......|........||\n"
    assert parse_movie(data).frames == (MovieFrame(1, 2),)


@pytest.mark.parametrize("name", ["Süper Mário", "スーパーマリオ"])
@pytest.mark.parametrize("code_page", ["cp1252", "shift_jis"])
def test_fm2_header_in_another_code_page(name: str, code_page: str) -> None:
    encoded = name.encode(code_page, errors="replace")
    data = fm2().replace(b"romFilename game", b"romFilename " + encoded)
    data = data.replace(b"author somebody", b"author \xff\xfe\x80")
    assert parse_movie(data) == parse_movie(fm2())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"version 2\n|0|........|||\n", "line 1: FM2 version 2 is not known"),
        (b"version 3\npalFlag 1\n", "line 2: the movie is for a PAL console"),
        (b"version 3\nsavestate 0x00\n", "line 2: the movie starts from a save state"),
        (b"version 3\nport0 2\n", "line 2: port0 holds something other than a gamepad"),
        (b"version 3\nbinary 1\n\0\0\0", "binary form; save it from FCEUX as text"),
        (b"version 3\nbinary 1\n", "binary form"),
        (b"version 3\n|0|......A|||\n", "line 2: '......A' should be eight columns RLDUTSBA"),
        (b"version 3\n|0|........\n", r"line 2: a frame is written \|command\|"),
        (b"version 3\n|x|........|||\n", "line 2: 'x' is not an FM2 command"),
        (b"version 3\n|16|........|||\n", "line 2: the FM2 command 16 is for another machine"),
        (b"version 3\n|0|.......\xe9|||\n", "line 2: a frame holds something other than ASCII"),
        ("version 3\n|0|.......é|||\n".encode(), "line 2: a frame holds something other"),
        (b"version 3\n|0|........|||\xff|\n", "line 2: a frame holds something other"),
        (b"0\n128 # \xe9\n", "this is not a movie"),
        (b"version 3\n!\n", "line 2: neither a header nor a frame"),
        (b"version 3\n", "the movie holds no frames"),
        (b"0\n\n128\nright\n", "line 4: 'right' is not a button mask"),
        (b"0\n256\n", r"line 2: the button mask 256 is outside 0\.\.255"),
        (b"-1\n", r"line 1: the button mask -1 is outside 0\.\.255"),
        (b"0x1FF\n", "line 1: the button mask 0x1FF is outside"),
        (b"# nothing\n", "the movie holds no frames"),
        (b"", "the movie holds no frames"),
        (b"\x89PNG\0\0", "this is not a movie"),
    ],
)
def test_refused(data: bytes, message: str) -> None:
    with pytest.raises(MovieError, match=message):
        parse_movie(data)


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(MovieError, match=r"cannot read the movie .*none\.fm2: No such file"):
        movie.read_movie(tmp_path / "none.fm2")


@pytest.mark.parametrize("kind", ["pipe", "device", "large"])
def test_files_without_an_end_are_not_read(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path("/dev/zero") if kind == "device" else tmp_path / kind
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "large":
        with path.open("wb") as file:
            file.truncate(1 << 40)
    with pytest.raises(MovieError, match=r"not a plain file|more than"):
        read_movie(path)
    assert main(["play", "--movie", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("checksum", ["base64:ä", "base64:\ufffe", "base64:!", "base64:AAAA", ""])
def test_a_checksum_that_is_none_says_nothing(checksum: str) -> None:
    data = f"version 3\nromChecksum {checksum}\n|0|........|........||\n".encode()
    assert parse_movie(data).rom_md5 is None


def test_plain(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text("# from power-on\n0\n 128 # right\n\n0x81\n255\n")
    assert movie.read_movie(path) == masks(0, 128, 129, 255)


@given(st.lists(st.integers(0, 255), min_size=1, max_size=50), st.booleans())
def test_plain_holds_any_masks(values: list[int], hexadecimal: bool) -> None:
    lines = [hex(value) if hexadecimal else str(value) for value in values]
    assert parse_movie("\n".join(lines).encode()) == masks(*values)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        read = parse_movie(data)
    except MovieError:
        return
    assert read.frames


def test_the_first_line_is_the_first_frame_after_power_on(rom: bytes) -> None:
    """FCEUX polls record 0 before its first frame; START in the last line must be seen there."""
    assert movie.FIRST_FRAME == 0
    lines = [0] * 40 + [8]
    result = play_movie(rom, masks(*lines, *[0] * 3), idle_frames=0)
    console = _engine.Console(rom)
    console.frames(bytes([*lines, 0, 0, 0]))
    assert result.mode == console.ram()[0x0770] == 1
    assert result.frames == 44
    late = _engine.Console(rom)
    late.frames(bytes([0, *lines, 0, 0]))
    assert not np.array_equal(late.ram(), console.ram())


def test_where_it_ended(rom: bytes) -> None:
    result = play_movie(rom, masks(*[0] * 40, 8, *[0] * 200, *[128] * 60), idle_frames=0)
    assert (result.world, result.stage, result.lives, result.mode) == (1, 1, 3, 1)
    assert 50 < result.x < 200
    assert [(c.world, c.stage) for c in result.stage_changes] == [(1, 1)]
    assert 40 < result.stage_changes[0].frame < 50
    assert 4 < result.lag_frames < 20
    assert result.deaths == 0
    assert not result.victory
    assert result.victory_frame is None
    assert result.rom_matches is None


@pytest.mark.parametrize("reset", [Reset.SOFT, Reset.POWER])
def test_resets_act_before_the_frame_of_their_line(rom: bytes, reset: Reset) -> None:
    opening = [MovieFrame(0)] * 40 + [MovieFrame(8)] + [MovieFrame(0)] * 300
    frames = [*opening, MovieFrame(0, 0, reset), *[MovieFrame(0)] * 39]
    assert play_movie(rom, Movie(tuple(frames[:341])), idle_frames=0).mode == 1
    after = play_movie(rom, Movie(tuple(frames)), idle_frames=0)
    assert after.mode == 0
    again = play_movie(rom, Movie((*frames, *opening[40:])), idle_frames=0)
    assert [(c.frame, c.world, c.stage) for c in again.stage_changes[1:]] == [
        (again.stage_changes[0].frame + 341, 1, 1)
    ]


def test_it_says_whether_the_rom_is_the_movies(rom: bytes) -> None:
    own = base64.b64encode(hashlib.md5(rom[16:]).digest()).decode()
    result = play_movie(rom, parse_movie(fm2(checksum=own)), idle_frames=0)
    assert result.rom_matches is True
    assert play_movie(rom, parse_movie(fm2()), idle_frames=0).rom_matches is False


def test_translated_code_plays_the_same(rom: bytes, native: _engine.NativeProgram) -> None:
    frames = masks(*[0] * 40, 8, *[0] * 200, *[129, 129, 130] * 300)
    assert play_movie(rom, frames, native=native) == play_movie(rom, frames)
