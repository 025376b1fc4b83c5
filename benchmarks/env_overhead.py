"""What rewards, mixed stages, curriculum and archive cost on top of the engine, as ratios of one
run: python benchmarks/env_overhead.py [--lanes 256] [--rounds 60] [--append FILE]

All cases play the same right-biased random actions with one engine thread and take turns; ratios
are medians over rounds of CPU time, because others may use the machine too.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from warpzone import rom
from warpzone.bench.machine import describe
from warpzone.bench.rounds import Case, interleave
from warpzone.collect.episodes import EpisodeLog, in_order
from warpzone.collect.guide import Guide
from warpzone.collect.lanes import Lanes, make_groups
from warpzone.config import TrainConfig
from warpzone.env.rewards import RewardWeights
from warpzone.env.walker import right_biased
from warpzone.rom import native

STAGES = ("1-1", "1-2", "1-3", "1-4")
ROLLOUT = 128
SLICE = 16
#: Every part of the reward counts.
WEIGHTS = RewardWeights(step=-0.04, death=-2.5, score=0.01, milestone=1.0, milestone_interval=100)


class Play:
    """Lanes as training has them, driven by random actions."""

    def __init__(self, image: bytes, lanes: int, **changes: Any) -> None:
        self.config = TrainConfig(
            num_envs=lanes,
            groups=1,
            num_threads=1,
            rollout_steps=ROLLOUT,
            minibatch=lanes * ROLLOUT,
            max_steps=10**9,
            **changes,
        )
        self.groups: Lanes = make_groups(
            self.config, image, native.load(image), torch.device("cpu")
        )
        rng = np.random.default_rng(0)
        self.plan = right_biased(rng, (4 * ROLLOUT, lanes))
        self.at = 0

    def step(self) -> int:
        group = self.groups[0]
        group.start(self.plan[self.at % len(self.plan)])
        group.finish()
        self.at += 1
        return group.count


class Shaped(Play):
    """With the calls that a run makes between rollouts for its rewards alone."""

    def step(self) -> int:
        vector = self.groups[0].vector
        if self.at % ROLLOUT == 0:
            vector.set_reward_weights(WEIGHTS.to_engine())
            vector.take_shaping()
        return super().step()


class Logged(Play):
    """With the accounting of episodes that every run does; `guided` with all the rest of it."""

    def __init__(self, image: bytes, lanes: int, *, guided: bool, **changes: Any) -> None:
        super().__init__(image, lanes, **changes)
        self.episodes = EpisodeLog(lanes, time_limit=self.config.episode_timeout_steps)
        self.ages = np.zeros(lanes, np.int64)
        self.guide = Guide(self.config, self.groups) if guided else None
        self.guiding = 0.0
        self.total = 0.0

    def step(self) -> int:
        began = time.thread_time()
        if self.guide is not None and self.at % ROLLOUT == 0:
            self.episodes.count(in_order([self.episodes.ended()]))
            ended = self.episodes.take()
            first = self.plan[self.at % len(self.plan) :][:4]
            if self.at:
                self.guide.after([self.guide.tally()], ended, self.ages, first)
            self.guide.before(self.at * self.config.num_envs)
            self.guide.metrics()
        elif self.at % ROLLOUT == 0:
            self.episodes.count(in_order([self.episodes.ended()]))
            self.episodes.take()
        self.guiding += time.thread_time() - began
        count = super().step()
        ended_now = self.episodes.add(self.groups[0])
        self.ages += 1
        self.ages[ended_now] = 0
        self.total += time.thread_time() - began
        return count


def case(name: str, play: Play) -> Case:
    """Some steps of all lanes: always as many, so that two cases play the same game."""
    return Case(name, "steps/s", lambda _: sum(play.step() for _ in range(SLICE)))


def ratio(one: Case, others: list[Case]) -> float:
    """Time of a step of `one` to the mean time of the others, in CPU seconds."""
    mean = np.mean([1 / np.array(other.cpu_rates) for other in others], axis=0)
    return float(np.median(1 / np.array(one.cpu_rates) / mean))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lanes", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--append", type=Path)
    args = parser.parse_args()
    image = rom.find(None)
    shaping = {"reward_score_weight": 0.01, "milestone_interval": 100, "milestone_bonus": 1.0}
    guided = Logged(
        image,
        args.lanes,
        guided=True,
        stages="1-1..1-4",
        curriculum="progress",
        archive_share=0.3,
        reward_scale_final=0.1,
        reward_scale_anneal_steps=10**8,
        **shaping,
    )
    plain = case("gym reward", Play(image, args.lanes, reward="gym"))
    shaped = case("shaped reward", Shaped(image, args.lanes, reward="shaped", **shaping))
    logged = case("mixed, logged", Logged(image, args.lanes, guided=False, stages="1-1..1-4"))
    guide = case("curriculum and archive", guided)
    singles = [case(stage, Play(image, args.lanes, stages=stage)) for stage in STAGES]
    mixed = case("all four", Play(image, args.lanes, stage_span=4))
    for _ in range(6 * ROLLOUT):  # until there is something in the archive
        guided.step()
    guided.guiding = guided.total = 0.0
    cases = [plain, shaped, logged, guide, *singles, mixed]
    interleave(cases, args.rounds, 0.0, lambda text: print(text, file=sys.stderr))
    result = {
        "benchmark": "env_overhead",
        "command": " ".join(["python benchmarks/env_overhead.py", *sys.argv[1:]]),
        "machine": describe(),
        "lanes": args.lanes,
        "cases": [one.summary() for one in cases],
        "ratios": {
            "shaped to gym reward": ratio(shaped, [plain]),
            "guided to logged": ratio(guide, [logged]),
            "share of time inside the guide": guided.guiding / guided.total,
            "mixed to the mean of its stages": ratio(mixed, singles),
            "mixed to 1-1 alone": ratio(mixed, singles[:1]),
        },
        "archive_size": len(guided.guide.archive.moments) if guided.guide else 0,
    }
    print(json.dumps({name: result[name] for name in ("ratios", "archive_size")}, indent=1))
    if args.append:
        with args.append.open("a") as file:
            file.write(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
