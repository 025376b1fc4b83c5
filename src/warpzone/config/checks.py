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
        *("curriculum_window", "archive_cell", "archive_size"),
        *("max_steps", "groups", "grad_accum", "log_interval", "hidden_size", "keep_last"),
        *("per_sample_interval", "per_segments", "memory_length", "memory_layers", "memory_heads"),
    ),
    2: ("adaptive_window",),
    27: ("size",),
    0: (
        *("worker_start_delay",),
        *("num_threads", "start_delay", "episode_timeout_steps", "stagnation_limit", "seed"),
        *("impala_blocks", "target_kl", "value_coef", "entropy", "entropy_final", "lr_final"),
        *("per_burn_in", "per_gpu_sample_fallback_ms", "weight_decay", "max_time"),
        *("eval_interval", "stop_at_clears", "reward_clip", "video_interval"),
        *("checkpoint_minutes", "checkpoint_interval", "keep_every", "checkpoint_replay_gb"),
        *("max_cost_gpu_hours",),
        *("dashboard_port", "wall_lanes"),
        *("monitor_interval", "heartbeat_interval", "stall_timeout", "hint_cooldown_updates"),
        *("slow_step_trace_threshold", "parquet_interval", "metrics_rotate_mb"),
        *("world", "stage", "stage_span", "augment_shift", "augment_brightness"),
        *("reward_distance_weight_anneal_steps", "reward_scale_anneal_steps"),
        *("death_penalty_anneal_steps", "milestone_interval"),
        *("scripted_forward_frames", "scripted_steps", "probe_forward_actions"),
        *("auto_bootstrap_threshold", "auto_bootstrap_frames"),
        *("adaptive_cooldown", "adaptive_entropy_min", "adaptive_lr_min"),
    ),
}
POSITIVE = (
    *("env_reset_timeout", "env_step_timeout"),
    *("lr", "clip", "clip_grad", "encoder_width", "rho_clip", "c_clip", "per_memory_gb"),
    *("wall_rate", "step_timeout", "slow_step_trace_window"),
)
#: The largest value of some.
MOST = {"world": 8, "stage": 4, "stage_span": 32, "augment_shift": 32} | {
    "dashboard_port": 65535,
    "wall_lanes": 64,
    "wall_rate": 30,
}
#: 0 to 1, both included.
FRACTIONS = (
    *("gamma", "gae_lambda", "per_alpha", "per_beta", "per_beta_final"),
    *("curriculum_floor", "archive_share", "augment_brightness"),
)
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
    for name, most in MOST.items():
        value = getattr(config, name)
        yield value > most, f"{flag(name)} must be at most {most}, and is {value}"
    yield (
        config.adaptive_step <= 1.0,
        f"--adaptive-step is a factor above 1, not {config.adaptive_step}",
    )
    yield (
        not 0.0 <= config.warmup < 1.0,
        f"--warmup is a fraction of the run below 1, not {config.warmup}: "
        "a longer warm-up would be the whole run",
    )


def flag(name: str) -> str:
    """A field's name on the command line."""
    return "--" + name.replace("_", "-")
