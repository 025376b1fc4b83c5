"""A tool-assisted search: beam search over save states for the fastest way through a stretch.

In each round every kept moment is tried with every action, and the best moments are kept: those
furthest to the right, one for each place and speed. The buttons are written as a script, which
`warpzone play --script FILE` shows.

    python examples/tool_assisted.py --rounds 80 --out tas.txt
    warpzone play --script tas.txt --stage 1-1 --out tas.mp4
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import warpzone

#: What a player without tools tries first: run and jump all the time.
BASELINE = (*(["RIGHT+A+B"] * 3), "RIGHT+B")
ACTIONS = ("RIGHT+B", "RIGHT+A+B", "RIGHT", "RIGHT+A", "A", "NOOP", "LEFT")


@dataclass(frozen=True)
class Moment:
    """A game, how it got there, and how good that is."""

    state: bytes
    buttons: tuple[str, ...]
    x: int
    key: tuple[int, ...]


def make_env(lanes: int, stage: str, frames: int) -> Any:
    """One step is `frames` frames; nothing is drawn."""
    return warpzone.MarioVectorEnv(
        lanes, stages=stage, obs="ram", frame_stack=1, frame_skip=frames, actions=list(ACTIONS),
        autoreset_mode="disabled",
    )  # fmt: skip


def search(stage: str, rounds: int, beam: int, frames: int) -> Moment:
    """The moment furthest to the right after so many rounds."""
    env = make_env(beam * len(ACTIONS), stage, frames)
    env.reset(seed=0)
    kept = [Moment(env.save(0), (), 0, ())]
    for number in range(rounds):
        # Lane i tries action i % n from moment i // n; lanes without a moment repeat the first.
        for lane in range(env.num_envs):
            env.load(lane, kept[min(lane // len(ACTIONS), len(kept) - 1)].state)
        choices = np.arange(env.num_envs) % len(ACTIONS)
        _, _, terminated, truncated, infos = env.step(choices)
        over = (terminated | truncated) & ~infos["flag_get"].astype(bool)
        found: dict[tuple[int, ...], Moment] = {}
        for lane in np.flatnonzero(~over[: len(kept) * len(ACTIONS)]).tolist():
            before = kept[lane // len(ACTIONS)]
            x, y = int(infos["x_pos"][lane]), int(infos["y_pos"][lane])
            # Of two at the same place the faster one is another moment.
            key = (x // 4, y // 8, int(infos["x_speed"][lane]) // 8)
            if key not in found or x > found[key].x:
                buttons = (*before.buttons, ACTIONS[choices[lane]])
                found[key] = Moment(env.save(lane), buttons, x, key)
        if not found:
            break
        kept = sorted(found.values(), key=lambda one: (one.x, one.key[2]), reverse=True)[:beam]
        if (number + 1) % 10 == 0:
            print(f"{(number + 1) * frames:>6} frames  {len(kept)} kept  x {kept[0].x}", flush=True)
    env.close()
    return kept[0]


def replay(stage: str, buttons: tuple[str, ...], frames: int) -> int:
    """Plays buttons from the start of the stage, without any saved state; how far that gets."""
    env = make_env(1, stage, frames)
    env.reset(seed=0)
    x = 0
    for pressed in buttons:
        _, _, terminated, _, infos = env.step(np.array([ACTIONS.index(pressed)]))
        if terminated[0]:
            break
        x = int(infos["x_pos"][0])
    env.close()
    return x


def as_script(buttons: tuple[str, ...], frames: int) -> str:
    """`RIGHT+B:24,RIGHT+A+B:8`, equal buttons together."""
    runs: list[tuple[str, int]] = []
    for pressed in buttons:
        if runs and runs[-1][0] == pressed:
            runs[-1] = (pressed, runs[-1][1] + frames)
        else:
            runs.append((pressed, frames))
    return ",".join(f"{pressed}:{count}" for pressed, count in runs)


def main(words: list[str] | None = None) -> tuple[Moment, int]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stage", default="1-1")
    parser.add_argument("--rounds", type=int, default=80, help="decisions in a row")
    parser.add_argument("--beam", type=int, default=24, help="moments kept in each round")
    parser.add_argument("--frames", type=int, default=8, help="of a decision")
    parser.add_argument("--out", type=Path, help="a file for the buttons")
    args = parser.parse_args(words)
    best = search(args.stage, args.rounds, args.beam, args.frames)
    pattern = tuple(BASELINE[number % len(BASELINE)] for number in range(args.rounds))
    plain = replay(args.stage, pattern, args.frames)
    print(f"x after {args.rounds * args.frames} frames: {best.x}, run and jump alone: {plain}")
    if args.out:
        args.out.write_text(as_script(best.buttons, args.frames) + "\n")
    return best, plain


if __name__ == "__main__":
    main()
