"""What the lanes play and what the network sees of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from warpzone.config.bounds import AtLeast, AtMost, BelowOne, Refusal, Share
from warpzone.env.options import GRIDS
from warpzone.env.stages import NUM_STAGES, parse_stages, stage_name

#: Of one stage in an evaluation: 0 to 30 frames.
START_DELAYS = 31


@dataclass(frozen=True)
class PlayConfig:
    """What the lanes play and what the network sees of it."""

    stages: str = "1-1"
    """Stages, e.g. 1-1, "1-1,1-2", "1-1..2-4", all, or game (the whole game)."""
    actions: str = "simple"
    """Action set: right, simple, complex or extended, or a table such as "NOOP;RIGHT;RIGHT+A"."""
    rom: str | None = None
    """ROM: eu, world, lost-levels or a file; the installed one if not given."""
    num_envs: Annotated[int, AtLeast(1)] = 512
    """Lanes played at the same time."""
    num_threads: Annotated[int, AtLeast(0)] = 0
    """Engine threads; 0 uses every core, but for one beside a GPU."""
    frame_skip: Annotated[int, AtLeast(1)] = 4
    """Frames for each step."""
    frame_stack: Annotated[int, AtLeast(1)] = 4
    """Observations the network sees at once."""
    size: Annotated[int, AtLeast(27)] = 84
    """Height and width of an observation."""
    mask_status_bar: bool = True
    """Paint score, coins and time black."""
    start_delay: Annotated[int, AtLeast(0)] = 30
    """Each episode starts after 0 to this many frames without input."""
    start_power: Literal["small", "big", "fire", "any"] = "small"
    """What Mario begins an episode as; any draws one of the three each time."""
    start_halfway: Annotated[float, Share()] = 0.0
    """Share of episodes that begin at the stage's halfway page, small, as after a lost life."""
    sticky: Annotated[float, BelowOne()] = 0.0
    """Chance that a frame repeats the buttons of the one before."""
    episode_timeout_steps: Annotated[int, AtLeast(0)] = 1500
    """Truncate an episode after this many steps; 0 is never."""
    stagnation_limit: Annotated[int, AtLeast(0)] = 250
    """Truncate after this many steps without new ground; 0 is never."""
    end_on_setback: bool = False
    """End an episode, paid like a death, when the game sends Mario back (a maze's loop)."""
    world: Annotated[int, AtLeast(0), AtMost(8)] = 0
    """World of the first stage; 0 leaves it to stages. Becomes part of stages."""
    stage: Annotated[int, AtLeast(0), AtMost(4)] = 0
    """Stage of the first stage's world; 0 is the first. Becomes part of stages."""
    stage_span: Annotated[int, AtLeast(0), AtMost(32)] = 0
    """Play this many stages in a row from the first one, each lane one of them; 0 is off."""
    random_stage: bool = False
    """Draw the stage at every reset: of the span or the list of stages, or else of all 32."""
    whole_game: bool = False
    """Play on from 1-1 through every flag with three lives, instead of single stages."""
    observation: Literal["pixels", "tiles", "ram"] = "pixels"
    """What is seen: the picture, the 13 x 16 grid of tiles around Mario, or the bytes of RAM."""
    color: bool = False
    """See colours instead of shades of gray."""
    crop_status_bar: bool = False
    """Cut the status bar away instead of painting it black."""
    max_last_two: bool = False
    """See the brighter pixels of the last two frames of each step."""
    augment_shift: Annotated[int, AtLeast(0), AtMost(32)] = 0
    """Learn from pictures shifted at random by up to this many pixels; 0 is off."""
    augment_brightness: Annotated[float, Share()] = 0.0
    """Learn from pictures made brighter or darker by up to this share; 0 is off."""

    @property
    def picture(self) -> tuple[int, int]:
        """Rows and columns of what a step sees; the three colours are one below the other."""
        if self.observation in GRIDS:
            return GRIDS[self.observation]
        return self.size * (3 if self.color else 1), self.size

    @property
    def most_clears(self) -> int:
        """Start delays of an evaluation, of all stages together; the whole game is its first."""
        return START_DELAYS * max(1, len(set(parse_stages(self.stages))))


def folded_stages(config: PlayConfig) -> dict[str, Any]:
    """What `world`, `stage`, `stage_span`, `random_stage` and `whole_game` make of `stages`; doing
    it again changes nothing. ValueError if that is no set of stages."""
    if config.whole_game:
        if config.world or config.stage:
            raise ValueError("--whole-game starts with 1-1; leave out --world and --stage")
        return {"stages": "game", "world": 0, "stage": 0}
    stages = config.stages
    if config.world or config.stage:
        stages = f"{config.world or 1}-{config.stage or 1}"
    known = parse_stages(stages)
    if config.stage_span:
        if not known:
            raise ValueError("--stage-span needs a first stage, not the whole game")
        last = known[0] + config.stage_span - 1
        if last >= NUM_STAGES:
            raise ValueError(
                f"--stage-span {config.stage_span} from {stage_name(known[0])} goes past 8-4"
            )
        stages = f"{stage_name(known[0])}..{stage_name(last)}" if last > known[0] else stages
        stages = stage_name(known[0]) if last == known[0] else stages
    elif config.random_stage and len(known) == 1:
        stages = "all"
    return {"stages": stages, "world": 0, "stage": 0}


def refusals(config: PlayConfig) -> Iterator[Refusal]:
    """Fields of this section that do not go together."""
    whole = config.whole_game or not parse_stages(config.stages)
    yield (
        whole and (config.stage_span > 0 or config.random_stage),
        "--whole-game plays every stage in turn; leave out --stage-span and --random-stage",
    )
    yield (
        whole and config.end_on_setback,
        "--end-on-setback is for single stages: the whole game goes on after a wrong turn",
    )
    yield (
        whole and config.start_halfway > 0,
        "--start-halfway is for single stages: the whole game begins at the door of 1-1",
    )
    pictures = config.color or config.crop_status_bar or config.max_last_two
    yield (
        config.observation != "pixels" and (pictures or config.augment_brightness > 0),
        f"--observation {config.observation} has no picture that could be coloured, cropped or "
        "made brighter",
    )
    yield (
        config.observation == "ram" and config.augment_shift > 0,
        "--augment-shift moves pictures and tiles; bytes of RAM have no place to be moved to",
    )
