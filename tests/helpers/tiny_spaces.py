"""Search spaces whose trials take a moment."""

from pathlib import Path
from typing import Any

from warpzone.search.space import Space, parse_space

#: What `tiny_runs.tiny` trains, as the lines of `[fixed]`.
FIXED: dict[str, Any] = {
    "num_envs": 4, "groups": 2, "num_threads": 1, "rollout_steps": 8, "minibatch": 16, "epochs": 1,
    "size": 36, "encoder_width": 0.125, "hidden_size": 16, "stagnation_limit": 3,
    "max_steps": 96, "eval_interval": 32, "device": "cpu", "seed": 7,
}  # fmt: skip
SPACE: dict[str, Any] = {
    "lr": {"low": 1e-5, "high": 1e-2, "log": True},
    "entropy": {"low": 0.0, "high": 0.1},
    "algo": {"choices": ["ppo", "a2c"]},
    "clip": {"low": 0.1, "high": 0.3, "when": {"algo": "ppo"}},
}


def values(**changes: Any) -> dict[str, Any]:
    """What a file says; `fixed` and `space` add to what is there."""
    space = {**SPACE, **changes.pop("space", {})}
    fixed = {name: value for name, value in FIXED.items() if name not in space}
    fixed |= changes.pop("fixed", {})
    settings = {"preset": "quick", "objective": "distance", "startup_trials": 2, **changes}
    return {**settings, "fixed": fixed, "space": space}


def tiny_space(**changes: Any) -> Space:
    return parse_space(values(**changes), "tiny")


def write(path: Path, **changes: Any) -> Path:
    """The file itself."""
    found = values(**changes)
    lines = [f"{key} = {_toml(value)}" for key, value in found.items() if key not in TABLES]
    for name in TABLES:
        lines += [f"{name}.{key} = {_toml(value)}" for key, value in found[name].items()]
    path.write_text("\n".join(lines) + "\n")
    return path


TABLES = ("fixed", "space")


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(part)}" for key, part in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value)
