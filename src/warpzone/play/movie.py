"""Button movies: what was pressed in every frame since the power was switched on.

Two formats are read. **FM2** is FCEUX's text format: its frames are ASCII, its header may hold
names in any code page. The **plain** format is one button mask per line, decimal or 0x hex, with
`#` comments.

The first line of either is the first frame after power-on, the one in which the PPU is still
warming up: FCEUX polls a movie's first record before it runs its first frame, and that frame is
our first `run_frame`, warm-up included (`FIRST_FRAME`). A reset or power command acts before the
frame of its line.
"""

import base64
import enum
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from warpzone import _engine
from warpzone.env.infos import COLUMN
from warpzone.rom.paths import read_plain

#: Half a day of FM2 text; the longest movies of the game have half an hour.
MOST_BYTES = 64 << 20

#: Frames that run after power-on before the first line of a movie applies.
FIRST_FRAME = 0

#: FM2's columns in order, as bits of the button mask: R L D U T(start) S(elect) B A.
_FM2_COLUMNS = (128, 64, 32, 16, 8, 4, 2, 1)
_FM2_KNOWN_COMMANDS = 3
_NONE_PRESSED = ". "
_MD5_BYTES = 16
_INES_HEADER = 16

_LIVES, _MODE = _engine.RAM["life"], _engine.RAM["game_mode"]
_STAGE, _WORLD = _engine.RAM["stage"], _engine.RAM["world"]
_RANDOM = slice(_engine.RAM["random"], _engine.RAM["random"] + 7)
_TITLE, _PLAYING = _engine.GameMode.TITLE, _engine.GameMode.PLAYING


class Reset(enum.Enum):
    """What happens to the console before a frame."""

    NONE = 0
    SOFT = 1  # the reset button: RAM survives
    POWER = 2


@dataclass(frozen=True, slots=True)
class MovieFrame:
    buttons1: int
    buttons2: int = 0
    reset: Reset = Reset.NONE


@dataclass(frozen=True, slots=True)
class Movie:
    frames: tuple[MovieFrame, ...]
    rom_md5: bytes | None = None  # of program and graphics, as FCEUX writes it


class MovieError(ValueError):
    """A movie that cannot be read; the message names the line."""


def read_movie(path: str | Path) -> Movie:
    """Reads an FM2 or plain movie file."""
    try:
        data = read_plain(Path(path), MOST_BYTES)
    except OSError as error:
        raise MovieError(f"cannot read the movie {path}: {error.strerror}") from error
    return parse_movie(data)


def parse_movie(data: bytes) -> Movie:
    """Reads a movie; the content tells the format."""
    text = data.decode("utf-8-sig", errors="replace")
    lines = text.splitlines()
    fm2 = any(line.startswith(("version", "|")) for line in lines[:64])
    if fm2 and (b"\0" in data or any(_is_binary_flag(line) for line in lines[:64])):
        raise MovieError("this FM2 movie is in the binary form; save it from FCEUX as text")
    if b"\0" in data or ("\ufffd" in text and not fm2):
        raise MovieError("this is not a movie: neither FM2 text nor one button mask per line")
    movie = _parse_fm2(lines) if fm2 else _parse_plain(lines)
    if not movie.frames:
        raise MovieError("the movie holds no frames")
    return movie


