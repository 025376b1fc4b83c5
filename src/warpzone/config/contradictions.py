"""Settings of different sections that cannot go together, each refused with one sentence. What is
wrong within one section is refused in that section's file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warpzone.config.algorithm import algorithms_with
from warpzone.config.bounds import Refusal
from warpzone.env.actions import BUTTONS, action_table
from warpzone.env.backends.select import NATIVE, RETRO
from warpzone.env.stages import parse_stages

if TYPE_CHECKING:
    from warpzone.config import TrainConfig

RIGHT = BUTTONS["RIGHT"]
#: Processes of another back-end: each holds an interpreter and an emulator, some 100 MiB.
MOST_WORKERS = 128


def contradictions(config: TrainConfig) -> Iterator[Refusal]:
    """Fields of different sections that do not go together."""
    yield from _batches(config)
    yield from _learning(config)
    yield from _stages(config)
    yield from _starts(config)
    yield from _backend(config)
    yield from _actors(config)


def _batches(config: TrainConfig) -> Iterator[Refusal]:
    """Lanes, rollouts and minibatches divide into one another."""
    batch = config.steps_per_update
    yield (
        config.num_envs % config.groups != 0,
        f"{config.num_envs} lanes do not divide into {config.groups} groups; "
        "change --num-envs or --groups",
    )
    yield (
        config.num_envs % (config.ranks * config.groups) != 0,
        f"{config.num_envs} lanes do not divide into {config.groups} groups on each of "
        f"{config.ranks} ranks; change --num-envs, --groups or --devices",
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


def _learning(config: TrainConfig) -> Iterator[Refusal]:
    """Algorithm, replay and network."""
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
        bool(config.channels) and config.observation != "pixels",
        f"--encoder-channels is about pictures; {config.observation} has an encoder of its own",
    )


def _actors(config: TrainConfig) -> Iterator[Refusal]:
    """What needs the lanes beside the learner, or one policy for all of them."""
    if not config.actors:
        return
    yield (
        config.max_lag > 0 and not config.needs.replay,
        f"--actors play with weights that are up to {config.max_lag} updates old, and only --algo "
        f"{algorithms_with('replay')} corrects for that, not {config.algo}; add --max-lag 0",
    )
    yield (
        config.num_envs % (config.actors * config.groups) != 0,
        f"{config.num_envs} lanes do not divide into {config.groups} groups on each of "
        f"{config.actors} actors; change --num-envs, --groups or --actors",
    )
    yield (
        config.overlap_collect,
        "--actors collect beside the learner already; add --no-overlap-collect",
    )
    yield (
        config.auto_mem,
        "--auto-mem changes sizes after a failure, which --actors would have to follow; leave out "
        "one of them",
    )
    yield (
        config.backend != NATIVE,
        f"--actors play the native engine, not --backend {config.backend}",
    )


def _stages(config: TrainConfig) -> Iterator[Refusal]:
    """Curriculum and archive with what is played."""
    several = len(set(parse_stages(config.stages))) > 1
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


def _starts(config: TrainConfig) -> Iterator[Refusal]:
    """Forced actions are of the action set."""
    masks = action_table(config.actions).masks
    action = config.forward_action_id
    yield (
        action is not None and not 0 <= action < len(masks),
        f"--forward-action-id must be in 0..{len(masks) - 1}, and is {action}",
    )
    moves = config.scripted_forward_frames > 0 or config.auto_bootstrap_frames > 0
    yield (
        moves
        and action is None
        and config.probe_forward_actions == 0
        and not any(mask & RIGHT for mask in masks),
        "no action of the set presses RIGHT; give --forward-action-id or --probe-forward-actions",
    )


def _backend(config: TrainConfig) -> Iterator[Refusal]:
    """What only the native engine does, and how many processes others start."""
    other = config.backend != NATIVE
    yield (
        other and config.archive_share > 0,
        f"--archive-share saves lanes, which --backend {config.backend} cannot; use native",
    )
    yield (
        other and config.observation != "pixels",
        f"--observation {config.observation} is made by the native engine, not by --backend "
        f"{config.backend}",
    )
    yield (
        other and (config.start_power != "small" or config.start_halfway > 0),
        "--start-power and --start-halfway are made by the native engine, not by --backend "
        f"{config.backend}",
    )
    yield (
        other and not config.force_sync and config.num_envs > MOST_WORKERS,
        f"--backend {config.backend} starts a process for each lane; --num-envs {config.num_envs} "
        f"is more than {MOST_WORKERS}",
    )
    yield (
        config.backend == RETRO and config.force_sync and config.num_envs > 1,
        "stable-retro holds one game in a process; leave out --force-sync",
    )
