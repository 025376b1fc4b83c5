"""Encoders: stacked uint8 frames -> features, before the last rectifier.

The rectifier is the agent's, because the previous action is added in front of it: added behind it,
a linear head could only shift its logits by the action, not judge the picture differently.
"""

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from warpzone.model.init import RELU_GAIN, orthogonal
from warpzone.model.spec import ModelSpec
from warpzone.model.stem import SCALE, FrameConvolution, PatchConvolution, working_dtype


class NatureEncoder(nn.Module):
    """Mnih et al. 2015: three convolutions and a linear layer."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = spec.planes
        shapes = zip(spec.scaled_channels, spec.nature_layers, strict=True)
        for channels, (kernel, stride) in shapes:
            kind = nn.Conv2d if layers else PatchConvolution
            convolution = kind(before, channels, kernel, stride)
            orthogonal(convolution, RELU_GAIN)
            layers += [convolution, nn.ReLU()]
            before = channels
        self.convolutions = nn.Sequential(*layers)
        self.linear = nn.Linear(spec.flattened, spec.scaled_features)
        orthogonal(self.linear, RELU_GAIN)

    def forward(self, frames: Tensor) -> Tensor:
        features: Tensor = self.linear(self.convolutions(frames).flatten(1))
        return features


class ResidualBlock(nn.Module):
    """x + conv(relu(conv(relu(x))))."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        orthogonal(self.first, RELU_GAIN)
        orthogonal(self.second, RELU_GAIN)

    def forward(self, x: Tensor) -> Tensor:
        inner: Tensor = self.second(F.relu(self.first(F.relu(x))))
        return x + inner


class ImpalaEncoder(nn.Module):
    """Espeholt et al. 2018: stages of convolution, pooling and residual blocks; a linear layer."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = spec.planes
        for channels in spec.scaled_channels:
            if layers:
                convolution = nn.Conv2d(before, channels, 3, padding=1)
            else:
                convolution = FrameConvolution(before, channels)
            orthogonal(convolution, 1.0)
            layers += [convolution, nn.MaxPool2d(3, stride=2, padding=1)]
            layers += [ResidualBlock(channels) for _ in range(spec.blocks)]
            before = channels
        self.stages = nn.Sequential(*layers, nn.ReLU())
        self.linear = nn.Linear(spec.flattened, spec.scaled_features)
        orthogonal(self.linear, RELU_GAIN)

    def forward(self, frames: Tensor) -> Tensor:
        features: Tensor = self.linear(self.stages(frames).flatten(1))
        return features


class TilesEncoder(nn.Module):
    """Two small convolutions and a linear layer: enough for a grid of tiles."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        first, second = spec.scaled_channels
        convolutions = (
            FrameConvolution(spec.planes, first),
            nn.Conv2d(first, second, 3, stride=2, padding=1),
        )
        layers: list[nn.Module] = []
        for convolution in convolutions:
            orthogonal(convolution, RELU_GAIN)
            layers += [convolution, nn.ReLU()]
        self.convolutions = nn.Sequential(*layers)
        self.linear = nn.Linear(spec.flattened, spec.scaled_features)
        orthogonal(self.linear, RELU_GAIN)

    def forward(self, frames: Tensor) -> Tensor:
        features: Tensor = self.linear(self.convolutions(frames).flatten(1))
        return features


class RamEncoder(nn.Module):
    """Two linear layers over bytes of RAM / 255."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        (width,) = spec.scaled_channels
        self.first = nn.Linear(spec.flattened, width)
        self.linear = nn.Linear(width, spec.scaled_features)
        orthogonal(self.first, RELU_GAIN)
        orthogonal(self.linear, RELU_GAIN)

    def forward(self, frames: Tensor) -> Tensor:
        values = frames.flatten(1).to(working_dtype(frames))
        features: Tensor = self.linear(
            F.relu(F.linear(values, self.first.weight * SCALE, self.first.bias))
        )
        return features


Encoder = NatureEncoder | ImpalaEncoder | TilesEncoder | RamEncoder

_ENCODERS: dict[str, type[Encoder]] = {
    "nature": NatureEncoder,
    "impala": ImpalaEncoder,
    "tiles": TilesEncoder,
    "ram": RamEncoder,
}


def make_encoder(spec: ModelSpec) -> Encoder:
    """The encoder that `spec` names."""
    return _ENCODERS[spec.encoder](spec)
