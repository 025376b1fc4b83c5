"""The options of an environment: checked once, then given to the engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, Literal, TypedDict

from warpzone import _engine
from warpzone.env.actions import ActionSpec, action_table
from warpzone.env.infos import BEGUN
from warpzone.env.layout import Layout
from warpzone.env.rewards import REWARDS, RewardWeights
from warpzone.env.script import parse_start
from warpzone.env.stages import StageSpec, lane_stages

SCREEN_HEIGHT = 240
SCREEN_WIDTH = 256
#: Lines of the status bar: score, coins, world, time.
STATUS_BAR_LINES = 32
#: Observations that are no pictures, by their names.
KINDS = {"tiles": _engine.ObserveKind.TILES, "ram": _engine.ObserveKind.RAM}
#: Their rows and columns.
GRIDS: dict[str, tuple[int, int]] = {
    name: (rows, columns)
    for name, kind in KINDS.items()
    for rows, columns in [_engine.ObserveSpec(kind=kind).shape]
}
OBSERVATIONS = ("pixels", *KINDS)
LAYOUTS = ("stack", "picture", "channels_last", "channels_first")
#: What Mario may begin as; `any` draws one of the others at each reset.
POWERS = (*BEGUN, "any")
TIMINGS = {"vblank": _engine.Timing.VBLANK, "nes-py": _engine.Timing.NES_PY}
MAX_SKIP = 1024
MAX_STACK = 64
MAX_DELAY = 100_000

Size = int | tuple[int, int]
Delay = int | tuple[int, int]
Native = bool | Literal["auto", "emitted"]


class OptionArgs(TypedDict, total=False):
    """Keyword arguments that `MarioEnv` and `MarioVectorEnv` share; see `Options`."""

    stages: StageSpec
    actions: ActionSpec
    frame_skip: int
    frame_stack: int
    size: Size
    gray: bool
    crop: tuple[int, int, int, int]
    mask_status_bar: bool
    resize: str
    max_last_two: bool
    reward: str
    reward_weights: RewardWeights | Mapping[str, float] | None
    start_delay: Delay
    start_power: str
    start_halfway: float
    sticky: float
    end: str
    time_limit: int
    stagnation_limit: int
    skip_cutscenes: bool
    timing: str
    simd: str
    obs: str
    start_script: str
    planar: bool
    layout: str
    dtype: str


@dataclass(frozen=True)
class Options:
    """What a lane plays, sees and is paid for."""

    #: Stages a lane draws from at each reset: `"1-1"`, `"1-1,1-2"`, `"1-1..2-4"`, `"all"`,
    #: `"game"` (the whole game), or a list with one such set for each lane.
    stages: StageSpec = "1-1"
    #: `right`, `simple`, `complex`, `extended`, or an own table such as `"NOOP;RIGHT;RIGHT+A"`.
    actions: ActionSpec = "simple"
    #: Frames for each step; the buttons are held.
    frame_skip: int = 4
    #: Observations kept in the stack, oldest first.
    frame_stack: int = 4
    #: Height and width of an observation.
    size: Size = 84
    gray: bool = True
    #: Pixels of the screen cut away: top, bottom, left, right.
    crop: tuple[int, int, int, int] = (0, 0, 0, 0)
    #: Paint the status bar black.
    mask_status_bar: bool = False
    #: `area` (as cv2's INTER_AREA) or `nearest`.
    resize: str = "area"
    #: Brightest of the last two frames of a step, pixel by pixel.
    max_last_two: bool = False
    #: `progress`, `gym` or `shaped` (both).
    reward: str = "progress"
    #: Weights of `progress` and `shaped`; those that are not given have their defaults.
    reward_weights: RewardWeights | Mapping[str, float] | None = field(
        default_factory=RewardWeights
    )
    #: Frames without input after a reset; a pair is a range to draw from.
    start_delay: Delay = 0
    #: What Mario begins as: `small`, `big`, `fire`; `any` draws one of them at each reset.
    start_power: str = "small"
    #: Share of episodes that begin at their stage's halfway page, as after a lost life: small
    #: whatever `start_power` is. Stages without one, and the whole game, begin at the door.
    start_halfway: float = 0.0
    #: Chance that a frame repeats the buttons of the one before.
    sticky: float = 0.0
    #: An episode ends with a lost life (`life`) or with the last one (`game_over`); with `setback`
    #: also when the game sends Mario back, in a maze that he takes a wrong turn in.
    end: str = "life"
    #: Steps after which an episode is truncated; 0 is never.
    time_limit: int = 0
    #: Steps without new ground after which an episode is truncated; 0 is never.
    stagnation_limit: int = 0
    #: Run through death, pipe and stage-change scenes inside one step.
    skip_cutscenes: bool = True
    #: `vblank` or `nes-py` (slow, frame slices as nes-py makes them).
    timing: str = "vblank"
    #: Instruction set of drawing and resizing; all give the same pixels.
    simd: str = "auto"
    #: `pixels`; `tiles`, the 13 x 16 grid of tiles around Mario, read from RAM; or `ram`, the 2,048
    #: bytes of RAM themselves as a row.
    obs: str = "pixels"
    #: Buttons that every episode starts with, such as `"RIGHT+B:180"`; `infos["forced"]` marks
    #: these steps, whose actions are ignored.
    start_script: str = ""
    #: RGB as three pictures one below the other, `[3 * height, width]`, instead of a last axis.
    planar: bool = False
    #: `stack`: `[stack, height, width]`, in colour with a last axis of 3; `picture`: the same
    #: without the axis of the stack, for `frame_stack=1`; `channels_last`, `channels_first`: the
    #: pictures of the stack, and their colours, as `[height, width, channels]` or
    #: `[channels, height, width]`.
    layout: str = "stack"
    #: `uint8`, 0 to 255, or `float32`, 0 to 1.
    dtype: str = "uint8"

    def __post_init__(self) -> None:
        _choice("resize", self.resize, ("area", "nearest"))
        _choice("reward", self.reward, REWARDS)
        _choice("end", self.end, ("life", "game_over", "setback"))
        _choice("start_power", self.start_power, POWERS)
        _choice("timing", self.timing, tuple(TIMINGS))
        _choice("obs", self.obs, OBSERVATIONS)
        _choice("layout", self.layout, LAYOUTS)
        _choice("dtype", self.dtype, ("uint8", "float32"))
        _whole("frame_skip", self.frame_skip, 1, MAX_SKIP)
        _whole("frame_stack", self.frame_stack, 1, MAX_STACK)
        _whole("time_limit", self.time_limit, 0, 2**31 - 1)
        _whole("stagnation_limit", self.stagnation_limit, 0, 2**31 - 1)
        for name in ("gray", "mask_status_bar", "max_last_two", "skip_cutscenes", "planar"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be True or False, not {getattr(self, name)!r}")
        if self.layout == "picture" and self.frame_stack != 1:
            raise ValueError(
                f"layout='picture' shows one picture; give frame_stack=1, not {self.frame_stack}"
            )
        if self.layout.startswith("channels") and self.planar and not self.gray:
            raise ValueError(f"planar=True cannot be had with layout={self.layout!r}; choose one")
        if not isinstance(self.sticky, Real) or not 0.0 <= self.sticky < 1.0:
            raise ValueError(f"sticky must be a chance in [0, 1), not {self.sticky!r}")
        if not isinstance(self.start_halfway, Real) or not 0.0 <= self.start_halfway <= 1.0:
            raise ValueError(f"start_halfway must be a share in 0..1, not {self.start_halfway!r}")
        if not isinstance(self.crop, Sequence) or len(self.crop) != 4:
            raise ValueError(f"crop is (top, bottom, left, right), not {self.crop!r}")
        for value in self.crop:
            _whole("crop", value, 0, SCREEN_WIDTH - 1)
        top, bottom, left, right = self.crop
        if top + bottom >= SCREEN_HEIGHT or left + right >= SCREEN_WIDTH:
            raise ValueError(
                f"crop={self.crop} leaves nothing of the {SCREEN_HEIGHT}x{SCREEN_WIDTH} screen"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of a picture; of other observations, of their grid."""
        if self.obs in GRIDS:
            return GRIDS[self.obs]
        pair = _pair("size", self.size, "(height, width)")
        _whole("size", pair[0], 1, SCREEN_HEIGHT)
        _whole("size", pair[1], 1, SCREEN_WIDTH)
        return pair

    @property
    def delay(self) -> tuple[int, int]:
        """The start delay as an inclusive range of frames."""
        low, high = _pair("start_delay", self.start_delay, "(low, high)")
        _whole("start_delay", low, 0, MAX_DELAY)
        _whole("start_delay", high, 0, MAX_DELAY)
        if low > high:
            raise ValueError(f"start_delay runs from {low} down to {high}; give (low, high)")
        return low, high

    @property
    def weights(self) -> RewardWeights:
        """The reward weights, missing ones at their defaults."""
        given = {} if self.reward_weights is None else self.reward_weights
        if isinstance(given, RewardWeights):
            return given
        if not isinstance(given, Mapping):
            raise TypeError(f"reward_weights maps names to numbers, and is {given!r}")
        known = [f.name for f in fields(RewardWeights)]
        for name in given:
            if name not in known:
                raise ValueError(f"unknown reward weight {name!r}; they are {', '.join(known)}")
        return RewardWeights(**given)  # type: ignore[arg-type]

    def observe_spec(self) -> _engine.ObserveSpec:
        """What the engine is to show of a frame."""
        height, width = self.shape
        top, bottom, left, right = self.crop
        return _engine.ObserveSpec(
            kind=KINDS[self.obs] if self.obs in KINDS else self._picture_kind(),
            height=height,
            width=width,
            crop_top=top,
            crop_bottom=bottom,
            crop_left=left,
            crop_right=right,
            mask_top=STATUS_BAR_LINES if self.mask_status_bar else 0,
            resize=_engine.Resize[self.resize.upper()],
        )

    def layout_of(self, engine_shape: tuple[int, ...]) -> Layout:
        """What becomes of the observations that the engine writes."""
        return Layout(self.layout, self.dtype, engine_shape, self.planar and not self.gray)

    def lane_config(
        self, autoreset: _engine.Autoreset = _engine.Autoreset.NEXT_STEP
    ) -> _engine.LaneConfig:
        """What the engine is told about lanes of these options; ValueError or TypeError if one of
        them makes no sense."""
        low, high = self.delay
        return _engine.LaneConfig(
            buttons=action_table(self.actions).masks,
            frame_skip=self.frame_skip,
            frame_stack=self.frame_stack,
            observe=self.observe_spec(),
            max_last_two=self.max_last_two,
            rules=_engine.Rules(
                reward=_engine.RewardKind[self.reward.upper()],
                weights=self.weights.to_engine(),
                end_on_life=self.end != "game_over",
                end_on_setback=self.end == "setback",
                skip_scenes=self.skip_cutscenes,
            ),
            time_limit=self.time_limit,
            stagnation_limit=self.stagnation_limit,
            delay_low=low,
            delay_high=high,
            start_power=_engine.StartPower[self.start_power.upper()],
            start_halfway=self.start_halfway,
            script=parse_start(self.start_script) if self.start_script else b"",
            sticky=self.sticky,
            timing=TIMINGS[self.timing],
            autoreset=autoreset,
        )

    def make_vector(
        self,
        rom: bytes,
        num_lanes: int,
        *,
        autoreset: _engine.Autoreset,
        native: _engine.NativeProgram | None = None,
        num_threads: int | _engine.Threads = 1,
    ) -> _engine.Vector:
        """The engine's lanes with these options."""
        return _engine.Vector(
            rom,
            self.lane_config(autoreset),
            stages=lane_stages(self.stages, num_lanes),
            native=native,
            num_threads=num_threads,
            simd=self.simd,
        )

    def _picture_kind(self) -> _engine.ObserveKind:
        if self.gray:
            return _engine.ObserveKind.GRAY
        return _engine.ObserveKind.PLANAR if self.planar else _engine.ObserveKind.RGB


