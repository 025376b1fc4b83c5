"""The native engine. Everything here checks its arguments and raises; nothing here prints."""

import enum
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

#: Columns of the info array, in order. The first ten are those of gym-super-mario-bros 7.4.0
#: (`status` as 0 small, 1 tall, 2 fireball); a step's row is taken before scenes are skipped.
INFO_FIELDS: tuple[str, ...]
#: The column `restart` of an episode that began at its stage's halfway page.
HALFWAY_RESTART: int
#: Vector instruction sets this build can use on this CPU, best first: "avx512", "avx2", "neon",
#: "portable".
SIMD_LEVELS: tuple[str, ...]

#: Where the game keeps what (engine/game/ram_map.hpp): name -> address.
RAM: dict[str, int]

class PlayerState(enum.IntEnum):
    """What `RAM["player_state"]` may hold."""

    DEAD = 6
    IN_CONTROL = 8
    DYING = 11

class GameMode(enum.IntEnum):
    """What `RAM["game_mode"]` holds."""

    TITLE = 0
    PLAYING = 1
    WORLD_OVER = 2
    GAME_OVER = 3

class GameTask(enum.IntEnum):
    """What `RAM["game_task"]` may hold."""

    PLAYING = 3

class EnemyType(enum.IntEnum):
    """What `RAM["enemy_type"]` may hold in one of its slots."""

    FLAG = 0x30

def read_signals(ram: NDArray[np.uint8]) -> NDArray[np.int32]:
    """An info row with the columns that come from RAM; those of the episode are 0."""

def is_game_won(ram: NDArray[np.uint8]) -> bool:
    """The princess is saved."""

class _ForeignMachine(Protocol):
    def advance(self, buttons: int) -> None: ...
    def ram(self) -> NDArray[np.uint8]: ...
    def poke(self, address: int, value: int) -> None: ...

def reach_start(machine: _ForeignMachine, stage: int) -> None:
    """Plays another machine from power-on to the start of a stage, as lanes get there."""

def skip_scenes(machine: _ForeignMachine, single_stage: bool) -> None:
    """Runs another machine through what the player cannot influence, as lanes do after each frame
    that did not end the episode."""

def next_seed(seed: int) -> int:
    """A seed that follows from another one: the first number of its stream."""

def check_rom(data: bytes) -> None:
    """Raises ValueError with one sentence when `data` is not an NROM Super Mario Bros image."""

def translate(rom: bytes) -> str:
    """C source that runs this ROM's program natively (see engine/native)."""

def emit(rom: bytes) -> NativeProgram:
    """Machine code that runs this ROM's program, made in memory in a moment, without a compiler.

    Raises RuntimeError with one sentence on other CPUs than x86-64 and where the system refuses
    memory that can be executed.
    """

def native_abi() -> str:
    """Changes whenever translated code of an older engine must not be loaded any more."""

class NativeProgram:
    """Translated code, loaded from a shared library whose content the caller has verified.

    Raises RuntimeError when the file cannot be loaded or belongs to another engine (`native_abi`).
    """

    def __init__(self, path: str) -> None: ...
    @property
    def how(self) -> str:
        """How the code was made: "compiled" (a library) or "emitted" (`emit`)."""

class Console:
    """One machine, frame by frame: the tool of tests, movies and demos. Timing is "vblank" or
    "nes-py"; native code is used only with "vblank"."""

    def __init__(
        self, rom: bytes, *, timing: str = "vblank", native: NativeProgram | None = None
    ) -> None: ...
    def frame(self, buttons: int, buttons2: int = 0) -> None: ...
    def frames(self, buttons: bytes) -> None:
        """One frame for each byte, GIL released."""
    def reset(self) -> None: ...
    def start_stage(self, stage: int) -> None:
        """From power-on to the first moment of a stage (0..31), or of the game (-1)."""
    def ram(self) -> NDArray[np.uint8]:
        """A copy of the 2 KiB."""
    def poke(self, address: int, value: int) -> None: ...
    def screen(self) -> NDArray[np.uint8]:
        """240 x 256 x 3 RGB."""
    def screen_indices(self) -> NDArray[np.uint8]:
        """240 x 256 NES colours 0..63."""
    def registers(self) -> dict[str, int]:
        """pc a x y s p now frame (the last one only with "vblank")."""
    def save(self) -> bytes: ...
    def load(self, state: bytes) -> None: ...

class Threads:
    """Threads that several vectors share; their steps are served in the order of their start. The
    one who waits for a step counts as one of them."""

    def __init__(self, num_threads: int) -> None: ...
    @property
    def num_threads(self) -> int: ...

