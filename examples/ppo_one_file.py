"""PPO in one file, on the vector environment: an algorithm to read and to change.

As in CleanRL, everything that decides learning is in sight. `warpzone train` does the same faster,
and writes checkpoints, metrics and videos.

    python examples/ppo_one_file.py --steps 1000000
"""

import argparse
import time
from collections import deque
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Categorical

import warpzone


class Agent(nn.Module):
    """Three convolutions (Mnih et al. 2015), then policy and value."""

    def __init__(self, actions: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            _layer(nn.Conv2d(4, 32, 8, stride=4)), nn.ReLU(),
            _layer(nn.Conv2d(32, 64, 4, stride=2)), nn.ReLU(),
            _layer(nn.Conv2d(64, 64, 3)), nn.ReLU(), nn.Flatten(),
            _layer(nn.Linear(64 * 7 * 7, 512)), nn.ReLU(),
        )  # fmt: skip
        self.policy = _layer(nn.Linear(512, actions), 0.01)
        self.value = _layer(nn.Linear(512, 1), 1.0)

    def forward(self, obs: Tensor) -> tuple[Categorical, Tensor]:
        features = self.body(obs.float() / 255)
        return Categorical(logits=self.policy(features)), self.value(features).squeeze(-1)


def _layer(layer: nn.Module, gain: float = 2**0.5) -> nn.Module:
    nn.init.orthogonal_(layer.weight, gain)  # type: ignore[arg-type]
    nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    return layer


def advantages(
    rewards: Tensor, values: Tensor, ends: Tensor, last: Tensor, gamma: float, lam: float
) -> Tensor:
    """Generalised advantage estimation (Schulman et al. 2016), backwards through the rollout.
    ends[t]: whether an episode ended with step t; nothing is expected after it."""
    found, running = torch.zeros_like(rewards), torch.zeros_like(last)
    for t in reversed(range(len(rewards))):
        after = last if t == len(rewards) - 1 else values[t + 1]
        goes_on = 1.0 - ends[t]
        delta = rewards[t] + gamma * goes_on * after - values[t]
        running = delta + gamma * lam * goes_on * running
        found[t] = running
    return found


def train(args: argparse.Namespace) -> list[float]:
    """Learns; the furthest x of the last episodes."""
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    # Where an episode ends the next one begins within the same step.
    env: Any = warpzone.MarioVectorEnv(
        args.lanes, stages=args.stages, start_delay=(0, 30), stagnation_limit=200,
        autoreset_mode="same_step",
    )  # fmt: skip
    agent = Agent(int(env.single_action_space.n)).to(device)
    optimiser = torch.optim.Adam(agent.parameters(), lr=args.lr, eps=1e-5)
    shape = (args.rollout, args.lanes)
    obs = torch.zeros((*shape, 4, 84, 84), dtype=torch.uint8, device=device)
    actions = torch.zeros(shape, dtype=torch.int64, device=device)
    log_probs, rewards, values, ends = (torch.zeros(shape, device=device) for _ in range(4))

    furthest: deque[float] = deque(maxlen=100)
    seen, _ = env.reset(seed=args.seed)
    updates, began = max(1, args.steps // (args.rollout * args.lanes)), time.perf_counter()
    for update in range(updates):
        for group in optimiser.param_groups:
            group["lr"] = args.lr * (1 - update / updates)
        for t in range(args.rollout):
            obs[t] = torch.from_numpy(seen)
            with torch.no_grad():
                policy, values[t] = agent(obs[t])
            actions[t] = policy.sample()
            log_probs[t] = policy.log_prob(actions[t])
            seen, reward, terminated, truncated, infos = env.step(actions[t].cpu().numpy())
            over = terminated | truncated
            rewards[t] = torch.from_numpy(np.asarray(reward, np.float32))
            ends[t] = torch.from_numpy(over.astype(np.float32))
            if over.any():
                furthest.extend(infos["final_info"]["x_pos"][over].tolist())
        with torch.no_grad():
            last = agent(torch.from_numpy(seen).to(device))[1]
        gained = advantages(rewards, values, ends, last, args.gamma, args.gae_lambda)
        flat = [part.flatten(0, 1) for part in (obs, actions, log_probs, gained, gained + values)]
        for _ in range(args.epochs):
            for rows in torch.randperm(len(flat[0]), device=device).chunk(args.minibatches):
                loss = ppo_loss(agent, *(part[rows] for part in flat), args=args)
                optimiser.zero_grad()
                torch.autograd.backward(loss)
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimiser.step()
        steps = (update + 1) * args.rollout * args.lanes
        speed = steps / (time.perf_counter() - began)
        mean = sum(furthest) / len(furthest) if furthest else float("nan")
        print(f"{steps:>10,} steps  {speed:,.0f} steps/s  furthest x {mean:.0f}", flush=True)
    env.close()
    return list(furthest)


def ppo_loss(
    agent: Agent,
    obs: Tensor,
    actions: Tensor,
    log_probs: Tensor,
    gained: Tensor,
    targets: Tensor,
    *,
    args: argparse.Namespace,
) -> Tensor:
    """The clipped objective (Schulman et al. 2017), value error and entropy."""
    policy, value = agent(obs)
    ratio = (policy.log_prob(actions) - log_probs).exp()
    gained = (gained - gained.mean()) / (gained.std() + 1e-8)
    clipped = ratio.clamp(1 - args.clip, 1 + args.clip)
    policy_loss = -torch.min(ratio * gained, clipped * gained).mean()
    value_loss = 0.5 * (value - targets).square().mean()
    loss: Tensor = policy_loss + 0.5 * value_loss - args.entropy * policy.entropy().mean()
    return loss


def main(words: list[str] | None = None) -> list[float]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stages", default="1-1")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--lanes", type=int, default=16)
    parser.add_argument("--rollout", type=int, default=128, help="steps of a lane in an update")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--minibatches", type=int, default=4)
    parser.add_argument("--lr", type=float, default=2.5e-4)
    parser.add_argument("--gamma", type=float, default=0.95)
    parser.add_argument("--gae-lambda", type=float, default=0.95)
    parser.add_argument("--clip", type=float, default=0.2)
    parser.add_argument("--entropy", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=1)
    return train(parser.parse_args(words))


if __name__ == "__main__":
    main()
