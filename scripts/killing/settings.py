"""The runs that are killed."""

from __future__ import annotations

from typing import Any

#: One update takes a few hundredths of a second, and each is followed by a checkpoint.
INTERVAL = 1
SETTINGS: dict[str, Any] = {
    "num_envs": 4,
    "groups": 2,
    "num_threads": 1,
    "rollout_steps": 8,
    "minibatch": 16,
    "epochs": 1,
    "size": 36,
    "encoder_width": 0.125,
    "hidden_size": 16,
    "stagnation_limit": 20,
    "max_steps": 32 * 100_000,
    "device": "cpu",
    "checkpoint_interval": INTERVAL,
    "keep_every": 0,
    "wall_lanes": 0,
}
#: What a checkpoint holds beside weights, optimiser and games.
STATEFUL: dict[str, Any] = {
    "algo": "vtrace",
    "stages": "1-1,1-2,4-1",
    "curriculum": "progress",
    "archive_share": 0.5,
    "archive_explore": 0.3,
    "archive_size": 32,
    "memory": "lstm",
    "per": True,
    "per_segments": 4,
    "per_memory_gb": 0.001,
}
KINDS = {"plain": SETTINGS, "stateful": {**SETTINGS, **STATEFUL}}
#: On CUDA: sizes that its kernels like.
CUDA: dict[str, Any] = {
    "num_envs": 32,
    "num_threads": 2,
    "rollout_steps": 16,
    "minibatch": 128,
    "encoder_width": 0.5,
    "hidden_size": 64,
    "max_steps": 512 * 100_000,
    "device": "cuda",
    "cuda_graphs": True,
}
CUDA_STATEFUL: dict[str, Any] = {"per_segments": 8, "per_memory_gb": 0.005}


def settings_of(kind: str, device: str) -> dict[str, Any]:
    if device == "cpu":
        return KINDS[kind]
    return KINDS[kind] | CUDA | (CUDA_STATEFUL if kind == "stateful" else {})
