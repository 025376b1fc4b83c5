"""How the network learns from what was played."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from warpzone.config.bounds import Above, AtLeast, Refusal, Share


@dataclass(frozen=True)
class Needs:
    """What an algorithm needs of the run around it."""

    #: Learns from whole lanes, whatever the network; else only networks with a memory do.
    whole_lanes: bool = False
    #: May pass over a rollout several times.
    passes: bool = False
    #: Corrects for old data, and so can learn from replayed segments.
    replay: bool = False


#: By name. `algo/table.py` has the algorithms themselves; here they are known without PyTorch.
NEEDS = {
    "ppo": Needs(passes=True),
    "vtrace": Needs(whole_lanes=True, replay=True),
    "appo": Needs(whole_lanes=True, passes=True, replay=True),
    "a2c": Needs(),
}


def algorithms_with(need: str) -> str:
    """The names of the algorithms that have a need, for sentences."""
    return " or ".join(name for name, needs in NEEDS.items() if getattr(needs, need))


@dataclass(frozen=True)
class AlgorithmConfig:
    """How the network learns from what was played."""

    algo: Literal["ppo", "vtrace", "appo", "a2c"] = "ppo"
    """Learning algorithm."""
    rollout_steps: Annotated[int, AtLeast(1)] = 128
    """Steps of each lane in a rollout."""
    minibatch: Annotated[int, AtLeast(1)] = 2048
    """Steps in a minibatch."""
    epochs: Annotated[int, AtLeast(1)] = 5
    """Passes over a rollout (ppo, appo)."""
    gamma: Annotated[float, Share()] = 0.9
    """Discount."""
    gae_lambda: Annotated[float, Share()] = 1.0
    """Trace decay of GAE and V-trace."""
    clip: Annotated[float, Above(0)] = 0.2
    """PPO's clip range (ppo, appo)."""
    target_kl: Annotated[float, AtLeast(0)] = 0.0
    """Stop learning from a rollout once its policy is this far away (KL); 0 never stops (ppo,
    appo)."""
    normalize_advantages: bool = False
    """Standardise advantages in each optimiser step."""
    value_coef: Annotated[float, AtLeast(0)] = 0.5
    """Weight of the value loss."""
    entropy: Annotated[float, AtLeast(0)] = 0.01
    """Entropy bonus at the start."""
    entropy_final: Annotated[float, AtLeast(0)] = 0.0
    """Entropy bonus at the end."""
    imitation: Annotated[float, AtLeast(0)] = 0.0
    """Weight of imitating what a search showed (--search-steps); 0 does not."""
    rho_clip: Annotated[float, Above(0)] = 1.0
    """V-trace's clip of the importance weights (rho)."""
    c_clip: Annotated[float, Above(0)] = 1.0
    """V-trace's clip of the trace (c)."""

    @property
    def needs(self) -> Needs:
        """What the algorithm needs of the run around it."""
        return NEEDS[self.algo]


def refusals(config: AlgorithmConfig) -> Iterator[Refusal]:
    """Fields of this section that do not go together."""
    yield (
        config.epochs > 1 and not config.needs.passes,
        f"--epochs {config.epochs} needs --algo {algorithms_with('passes')}; {config.algo} learns "
        "from a rollout once: add --epochs 1",
    )
    yield (
        config.target_kl > 0 and not config.needs.passes,
        f"--target-kl needs --algo {algorithms_with('passes')}; {config.algo} learns from a "
        "rollout once",
    )
