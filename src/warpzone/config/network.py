"""The network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: Kernel and stride of the three convolutions of the nature encoder.
NATURE_LAYERS = ((8, 4), (4, 2), (3, 1))


@dataclass(frozen=True)
class NetworkConfig:
    """The network."""

    encoder: Literal["nature", "impala"] = "nature"
    """Convolutional encoder."""
    encoder_width: float = 1.0
    """Multiplies the encoder's channels."""
    encoder_channels: str = ""
    """Channels of each convolution (nature) or stage (impala), as 16,32,32; the usual if empty."""
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

    @property
    def channels(self) -> tuple[int, ...]:
        """`encoder_channels` as numbers; ValueError if they are none."""
        if not self.encoder_channels:
            return ()
        return tuple(int(count) for count in self.encoder_channels.split(","))