def _numbered(lines: list[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines, start=1):
        stripped = line.strip()
        if stripped:
            yield number, stripped


def _parse_plain(lines: list[str]) -> Movie:
    frames = []
    for number, line in _numbered(lines):
        token = line.partition("#")[0].strip()
        if not token:
            continue
        try:
            mask = int(token, 16 if token.lower().startswith("0x") else 10)
        except ValueError:
            raise MovieError(f"line {number}: {token[:40]!r} is not a button mask") from None
        if not 0 <= mask <= 255:
            raise MovieError(f"line {number}: the button mask {token[:40]} is outside 0..255")
        frames.append(MovieFrame(mask))
    return Movie(tuple(frames))


def _is_binary_flag(line: str) -> bool:
    key, _, value = line.strip().partition(" ")
    return key == "binary" and value.strip() not in ("", "0", "false")


def _parse_fm2(lines: list[str]) -> Movie:
    header: dict[str, str] = {}
    frames = []
    for number, line in _numbered(lines):
        if line.startswith("|"):
            frames.append(_fm2_record(number, line, header))
        elif line[0].isalpha():
            key, _, value = line.partition(" ")
            _check_header(number, key, value.strip())
            header[key] = value.strip()
        elif not line.startswith("#"):
            raise MovieError(f"line {number}: neither a header nor a frame of an FM2 movie")
    return Movie(tuple(frames), _rom_md5(header.get("romChecksum", "")))


def _check_header(number: int, key: str, value: str) -> None:
    if key == "version" and value != "3":
        raise MovieError(f"line {number}: FM2 version {value[:20]} is not known, only version 3")
    if key == "savestate":
        raise MovieError(f"line {number}: the movie starts from a save state, not from power-on")
    on = value not in ("", "0", "false")
    if key == "palFlag" and on:
        raise MovieError(f"line {number}: the movie is for a PAL console; this one is NTSC")
    if key == "FDS" and on:
        raise MovieError(f"line {number}: the movie is for the Famicom Disk System")
    if key in ("port0", "port1") and value not in ("0", "1"):
        raise MovieError(f"line {number}: {key} holds something other than a gamepad")


def _fm2_record(number: int, line: str, header: dict[str, str]) -> MovieFrame:
    if not line.isascii():
        raise MovieError(f"line {number}: a frame holds something other than ASCII")
    fields = line.split("|")
    if len(fields) < 3 or fields[-1] != "":
        raise MovieError(f"line {number}: a frame is written |command|buttons|buttons||")
    try:
        command = int(fields[1])
    except ValueError:
        raise MovieError(f"line {number}: {fields[1][:20]!r} is not an FM2 command") from None
    if command & ~_FM2_KNOWN_COMMANDS or command < 0:
        raise MovieError(f"line {number}: the FM2 command {fields[1][:20]} is for another machine")
    masks = [0, 0]
    for port in range(2):
        plugged = header.get("fourscore", "0") == "1" or header.get(f"port{port}", "1") == "1"
        if plugged and len(fields) > port + 3:
            masks[port] = _fm2_mask(number, fields[port + 2])
    reset = Reset.POWER if command & 2 else Reset.SOFT if command & 1 else Reset.NONE
    return MovieFrame(masks[0], masks[1], reset)


def _fm2_mask(number: int, field: str) -> int:
    if not field:
        return 0
    if len(field) != len(_FM2_COLUMNS):
        raise MovieError(f"line {number}: {field[:20]!r} should be eight columns RLDUTSBA")
    return sum(
        bit for column, bit in zip(field, _FM2_COLUMNS, strict=True) if column not in _NONE_PRESSED
    )


def _rom_md5(value: str) -> bytes | None:
    if not value.startswith("base64:"):
        return None
    try:
        digest = base64.b64decode(value.removeprefix("base64:"), validate=True)
    except ValueError:
        # No base64, or not even ASCII.
        return None
    return digest if len(digest) == _MD5_BYTES else None


@dataclass(frozen=True, slots=True)
class StageChange:
    """From this frame on (counted from 1) this stage is played."""

    frame: int
    world: int
    stage: int


@dataclass(frozen=True, slots=True)
class MovieResult:
    """Result of a movie; places and lives are those after its last frame."""

    frames: int
    lag_frames: int  # frames without NMI, the ones after power-on included: input is not read
    world: int
    stage: int
    x: int
    lives: int
    mode: int  # 0 title and demo, 1 playing, 2 end of a world, 3 game over
    stage_changes: tuple[StageChange, ...]
    deaths: int
    victory_frame: int | None  # when the last castle was won; may lie in the idle frames after
    rom_matches: bool | None  # None: the movie does not say which ROM it was made with

    @property
    def victory(self) -> bool:
        return self.victory_frame is not None


def play_movie(
    rom: bytes,
    movie: Movie,
    *,
    native: _engine.NativeProgram | None = None,
    idle_frames: int = 600,
) -> MovieResult:
    """Plays a movie from power-on and says where it ended.

    Movies end with their last input, often before the game has reacted to it: up to `idle_frames`
    frames without buttons follow, in which only a victory is detected.
    """
    console = _engine.Console(rom, native=native)
    console.frames(bytes(FIRST_FRAME))
    ram = console.ram()
    changes: list[StageChange] = []
    lag = deaths = 0
    victory: int | None = None
    for number, frame in enumerate(movie.frames, start=1):
        if frame.reset is Reset.SOFT:
            console.reset()
        elif frame.reset is Reset.POWER:
            console = _engine.Console(rom, native=native)
        console.frame(frame.buttons1, frame.buttons2)
        before, ram = ram, console.ram()
        # The game advances its random numbers at the start of every NMI, even while paused.
        lag += bool((before[_RANDOM] == ram[_RANDOM]).all())
        lost = (int(before[_LIVES]) - int(ram[_LIVES])) % 256 == 1
        deaths += bool(lost and before[_MODE] == _PLAYING)
        if ram[_MODE] == _PLAYING:
            here = (int(ram[_WORLD]) + 1, int(ram[_STAGE]) + 1)
            started = before[_MODE] == _TITLE
            if started or not changes or here != (changes[-1].world, changes[-1].stage):
                changes.append(StageChange(number, *here))
        if victory is None and _engine.is_game_won(ram):
            victory = number
    idle = 0
    end = ram
    while victory is None and idle < idle_frames:
        console.frame(0)
        idle += 1
        if _engine.is_game_won(console.ram()):
            victory = len(movie.frames) + idle
    return MovieResult(
        frames=len(movie.frames),
        lag_frames=lag,
        world=int(end[_WORLD]) + 1,
        stage=int(end[_STAGE]) + 1,
        x=int(_engine.read_signals(end)[COLUMN["x_pos"]]),
        lives=(int(end[_LIVES]) + 1) % 256,
        mode=int(end[_MODE]),
        stage_changes=tuple(changes),
        deaths=deaths,
        victory_frame=victory,
        rom_matches=None if movie.rom_md5 is None else movie.rom_md5 == _content_md5(rom),
    )


def _content_md5(rom: bytes) -> bytes:
    return hashlib.md5(rom[_INES_HEADER:], usedforsecurity=False).digest()
