"""The agent: encoder -> (+ previous action) -> memory -> heads."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from warpzone.model.encoder import make_encoder
from warpzone.model.gtrxl import Gtrxl
from warpzone.model.heads import Heads, NoisyLinear
from warpzone.model.memory import Gru, Lstm, Memory, NoMemory, State
from warpzone.model.spec import ModelSpec


class Output(NamedTuple):
    """Outputs of the agent."""

    #: float32 [..., A].
    logits: Tensor
    #: float32 [...].
    value: Tensor
    #: Memory after the last step.
    state: State


class Agent(nn.Module):
    """Acting (`act`) and learning (`forward`) give the same logits for the same steps."""

    def __init__(self, spec: ModelSpec, encoder: nn.Module | None = None) -> None:
        """encoder: instead of the one that `spec` names."""
        super().__init__()
        self.spec = spec
        self.encoder = make_encoder(spec) if encoder is None else encoder
        self.previous = None
        if spec.previous_action:
            # One row more than actions: no action came before an episode's first step.
            self.previous = nn.Embedding(spec.actions + 1, spec.scaled_features)
            nn.init.normal_(self.previous.weight, std=0.1)
        self.memory = _make_memory(spec)
        sigma = spec.noisy_sigma if spec.noisy else None
        self.heads = Heads(self.memory.size, spec.actions, noisy_sigma=sigma)

    def initial_state(self, batch: int, device: torch.device | str | None = None) -> State:
        """Empty memory for `batch` lanes, where the weights are unless told otherwise."""
        return self.memory.initial_state(batch, device or next(self.parameters()).device)

    def act(self, obs: Tensor, previous_action: Tensor, state: State, starts: Tensor) -> Output:
        """One step. obs: uint8 [B, stack, H, W]; previous_action and starts: [B]."""
        return self.act_on(self.encode(obs), previous_action, state, starts)

    def act_on(
        self, encoded: Tensor, previous_action: Tensor, state: State, starts: Tensor
    ) -> Output:
        """`act` behind the encoder. encoded: [B, F]."""
        x = self._joined(encoded, previous_action, starts)
        x, state = self.memory.step(x, state, starts)
        logits, value = self.heads(x)
        return Output(logits, value, state)

    def forward(self, obs: Tensor, previous_action: Tensor, state: State, starts: Tensor) -> Output:
        """A sequence. obs: uint8 [T, B, stack, H, W]; previous_action and starts: [T, B]."""
        encoded = self.encode(obs.flatten(0, 1)).view(*starts.shape, -1)
        return self.forward_on(encoded, previous_action, state, starts)

    def forward_on(
        self, encoded: Tensor, previous_action: Tensor, state: State, starts: Tensor
    ) -> Output:
        """`forward` behind the encoder. encoded: [T, B, F]."""
        x = self._joined(encoded, previous_action, starts)
        x, state = self.memory(x, state, starts)
        logits, value = self.heads(x)
        return Output(logits, value, state)

    def resample_noise(self, generator: torch.Generator) -> None:
        """Draws the noise of noisy heads; call it once for a rollout, before acting."""
        for layer in self._noisy():
            layer.resample_noise(generator)

    def zero_noise(self) -> None:
        """Takes the noise out, for evaluation."""
        for layer in self._noisy():
            layer.zero_noise()

    def _noisy(self) -> list[NoisyLinear]:
        return [layer for layer in self.modules() if isinstance(layer, NoisyLinear)]

    def encode(self, obs: Tensor) -> Tensor:
        """What the encoder makes of pictures, before the last action is added. obs: uint8 [B,
        stack, H, W]."""
        if self.spec.colors > 1:
            # Colours lie below each other in memory, so this moves nothing.
            obs = obs.reshape(obs.shape[0], self.spec.planes, self.spec.height, self.spec.width)
        encoded: Tensor = self.encoder(obs)
        return encoded

    def _joined(self, encoded: Tensor, previous_action: Tensor, starts: Tensor) -> Tensor:
        if self.previous is not None:
            before = torch.where(starts, self.spec.actions, previous_action)
            encoded = encoded + self.previous(before)
        return F.relu(encoded)


def _make_memory(spec: ModelSpec) -> Memory:
    features = spec.scaled_features
    if spec.memory == "gru":
        return Gru(features, spec.memory_size)
    if spec.memory == "lstm":
        return Lstm(features, spec.memory_size)
    if spec.memory == "gtrxl":
        return Gtrxl(
            features,
            spec.memory_size,
            layers=spec.memory_layers,
            heads=spec.memory_heads,
            memory_length=spec.memory_length,
        )
    return NoMemory(features)
