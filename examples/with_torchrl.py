"""PPO made of TorchRL's parts: environment, collector, advantages, loss (`pip install torchrl`).

python examples/with_torchrl.py --steps 200000
"""

import argparse
from typing import Any

import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs import GymWrapper
from torchrl.modules import ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import warpzone


class Scaled(nn.Module):
    """Bytes as numbers from 0 to 1; lanes and steps may come with any number of axes."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        lead = pixels.shape[:-3]
        flat = pixels.reshape(-1, *pixels.shape[-3:]).float() / 255
        features: torch.Tensor = self.body(flat)
        return features.reshape(*lead, -1)


def network(outputs: int, width: int) -> nn.Module:
    return Scaled(
        nn.Sequential(
            nn.Conv2d(4, width, 8, stride=4), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 4, stride=2), nn.ReLU(),
            nn.Flatten(), nn.LazyLinear(256), nn.ReLU(), nn.Linear(256, outputs),
        )
    )  # fmt: skip


def main(words: list[str] | None = None) -> list[float]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stages", default="1-1")
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--lanes", type=int, default=8)
    parser.add_argument("--rollout", type=int, default=64, help="steps of a lane in an update")
    parser.add_argument("--width", type=int, default=32, help="channels of the first layer")
    args = parser.parse_args(words)
    torch.manual_seed(1)

    lanes: Any = warpzone.MarioVectorEnv(
        args.lanes, stages=args.stages, stagnation_limit=200, autoreset_mode="same_step"
    )
    env = GymWrapper(lanes, categorical_action_encoding=True)
    count = int(lanes.single_action_space.n)
    policy = ProbabilisticActor(
        TensorDictModule(network(count, args.width), ["observation"], ["logits"]),
        in_keys=["logits"],
        spec=env.action_spec,
        distribution_class=torch.distributions.Categorical,
        return_log_prob=True,
    )
    critic = ValueOperator(network(1, args.width), in_keys=["observation"])
    # Lazy layers get their sizes from the first observation.
    critic(policy(env.reset()))
    gae = GAE(gamma=0.95, lmbda=0.95, value_network=critic, average_gae=True)
    loss = ClipPPOLoss(policy, critic, clip_epsilon=0.2, entropy_coeff=0.01)
    optimiser = torch.optim.Adam(loss.parameters(), lr=2.5e-4)
    frames = args.rollout * args.lanes
    collector = Collector(
        env,
        policy,
        frames_per_batch=frames,
        total_frames=max(frames, args.steps // frames * frames),
        auto_register_policy_transforms=False,
    )
    returns = []
    for number, batch in enumerate(collector):
        for _ in range(4):
            with torch.no_grad():
                gae(batch)
            flat = batch.reshape(-1)
            for rows in torch.randperm(len(flat)).chunk(4):
                found = loss(flat[rows])
                total = found["loss_objective"] + found["loss_critic"] + found["loss_entropy"]
                optimiser.zero_grad()
                total.backward()
                nn.utils.clip_grad_norm_(loss.parameters(), 0.5)
                optimiser.step()
        collector.update_policy_weights_()
        returns.append(float(batch["next", "reward"].mean()))
        print(
            f"{(number + 1) * frames:>10,} steps  reward of a step {returns[-1]:+.3f}", flush=True
        )
    collector.shutdown()
    return returns


if __name__ == "__main__":
    main()
