"""Memory between encoder and heads: none, GRU, LSTM; GTrXL has a file of its own.

Every memory has two ways through it that give the same numbers: `step` for acting, one step of all
lanes, and `forward` for learning, a `[T, B]` sequence from a carried state. `starts` marks the
first step of an episode: memory is empty there, in both.

State is float32 whatever autocast does: it is fed back, so rounding would add up.
"""

from abc import abstractmethod

import torch
from torch import Tensor, nn

#: What is carried from step to step: tensors whose first dimension is the lane; () for none.
State = tuple[Tensor, ...]


class Memory(nn.Module):
    """What all memories offer."""

    #: Width of the output.
    size: int

    @abstractmethod
    def initial_state(self, batch: int, device: torch.device | str) -> State:
        """Empty memory for `batch` lanes."""

    @abstractmethod
    def step(self, x: Tensor, state: State, starts: Tensor) -> tuple[Tensor, State]:
        """x: [B, F], starts: [B] -> [B, size] and the state for the next step."""

    @abstractmethod
    def forward(self, x: Tensor, state: State, starts: Tensor) -> tuple[Tensor, State]:
        """x: [T, B, F], starts: [T, B] -> [T, B, size] and the state after the last step."""


class NoMemory(Memory):
    """Features pass through."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.size = features

    def initial_state(self, batch: int, device: torch.device | str) -> State:
        return ()

    def step(self, x: Tensor, state: State, starts: Tensor) -> tuple[Tensor, State]:
        return x, ()

    def forward(self, x: Tensor, state: State, starts: Tensor) -> tuple[Tensor, State]:
        return x, ()


class _Recurrent(Memory):
    """A cell walked along the sequence.

    The library's fused sequence kernels cannot empty the state inside a sequence, so the walk is
    ours; the input's share of the gates is one product for all steps.
    """

    def __init__(self, features: int, size: int, gates: int, parts: int) -> None:
        super().__init__()
        self.size = size
        self.parts = parts
        self.from_input = nn.Linear(features, gates * size)
        self.from_hidden = nn.Linear(size, gates * size)
        for layer in (self.from_input, self.from_hidden):
            for gate in layer.weight.detach().chunk(gates):
                nn.init.orthogonal_(gate)
            nn.init.zeros_(layer.bias)

    @abstractmethod
    def cell(self, gates: Tensor, state: State) -> State:
        """The next state; its first part is the output."""

    def initial_state(self, batch: int, device: torch.device | str) -> State:
        return tuple(torch.zeros(batch, self.size, device=device) for _ in range(self.parts))

    def step(self, x: Tensor, state: State, starts: Tensor) -> tuple[Tensor, State]:
        state = self._walk(self.from_input(x), state, starts)
        return state[0], state

    def forward(self, x: Tensor, state: State, starts: Tensor) -> tuple[Tensor, State]:
        outputs = []
        for gates, start in zip(self.from_input(x).unbind(0), starts.unbind(0), strict=True):
            state = self._walk(gates, state, start)
            outputs.append(state[0])
        return torch.stack(outputs), state

    def _walk(self, gates: Tensor, state: State, starts: Tensor) -> State:
        keep = torch.logical_not(starts).unsqueeze(-1)
        # torch.where, not a product: what was carried may be anything where it is dropped.
        return self.cell(gates.float(), tuple(torch.where(keep, part, 0.0) for part in state))


class Gru(_Recurrent):
    """Cho et al. 2014, with the reset gate behind the product, as in cuDNN."""

    def __init__(self, features: int, size: int) -> None:
        super().__init__(features, size, gates=3, parts=1)

    def cell(self, gates: Tensor, state: State) -> State:
        (hidden,) = state
        reset, update, new = gates.chunk(3, -1)
        hidden_reset, hidden_update, hidden_new = self.from_hidden(hidden).float().chunk(3, -1)
        candidate = torch.tanh(new + torch.sigmoid(reset + hidden_reset) * hidden_new)
        keep = torch.sigmoid(update + hidden_update)
        return (candidate + keep * (hidden - candidate),)


class Lstm(_Recurrent):
    """Hochreiter and Schmidhuber 1997, with a forget gate that begins open."""

    def __init__(self, features: int, size: int) -> None:
        super().__init__(features, size, gates=4, parts=2)
        with torch.no_grad():
            self.from_input.bias[size : 2 * size] = 1.0

    def cell(self, gates: Tensor, state: State) -> State:
        hidden, carried = state
        into, forget, new, out = (gates + self.from_hidden(hidden).float()).chunk(4, -1)
        carried = torch.sigmoid(forget) * carried + torch.sigmoid(into) * torch.tanh(new)
        return torch.sigmoid(out) * torch.tanh(carried), carried
