"""Description of the network, checked before anything is built."""

from dataclasses import dataclass
from math import isfinite

from warpzone.config import TrainConfig
from warpzone.config.network import NATURE_LAYERS

ENCODERS = ("nature", "impala", "tiles", "ram")
MEMORIES = ("none", "gru", "lstm", "gtrxl")

DEFAULT_CHANNELS = {
    "nature": (32, 64, 64),
    "impala": (16, 32, 32),
    "tiles": (32, 64),
    "ram": (256,),
}
#: The same for small pictures, in which those would leave a single place.
SMALL_NATURE_LAYERS = ((6, 3), (4, 2), (3, 1))
SMALL = 56
#: Wider networks than this have more channels than can be counted.
WIDEST = 1e9


@dataclass(frozen=True)
class ModelSpec:
    """The network. Two specs that differ in `memory_length` alone share their weights."""

    #: Number of actions.
    actions: int
    #: Frames in an observation.
    stack: int = 4
    #: Height of a frame.
    height: int = 84
    #: Width of a frame.
    width: int = 84
    #: 1 for gray; 3 for colours, each a picture of its own, one below the other.
    colors: int = 1
    #: `nature` (three plain convolutions), `impala` (residual stages), `tiles` (small grids) or
    #: `ram` (two linear layers).
    encoder: str = "nature"
    #: Channels of each convolution (nature) or stage (impala), or the width of the first layer
    #: (ram); () is the encoder's usual.
    channels: tuple[int, ...] = ()
    #: Residual blocks in a stage of impala.
    blocks: int = 2
    #: Width of the encoder's output.
    features: int = 512
    #: Multiplies channels and features.
    width_multiplier: float = 1.0
    #: Whether the network sees the action before.
    previous_action: bool = False
    #: `none`, `gru`, `lstm` or `gtrxl`.
    memory: str = "none"
    #: Width of the memory.
    memory_size: int = 256
    #: Layers of gtrxl.
    memory_layers: int = 2
    #: Attention heads of gtrxl.
    memory_heads: int = 4
    #: Steps that gtrxl looks back in each layer.
    memory_length: int = 64
    #: Whether the heads are noisy (NoisyNet).
    noisy: bool = False
    #: The noise's initial scale.
    noisy_sigma: float = 0.5

    def __post_init__(self) -> None:
        if self.encoder not in ENCODERS:
            raise ValueError(f"the encoder must be one of {_list(ENCODERS)}, not {self.encoder!r}")
        if self.memory not in MEMORIES:
            raise ValueError(f"the memory must be one of {_list(MEMORIES)}, not {self.memory!r}")
        for name in ("actions", "stack", "height", "width", "colors", "features", "memory_size"):
            self._at_least(name, 1)
        for name in ("memory_layers", "memory_heads", "memory_length"):
            self._at_least(name, 1)
        self._at_least("blocks", 0)
        if not isfinite(self.width_multiplier) or self.width_multiplier <= 0:
            raise ValueError(f"width_multiplier must be above 0, and is {self.width_multiplier}")
        if self.width_multiplier > WIDEST:
            raise ValueError(f"width_multiplier is {self.width_multiplier:g}, above {WIDEST:g}")
        if not isfinite(self.noisy_sigma) or self.noisy_sigma <= 0:
            raise ValueError(f"noisy_sigma must be above 0, and is {self.noisy_sigma}")
        self._check_channels()
        self._check_size()
        if self.memory == "gtrxl" and self.memory_size % self.memory_heads:
            raise ValueError(
                f"gtrxl divides its width among its heads: memory_size {self.memory_size} "
                f"is not a multiple of memory_heads {self.memory_heads}"
            )

    @property
    def scaled_channels(self) -> tuple[int, ...]:
        """Channels after the multiplier."""
        channels = self.channels or DEFAULT_CHANNELS[self.encoder]
        return tuple(self._scaled(count) for count in channels)

    @property
    def scaled_features(self) -> int:
        """Width of the encoder's output after the multiplier."""
        return self._scaled(self.features)

    @property
    def planes(self) -> int:
        """Channels that the first convolution sees."""
        return self.stack * self.colors

    @property
    def picture_after(self) -> tuple[int, int]:
        """Height and width of what the convolutions leave."""
        return self._after(self.height), self._after(self.width)

    @property
    def flattened(self) -> int:
        """Inputs of the encoder's first linear layer."""
        height, width = self.picture_after
        channels = self.planes if self.encoder == "ram" else self.scaled_channels[-1]
        return channels * height * width

    @property
    def nature_layers(self) -> tuple[tuple[int, int], ...]:
        """Kernel and stride of each convolution of the nature encoder."""
        small = min(self.height, self.width) < SMALL
        return SMALL_NATURE_LAYERS if small else NATURE_LAYERS

    def _scaled(self, count: int) -> int:
        return max(1, round(count * self.width_multiplier))

    def _after(self, size: int) -> int:
        if self.encoder == "nature":
            for kernel, stride in self.nature_layers:
                size = (size - kernel) // stride + 1
            return size
        if self.encoder == "tiles":
            return (size + 1) // 2
        if self.encoder == "ram":
            return size
        for _ in self.scaled_channels:
            size = (size + 1) // 2
        return size

    def _at_least(self, name: str, least: int) -> None:
        if getattr(self, name) < least:
            raise ValueError(f"{name} must be at least {least}, and is {getattr(self, name)}")

    def _check_channels(self) -> None:
        if any(count < 1 for count in self.channels):
            raise ValueError(f"channels must all be at least 1, and are {self.channels}")
        usual = len(DEFAULT_CHANNELS[self.encoder])
        if self.encoder != "impala" and len(self.channels) not in (0, usual):
            layers = "hidden layer" if self.encoder == "ram" else "convolutions"
            raise ValueError(
                f"the {self.encoder} encoder has {usual} {layers} and needs as many "
                f"channels, not {len(self.channels)}"
            )

    def _check_size(self) -> None:
        if min(self.picture_after) < 1:
            raise ValueError(
                f"frames of {self.height}x{self.width} are too small for the {self.encoder} "
                f"encoder; it needs 27x27 or more"
            )


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names)


def model_spec(config: TrainConfig, actions: int) -> ModelSpec:
    """The network that a configuration describes."""
    return ModelSpec(
        actions=actions,
        stack=config.frame_stack,
        height=config.picture[0] // (3 if config.color else 1),
        width=config.picture[1],
        colors=3 if config.color else 1,
        encoder=config.encoder if config.observation == "pixels" else config.observation,
        channels=config.channels,
        blocks=config.impala_blocks,
        features=config.hidden_size,
        width_multiplier=config.encoder_width,
        previous_action=config.previous_action,
        memory=config.memory,
        memory_size=config.hidden_size,
        memory_layers=config.memory_layers,
        memory_heads=config.memory_heads,
        memory_length=config.memory_length,
        noisy=config.noisy,
    )
