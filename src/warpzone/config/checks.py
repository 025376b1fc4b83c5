"""The ranges that fields of a configuration must lie in, each refused with one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warpzone.config import TrainConfig

#: Whether something is wrong, and the sentence that says what.
Refusal = tuple[bool, str]

#: The least value of whole numbers and limits; 27 is the smallest picture the encoders take.
LEAST = {
    1: (
        *("num_envs", "frame_skip", "frame_stack", "rollout_steps", "minibatch", "epochs"),
        *("max_steps", "groups", "grad_accum", "log_interval", "hidden_size"),
        *("per_sample_interval", "per_segments", "memory_length", "memory_layers", "memory_heads"),
    ),
    27: ("size",),
    0: (
        *("num_threads", "start_delay", "episode_timeout_steps", "stagnation_limit", "seed"),
        *("impala_blocks", "target_kl", "value_coef", "entropy", "entropy_final", "lr_final"),
        *("per_burn_in", "per_gpu_sample_fallback_ms", "weight_decay", "max_time"),
        *("eval_interval", "stop_at_clears", "reward_clip"),
    ),
}
POSITIVE = ("lr", "clip", "clip_grad", "encoder_width", "rho_clip", "c_clip", "per_memory_gb")
#: 0 to 1, both included.
FRACTIONS = ("gamma", "gae_lambda", "per_alpha", "per_beta", "per_beta_final")
#: 0 to 1, 1 not included.
BELOW_ONE = ("sticky", "ema")


def out_of_range(config: TrainConfig) -> Iterator[Refusal]:
    """Fields that are wrong by themselves."""
    for least, names in LEAST.items():
        for name in names:
            value = getattr(config, name)
            yield value < least, f"{flag(name)} must be at least {least}, and is {value}"
    for name in POSITIVE:
        value = getattr(config, name)
        yield value <= 0, f"{flag(name)} must be above 0, and is {value}"
    for name in FRACTIONS:
        value = getattr(config, name)
        yield not 0.0 <= value <= 1.0, f"{flag(name)} must be in 0..1, and is {value}"
    for name in BELOW_ONE:
        value = getattr(config, name)
        yield not 0.0 <= value < 1.0, f"{flag(name)} must be in 0..1 and not 1, not {value}"
    yield (
        not 0.0 <= config.warmup < 1.0,
        f"--warmup is a fraction of the run below 1, not {config.warmup}: "
        "a longer warm-up would be the whole run",
    )


def flag(name: str) -> str:
    """A field's name on the command line."""
    return "--" + name.replace("_", "-")
