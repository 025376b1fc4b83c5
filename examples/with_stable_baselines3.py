"""PPO of Stable-Baselines3 on the native vector environment (`pip install 'warpzone[sb3]'`).

python examples/with_stable_baselines3.py --steps 500000
"""

import argparse

from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecMonitor

from warpzone.env.sb3 import Sb3VecEnv


def main(words: list[str] | None = None) -> PPO:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stages", default="1-1")
    parser.add_argument("--steps", type=int, default=500_000)
    parser.add_argument("--lanes", type=int, default=16)
    parser.add_argument("--rollout", type=int, default=128, help="steps of a lane in an update")
    parser.add_argument("--limit", type=int, default=200, help="steps without new ground")
    parser.add_argument("--out", default="", help="where the model is saved")
    args = parser.parse_args(words)

    # Lanes are stepped by native threads: no worker processes are needed.
    env = Sb3VecEnv(
        args.lanes, stages=args.stages, start_delay=(0, 30), stagnation_limit=args.limit
    )
    model = PPO(
        "CnnPolicy",
        VecMonitor(env, info_keywords=("x_pos", "flag_get")),
        n_steps=args.rollout,
        batch_size=args.rollout * args.lanes // 4,
        n_epochs=4,
        gamma=0.95,
        clip_range=0.2,
        ent_coef=0.01,
        seed=1,
        verbose=1,
    )
    model.learn(args.steps)
    if args.out:
        model.save(args.out)
    judge = VecMonitor(Sb3VecEnv(4, stages=args.stages, stagnation_limit=args.limit))
    mean, spread = evaluate_policy(model, judge, n_eval_episodes=4)
    print(f"return of 4 episodes: {mean:.2f} ± {spread:.2f}")
    return model


if __name__ == "__main__":
    main()
