"""Playing to be watched: sources of buttons, and targets of frames."""

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.env.actions import action_table
from warpzone.env.infos import began
from warpzone.env.stages import stage_name
from warpzone.env.vector import MarioVectorEnv
from warpzone.env.walker import right_biased
from warpzone.media.pictures import half_blocks, mosaic
from warpzone.media.window import Window
from warpzone.play.movie import FIRST_FRAME, Movie, Reset

Image = NDArray[np.uint8]
Masks = NDArray[np.int64]
#: Gives the button masks of all lanes for the next frame; None ends the session.
Controller = Callable[[], Masks | None]

#: Frames a random player holds its buttons.
RANDOM_HOLD = 4
FPS = 60
#: `player_state` while Mario can be moved.
IN_CONTROL = 8


@dataclass
class Outcome:
    """Where a session ended (of its first lane)."""

    frames: int = 0
    stage: str = ""
    x_pos: int = 0
    furthest_stage: str = ""
    furthest_x: int = 0
    score: int = 0
    coins: int = 0
    life: int = 0
    flags: int = 0
    ended: bool = False

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def note(self, info: dict[str, Any]) -> None:
        """Updates the result with one frame's info."""
        stage = stage_name((info["world"] - 1) % 8 * 4 + (info["stage"] - 1) % 4)
        # While a stage loads, world and x belong to different places.
        playing = info["player_state"] == IN_CONTROL
        # The furthest x of the stage, not the current one, which wraps around in the loop of 4-4.
        if playing and (stage, info["furthest_x"]) > (self.furthest_stage, self.furthest_x):
            self.furthest_stage, self.furthest_x = stage, info["furthest_x"]
        self.stage, self.x_pos = stage, info["x_pos"]
        self.score, self.coins, self.life = info["score"], info["coins"], info["life"]


class Session:
    """Lanes played frame by frame, with every frame drawn."""

    def __init__(
        self,
        *,
        stages: Any,
        lanes: int,
        seed: int,
        rom: Any,
        start_power: str = "small",
        start_halfway: float = 0.0,
    ) -> None:
        # One lane of 1-1 is the start of the whole game: it continues after the flag.
        whole = lanes == 1 and stages == "1-1" and not start_halfway
        self.env = MarioVectorEnv(
            lanes,
            stages="game" if whole else stages,
            rom=rom,
            actions=bytes(range(256)),
            frame_skip=1,
            frame_stack=1,
            end="game_over" if whole else "life",
            skip_cutscenes=False,
            start_power=start_power,
            start_halfway=start_halfway,
            autoreset_mode="DISABLED" if lanes == 1 else "NEXT_STEP",
        )
        self.env.reset(seed=seed)
        infos = map(self.env.info, range(lanes))
        #: What the lanes began as: small, big, fire or halfway.
        self.began = [began(info["power"], info["restart"]) for info in infos]
        self.outcome = Outcome()
        self._had_flag = False

    def frames(self, controller: Controller, limit: int | None = None) -> Iterator[Image]:
        """Plays until the controller, the limit or the game ends it; yields each picture."""
        while limit is None or self.outcome.frames < limit:
            masks = controller()
            if masks is None:
                return
            _, _, terminated, truncated, _ = self.env.step(masks)
            self.outcome.frames += 1
            info = self.env.info(0)
            self.outcome.flags += int(info["flag_get"] and not self._had_flag)
            self._had_flag = info["flag_get"]
            self.outcome.note(info)
            yield mosaic([self.env.screen(lane) for lane in range(self.env.num_envs)])
            if self.env.num_envs == 1 and bool(terminated[0] | truncated[0]):
                self.outcome.ended = True
                return


def movie_frames(rom: bytes, movie: Movie, native: _engine.NativeProgram | None) -> Iterator[Image]:
    """The pictures of a movie, from power-on."""
    console = _engine.Console(rom, native=native)
    console.frames(bytes(FIRST_FRAME))
    for frame in movie.frames:
        if frame.reset is Reset.SOFT:
            console.reset()
        elif frame.reset is Reset.POWER:
            console = _engine.Console(rom, native=native)
        console.frame(frame.buttons1, frame.buttons2)
        yield console.screen()


def scripted(masks: bytes) -> Controller:
    """Plays a script to its end, in one lane."""
    rest = iter(masks)

    def next_mask() -> Masks | None:
        mask = next(rest, None)
        return None if mask is None else np.array([mask], np.int64)

    return next_mask


def random_player(lanes: int, seed: int) -> Controller:
    """Right-biased random buttons, held for a few frames."""
    rng = np.random.default_rng(seed)
    table = np.frombuffer(action_table("simple").masks, np.uint8).astype(np.int64)
    held: Masks = np.zeros(lanes, np.int64)
    frame = 0

    def next_masks() -> Masks:
        nonlocal held, frame
        if frame % RANDOM_HOLD == 0:
            held = table[right_biased(rng, lanes)]
        frame += 1
        return held

    return next_masks


def keyed(device: Any) -> Controller:
    """A person at a keyboard; `device` is a Window or TerminalKeys."""

    def next_mask() -> Masks | None:
        return None if device.closed else np.array([device.buttons()], np.int64)

    return next_mask


def in_terminal(frames: Iterator[Image], every: int = 2) -> Iterator[Image]:
    """Shows the frames as coloured text, at the pace of the game, and passes them on."""
    out = sys.stdout
    out.write("\x1b[?25l\x1b[2J")
    due = time.monotonic()
    try:
        for index, frame in enumerate(frames):
            if index % every == 0:
                size = shutil.get_terminal_size()
                text = half_blocks(frame, size.columns, size.lines - 1)
                out.write(f"\x1b[H{text}")
                out.flush()
            due = _pace(due)
            yield frame
    finally:
        out.write("\x1b[0m\x1b[?25h\r\n")
        out.flush()


def in_window(frames: Iterator[Image], window: Window) -> Iterator[Image]:
    """Shows the frames in a window, at the pace of the game, and passes them on."""
    for frame in frames:
        window.show(frame, FPS)
        yield frame
        if window.closed:
            return


def _pace(due: float) -> float:
    """Waits until `due`; does not catch up after a slow terminal."""
    now = time.monotonic()
    if due > now:
        time.sleep(due - now)
    return max(due, now - 0.1) + 1 / FPS
