"""Initial weights."""

from math import sqrt

from torch import nn

#: Keeps the variance of what passes through a rectifier.
RELU_GAIN = sqrt(2.0)


def orthogonal(layer: nn.Conv2d | nn.Linear, gain: float) -> None:
    """Orthogonal weights, biases of zero."""
    nn.init.orthogonal_(layer.weight, gain)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
