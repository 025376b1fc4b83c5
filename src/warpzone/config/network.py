"""The network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from warpzone.config.bounds import Above, AtLeast, AtMost, Refusal
from warpzone.env.backends.select import is_factory

#: Kernel and stride of the three convolutions of the nature encoder.
NATURE_LAYERS = ((8, 4), (4, 2), (3, 1))
#: Stages of impala: each halves the picture.
MOST_STAGES = 8
MOST_CHANNELS = 4096
#: Steps that gtrxl remembers: more than any episode has.
MOST_LENGTH = 8192


@dataclass(frozen=True)
class NetworkConfig:
    """The network."""

    encoder: Literal["nature", "impala"] = "nature"
    """Convolutional encoder."""
    encoder_width: Annotated[float, Above(0)] = 1.0
    """Multiplies the encoder's channels."""
    encoder_channels: str = ""
    """Channels of each convolution (nature) or stage (impala), as 16,32,32; the usual if empty."""
    impala_blocks: Annotated[int, AtLeast(0)] = 2
    """Residual blocks in each stage of the impala encoder."""
    hidden_size: Annotated[int, AtLeast(1)] = 512
    """Features after the encoder and in the memory."""
    memory: Literal["none", "gru", "lstm", "gtrxl"] = "none"
    """Memory between steps."""
    memory_length: Annotated[int, AtLeast(1), AtMost(MOST_LENGTH)] = 64
    """Steps that gtrxl remembers."""
    memory_layers: Annotated[int, AtLeast(1)] = 2
    """Layers of gtrxl."""
    memory_heads: Annotated[int, AtLeast(1)] = 4
    """Attention heads of gtrxl."""
    previous_action: bool = False
    """Also feed the action of the step before."""
    noisy: bool = False
    """NoisyNet heads; the noise is drawn once for each rollout."""
    network: str = ""
    """A network of your own instead of the encoder, as module:Class."""

    @property
    def channels(self) -> tuple[int, ...]:
        """`encoder_channels` as numbers; ValueError if they are none."""
        if not self.encoder_channels:
            return ()
        return tuple(int(count) for count in self.encoder_channels.split(","))


def refusals(config: NetworkConfig) -> Iterator[Refusal]:
    """Fields of this section that do not go together."""
    yield (
        bool(config.network) and not is_factory(config.network),
        f"--network must be module:Class, not {config.network!r}",
    )
    given = config.encoder_channels
    try:
        channels = config.channels
    except ValueError:
        channels = (0,)
    yield (
        any(not 1 <= count <= MOST_CHANNELS for count in channels),
        f"--encoder-channels are whole numbers from 1 to {MOST_CHANNELS:,} such as 16,32,32, "
        f"not {given!r}",
    )
    nature = len(NATURE_LAYERS)
    yield (
        bool(channels) and config.encoder == "nature" and len(channels) != nature,
        f"the nature encoder has {nature} convolutions and needs as many --encoder-channels, "
        f"not {len(channels)}",
    )
    yield (
        len(channels) > MOST_STAGES,
        f"--encoder-channels has {len(channels)} stages; after {MOST_STAGES} no picture is left",
    )
    yield (
        config.memory == "gtrxl" and config.hidden_size % config.memory_heads != 0,
        f"--hidden-size {config.hidden_size} does not divide into "
        f"{config.memory_heads} attention heads",
    )
