"""The memories in their papers' notation, one lane and one step at a time, float64.

Each keeps the whole history of the lane as a list and reads the weights from the module under test.
"""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from warpzone.model.gtrxl import Gate, Gtrxl, Layer, RelativeAttention
from warpzone.model.memory import Gru, Lstm


def w(layer: nn.Linear) -> Tensor:
    return layer.weight.detach().double()


def gru_step(module: Gru, x: Tensor, h: Tensor) -> Tensor:
    """torch.nn.GRUCell with the module's weights."""
    cell = nn.GRUCell(x.shape[0], h.shape[0]).double()
    _load(cell, module)
    moved: Tensor = cell(x[None], h[None])
    return moved[0].detach()


def lstm_step(module: Lstm, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """torch.nn.LSTMCell with the module's weights."""
    cell = nn.LSTMCell(x.shape[0], h.shape[0]).double()
    _load(cell, module)
    hidden, carried = cell(x[None], (h[None], c[None]))
    return hidden[0].detach(), carried[0].detach()


def _load(cell: nn.RNNCellBase, module: Gru | Lstm) -> None:
    cell.load_state_dict(
        {
            "weight_ih": module.from_input.weight,
            "weight_hh": module.from_hidden.weight,
            "bias_ih": module.from_input.bias,
            "bias_hh": module.from_hidden.bias,
        }
    )


@dataclass
class SlowGtrxl:
    """GTrXL over one lane; `inputs[l]` are the inputs of layer l since the episode began."""

    module: Gtrxl
    inputs: list[list[Tensor]] = field(default_factory=list)

    def reset(self) -> None:
        self.inputs = [[] for _ in self.module.layers]

    def step(self, features: Tensor) -> Tensor:
        project = self.module.project
        e = w(project) @ features.double() + project.bias.detach().double()
        for history, layer in zip(self.inputs, self.module.layers, strict=True):
            assert isinstance(layer, Layer)
            history.append(e)
            e = self.layer(layer, history[-self.module.memory_length - 1 :])
        return e

    def layer(self, layer: Layer, window: list[Tensor]) -> Tensor:
        x = window[-1]
        y = torch.relu(attention(layer.attention, [norm(layer.norm_attention, h) for h in window]))
        x = gate(layer.gate_attention, x, y)
        inner = torch.relu(w(layer.wide) @ norm(layer.norm_linear, x) + layer.wide.bias.double())
        out = torch.relu(w(layer.narrow) @ inner + layer.narrow.bias.double())
        return gate(layer.gate_linear, x, out).detach()


def norm(layer: nn.LayerNorm, x: Tensor) -> Tensor:
    centred = x - x.mean()
    scaled = centred / torch.sqrt((centred * centred).mean() + layer.eps)
    return scaled * layer.weight.double() + layer.bias.double()


def attention(module: RelativeAttention, window: list[Tensor]) -> Tensor:
    """Dai et al. 2019: A_ij = q_i k_j + q_i W_R R_{i-j} + u k_j + v W_R R_{i-j}, for the last i."""
    size = window[-1].shape[0]
    width = size // module.heads
    w_k, w_v = torch.split(w(module.key_value), size)
    u, v = module.content_bias.double(), module.position_bias.double()
    mixed = []
    for head in range(module.heads):
        part = slice(head * width, (head + 1) * width)
        q = (w(module.query) @ window[-1])[part]
        scores = []
        for j, h in enumerate(window):
            k = (w_k @ h)[part]
            r = (w(module.position) @ sinusoid(len(window) - 1 - j, size))[part]
            a = q @ k + q @ r + u[part] @ k + v[part] @ r
            scores.append(a / math.sqrt(width))
        shares = torch.softmax(torch.stack(scores), 0)
        mixed.append(sum(share * (w_v @ h)[part] for share, h in zip(shares, window, strict=True)))
    return w(module.output) @ torch.cat(mixed)


def sinusoid(distance: int, size: int) -> Tensor:
    """Vaswani et al. 2017."""
    row = []
    for index in range(size):
        angle = distance / 10000.0 ** (2 * (index // 2) / size)
        row.append(math.sin(angle) if index % 2 == 0 else math.cos(angle))
    return torch.tensor(row, dtype=torch.float64)


def gate(module: Gate, x: Tensor, y: Tensor) -> Tensor:
    """Parisotto et al. 2020, GRU-type gating: r, z, h_hat, (1 - z) x + z h_hat."""
    size = x.shape[0]
    w_r, w_z, w_g = torch.split(w(module.from_y), size)
    u_r, u_z = torch.split(w(module.from_x), size)
    r = torch.sigmoid(w_r @ y + u_r @ x)
    z = torch.sigmoid(w_z @ y + u_z @ x - module.bias.double())
    h = torch.tanh(w_g @ y + w(module.from_reset) @ (r * x))
    return (1 - z) * x + z * h
