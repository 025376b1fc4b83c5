"""Which steps the policy imitates: every forced step of an episode that began before a place of a
way where attempts fail, and no other, in every lane."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tiny_runs import make_agent, make_collector, tiny

from warpzone.collect.collector import Collector
from warpzone.collect.practice import SHOWN, STRIDE, Practice
from warpzone.collect.search import Way
from warpzone.collect.turn import Turn
from warpzone.collect.ways import FIRST_PLACE
from warpzone.env.infos import COLUMN

PRACTISING: dict[str, Any] = {
    "stages": "1-1",
    "rom": "eu",
    "actions": "complex",
    "num_envs": 8,
    "minibatch": 64,
    "groups": 2,
    "rollout_steps": 16,
    "max_steps": 10_000,
    "start_delay": 0,
    "stagnation_limit": 120,
    "archive_share": 1.0,
    "search_steps": 1,
}


def recorded_way() -> Way:
    golden = Path(__file__).parents[2] / "golden" / "powers.json"
    letters = json.loads(golden.read_text())["ways"]["eu big"]
    return Way(0, 3, [int(letter, 12) for letter in letters])


@pytest.fixture
def collector() -> Iterator[Collector]:
    """It practises along a recorded way through 1-1, and mostly runs to the right: episodes end
    soon."""
    config = tiny(**PRACTISING)
    agent = make_agent(config)
    with torch.no_grad():
        agent.heads.policy.bias[3] += 4.0
    made = make_collector(config, agent)
    found = made.guide.ways
    places = found._places(recorded_way())
    assert len(places) > 100
    found.practices[FIRST_PLACE] = Practice(
        recorded_way(), FIRST_PLACE, places, *np.zeros((2, len(places)))
    )
    found._next += len(places)
    yield made
    made.close()


def restarts_of_steps(collector: Collector) -> list[NDArray[np.int32]]:
    """Of every step from now on, in all lanes: where its episode began. Read off the lanes while
    the collector plays."""
    column = COLUMN["restart"]
    at = np.concatenate([group.info[:, column] for group in collector.groups])
    found: list[NDArray[np.int32]] = []
    receive = collector._receive

    def received(turn: Turn, step: int) -> None:
        receive(turn, step)
        if turn.group.lanes.start == 0:
            found.append(at.copy())
        lanes = np.arange(len(at))[turn.group.lanes]
        at[lanes[turn.ended]] = turn.group.info[turn.ended, column]

    collector._receive = received  # type: ignore[method-assign]
    return found


def test_shown_steps_are_those_before_places_whose_beginning_fails(collector: Collector) -> None:
    """By where an episode began and by its age alone. Attempts fail in the first half of the way,
    then in the second; from the door in every other rollout."""
    practice = collector.guide.ways.practices[FIRST_PLACE]
    size = len(practice.places)
    began = restarts_of_steps(collector)
    lengths = [min(SHOWN[i % len(SHOWN)], (i + 1) * STRIDE) for i in range(size)]
    shown, hidden = np.zeros(8, np.int64), np.zeros(8, np.int64)
    for update in range(80):
        fails = np.arange(size) < size // 2
        if update >= 40:
            fails = ~fails
        practice.attempts[:] = 30.0
        practice.clears[:] = np.where(fails, 0.0, 30.0)
        door_fails = update % 2 == 0
        collector.guide.curriculum.clear_rate[0] = 0.0 if door_fails else 0.25
        collector.prepare(update * collector.config.steps_per_update)
        rollout = collector.collect()
        collector.episodes.take()
        for step, lane in np.ndindex(16, 8):
            index = int(began[step][lane]) - FIRST_PLACE
            age = int(rollout.age[step, lane])
            expected = False
            if 0 <= index < size and age < lengths[index]:
                begins = index - lengths[index] // STRIDE
                expected = bool(fails[begins]) if begins >= 0 else door_fails
                hidden[lane] += not expected
            assert bool(rollout.shown[step, lane]) == expected
            assert rollout.forced[step, lane] or not expected
            shown[lane] += expected
        began.clear()
    assert (shown > 0).all()
    assert (hidden > 0).all()
