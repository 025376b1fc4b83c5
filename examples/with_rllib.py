"""PPO of RLlib through Gymnasium (`pip install 'warpzone[rllib]'`).

python examples/with_rllib.py --iterations 100
"""

import argparse
from typing import Any

import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.tune.registry import register_env

import warpzone

#: RLlib's networks want `[height, width, channels]`, as numbers from 0 to 1.
OPTIONS = {"layout": "channels_last", "dtype": "float32", "size": 42}


def main(words: list[str] | None = None) -> list[int]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stages", default="1-1")
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--batch", type=int, default=2048, help="steps of an iteration")
    parser.add_argument("--runners", type=int, default=0, help="processes that play; 0: this one")
    args = parser.parse_args(words)

    register_env("mario", lambda config: warpzone.MarioEnv(**config))
    config = (
        PPOConfig()  # type: ignore[no-untyped-call,unused-ignore]
        .environment(
            "mario", env_config={**OPTIONS, "stages": args.stages, "stagnation_limit": 100}
        )
        .env_runners(num_env_runners=args.runners, num_envs_per_env_runner=1)
        .learners(num_learners=0)
        .training(
            train_batch_size_per_learner=args.batch,
            minibatch_size=args.batch // 4,
            num_epochs=4,
            gamma=0.95,
            lr=2.5e-4,
        )
        .rl_module(
            model_config=DefaultModelConfig(
                conv_filters=[(16, 8, 4), (32, 4, 2)], fcnet_hiddens=[256], vf_share_layers=True
            )
        )
    )
    ray.init(ignore_reinit_error=True, include_dashboard=False, log_to_driver=False)
    algorithm: Any = config.build_algo()
    steps = []
    for _ in range(args.iterations):
        found = algorithm.train()
        steps.append(int(found["num_env_steps_sampled_lifetime"]))
        mean = found["env_runners"].get("episode_return_mean", float("nan"))
        print(f"{steps[-1]:>10,} steps  return {mean:.2f}", flush=True)
    algorithm.stop()
    return steps


if __name__ == "__main__":
    main()
    ray.shutdown()
