"""Curriculum and archive by simulation: known rates in, what the engine really draws out, over
thousands of resets; and what the archive keeps, beside what was really played."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tiny_runs import make_agent, make_collector, tiny

from warpzone import _engine
from warpzone.collect.collector import Collector
from warpzone.collect.episodes import Episode
from warpzone.collect.lanes import lane_options
from warpzone.env.infos import COLUMN

RESETS = 400
#: Deviations of a count that chance does not explain.
SIGMAS = 5.0


def drawn(collector: Collector, column: str) -> Counter[int]:
    """What lanes begin with, over thousands of resets."""
    counts: Counter[int] = Counter()
    for group in collector.groups:
        obs = np.zeros((group.count, *group.vector.obs_shape), np.uint8)
        info = np.zeros_like(group.info)
        for _ in range(RESETS):
            group.vector.reset(None, obs, info)
            counts.update(info[:, COLUMN[column]].tolist())
    return counts


def expect(counts: Counter[int], chances: dict[int, float]) -> None:
    total = sum(counts.values())
    assert sum(chances.values()) == pytest.approx(1.0)
    assert counts.keys() <= chances.keys()
    for what, chance in chances.items():
        deviation = (total * chance * (1 - chance)) ** 0.5
        assert abs(counts[what] - total * chance) <= SIGMAS * deviation + 1, (what, chance, counts)


def episode(stage: int, reason: str, x: int = 100, restart: int = 0) -> Episode:
    return Episode(0, stage, 0, 0.0, 10, x, reason, restart)


# --- stages ---------------------------------------------------------------------------------------
STAGES: dict[str, Any] = {"stages": "1-1,1-3,2-1", "num_envs": 8, "minibatch": 64}


@pytest.mark.parametrize("floor", [0.0, 0.2, 1.0])
def test_stages_that_fail_are_drawn_more(floor: float) -> None:
    """Three of four episodes of 1-1 clear, half of those of 1-3, none of 2-1; 4-4 is not asked
    for."""
    config = tiny(**STAGES, curriculum="clear-rate", curriculum_floor=floor)
    collector = make_collector(config, make_agent(config))
    failing = {0: 0.25, 2: 0.5, 4: 1.0}
    for stage, share in failing.items():
        for index in range(40):
            reason = "death" if index % 4 < 4 * share else "flag"
            collector.guide.curriculum.learn([episode(stage, reason)])
    collector.prepare(0)
    total = sum(failing.values())
    chances = {stage: floor / 3 + (1 - floor) * part / total for stage, part in failing.items()}
    expect(drawn(collector, "start_stage"), chances)
    collector.close()


def test_stages_on_which_play_changes_are_drawn_more() -> None:
    """On 1-1 episodes come further than they used to, on the others as far as ever."""
    config = tiny(**STAGES, curriculum="progress", curriculum_floor=0.3)
    collector = make_collector(config, make_agent(config))
    for x in [1000, *[200] * 30, *[900] * 30]:
        ended = [episode(0, "death", x), episode(2, "death"), episode(4, "death")]
        collector.guide.curriculum.learn(ended)
    collector.prepare(0)
    expect(drawn(collector, "start_stage"), {0: 0.1 + 0.7, 2: 0.1, 4: 0.1})
    collector.close()


def test_without_a_curriculum_all_stages_are_drawn_alike() -> None:
    config = tiny(**STAGES)
    collector = make_collector(config, make_agent(config))
    collector.guide.curriculum.learn([episode(0, "flag")] * 40)
    collector.prepare(0)
    expect(drawn(collector, "start_stage"), {0: 1 / 3, 2: 1 / 3, 4: 1 / 3})
    collector.close()


# --- moments --------------------------------------------------------------------------------------
ARCHIVE: dict[str, Any] = {
    "num_envs": 8,
    "rollout_steps": 6,
    "minibatch": 48,
    "archive_share": 0.5,
    "archive_cell": 16,
    "stagnation_limit": 0,
    "start_delay": 0,
    "frame_stack": 4,
    "max_steps": 10**6,
}


def played(config: Any, agent: Any, updates: int) -> tuple[Collector, list[torch.Tensor]]:
    """A collector after some rollouts, and the frames of each."""
    collector, frames = make_collector(config, agent), []
    for update in range(updates):
        collector.prepare(update * config.steps_per_update)
        frames.append(collector.collect().frames.clone())
        collector.episodes.take()
    return collector, frames


def runner(config: Any) -> Any:
    """Always to the right, as fast as it goes: the first enemy is met in step 27."""
    agent = make_agent(config)
    with torch.no_grad():
        agent.heads.policy.weight.zero_()
        agent.heads.policy.bias.zero_()
        agent.heads.policy.bias[3] = 50.0
    return agent


def test_moments_are_drawn_by_what_came_of_them() -> None:
    config = tiny(**ARCHIVE)
    collector, _ = played(config, make_agent(config), 10)
    archive = collector.guide.archive
    assert len(archive.moments) >= 4
    easy, hard, *_ = numbers = sorted(archive.moments)
    far = 10_000
    for index in range(40):
        archive.learn([episode(0, "flag", far, restart=easy)])
        archive.learn([episode(0, "flag" if index % 2 else "death", 0, restart=hard)])
    collector.prepare(10 * config.steps_per_update)
    counts = drawn(collector, "restart")
    weights = {number: archive.moments[number].weight for number in numbers}
    total = sum(weights.values())
    chances = {number: 0.5 * weight / total for number, weight in weights.items()}
    expect(counts, {0: 0.5, **chances})
    # Whatever the rule is: where half of the attempts fail there is more to learn.
    assert counts[hard] > 4 * counts[easy]
    collector.close()


@pytest.mark.parametrize("share", [0.0, 0.9])
def test_as_many_episodes_start_from_moments_as_were_asked_for(share: float) -> None:
    config = tiny(**{**ARCHIVE, "archive_share": share})
    collector, _ = played(config, make_agent(config), 6)
    collector.prepare(6 * config.steps_per_update)
    counts = drawn(collector, "restart")
    expect(Counter({0: counts[0], 1: sum(counts.values()) - counts[0]}), {0: 1 - share, 1: share})
    collector.close()


class Scratch:
    """One lane that is put where a moment is."""

    def __init__(self, collector: Collector) -> None:
        options = lane_options(collector.config)
        self.vector = options.make_vector(
            collector.groups.rom, 1, autoreset=_engine.Autoreset.SAME_STEP
        )
        self.obs = np.zeros((1, *self.vector.obs_shape), np.uint8)
        self.info = np.zeros((1, len(_engine.INFO_FIELDS)), np.int32)
        self.ends = np.zeros((2, 1), np.bool_)
        self.last = np.zeros_like(self.obs), np.zeros_like(self.info)
        self.vector.seed([0])
        self.vector.reset(None, self.obs, self.info)

    @property
    def newest(self) -> NDArray[np.uint8]:
        """The frame it shows."""
        frame: NDArray[np.uint8] = self.obs[0, 0].copy()
        return frame

    def load(self, state: bytes) -> NDArray[np.uint8]:
        self.vector.load(0, state)
        self.vector.observe(0, self.obs[0])
        return self.newest

    def step(self, action: int = 0) -> NDArray[np.uint8]:
        reward, (terminated, truncated) = np.zeros(1, np.float32), self.ends
        last_obs, last_info = self.last
        chosen = np.array([action])
        self.vector.step(
            chosen, self.obs, reward, terminated, truncated, self.info, last_obs, last_info
        )
        return self.newest


def test_no_moment_is_one_from_which_its_own_episode_died_at_once() -> None:
    """Lanes are looked at in steps 6, 12, 18 and 24 of their lives, and die in step 27: what was
    seen in step 24 did not live through the next rollout."""
    config = tiny(**{**ARCHIVE, "archive_share": 0.01, "archive_cell": 4})
    collector, _ = played(config, runner(config), 12)
    moments = collector.guide.archive.moments.values()
    scratch, lived = Scratch(collector), []
    for moment in moments:
        scratch.load(moment.state)
        lived.append(0)
        while not scratch.ends.any() and lived[-1] < 40:
            scratch.step(3)
            lived[-1] += 1
        scratch.ends[:] = False
    assert len(lived) >= 3
    assert min(lived) >= config.rollout_steps
    # There were such moments, and they would have had places of their own.
    assert min(lived) <= 27 - 18
    collector.close()


def test_moments_are_what_was_played() -> None:
    """A moment and the buttons behind it show, frame by frame, what some lane saw at the beginning
    of a rollout. What lanes saw is known from the rollouts, not from the archive."""
    config = tiny(**ARCHIVE)
    collector, rollouts = played(config, make_agent(config), 12)
    stack = config.frame_stack
    seen = {
        frames[stack - 1 : 2 * stack - 1, lane].numpy().tobytes()
        for frames in rollouts
        for lane in range(config.num_envs)
    }
    moments = collector.guide.archive.moments.values()
    assert len(moments) >= 4
    assert len({moment.masks for moment in moments}) > 1
    scratch = Scratch(collector)
    for moment in moments:
        assert len(moment.masks) == (stack - 1) * config.frame_skip
        shown = [scratch.load(moment.state)]
        scratch.vector.force([0], moment.masks)
        shown += [scratch.step() for _ in range(stack - 1)]
        assert np.array(shown).tobytes() in seen
    collector.close()
