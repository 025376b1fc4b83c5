"""A network of your own: pictures are cut into patches, which a small transformer reads.

Memory, previous action and heads come after it as usual (`--memory gru`, say). To replace those as
well, derive from `warpzone.model.agent.Agent`.

    python examples/own_network.py --steps 200000
"""

import argparse

import torch
from torch import Tensor, nn

import warpzone
from warpzone.model.spec import ModelSpec

PATCH = 12
WIDTH = 64


class Patches(nn.Module):
    """uint8 [N, planes, height, width] -> [N, features], without a last rectifier."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        count = (spec.height // PATCH) * (spec.width // PATCH)
        self.cut = nn.Conv2d(spec.planes, WIDTH, PATCH, stride=PATCH)
        self.places = nn.Parameter(0.02 * torch.randn(count, WIDTH))
        layer = nn.TransformerEncoderLayer(
            WIDTH, 4, dim_feedforward=2 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.out = nn.Linear(count * WIDTH, spec.scaled_features)

    def forward(self, frames: Tensor) -> Tensor:
        patches = self.cut(frames.to(self.cut.weight.dtype) / 255).flatten(2).transpose(1, 2)
        features: Tensor = self.out(self.layers(patches + self.places).flatten(1))
        return features


def main(words: list[str] | None = None) -> warpzone.Trained:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--lanes", type=int, default=16)
    parser.add_argument("--rollout", type=int, default=128, help="steps of a lane in an update")
    parser.add_argument("--runs-dir", default="runs")
    args = parser.parse_args(words)
    run = warpzone.train(
        preset="quick",
        stages="1-1",
        network="own_network:Patches",
        max_steps=args.steps,
        num_envs=args.lanes,
        rollout_steps=args.rollout,
        minibatch=args.lanes * args.rollout // 4,
        eval_interval=0,
        runs_dir=args.runs_dir,
        run_name="own-network",
    )
    count = sum(parameter.numel() for parameter in run.agent.network.parameters())
    print(f"{run.steps:,} steps in {run.folder}, {count:,} parameters")
    return run


if __name__ == "__main__":
    main()
