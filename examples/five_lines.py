"""An agent plays: five lines of Python, and flags around them.

python examples/five_lines.py --agent all --stage 1-1
"""

import argparse

import warpzone


def play(name: str, stage: str, steps: int) -> int:
    """How far an agent gets in one life."""
    agent = warpzone.load_agent(name)
    env = agent.make_env(stages=stage)
    obs, infos = env.reset(seed=0)
    furthest = 0
    for _ in range(steps):
        obs, _, terminated, truncated, infos = env.step(agent.act(obs))
        if terminated[0] or truncated[0]:
            print("cleared" if infos["final_info"]["flag_get"][0] else "died")
            break
        furthest = max(furthest, int(infos["x_pos"][0]))
    env.close()
    return furthest


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agent", default="all", help="a shipped or pulled agent, a run, a file")
    parser.add_argument("--stage", default="1-1")
    parser.add_argument("--steps", type=int, default=1000, help="at most so many decisions")
    args = parser.parse_args(words)
    furthest = play(args.agent, args.stage, args.steps)
    print(f"furthest x: {furthest}")
    return furthest


if __name__ == "__main__":
    main()
