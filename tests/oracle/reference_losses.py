"""What one optimiser step is made of, as the papers write it: losses as sums over single steps, the
norm of the whole gradient, AdamW weight by weight. In float64."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from warpzone.config import TrainConfig
from warpzone.model.agent import Agent

BETAS, EPS = (0.9, 0.999), 1e-5


@dataclass
class Sample:
    """One step with everything that its losses are made of. Logits and value have gradients."""

    logits: Tensor
    value: Tensor
    action: int
    #: log mu(a|x), of the policy that acted.
    mu: float
    advantage: float
    target: float
    #: Whether the action was the policy's own choice.
    free: bool
    #: The importance weight of a replayed segment.
    weight: float = 1.0
    #: Whether the policy imitates the action.
    shown: bool = False
    #: log pi(a|x) of the weights at the beginning of the update, if the surrogate is measured from
    #: them and not from the policy that acted.
    proximal: float | None = None

    @property
    def log_pi(self) -> Tensor:
        return self.logits.double().log_softmax(0)[self.action]

    @property
    def entropy(self) -> Tensor:
        p = self.logits.double().softmax(0)
        return -(p * p.log()).sum()


@dataclass
class Losses:
    """Of one optimiser step."""

    total: Tensor
    policy: float
    value: float
    imitation: float
    entropy: float
    kl: float
    clipped: float


def losses(samples: list[Sample], config: TrainConfig, bonus: float) -> Losses:
    """L = L_policy + c_value L_value - c_entropy H + c_imitation L_imitation. The policy learns
    from its own choices, and imitates those that were shown; values learn from every step."""
    free = [sample for sample in samples if sample.free]
    scale, shift = 1.0, 0.0
    if config.normalize_advantages and free:
        chosen = np.array([sample.advantage for sample in free])
        shift, scale = chosen.mean(), math.sqrt(chosen.var() + 1e-8)
    gains, kls, outside = [], [], []
    for sample in free:
        advantage = (sample.advantage - shift) / scale
        near, weight = sample.mu, sample.weight
        if sample.proximal is not None:
            # Hilton et al. 2022, equation 3, with V-trace's limit on the weight of a step:
            # (pi_prox / mu) min(pi / pi_prox A, clip(pi / pi_prox) A).
            near = sample.proximal
            weight *= min(config.rho_clip, math.exp(near - sample.mu))
        ratio = (sample.log_pi - near).exp()
        if config.algo in ("ppo", "appo"):
            clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
            gain = torch.minimum(ratio * advantage, clipped * advantage)
        else:
            gain = sample.log_pi * advantage
        gains.append(weight * gain)
        moved = float(ratio.detach())
        kls.append(moved - 1 - math.log(moved))
        outside.append(config.algo in ("ppo", "appo") and abs(moved - 1) > config.clip)
    count = max(1, len(free))
    policy = -sum(gains, torch.zeros((), dtype=torch.float64)) / count
    bonuses = (sample.weight * sample.entropy for sample in free)
    entropy = sum(bonuses, torch.zeros((), dtype=torch.float64)) / count
    errors = (
        sample.weight * 0.5 * (sample.value.double() - sample.target) ** 2 for sample in samples
    )
    value = sum(errors, torch.zeros((), dtype=torch.float64)) / len(samples)
    unlikely = (-sample.log_pi for sample in samples if sample.shown)
    imitation = sum(unlikely, torch.zeros((), dtype=torch.float64)) / len(samples)
    total = policy + config.value_coef * value - bonus * entropy + config.imitation * imitation
    return Losses(
        total,
        float(policy.detach()),
        float(value.detach()),
        float(imitation.detach()),
        float(entropy.detach()),
        sum(kls) / count,
        sum(outside) / count,
    )


@dataclass
class AdamW:
    """Algorithm 2 of the paper, weight by weight."""

    agent: Agent
    decay: float
    #: First and second moments, and steps so far, by name.
    moments: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)
    steps: int = 0

    @torch.no_grad()
    def step(self, gradients: Mapping[str, Tensor], rate: float) -> None:
        self.steps += 1
        for name, weight in self.agent.named_parameters():
            gradient = gradients[name]
            zero = torch.zeros_like(gradient)
            first, second = self.moments.get(name, (zero, zero))
            first = BETAS[0] * first + (1 - BETAS[0]) * gradient
            second = BETAS[1] * second + (1 - BETAS[1]) * gradient**2
            self.moments[name] = first, second
            unbiased = first / (1 - BETAS[0] ** self.steps)
            spread = (second / (1 - BETAS[1] ** self.steps)).sqrt()
            decay = self.decay if self._decays(name, weight) else 0.0
            exact = weight.double()
            exact = exact - rate * decay * exact - rate * unbiased / (spread + EPS)
            weight.copy_(exact)

    @staticmethod
    def _decays(name: str, weight: Tensor) -> bool:
        """Matrices and kernels do; biases, norms, the embedding of actions and noise do not."""
        return weight.ndim > 1 and not name.endswith("_sigma") and not name.startswith("previous.")


def learning_rate(config: TrainConfig, progress: float) -> float:
    """A straight rise to where the run is at the end of the update, then half a cosine."""
    if progress < config.warmup:
        after = progress + config.num_envs * config.rollout_steps / config.max_steps
        return config.lr * min(1.0, after / config.warmup)
    gone = (progress - config.warmup) / (1 - config.warmup)
    return config.lr * (
        config.lr_final + (1 - config.lr_final) * (1 + math.cos(math.pi * gone)) / 2
    )
