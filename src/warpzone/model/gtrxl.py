"""GTrXL: a gated transformer with relative positions and a bounded memory.

Parisotto et al. 2020 on top of Dai et al. 2019. Layer l keeps its last `memory_length` inputs. A
step attends to itself and to the steps of its own episode among the last `memory_length`, in
acting and in learning alike: the window slides with the query, so neither the place of a step in
its rollout nor the rollout's length changes what it sees.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from warpzone.model.init import RELU_GAIN, orthogonal
from warpzone.model.memory import Memory, State

#: Gates begin almost closed, so the network begins as the identity (the paper's b_g).
GATE_BIAS = 2.0


class Gate(nn.Module):
    """The paper's GRU gate: how much of y enters the stream x."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.from_y = nn.Linear(size, 3 * size, bias=False)
        self.from_x = nn.Linear(size, 2 * size, bias=False)
        self.from_reset = nn.Linear(size, size, bias=False)
        self.bias = nn.Parameter(torch.full((size,), GATE_BIAS))
        for layer in (self.from_y, self.from_x, self.from_reset):
            for part in layer.weight.detach().chunk(layer.out_features // size):
                nn.init.orthogonal_(part)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        reset_y, update_y, new_y = self.from_y(y).float().chunk(3, -1)
        reset_x, update_x = self.from_x(x).float().chunk(2, -1)
        reset = torch.sigmoid(reset_y + reset_x)
        update = torch.sigmoid(update_y + update_x - self.bias)
        new = torch.tanh(new_y + self.from_reset(reset * x).float())
        return x + update * (new - x)


class RelativeAttention(nn.Module):
    """Attention whose scores see content and distance (Dai et al. 2019, eq. 5 of section 3.3)."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(size, size, bias=False)
        self.key_value = nn.Linear(size, 2 * size, bias=False)
        self.position = nn.Linear(size, size, bias=False)
        self.output = nn.Linear(size, size, bias=False)
        # u and v of the paper, flat: weight decay is for matrices, and these are biases.
        self.content_bias = nn.Parameter(torch.zeros(size))
        self.position_bias = nn.Parameter(torch.zeros(size))
        for layer in (self.query, self.key_value, self.position, self.output):
            for part in layer.weight.detach().chunk(layer.out_features // size):
                nn.init.orthogonal_(part)

    def forward(self, x: Tensor, context: Tensor, distances: Tensor, visible: Tensor) -> Tensor:
        """x: [B, T, D]; context: [B, M + T, D], the last T of it x; visible: [B, T, M + T].

        distances: [M + 1, D], the encodings of the distances M, M - 1, ..., 0.
        """
        query = self.query(x)
        keys, values = self.key_value(context).chunk(2, -1)
        by_content = self._split(query + self.content_bias) @ self._split(keys).transpose(-1, -2)
        positions = self._split(self.position(distances)[None])
        by_distance = self._split(query + self.position_bias) @ positions.transpose(-1, -2)
        scores = by_content.float() + along_context(by_distance.float())
        scores = scores * (x.shape[-1] // self.heads) ** -0.5
        scores = scores.masked_fill(torch.logical_not(visible)[:, None], float("-inf"))
        mixed = torch.softmax(scores, -1).to(values.dtype) @ self._split(values)
        result: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return result

    def _split(self, x: Tensor) -> Tensor:
        """[B, N, D] -> [B, heads, N, D / heads]."""
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)


def along_context(by_distance: Tensor) -> Tensor:
    """[..., T, M + 1], distance M first -> [..., T, M + T], zero where no distance applies.

    Query t is M - e away from context position t + e. Rows padded to M + T + 1 and read again as
    rows of M + T shift by one each, which is that.
    """
    length, window = by_distance.shape[-2:]
    width = window - 1 + length
    flat = F.pad(by_distance, (0, length)).flatten(-2)
    return flat[..., : length * width].reshape(*flat.shape[:-1], length, width)


class Layer(nn.Module):
    """Norm, attention, gate; norm, two linear layers, gate."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.norm_attention = nn.LayerNorm(size)
        self.attention = RelativeAttention(size, heads)
        self.gate_attention = Gate(size)
        self.norm_linear = nn.LayerNorm(size)
        self.wide = nn.Linear(size, 4 * size)
        self.narrow = nn.Linear(4 * size, size)
        self.gate_linear = Gate(size)
        orthogonal(self.wide, RELU_GAIN)
        orthogonal(self.narrow, RELU_GAIN)

    def forward(self, x: Tensor, context: Tensor, distances: Tensor, visible: Tensor) -> Tensor:
        normed = self.norm_attention(context)
        attended = self.attention(normed[:, -x.shape[1] :], normed, distances, visible)
        x = self.gate_attention(x, F.relu(attended))
        wide = F.relu(self.wide(self.norm_linear(x)))
        result: Tensor = self.gate_linear(x, F.relu(self.narrow(wide)))
        return result


class Gtrxl(Memory):
    """State: the layers' last inputs, float32 [B, layers, memory_length, size], newest last, and
    how many of them belong to the running episode, int64 [B]."""

    distances: Tensor

    def __init__(
        self, features: int, size: int, *, layers: int, heads: int, memory_length: int
    ) -> None:
        super().__init__()
        self.size = size
        self.memory_length = memory_length
        self.project = nn.Linear(features, size)
        orthogonal(self.project, 1.0)
        self.layers = nn.ModuleList(Layer(size, heads) for _ in range(layers))
        # Not saved: weights fit every memory_length.
        self.register_buffer("distances", encode_distances(memory_length, size), persistent=False)

    def initial_state(self, batch: int, device: torch.device | str) -> State:
        shape = (batch, len(self.layers), self.memory_length, self.size)
        return torch.zeros(shape, device=device), torch.zeros(batch, dtype=torch.int64).to(device)

    def step(self, x: Tensor, state: State, starts: Tensor) -> tuple[Tensor, State]:
        output, state = self.forward(x[None], state, starts[None])
        return output[0], state

    def forward(self, x: Tensor, state: State, starts: Tensor) -> tuple[Tensor, State]:
        memory, filled = state
        length = x.shape[0]
        past = self._past(filled, starts)
        visible = self._visible(past)
        stream: Tensor = self.project(x).float().transpose(0, 1)
        kept = []
        for index, layer in enumerate(self.layers):
            context = torch.cat([memory[:, index], stream], 1)
            kept.append(context[:, length:].detach())
            stream = layer(stream, context, self.distances, visible)
        filled = (past[-1] + 1).clamp(max=self.memory_length)
        return stream.transpose(0, 1), (torch.stack(kept, 1), filled)

    def _past(self, filled: Tensor, starts: Tensor) -> Tensor:
        """[T, B]: how many steps before each one it may see."""
        if starts.shape[0] == 1:
            # The same for a single step, without an operator that ONNX does not have.
            return torch.where(starts, 0, filled).clamp(max=self.memory_length)
        time = torch.arange(starts.shape[0], device=starts.device)[:, None]
        last_start = torch.where(starts, time, -1).cummax(0).values
        past = torch.where(last_start < 0, filled + time, time - last_start)
        return past.clamp(max=self.memory_length)

    def _visible(self, past: Tensor) -> Tensor:
        """[B, T, M + T]: not the future, not beyond the window, not another episode."""
        length = past.shape[0]
        query = torch.arange(length, device=past.device)[:, None] + self.memory_length
        distance = query - torch.arange(length + self.memory_length, device=past.device)
        return (distance >= 0) & (distance <= past.transpose(0, 1)[..., None])


def encode_distances(memory_length: int, size: int) -> Tensor:
    """Sinusoids for the distances memory_length, ..., 1, 0: [memory_length + 1, size]."""
    # On the CPU also for a network without memory of its own (`model/shapes.py`), where PyTorch
    # would load its compiler for this.
    distance = torch.arange(memory_length, -1, -1, dtype=torch.float32, device="cpu")[:, None]
    index = torch.arange(size, device="cpu")
    angle = distance * 10000.0 ** (-(index // 2 * 2) / size)
    return torch.where(index % 2 == 0, angle.sin(), angle.cos())