class ObserveKind(enum.Enum):
    """What an observation holds: a picture in one of three layouts, or something read from RAM."""

    GRAY = 0
    RGB = 1
    PLANAR = 2
    TILES = 3
    RAM = 4

class Resize(enum.Enum):
    AREA = 0
    NEAREST = 1

class RewardKind(enum.Enum):
    GYM = 0
    PROGRESS = 1
    SHAPED = 2

class Timing(enum.Enum):
    VBLANK = 0
    NES_PY = 1

class StartPower(enum.Enum):
    """What Mario begins an episode as; ANY is drawn at each reset."""

    SMALL = 0
    BIG = 1
    FIRE = 2
    ANY = 3

class Autoreset(enum.Enum):
    NEXT_STEP = 0
    SAME_STEP = 1
    DISABLED = 2

class ObserveSpec:
    """What an observation looks like; all but `kind` is about pictures."""

    kind: ObserveKind
    height: int
    width: int
    crop_top: int  # pixels removed
    crop_bottom: int
    crop_left: int
    crop_right: int
    mask_top: int  # lines painted black
    resize: Resize
    def __init__(
        self,
        *,
        kind: ObserveKind = ObserveKind.GRAY,
        height: int = 84,
        width: int = 84,
        crop_top: int = 0,
        crop_bottom: int = 0,
        crop_left: int = 0,
        crop_right: int = 0,
        mask_top: int = 0,
        resize: Resize = Resize.AREA,
    ) -> None: ...
    @property
    def shape(self) -> tuple[int, ...]:
        """Of one observation, frames not yet stacked: [height, width] gray, [height, width, 3] RGB,
        [3 * height, width] planar, [13, 16] tiles, [1, 2048] RAM."""

class RewardWeights:
    """What the parts of a step's reward are worth; all are added, so penalties are negative."""

    pixel: float  # for each pixel of new ground
    step: float
    flag: float
    death: float
    clip: float  # a step's reward is clipped to [-clip, clip]; 0 leaves it alone
    score: float  # for each point
    scale: float  # of everything but flag, death and milestones
    milestone: float  # for each `milestone_interval` pixels of new ground
    milestone_interval: int  # 0 = no milestones
    def __init__(
        self,
        *,
        pixel: float = 0.0,
        step: float = 0.0,
        flag: float = 0.0,
        death: float = 0.0,
        clip: float = 0.0,
        score: float = 0.0,
        scale: float = 1.0,
        milestone: float = 0.0,
        milestone_interval: int = 0,
    ) -> None: ...

class Rules:
    """What steps are worth and when an episode ends. A single stage also ends with the flag, a game
    with the princess."""

    reward: RewardKind
    weights: RewardWeights
    end_on_life: bool  # otherwise only game over ends
    end_on_setback: bool  # a wrong turn in a maze ends too, and is paid like a death
    skip_scenes: bool
    def __init__(
        self,
        *,
        reward: RewardKind = RewardKind.PROGRESS,
        weights: RewardWeights = ...,
        end_on_life: bool = True,
        end_on_setback: bool = False,
        skip_scenes: bool = True,
    ) -> None: ...

class LaneConfig:
    """What all lanes of a vector have in common."""

    buttons: bytes  # action id -> button mask
    frame_skip: int
    frame_stack: int
    observe: ObserveSpec
    max_last_two: bool
    rules: Rules
    time_limit: int  # steps; 0 = none
    stagnation_limit: int  # steps without new ground; 0 = none
    # Start delay: frames, inclusive, drawn at each reset; 0 is used when the game would end
    # meanwhile.
    delay_low: int
    delay_high: int
    start_power: StartPower
    start_halfway: float  # share of episodes that begin at their stage's halfway page, small
    script: bytes  # button masks, one for each frame, that every episode starts with
    sticky: float  # chance that a frame repeats the buttons of the frame before
    timing: Timing
    autoreset: Autoreset
    def __init__(
        self,
        *,
        buttons: bytes,
        frame_skip: int = 4,
        frame_stack: int = 4,
        observe: ObserveSpec = ...,
        max_last_two: bool = False,
        rules: Rules = ...,
        time_limit: int = 0,
        stagnation_limit: int = 0,
        delay_low: int = 0,
        delay_high: int = 0,
        start_power: StartPower = StartPower.SMALL,
        start_halfway: float = 0.0,
        script: bytes = b"",
        sticky: float = 0.0,
        timing: Timing = Timing.VBLANK,
        autoreset: Autoreset = Autoreset.NEXT_STEP,
    ) -> None: ...

