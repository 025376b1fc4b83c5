"""Settings that cannot go together, each refused with one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warpzone.config.checks import Refusal

if TYPE_CHECKING:
    from warpzone.config import TrainConfig


def contradictions(config: TrainConfig) -> Iterator[Refusal]:
    """Fields that do not go together."""
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
        (config.memory != "none" or config.algo == "vtrace")
        and config.minibatch % config.rollout_steps != 0,
        f"with a memory and with vtrace whole lanes are learned: --minibatch {config.minibatch} "
        f"must be a multiple of --rollout-steps {config.rollout_steps}",
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
        config.per and config.algo != "vtrace",
        f"--per needs --algo vtrace, which corrects for old data; {config.algo} does not",
    )
    yield (
        config.per_burn_in >= config.rollout_steps,
        f"--per-burn-in {config.per_burn_in} leaves nothing to learn from in segments of "
        f"{config.rollout_steps} steps",
    )
    yield (
        config.epochs > 1 and config.algo != "ppo",
        f"--epochs {config.epochs} needs --algo ppo; {config.algo} learns from a rollout once",
    )
    yield (
        config.target_kl > 0 and config.algo != "ppo",
        f"--target-kl needs --algo ppo; {config.algo} learns from a rollout once",
    )
    yield (
        config.compile and config.cuda_graphs,
        "--compile and --cuda-graphs exclude each other; add --no-cuda-graphs",
    )
    yield (
        config.memory == "gtrxl" and config.hidden_size % config.memory_heads != 0,
        f"--hidden-size {config.hidden_size} does not divide into "
        f"{config.memory_heads} attention heads",
    )
