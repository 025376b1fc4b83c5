"""Exploring with save states, after Go-Explore (Ecoffet et al. 2021), first phase.

An archive holds one moment of the game for each place that was reached. Again and again it returns
to places that were seldom chosen, by loading their saved lanes instead of playing up to them, and
plays on at random. Nothing is learned; the archive grows along the stage.

    python examples/go_explore.py --stage 1-2 --rounds 400
"""

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

import warpzone

#: Pixels of a place; places of other maps (bonus rooms, behind pipes) are other places.
CELL = 32
Place = tuple[int, int, int]


@dataclass
class Moment:
    """The best way to a place so far: the game as it was there, and how many steps it took."""

    state: bytes
    steps: int
    chosen: int = 0


class Explorer:
    """Many lanes that start at places of the archive and play at random for a while."""

    def __init__(self, stage: str, lanes: int, seed: int) -> None:
        # RAM as observation: nothing is drawn, which is what takes most of a step.
        self.env: Any = warpzone.MarioVectorEnv(
            lanes, stages=stage, obs="ram", frame_stack=1, actions="simple",
            autoreset_mode="disabled",
        )  # fmt: skip
        self.random = np.random.default_rng(seed)
        _, infos = self.env.reset(seed=seed)
        start = Moment(self.env.save(0), 0)
        self.archive: dict[Place, Moment] = {self.place(infos, 0): start}
        self.furthest, self.cleared = 0, False

    def place(self, infos: dict[str, Any], lane: int) -> Place:
        x, y = infos["x_pos"][lane] // CELL, infos["y_pos"][lane] // CELL
        return int(infos["area_index"][lane]), int(x), int(y)

    def round(self, length: int) -> None:
        """Each lane returns to a place, and explores from there."""
        env, random = self.env, self.random
        places = list(self.archive)
        weights = np.array([1 / np.sqrt(self.archive[place].chosen + 1) for place in places])
        drawn = random.choice(len(places), env.num_envs, p=weights / weights.sum())
        steps = np.zeros(env.num_envs, np.int64)
        for lane, index in enumerate(drawn):
            moment = self.archive[places[index]]
            moment.chosen += 1
            env.load(lane, moment.state)
            steps[lane] = moment.steps
        alive = np.ones(env.num_envs, bool)
        actions = random.integers(env.single_action_space.n, size=env.num_envs)
        for _ in range(length):
            # Buttons are held for a while: single random steps only tremble.
            change = random.random(env.num_envs) < 0.15
            new = random.integers(env.single_action_space.n, size=env.num_envs)
            actions = np.where(change, new, actions)
            for lane in np.flatnonzero(~alive).tolist():
                # A lane that is over is put back where it began and looked at no more.
                env.load(lane, self.archive[places[drawn[lane]]].state)
            _, _, terminated, truncated, infos = env.step(actions)
            steps += 1
            self.cleared |= bool((infos["flag_get"] & alive).any())
            alive &= ~(terminated | truncated)
            for lane in np.flatnonzero(alive).tolist():
                self.keep(lane, infos, int(steps[lane]))

    def keep(self, lane: int, infos: dict[str, Any], steps: int) -> None:
        """A new place, or a faster way to a known one."""
        place = self.place(infos, lane)
        known = self.archive.get(place)
        if known is None or steps < known.steps:
            chosen = 0 if known is None else known.chosen
            self.archive[place] = Moment(self.env.save(lane), steps, chosen)
            self.furthest = max(self.furthest, int(infos["x_pos"][lane]))


def main(words: list[str] | None = None) -> Explorer:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stage", default="1-1")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--length", type=int, default=30, help="steps of a lane in a round")
    parser.add_argument("--lanes", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(words)
    explorer = Explorer(args.stage, args.lanes, args.seed)
    for number in range(1, args.rounds + 1):
        explorer.round(args.length)
        if number % 20 == 0 or number == args.rounds or explorer.cleared:
            steps = number * args.lanes * args.length
            places = len(explorer.archive)
            print(f"{steps:>10,} steps  {places} places  furthest x {explorer.furthest}")
        if explorer.cleared:
            print("the stage is cleared")
            break
    explorer.env.close()
    return explorer


if __name__ == "__main__":
    main()
