"""The device that a run computes on."""

from __future__ import annotations

import torch

from warpzone.config import ConfigError, TrainConfig


def choose_device(config: TrainConfig) -> torch.device:
    """CUDA if there is any, unless told otherwise."""
    available = torch.cuda.is_available()
    if config.device == "cuda" and not available:
        raise ConfigError("--device cuda: PyTorch sees no CUDA device here; use --device cpu")
    return torch.device("cuda" if available and config.device != "cpu" else "cpu")


def prepare_device(device: torch.device) -> None:
    """TF32 for what is not in half precision."""
    if device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.allow_tf32 = True
