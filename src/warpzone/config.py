"""The configuration of a training run: one frozen, flat dataclass. The command line is derived
from it, presets are files with some of its fields, and nonsense is refused with the reason."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from warpzone.env.actions import action_table
from warpzone.env.stages import parse_stages

PRESETS = Path(__file__).parent / "presets"

#: The least value of whole numbers and limits; 36 is the smallest picture the encoders take.
LEAST = {
    1: (
        *("num_envs", "frame_skip", "frame_stack", "rollout_steps", "minibatch", "epochs"),
        *("max_steps", "groups", "grad_accum", "log_interval", "hidden_size"),
        *("per_sample_interval", "per_segments", "memory_length", "memory_layers", "memory_heads"),
    ),
    36: ("size",),
    0: (
        *("num_threads", "start_delay", "episode_timeout_steps", "stagnation_limit", "seed"),
        *("impala_blocks", "target_kl", "value_coef", "entropy", "entropy_final", "lr_final"),
        *("per_burn_in", "per_gpu_sample_fallback_ms", "weight_decay", "max_time"),
        *("eval_interval", "stop_at_clears", "reward_clip"),
    ),
}
POSITIVE = ("lr", "clip", "clip_grad", "encoder_width", "rho_clip", "c_clip", "per_memory_gb")
FRACTIONS = ("gamma", "gae_lambda", "per_alpha", "per_beta", "per_beta_final")


class ConfigError(ValueError):
    """A configuration that cannot work; one sentence that says why."""


@dataclass(frozen=True)
class TrainConfig:
    """What to train, on what, and how."""

    # --- what is played -------------------------------------------------------------------
    stages: str = "1-1"
    """Stages, e.g. 1-1, "1-1,1-2", "1-1..2-4", all, or game (the whole game)."""
    actions: str = "simple"
    """Action set: right, simple, complex or extended."""
    rom: str | None = None
    """ROM: eu, world or a file; the installed one if not given."""
    num_envs: int = 512
    """Lanes played at the same time."""
    num_threads: int = 0
    """Engine threads; 0 uses every core."""
    frame_skip: int = 4
    """Frames for each step."""
    frame_stack: int = 4
    """Observations the network sees at once."""
    size: int = 84
    """Height and width of an observation."""
    mask_status_bar: bool = True
    """Paint score, coins and time black."""
    start_delay: int = 30
    """Each episode starts after 0 to this many frames without input."""
    sticky: float = 0.0
    """Chance that a frame repeats the buttons of the one before."""
    episode_timeout_steps: int = 1500
    """Truncate an episode after this many steps; 0 is never."""
    stagnation_limit: int = 250
    """Truncate after this many steps without new ground; 0 is never."""

    # --- reward -----------------------------------------------------------------------------
    reward: Literal["progress", "gym"] = "progress"
    """progress (new ground, time, flag, death) or gym (as gym-super-mario-bros)."""
    reward_distance_weight: float = 0.1
    """Reward for each new pixel."""
    reward_step: float = -0.04
    """Reward for each step."""
    reward_flag: float = 5.0
    """Reward for the flag."""
    reward_death: float = -2.5
    """Reward for dying."""
    reward_clip: float = 15.0
    """A step's reward is clipped to plus or minus this; 0 leaves it alone."""

    # --- network ----------------------------------------------------------------------------
    encoder: Literal["nature", "impala"] = "nature"
    """Convolutional encoder."""
    encoder_width: float = 1.0
    """Multiplies the encoder's channels."""
    impala_blocks: int = 2
    """Residual blocks in each stage of the impala encoder."""
    hidden_size: int = 512
    """Features after the encoder and in the memory."""
    memory: Literal["none", "gru", "lstm", "gtrxl"] = "none"
    """Memory between steps."""
    memory_length: int = 64
    """Steps that gtrxl remembers."""
    memory_layers: int = 2
    """Layers of gtrxl."""
    memory_heads: int = 4
    """Attention heads of gtrxl."""
    previous_action: bool = False
    """Also feed the action of the step before."""
    noisy: bool = False
    """NoisyNet heads; the noise is drawn once for each rollout."""

    # --- algorithm --------------------------------------------------------------------------
    algo: Literal["ppo", "vtrace", "a2c"] = "ppo"
    """Learning algorithm."""
    rollout_steps: int = 128
    """Steps of each lane in a rollout."""
    minibatch: int = 2048
    """Steps in an optimiser step."""
    epochs: int = 5
    """Passes over a rollout (ppo)."""
    gamma: float = 0.9
    """Discount."""
    gae_lambda: float = 1.0
    """Trace decay of GAE and V-trace."""
    clip: float = 0.2
    """PPO's clip range."""
    target_kl: float = 0.0
    """Stop learning from a rollout once its policy is this far away (KL); 0 never stops (ppo)."""
    normalize_advantages: bool = False
    """Standardise advantages in each minibatch."""
    value_coef: float = 0.5
    """Weight of the value loss."""
    entropy: float = 0.01
    """Entropy bonus at the start."""
    entropy_final: float = 0.0
    """Entropy bonus at the end."""
    rho_clip: float = 1.0
    """V-trace's clip of the importance weights (rho)."""
    c_clip: float = 1.0
    """V-trace's clip of the trace (c)."""

    # --- replay -----------------------------------------------------------------------------
    per: bool = False
    """Prioritised replay of rollout segments (vtrace)."""
    per_alpha: float = 0.6
    """Exponent of the priorities."""
    per_beta: float = 0.4
    """Exponent of the importance weights at the start."""
    per_beta_final: float = 1.0
    """Exponent of the importance weights at the end."""
    per_sample_interval: int = 1
    """Every rollout is stored; every N-th update also learns from the replay."""
    per_memory_gb: float = 1.0
    """GiB of memory for the replay, where the network runs; its capacity follows from it."""
    per_segments: int = 64
    """Segments in a replayed batch."""
    per_burn_in: int = 0
    """Steps at the start of a replayed segment that only warm up the memory."""
    per_gpu_sample: bool = False
    """Draw samples on the device."""
    per_gpu_sample_fallback_ms: float = 0.0
    """Draw on the CPU after three draws in a row that were slower than this; 0 never does."""

    # --- optimisation -----------------------------------------------------------------------
    lr: float = 2.5e-4
    """Learning rate after the warm-up."""
    lr_final: float = 0.1
    """Learning rate at the end, as a fraction of lr (cosine decay)."""
    warmup: float = 0.0
    """Fraction of the run in which the learning rate rises from zero."""
    weight_decay: float = 0.0
    """AdamW's weight decay."""
    clip_grad: float = 0.5
    """Largest global gradient norm."""
    grad_accum: int = 1
    """Minibatches whose gradients are added up for an optimiser step."""
    ema: float = 0.0
    """Decay of averaged weights used for evaluation; 0 uses the weights themselves."""
    amp: bool = True
    """bfloat16 on CUDA."""
    cuda_graphs: bool = True
    """Record inference and learning as CUDA graphs."""
    compile: bool = False
    """torch.compile for inference and learning."""

    # --- the run ------------------------------------------------------------------------------
    max_steps: int = 5_000_000
    """Steps to train for, over all lanes."""
    max_time: float = 0.0
    """Stop after this many minutes; 0 is never."""
    overlap_collect: bool = False
    """Collect the next rollout while learning from the last (policy lag of one update)."""
    groups: int = 2
    """Groups of lanes: one plays while the network decides for another."""
    seed: int = 1
    """Seed of everything random."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the network runs."""
    run_name: str = ""
    """Folder below runs_dir; made from the time if not given."""
    runs_dir: str = "runs"
    """Folder of all runs."""
    eval_interval: int = 0
    """Evaluate every this many steps and keep the best weights; 0 only at the end."""
    stop_at_clears: int = 0
    """Stop as soon as an evaluation clears this many of the 31 start delays; 0 never does."""
    log_interval: int = 1
    """Write metrics every this many updates."""

    def __post_init__(self) -> None:
        for refused, message in (*self._out_of_range(), *self._contradictions()):
            if refused:
                raise ConfigError(message)
        try:
            parse_stages(self.stages)
            action_table(self.actions)
        except ValueError as error:
            raise ConfigError(str(error)) from error

    def _out_of_range(self) -> Iterator[tuple[bool, str]]:
        for least, names in LEAST.items():
            for name in names:
                value = getattr(self, name)
                yield value < least, f"{_flag(name)} must be at least {least}, and is {value}"
        for name in POSITIVE:
            value = getattr(self, name)
            yield value <= 0, f"{_flag(name)} must be above 0, and is {value}"
        for name in FRACTIONS:
            value = getattr(self, name)
            yield not 0.0 <= value <= 1.0, f"{_flag(name)} must be in 0..1, and is {value}"
        for name in ("sticky", "ema"):
            value = getattr(self, name)
            yield not 0.0 <= value < 1.0, f"{_flag(name)} must be in 0..1 and not 1, not {value}"
        yield (
            not 0.0 <= self.warmup < 1.0,
            f"--warmup is a fraction of the run below 1, not {self.warmup}: "
            "a longer warm-up would be the whole run",
        )

    def _contradictions(self) -> Iterator[tuple[bool, str]]:
        batch = self.steps_per_update
        yield (
            self.num_envs % self.groups != 0,
            f"{self.num_envs} lanes do not divide into {self.groups} groups; "
            "change --num-envs or --groups",
        )
        yield (
            batch % self.minibatch != 0,
            f"a rollout of {self.num_envs} x {self.rollout_steps} = {batch} steps does not "
            f"divide into minibatches of {self.minibatch}",
        )
        yield (
            (self.memory != "none" or self.algo == "vtrace")
            and self.minibatch % self.rollout_steps != 0,
            f"with a memory and with vtrace whole lanes are learned: --minibatch {self.minibatch} "
            f"must be a multiple of --rollout-steps {self.rollout_steps}",
        )
        yield (
            batch // self.minibatch % self.grad_accum != 0,
            f"the {batch // self.minibatch} minibatches of a rollout do not divide into steps of "
            f"--grad-accum {self.grad_accum}",
        )
        yield (
            batch > self.max_steps,
            f"one rollout has {batch} steps, more than --max-steps {self.max_steps}",
        )
        yield (
            self.per and self.algo != "vtrace",
            f"--per needs --algo vtrace, which corrects for old data; {self.algo} does not",
        )
        yield (
            self.per_burn_in >= self.rollout_steps,
            f"--per-burn-in {self.per_burn_in} leaves nothing to learn from in segments of "
            f"{self.rollout_steps} steps",
        )
        yield (
            self.epochs > 1 and self.algo != "ppo",
            f"--epochs {self.epochs} needs --algo ppo; {self.algo} learns from a rollout once",
        )
        yield (
            self.target_kl > 0 and self.algo != "ppo",
            f"--target-kl needs --algo ppo; {self.algo} learns from a rollout once",
        )
        yield (
            self.compile and self.cuda_graphs,
            "--compile and --cuda-graphs exclude each other; add --no-cuda-graphs",
        )
        yield (
            self.memory == "gtrxl" and self.hidden_size % self.memory_heads != 0,
            f"--hidden-size {self.hidden_size} does not divide into "
            f"{self.memory_heads} attention heads",
        )

    # --- what follows from it ---------------------------------------------------------------
    @property
    def steps_per_update(self) -> int:
        """Steps in a rollout."""
        return self.num_envs * self.rollout_steps

    @property
    def updates(self) -> int:
        """Rollouts in the run."""
        return max(1, self.max_steps // self.steps_per_update)

    def to_json(self) -> str:
        """The whole configuration."""
        return json.dumps(dataclasses.asdict(self), indent=2)

    def replace(self, **changes: Any) -> TrainConfig:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def preset_names() -> list[str]:
    """Presets that ship with the package."""
    return sorted(path.stem for path in PRESETS.glob("*.toml"))


def load_preset(name: str) -> TrainConfig:
    """A preset by name, or a TOML file by its path."""
    path = Path(name) if name.endswith(".toml") else PRESETS / f"{name}.toml"
    if not path.is_file():
        raise ConfigError(f"there is no preset {name!r}; presets are {', '.join(preset_names())}")
    try:
        values = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"preset {name} cannot be read: {error}") from error
    return from_dict(values)


def from_dict(values: dict[str, Any]) -> TrainConfig:
    """A configuration from saved or preset fields; unknown ones are refused."""
    known = {field.name for field in dataclasses.fields(TrainConfig)}
    for name in values:
        if name not in known:
            raise ConfigError(f"unknown configuration field {name!r}")
    return TrainConfig(**values)
