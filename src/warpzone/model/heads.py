"""Policy and value heads, and sampling from the policy.

Heads compute in float32 even under autocast: they are small, and a value rounded to bfloat16 loses
what advantages are made of.
"""

from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from warpzone.model.init import orthogonal

#: A policy that begins almost uniform.
POLICY_GAIN = 0.01
VALUE_GAIN = 1.0


class NoisyLinear(nn.Linear):
    """Fortunato et al. 2018, factorised. Noise is a buffer: the same until drawn again.

    It is part of the state dict, so a copy of the weights acts with the noise that was learned
    with. It begins as zero, which is the layer without noise.
    """

    noise_in: Tensor
    noise_out: Tensor

    def __init__(self, before: int, after: int, sigma: float) -> None:
        super().__init__(before, after)
        scale = sigma / sqrt(before)
        self.weight_sigma = nn.Parameter(torch.full((after, before), scale))
        self.bias_sigma = nn.Parameter(torch.full((after,), scale))
        self.register_buffer("noise_in", torch.zeros(before))
        self.register_buffer("noise_out", torch.zeros(after))

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight + self.weight_sigma * torch.outer(self.noise_out, self.noise_in)
        return F.linear(x, weight, self.bias + self.bias_sigma * self.noise_out)

    @torch.no_grad()
    def resample_noise(self, generator: torch.Generator) -> None:
        """Draws new noise in place, on the generator's device: the same noise on any other."""
        for noise in (self.noise_in, self.noise_out):
            drawn = torch.randn(noise.shape, generator=generator, device=generator.device)
            noise.copy_(drawn.sign() * drawn.abs().sqrt())

    @torch.no_grad()
    def zero_noise(self) -> None:
        """The layer without noise, for evaluation."""
        self.noise_in.zero_()
        self.noise_out.zero_()


class Heads(nn.Module):
    """[..., size] -> logits [..., A] and value [...], float32."""

    def __init__(self, size: int, actions: int, *, noisy_sigma: float | None = None) -> None:
        super().__init__()
        self.policy = _linear(size, actions, noisy_sigma)
        self.value = _linear(size, 1, noisy_sigma)
        orthogonal(self.policy, POLICY_GAIN)
        orthogonal(self.value, VALUE_GAIN)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast(x.device.type, enabled=False):
            wide = x.float()
            return self.policy(wide), self.value(wide).squeeze(-1)


def _linear(before: int, after: int, noisy_sigma: float | None) -> nn.Linear:
    if noisy_sigma is None:
        return nn.Linear(before, after)
    return NoisyLinear(before, after, noisy_sigma)


def sample_action(logits: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """An action of each row, int64, and its log-probability.

    uniform: numbers between 0 and 1, as many as logits. Gumbel-max: the largest of the logits with
    noise is a sample of the policy. No number is looked at, so this can be recorded in a graph.
    """
    noise = -torch.log(-torch.log(uniform.clamp(1e-10, 1.0 - 1e-7)))
    action = torch.argmax(logits + noise, -1)
    log_prob = torch.log_softmax(logits, -1).gather(-1, action.unsqueeze(-1)).squeeze(-1)
    return action, log_prob
