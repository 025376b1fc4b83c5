"""The workload of all speed numbers: 1-1, right-biased random buttons, resets included."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpzone import _engine
from warpzone.bench.rounds import Slice, until
from warpzone.env.actions import action_table
from warpzone.env.options import Native, Options
from warpzone.env.walker import right_biased
from warpzone.rom import native

#: Steps after which an episode is reset, unless Mario dies before.
EPISODE_STEPS = 500
#: Frames a random button is held, and frames between two checks for death.
HOLD = 4
CHUNK = 64
_PLAN = 4096
_START = 8
_STATE, _MODE = _engine.RAM["player_state"], _engine.RAM["game_mode"]
_DYING = {_engine.PlayerState.DEAD, _engine.PlayerState.DYING}


@dataclass(frozen=True)
class Setup:
    """One configuration of the vector engine."""

    lanes: int = 16
    threads: int = 1
    translated: bool = True
    emitted: bool = False
    simd: str = "auto"
    frame_skip: int = 4
    frame_stack: int = 4

    @property
    def code(self) -> str:
        """What runs the program."""
        if not self.translated:
            return "interpreter"
        return "emitted" if self.emitted else "translated"

    @property
    def native(self) -> Native:
        """The same for environments."""
        if not self.translated:
            return False
        return "emitted" if self.emitted else "auto"

    def about(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "lanes": self.lanes,
            "threads": self.threads,
            "code": self.code,
            "simd": self.simd,
            "frame_skip": self.frame_skip,
            "frame_stack": self.frame_stack,
        }


def has_gymnasium() -> bool:
    """Whether steps can be measured through the public class."""
    return importlib.util.find_spec("gymnasium") is not None


def random_masks(frames: int, seed: int = 0) -> bytes:
    """Buttons of a right-biased random player, frame by frame."""
    rng = np.random.default_rng(seed)
    table = np.frombuffer(action_table("simple").masks, np.uint8)
    return table[right_biased(rng, frames // HOLD + 1)].repeat(HOLD)[:frames].tobytes()


def program(rom: bytes, setup: Setup) -> _engine.NativeProgram | None:
    """What runs the program, for the engine itself."""
    if not setup.translated:
        return None
    return native.emit(rom) if setup.emitted else native.load(rom)


def raw_frames(rom: bytes, program: _engine.NativeProgram | None) -> Slice:
    """Frames of one machine, nothing drawn, nothing observed; interpreted without a program."""
    console = _engine.Console(rom, native=program)
    start = _reach_play(console)
    plan = random_masks(_PLAN * CHUNK)
    position = 0

    def chunk() -> int:
        nonlocal position
        console.frames(plan[position : position + CHUNK])
        position = (position + CHUNK) % len(plan)
        if int(console.ram()[_STATE]) in _DYING or position % (EPISODE_STEPS * HOLD) < CHUNK:
            console.load(start)
        return CHUNK

    return lambda seconds: until(seconds, chunk)


def _reach_play(console: _engine.Console) -> bytes:
    """Presses START until Mario can be moved."""
    for _ in range(600):
        console.frames(bytes([_START, 0]))
        ram = console.ram()
        playing = ram[_MODE] == _engine.GameMode.PLAYING
        if playing and ram[_STATE] == _engine.PlayerState.IN_CONTROL:
            return console.save()
    raise RuntimeError("the game did not start within 1,200 frames")


class Lanes:
    """Lanes with observations, rewards and infos, stepped from Python."""

    def __init__(self, rom: bytes, setup: Setup, seed: int = 0) -> None:
        self.setup = setup
        self.env: Any = None
        self._seed = seed
        self._at = 0
        # 1-1 without delays or sticky actions draws no random numbers: no seed is needed.
        make = self._public if has_gymnasium() else self._bare
        self._step, self._reset = make(rom)

    def start(self) -> "Lanes":
        """The first reset of all lanes, and what they will play."""
        rng = np.random.default_rng(self._seed)
        self._plan = right_biased(rng, (_PLAN, self.setup.lanes))
        self._reset()
        return self

    def steps(self, seconds: float) -> int:
        """Steps of all lanes, added up."""
        return until(seconds, self._once)

    def resets(self, seconds: float) -> int:
        """Resets of lanes, each with its first observation."""

        def once() -> int:
            self._reset()
            return self.setup.lanes

        return until(seconds, once)

    def memory_bytes(self) -> int:
        """Heap of the lanes."""
        engine = getattr(self.env, "_engine", self.env)
        return int(engine.memory_bytes())

    def close(self) -> None:
        """Frees the lanes."""
        self.env.close()

    def _once(self) -> int:
        self._step(self._plan[self._at])
        self._at = (self._at + 1) % _PLAN
        return self.setup.lanes

    def _public(self, rom: bytes) -> tuple[Callable[[Any], Any], Callable[[], Any]]:
        from warpzone.env.vector import MarioVectorEnv

        setup = self.setup
        self.env = MarioVectorEnv(
            setup.lanes,
            num_threads=setup.threads,
            rom=rom,
            native=setup.native,
            simd=setup.simd,
            frame_skip=setup.frame_skip,
            frame_stack=setup.frame_stack,
            time_limit=EPISODE_STEPS,
        )
        return self.env.step, self.env.reset

    def _bare(self, rom: bytes) -> tuple[Callable[[Any], Any], Callable[[], Any]]:
        setup = self.setup
        options = Options(
            simd=setup.simd,
            frame_skip=setup.frame_skip,
            frame_stack=setup.frame_stack,
            time_limit=EPISODE_STEPS,
        )
        engine = options.make_vector(
            rom,
            setup.lanes,
            autoreset=_engine.Autoreset.NEXT_STEP,
            native=program(rom, setup),
            num_threads=setup.threads,
        )
        self.env = engine
        obs = np.empty((setup.lanes, *engine.obs_shape), np.uint8)
        info = np.empty((setup.lanes, len(_engine.INFO_FIELDS)), np.int32)
        reward = np.empty(setup.lanes, np.float32)
        ends = np.empty((2, setup.lanes), np.bool_)

        def step(actions: Any) -> None:
            engine.step(actions, obs, reward, ends[0], ends[1], info, None, None)

        return step, lambda: engine.reset(None, obs, info)
