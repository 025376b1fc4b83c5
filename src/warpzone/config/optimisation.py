"""Optimiser, precision and CUDA graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from warpzone.config.bounds import Above, AtLeast, BelowOne


@dataclass(frozen=True)
class OptimisationConfig:
    """Optimiser, precision and CUDA graphs."""

    lr: Annotated[float, Above(0)] = 2.5e-4
    """Learning rate after the warm-up."""
    lr_final: Annotated[float, AtLeast(0)] = 0.1
    """Learning rate at the end, as a fraction of lr (cosine decay)."""
    warmup: Annotated[float, BelowOne("a longer warm-up would be the whole run")] = 0.0
    """Fraction of the run in which the learning rate rises to lr."""
    weight_decay: Annotated[float, AtLeast(0)] = 0.0
    """AdamW's weight decay."""
    clip_grad: Annotated[float, Above(0)] = 0.5
    """Largest global gradient norm."""
    grad_accum: Annotated[int, AtLeast(1)] = 1
    """Minibatches whose gradients are added up for an optimiser step."""
    ema: Annotated[float, BelowOne()] = 0.0
    """Decay of averaged weights used for evaluation; 0 uses the weights themselves."""
    amp: bool = True
    """Half precision on CUDA."""
    amp_dtype: Literal["bfloat16", "float16"] = "bfloat16"
    """Which half precision; float16 scales the loss."""
    cuda_graphs: bool = True
    """Record inference and learning as CUDA graphs; not with --compile."""
    compile: bool = False
    """torch.compile for inference and learning, instead of CUDA graphs."""
