"""Settings that cannot go together, each refused with one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warpzone.config import backend
from warpzone.config.algorithm import algorithms_with
from warpzone.config.checks import Refusal, flag
from warpzone.config.network import NATURE_LAYERS
from warpzone.env.actions import BUTTONS, action_table
from warpzone.env.stages import parse_stages

RIGHT = BUTTONS["RIGHT"]
#: Stages of impala: each halves the picture.
MOST_STAGES = 8
MOST_CHANNELS = 4096

if TYPE_CHECKING:
    from warpzone.config import TrainConfig


def contradictions(config: TrainConfig) -> Iterator[Refusal]:
    """Fields that do not go together."""
    yield from backend.refusals(config)
    batch = config.steps_per_update
    yield (
        config.num_envs % config.groups != 0,
        f"{config.num_envs} lanes do not divide into {config.groups} groups; "
        "change --num-envs or --groups",
    )
    yield (
        batch % config.minibatch != 0,
        f"a rollout of {config.num_envs} x {config.rollout_steps} = {batch} steps does not "
        f"divide into minibatches of {config.minibatch}",
    )
    yield (
        config.whole_lanes and config.minibatch % config.rollout_steps != 0,
        f"with a memory and with {algorithms_with('whole_lanes')} whole lanes are learned: "
        f"--minibatch {config.minibatch} must be a multiple of --rollout-steps "
        f"{config.rollout_steps}",
    )
    yield (
        batch // config.minibatch % config.grad_accum != 0,
        f"the {batch // config.minibatch} minibatches of a rollout do not divide into steps of "
        f"--grad-accum {config.grad_accum}",
    )
    yield (
        batch > config.max_steps,
        f"one rollout has {batch} steps, more than --max-steps {config.max_steps}",
    )
    yield (
        config.per and not config.needs.replay,
        f"--per needs --algo {algorithms_with('replay')}, which corrects for old data; "
        f"{config.algo} does not",
    )
    yield (
        config.per_burn_in >= config.rollout_steps,
        f"--per-burn-in {config.per_burn_in} leaves nothing to learn from in segments of "
        f"{config.rollout_steps} steps",
    )
    yield (
        config.epochs > 1 and not config.needs.passes,
        f"--epochs {config.epochs} needs --algo {algorithms_with('passes')}; {config.algo} learns "
        "from a rollout once: add --epochs 1",
    )
    yield (
        config.target_kl > 0 and not config.needs.passes,
        f"--target-kl needs --algo {algorithms_with('passes')}; {config.algo} learns from a "
        "rollout once",
    )
    yield (
        config.compile and config.cuda_graphs,
        "--compile and --cuda-graphs exclude each other; add --no-cuda-graphs",
    )
    yield from _channels(config)
    yield (
        config.memory == "gtrxl" and config.hidden_size % config.memory_heads != 0,
        f"--hidden-size {config.hidden_size} does not divide into "
        f"{config.memory_heads} attention heads",
    )
    yield (
        config.control and not config.dashboard,
        "--control is about the dashboard; add --dashboard",
    )
    for what in ("entropy", "lr"):
        low, high = getattr(config, f"adaptive_{what}_min"), getattr(config, f"adaptive_{what}_max")
        yield (
            not low <= 1.0 <= high,
            f"--adaptive-{what}-min {low:g} and --adaptive-{what}-max {high:g} must have 1, the "
            "schedule itself, between them",
        )
    yield (
        config.fail_on_stall and config.stall_timeout == 0,
        "--fail-on-stall needs a --stall-timeout above 0",
    )
    yield from _rewards(config)
    yield from _stages(config)
    yield from _starts(config)


def _channels(config: TrainConfig) -> Iterator[Refusal]:
    given = config.encoder_channels
    try:
        channels = config.channels
    except ValueError:
        channels = (0,)
    yield (
        any(not 1 <= count <= MOST_CHANNELS for count in channels),
        f"--encoder-channels are whole numbers from 1 to {MOST_CHANNELS:,} such as 16,32,32, "
        f"not {given!r}",
    )
    yield (
        bool(channels) and config.observation != "pixels",
        f"--encoder-channels is about pictures; {config.observation} has an encoder of its own",
    )
    nature = len(NATURE_LAYERS)
    yield (
        bool(channels) and config.encoder == "nature" and len(channels) != nature,
        f"the nature encoder has {nature} convolutions and needs as many --encoder-channels, "
        f"not {len(channels)}",
    )
    yield (
        len(channels) > MOST_STAGES,
        f"--encoder-channels has {len(channels)} stages; after {MOST_STAGES} no picture is left",
    )


def _rewards(config: TrainConfig) -> Iterator[Refusal]:
    for name in ("reward_distance_weight", "reward_scale", "death_penalty"):
        steps, final = f"{name}_anneal_steps", f"{name}_final"
        yield (
            getattr(config, steps) > 0 and getattr(config, final) is None,
            f"{flag(steps)} needs {flag(final)}, where to anneal to",
        )
    for name in ("death_penalty_start", "death_penalty_final"):
        value = getattr(config, name)
        yield (
            value is not None and value > 0,
            f"{flag(name)} is added to the reward, so a penalty is negative, not {value}",
        )
    yield (
        (config.milestone_interval > 0) != (config.milestone_bonus != 0.0),
        "--milestone-interval and --milestone-bonus need each other",
    )
    shaped = (
        config.reward_score_weight != 0.0
        or config.reward_scale_start != 1.0
        or config.reward_scale_final is not None
        or config.milestone_interval > 0
        or config.reward_distance_weight_final is not None
        or config.death_penalty_start is not None
        or config.death_penalty_final is not None
    )
    yield (
        config.reward == "gym" and shaped,
        "--reward gym is never shaped; use --reward shaped, which adds shaping to it",
    )


def _stages(config: TrainConfig) -> Iterator[Refusal]:
    several = len(set(parse_stages(config.stages))) > 1
    yield (
        config.stop_at_clears > config.most_clears,
        f"--stop-at-clears {config.stop_at_clears} is never reached: an evaluation has "
        f"{config.most_clears} start delays",
    )
    yield (
        config.whole_game and (config.stage_span > 0 or config.random_stage),
        "--whole-game plays every stage in turn; leave out --stage-span and --random-stage",
    )
    yield (
        config.curriculum != "none" and not several,
        "--curriculum chooses among stages, and there is only one; add --stages or --random-stage",
    )
    yield (
        config.curriculum != "none" and config.stage_span > 0 and not config.random_stage,
        "--curriculum draws the stage at every reset; add --random-stage to --stage-span",
    )
    yield (
        config.archive_share > 0 and config.frame_stack > config.rollout_steps,
        f"--archive-share needs rollouts of at least --frame-stack {config.frame_stack} steps",
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


def _starts(config: TrainConfig) -> Iterator[Refusal]:
    masks = action_table(config.actions).masks
    action = config.forward_action_id
    yield (
        action is not None and not 0 <= action < len(masks),
        f"--forward-action-id must be in 0..{len(masks) - 1}, and is {action}",
    )
    yield (
        action is not None and config.probe_forward_actions > 0,
        "--probe-forward-actions finds what --forward-action-id says; give one of them",
    )
    yield (
        (config.auto_bootstrap_threshold > 0) != (config.auto_bootstrap_frames > 0),
        "--auto-bootstrap-threshold and --auto-bootstrap-frames need each other",
    )
    moves = config.scripted_forward_frames > 0 or config.auto_bootstrap_frames > 0
    yield (
        moves
        and action is None
        and config.probe_forward_actions == 0
        and not any(mask & RIGHT for mask in masks),
        "no action of the set presses RIGHT; give --forward-action-id or --probe-forward-actions",
    )