class StepTotals:
    """What the frames of a step add up to, where that is not read from RAM."""

    gym_reward: float
    pixels: int  # of new ground
    points: int
    new_ground: bool
    flag: bool
    death: bool
    done: bool
    score_unread: bool
    def __init__(
        self,
        *,
        gym_reward: float = 0.0,
        pixels: int = 0,
        points: int = 0,
        new_ground: bool = False,
        flag: bool = False,
        death: bool = False,
        done: bool = False,
        score_unread: bool = False,
    ) -> None: ...

class LaneAccounts:
    """A lane without its machine: draws, buttons, rewards, ends and infos of a game that is played
    elsewhere. RAM tells what happens; where there is none, `begin_told` and `finish_told` do."""

    def __init__(self, lanes: LaneConfig) -> None: ...
    def seed(self, seed: int) -> None: ...
    def random(self) -> int:
        """64 bits of the lane's stream."""
    def set_reward_weights(self, weights: RewardWeights) -> None: ...
    def set_stage_weights(self, weights: Sequence[float]) -> None: ...
    def set_script(self, masks: bytes) -> None: ...
    def force(self, masks: bytes) -> None: ...
    def draw(self, stages: Sequence[int]) -> tuple[int, int]:
        """Stage and start delay of the next episode."""
    def begin(self, ram: NDArray[np.uint8], stage: int, delay: int) -> None:
        """An episode begins now. During its delay, frames are accounted for too, to see whether the
        game would end; then it begins again."""
    def begin_told(self, stage: int, delay: int, x: int) -> None: ...
    def press(self, action: int) -> int:
        """The button mask of the next frame."""
    def frame(self, ram: NDArray[np.uint8], last: bool) -> bool:
        """Accounts for a frame before scenes are skipped; `last`: no other follows in this step.
        Whether the episode is over."""
    def finish(self) -> tuple[float, bool, bool]:
        """The step's reward, terminated and truncated."""
    def finish_told(self, totals: StepTotals, furthest_x: int) -> tuple[float, bool, bool]: ...
    def write_info(self, row: NDArray[np.int32]) -> None:
        """The lane's info row."""
    def write_counters(self, row: NDArray[np.int32]) -> None:
        """Its columns that do not come from RAM."""
    def take_shaping(self) -> list[float]:
        """As `Vector.take_shaping`, of this lane."""

class Screens:
    """Observes pictures that were drawn elsewhere as the engine observes its own."""

    def __init__(self, spec: ObserveSpec, simd: str = "auto") -> None: ...
    def observe(
        self, screen: NDArray[np.uint8], previous: NDArray[np.uint8] | None = None
    ) -> NDArray[np.uint8]:
        """`screen`: [height, width] gray or [height, width, 3] RGB, C-contiguous; of two, the
        brighter pixels. Smaller screens than the NES' are cropped and masked in proportion."""