#: Options as other libraries and the flags of training call them.
ALIASES = {
    "color": "gray",
    "grayscale": "gray",
    "frameskip": "frame_skip",
    "stage": "stages",
    "level": "stages",
    "levels": "stages",
    "observation": "obs",
    "stack": "frame_stack",
    "episode_timeout_steps": "time_limit",
}


def make_options(options: Mapping[str, Any]) -> Options:
    """The options of an environment; TypeError that names one that there is not, and what it may
    mean."""
    known = [option.name for option in fields(Options)]
    for name in options:
        if name in known:
            continue
        meant = ALIASES.get(name) or next(iter(get_close_matches(name, known, n=1)), "")
        end = f", did you mean {meant}?" if meant else f"; there is {', '.join(known)}"
        # Python's own words first: TorchRL looks for them, and goes on without the option.
        raise TypeError(f"unexpected keyword argument {name!r} of an environment{end}")
    return Options(**options)


def _choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")


def _pair(name: str, value: int | tuple[int, int], meaning: str) -> tuple[int, int]:
    """Both numbers of a pair; one number is both."""
    if isinstance(value, Integral):
        return value, value
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        raise ValueError(f"{name} is one whole number or {meaning}, not {value!r}")
    return value[0], value[1]


def _whole(name: str, value: int, low: int, high: int) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if not low <= value <= high:
        raise ValueError(f"{name} must be in {low}..{high}, not {value}")
