"""A reward of your own: coins count, and going up counts a little.

`warpzone train --reward own_reward:reward`, started in this folder, does the same as this file.

    python examples/own_reward.py --steps 200000
"""

import argparse

import numpy as np
from numpy.typing import NDArray

import warpzone


def reward(step: warpzone.Transition) -> NDArray[np.floating]:
    """One number for each lane. `step.reward` is what `--reward progress` gives; `before` and
    `after` are the infos around the step."""
    coins = (step.after["coins"] - step.before["coins"]) % 100
    height = np.maximum(step.after["y_pos"] - step.before["y_pos"], 0) / 100
    # With the last step of an episode the infos may be those of another life.
    return step.reward + np.where(step.terminated, 0.0, 0.5 * coins + height)


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
        reward="own_reward:reward",
        max_steps=args.steps,
        num_envs=args.lanes,
        rollout_steps=args.rollout,
        minibatch=args.lanes * args.rollout // 4,
        eval_interval=0,
        runs_dir=args.runs_dir,
        run_name="own-reward",
    )
    print(f"{run.steps:,} steps in {run.folder}")
    return run


if __name__ == "__main__":
    main()
