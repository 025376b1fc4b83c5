"""How weights change, and what runs how on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class OptimisationConfig:
    """How weights change, and what runs how on the device."""

    lr: float = 2.5e-4
    """Learning rate after the warm-up."""
    lr_final: float = 0.1
    """Learning rate at the end, as a fraction of lr (cosine decay)."""
    warmup: float = 0.0
    """Fraction of the run in which the learning rate rises to lr."""
    weight_decay: float = 0.0
    """AdamW's weight decay."""
    clip_grad: float = 0.5
    """Largest global gradient norm."""
    grad_accum: int = 1
    """Minibatches whose gradients are added up for an optimiser step."""
    ema: float = 0.0
    """Decay of averaged weights used for evaluation; 0 uses the weights themselves."""
    amp: bool = True
    """Half precision on CUDA."""
    amp_dtype: Literal["bfloat16", "float16"] = "bfloat16"
    """Which half precision; float16 scales the loss."""
    cuda_graphs: bool = True
    """Record inference and learning as CUDA graphs."""
    compile: bool = False
    """torch.compile for inference and learning."""
