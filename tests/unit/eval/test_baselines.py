"""Players that have learned nothing: the same every time, and by the protocol of agents."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from tiny_runs import tiny

from warpzone import rom
from warpzone.env.actions import action_table
from warpzone.eval.baselines import HELD, RELEASED, play_baselines, scripted_action
from warpzone.eval.cases import BASELINES, Case, Outcome
from warpzone.eval.chance import uniform
from warpzone.eval.eval_lanes import EvalLanes
from warpzone.rom import native

DELAYS = (0, 7, 30)


def played(**changes: Any) -> list[Outcome]:
    image = rom.find()
    config = tiny(actions="simple")
    program = native.load(image)
    return play_baselines(
        config, image, program, stages="1-1,1-4", delays=DELAYS, stuck_after=60, **changes
    )


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return played()


def test_every_stage_and_delay_is_played_by_both(outcomes: list[Outcome]) -> None:
    seen = {(o.stage, o.policy, o.start_delay) for o in outcomes}
    assert seen == {(s, p, d) for s in ("1-1", "1-4") for p in BASELINES for d in DELAYS}
    assert len(outcomes) == len(seen)
    assert all(outcome.reason in ("flag", "death", "stuck") for outcome in outcomes)


def test_the_same_every_time_and_another_seed_moves_the_random_one(
    outcomes: list[Outcome],
) -> None:
    assert played() == outcomes
    other = {(o.stage, o.policy, o.start_delay): o for o in played(seed=1)}
    for outcome in outcomes:
        found = other[outcome.stage, outcome.policy, outcome.start_delay]
        if outcome.policy == "scripted":
            assert found == outcome
    assert any(o != other[o.stage, o.policy, o.start_delay] for o in outcomes)


def test_running_and_jumping_gets_further_than_chance(outcomes: list[Outcome]) -> None:
    places = {
        policy: [o.furthest_x for o in outcomes if o.policy == policy and o.stage == "1-1"]
        for policy in BASELINES
    }
    assert np.median(places["scripted"]) > np.median(places["random"]) > 40


def test_one_random_episode_by_hand() -> None:
    """With a lane of its own and the same numbers it ends at the same place."""
    image = rom.find()
    config, case = tiny(actions="simple"), Case(0, "random", 7)
    lanes = EvalLanes(
        config, image, native.load(image), [case], time_limit=3000, stagnation_limit=60
    )
    lane, key = np.arange(1), np.array([case.key], np.uint64)
    steps, counts = 0, Counter[int]()
    try:
        while True:
            action = uniform(key, steps, 7).argmax(-1)
            counts[int(action[0])] += 1
            landing = lanes.step(action, lane)
            steps += 1
            if landing.terminated[0] or landing.truncated[0]:
                break
    finally:
        lanes.close()
    program = native.load(image)
    whole = play_baselines(config, image, program, stages="1-1", delays=DELAYS, stuck_after=60)
    (same,) = [o for o in whole if o.policy == "random" and o.start_delay == 7]
    assert same.steps == steps
    assert len(counts) == 7  # It takes any action.


@pytest.mark.parametrize("name", ["right", "simple", "complex"])
def test_the_script_takes_what_the_set_has(name: str) -> None:
    table = action_table(name)
    frames = range(0, HELD + RELEASED, 4)
    taken = [table.names[scripted_action(table.masks, frame)] for frame in frames]
    assert Counter(taken) == {"RIGHT+A+B": HELD // 4, "RIGHT+B": RELEASED // 4}
    other = action_table("NOOP;A;RIGHT")
    assert other.names[scripted_action(other.masks, 0)] == "RIGHT"