class Vector:
    """Lanes stepped by a pool of threads straight into the caller's arrays.

    Arrays are C-contiguous with a leading lane axis: obs uint8 [N, *obs_shape], reward float32
    [N], terminated/truncated bool [N], info int32 [N, len(INFO_FIELDS)]. Wrong shapes, dtypes and
    action ids raise ValueError, lane ids IndexError; use after close, steps of lanes that must be
    reset first and failures inside a lane raise RuntimeError. Calls from several threads take
    turns.
    """

    def __init__(
        self,
        rom: bytes,
        lanes: LaneConfig,
        *,
        stages: Sequence[Sequence[int]],  # per lane: stages 0..31 to draw from; empty = whole game
        native: NativeProgram | None = None,
        num_threads: int | Threads = 1,
        simd: str = "auto",  # or one of SIMD_LEVELS
    ) -> None: ...
    @property
    def obs_shape(self) -> tuple[int, ...]:
        """(frame_stack, *ObserveSpec.shape); oldest observation first."""
    @property
    def num_lanes(self) -> int: ...
    @property
    def num_threads(self) -> int: ...
    def seed(self, seeds: Sequence[int | None]) -> None:
        """One 64-bit seed for each lane (None: its stream goes on); takes effect at once."""
    def reset(
        self, mask: NDArray[np.bool_] | None, obs: NDArray[np.uint8], info: NDArray[np.int32]
    ) -> None:
        """Starts new episodes where the mask is true (everywhere when None). Every row of `obs` is
        written, rows of `info` only for lanes that were reset. The history of a lane is filled
        with its first observation."""
    def step(
        self,
        actions: NDArray[np.int64],
        obs: NDArray[np.uint8],
        reward: NDArray[np.float32],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        info: NDArray[np.int32],
        final_obs: NDArray[np.uint8] | None,  # same_step only: rows of lanes that ended
        final_info: NDArray[np.int32] | None,
    ) -> None: ...
    def start(
        self,
        actions: NDArray[np.int64],
        obs: NDArray[np.uint8],
        reward: NDArray[np.float32],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        info: NDArray[np.int32],
        final_obs: NDArray[np.uint8] | None,
        final_info: NDArray[np.int32] | None,
    ) -> None:
        """Begins a step and returns at once. The results belong to the engine until `finish`; calls
        that touch lanes are refused until then. The actions are the caller's again at once."""
    def finish(self) -> None:
        """Takes part in the step that was begun, waits for its end and raises what went wrong."""
    def send(self, actions: NDArray[np.int64], lanes: NDArray[np.int64]) -> None:
        """Starts a step of these lanes; a lane that is still under way is refused."""
    def recv(
        self,
        obs: NDArray[np.uint8],  # [batch, ...]: the batch size is the array's first dimension
        reward: NDArray[np.float32],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        info: NDArray[np.int32],
        lanes: NDArray[np.int64],
        final_obs: NDArray[np.uint8] | None,
        final_info: NDArray[np.int32] | None,
    ) -> None:
        """Waits for the first `batch` lanes to finish and writes them; `lanes` says which. Refused
        when fewer lanes than that are under way."""
    def ram(self, lanes: Sequence[int]) -> NDArray[np.uint8]:
        """[len(lanes), 2048], a copy."""
    def ram_view(self, lane: int) -> NDArray[np.uint8]:
        """A read-only view into a lane's RAM; changes with every step."""
    def screen(self, lane: int) -> NDArray[np.uint8]:
        """240 x 256 x 3 RGB of the lane's last frame."""
    def save(self, lane: int) -> bytes:
        """The lane with its observation history, RNG and episode accounting."""
    def load(self, lane: int, state: bytes) -> None:
        """Refuses bytes of another ROM, configuration or version, and damaged ones."""
    def clone(self, source: int, target: int) -> None:
        """Makes `target` a twin of `source`, random stream and stages included."""
    def observe(self, lane: int, obs: NDArray[np.uint8]) -> None:
        """Writes the lane's current observation (after load or clone)."""
    def info(self, lane: int) -> NDArray[np.int32]:
        """The lane's last info row."""
    def set_stages(self, lane: int, stages: Sequence[int]) -> None:
        """What the lane draws from at its next reset."""
    def set_reward_weights(self, weights: RewardWeights) -> None:
        """Weights of the steps from now on; saved lanes do not depend on them."""
    def set_stage_weights(self, weights: Sequence[float]) -> None:
        """How often each of the 32 stages is drawn by lanes that play it; empty: all alike."""
    def set_script(self, masks: bytes) -> None:
        """What every episode starts with from its next reset on; empty: nothing."""
    def force(self, lanes: Sequence[int], masks: bytes) -> None:
        """Lanes press these masks from now on, frame by frame, whatever their actions are."""
    def add_restart(self, id: int, state: bytes, masks: bytes, weight: float) -> None:
        """A saved lane from which episodes of its stage may begin, `masks` forced first. Replaces
        the restart point of the same id, which is at least 1."""
    def weigh_restart(self, id: int, weight: float) -> None: ...
    def remove_restart(self, id: int) -> None: ...
    def set_restart_share(self, share: float) -> None:
        """The share of episodes that begin at a restart point of their stage, if it has any."""
    def set_restart_shares(self, shares: Sequence[float]) -> None:
        """The same for each of the 32 stages by itself; empty: the one share for all."""
    def num_restarts(self) -> int: ...
    def take_shaping(self) -> list[float]:
        """Since the last call, summed over lanes: pixels of new ground, shaping, scaled shaping,
        steps whose score could not be read, steps; then pixels, shaping and scaled shaping of the
        last step alone."""
    def memory_bytes(self) -> int:
        """Heap held by lanes and pool, observations in the caller's arrays not counted."""
    def close(self) -> None: ...

def resize_area(image: NDArray[np.uint8], height: int, width: int, simd: str) -> NDArray[np.uint8]:
    """Exact area resize of a gray image, the way observations are made; for tests."""
