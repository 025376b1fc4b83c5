"""The three autoreset modes tell the same story of the same stream of actions."""

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from hypothesis import given
from lane_runs import PROPERTY, configs, plan, seeds

from warpzone.env.vector import MarioVectorEnv

STEPS = 40


def start(rom: bytes, config: dict[str, Any], seed: int, mode: AutoresetMode) -> Any:
    short = {**config, "time_limit": 9}
    env = MarioVectorEnv(1, rom=rom, num_threads=1, autoreset_mode=mode, **short)
    return env, env.reset(seed=seed)[0]


@PROPERTY
@given(config=configs, seed=seeds)
def test_modes_agree(rom: bytes, config: dict[str, Any], seed: int) -> None:
    """Each event is (observation, reward, ends); a reset is its first observation."""
    actions = plan(seed, STEPS, 1)
    stories = []

    env, first = start(rom, config, seed, AutoresetMode.DISABLED)
    story: list[tuple[Any, ...]] = [(first,)]
    for action in actions:
        obs, reward, terminated, truncated, _ = env.step(action)
        story.append((obs, reward, terminated, truncated))
        if terminated[0] or truncated[0]:
            story.append((env.reset(options={"reset_mask": np.array([True])})[0],))
    stories.append(story)
    env.close()

    env, first = start(rom, config, seed, AutoresetMode.SAME_STEP)
    story = [(first,)]
    for action in actions:
        obs, reward, terminated, truncated, infos = env.step(action)
        if terminated[0] or truncated[0]:
            story.append((infos["final_obs"][0][None], reward, terminated, truncated))
            assert infos["final_info"]["steps"][0] > 0
            story.append((obs,))
        else:
            assert "final_obs" not in infos
            story.append((obs, reward, terminated, truncated))
    stories.append(story)
    env.close()

    env, first = start(rom, config, seed, AutoresetMode.NEXT_STEP)
    story = [(first,)]
    for action in actions:
        obs, reward, terminated, truncated, _ = env.step(action)
        story.append((obs, reward, terminated, truncated))
        if terminated[0] or truncated[0]:
            obs, reward, terminated, truncated, _ = env.step(action)
            assert (reward[0], terminated[0], truncated[0]) == (0, False, False)
            story.append((obs,))
    stories.append(story)
    env.close()

    assert len(stories[0]) > STEPS + 3
    for story in stories[1:]:
        assert len(story) == len(stories[0])
        for ours, theirs in zip(story, stories[0], strict=True):
            assert len(ours) == len(theirs)
            assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))
