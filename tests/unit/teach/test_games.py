"""Games: each stage is a task, and begins where the one before has ended."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_runs import make_agent, tiny

from warpzone import _engine, rom
from warpzone.env.infos import COLUMN
from warpzone.eval.cases import Case
from warpzone.eval.eval_lanes import EvalLanes, Landing
from warpzone.eval.weights import Found, find_agent
from warpzone.eval.whole_game import stages_of
from warpzone.rom import native
from warpzone.teach.explorer import Explorer
from warpzone.teach.games import GameExplorer
from warpzone.teach.lessons import Lesson, Step
from warpzone.teach.places import Place
from warpzone.teach.tasks import Attempt, Order, Start, Task

DELAY = 4


class EnoughError(Exception):
    """So many stages are enough."""


@cache
def explored() -> tuple[Found, list[Lesson]]:
    """The first two stages of a game of the agent that comes with the package."""
    found, image = find_agent("all", Path("runs")), rom.find(None)
    looking = GameExplorer(
        found.agent, found.config, image, native.load(image), seed=0, each_step=lambda: check()
    )

    def check() -> None:
        if sum(task.lesson is not None for task in looking._tasks) > 1:
            raise EnoughError

    with pytest.raises(EnoughError):
        looking.explore([Start(0, DELAY)], 4_000)
    lessons = [task.lesson for task in looking._tasks if task.lesson is not None]
    return found, lessons


@torch.no_grad()
def test_the_parts_of_a_game_are_one_game() -> None:
    """Played one after the other by the agent, step by step, from power-on: what it sees and thinks
    is what the lessons have, and it begins each of them anew."""
    found, lessons = explored()
    assert [lesson.stage for lesson in lessons] == [0, 1]
    assert [lesson.memory for lesson in lessons] == [None, None]
    agent, image = found.agent, rom.find(None)
    lanes = EvalLanes(
        found.config, image, native.load(image), [Case(-1, "argmax", DELAY)], end="game_over"
    )
    newest = lanes.first_frames[0].copy()
    try:
        for lesson in lessons:
            frames, state, previous = [newest] * agent.spec.stack, agent.initial_state(1), 0
            for index, action in enumerate(lesson.actions.tolist()):
                obs = torch.from_numpy(np.stack(frames))[None]
                output = agent.act(obs, torch.tensor([previous]), state, torch.tensor([index == 0]))
                torch.testing.assert_close(
                    lesson.logits[index].float(), output.logits[0], atol=0.03, rtol=0.03
                )
                state, previous = output.state, action
                landing = lanes.step(np.array([action]), np.zeros(1, np.int64))
                newest = landing.frames[0].copy()
                frames = [*frames[1:], newest]
            assert stages_of(landing.info)[0] > lesson.stage
    finally:
        lanes.close()


def landed(**values: Any) -> Landing:
    info = np.zeros((1, len(_engine.INFO_FIELDS)), np.int32)
    told = {"world": 3, "stage": 2, "life": 2, **values}
    for name, value in told.items():
        if name in COLUMN:
            info[0, COLUMN[name]] = value
    terminated, truncated = (
        np.array([bool(told.get(name))]) for name in ("terminated", "truncated")
    )
    frames, rewards = np.zeros((1, 2, 2), np.uint8), np.zeros(1, np.float32)
    return Landing(frames, rewards, terminated, truncated, info)


def attempt(alone: bool = True, leads_on: bool = True) -> Attempt:
    task = Task(Start(9, DELAY), Place((0,), b"", (), None, 0, lives=2), leads_on)
    row = np.zeros(2, np.float16)
    steps = [Step(row, 1, False, row, 0.0)]
    return Attempt(Order(task, task.door, alone=alone), (), lives=2, steps=steps)


def new(kind: type[Explorer] = GameExplorer, stages: str = "1-1") -> Any:
    config, image = tiny(stages=stages), rom.find(None)
    return kind(make_agent(config), config, image, None, seed=0)


@pytest.mark.parametrize(
    ("values", "reached"),
    [
        ({}, None),
        ({"stage": 3}, True),
        ({"world": 4, "stage": 1}, True),
        ({"life": 1}, False),
        ({"life": 3}, None),  # One more than before.
        ({"truncated": True}, False),
        ({"terminated": True, "life": 255}, False),
        ({"terminated": True, "game_over": 1}, False),
        ({"terminated": True}, True),  # The princess.
    ],
)
def test_the_goal_is_the_next_stage(values: dict[str, Any], reached: bool | None) -> None:
    assert new()._judge(attempt(), landed(**values), 0) is reached


def test_a_life_won_in_a_stage_may_be_lost_there() -> None:
    """Lives are counted step by step."""
    richer = attempt()
    richer.lives = 3
    assert new()._judge(richer, landed(life=2), 0) is False


#: What the agent has seen there, oldest frame first, and what it remembers.
SEEN = tuple(np.full((2, 2), frame, np.uint8) for frame in range(4))
MEMORY = (torch.ones(3),)
HERE = Place((7,), b"x", SEEN, MEMORY, 3, lives=1)


@pytest.mark.parametrize(
    ("trying", "reached", "found", "place", "tasks", "won"),
    [
        (attempt(), True, 1, HERE, [(11, True)], 0),
        (attempt(alone=False), True, 1, HERE, [(11, True)], 0),
        (attempt(alone=False), True, 2, HERE, [], 0),  # It goes on once.
        (attempt(), True, 1, None, [], 1),
        (attempt(), False, 0, HERE, [(9, False)], 0),  # Again, with a life less.
        (attempt(alone=False), False, 0, HERE, [], 0),
        (attempt(), False, 0, None, [], 0),  # It was the last one.
        (attempt(leads_on=False), True, 1, HERE, [], 0),
        (attempt(leads_on=False), False, 0, HERE, [], 0),
    ],
)
def test_what_comes_next(
    trying: Attempt,
    reached: bool,
    found: int,
    place: Place | None,
    tasks: list[tuple[int, bool]],
    won: int,
) -> None:
    looking = new()
    trying.order.task.found = found
    looking._go_on(trying, reached, place, landed(stage=4).info[0])
    assert [(task.start.stage, task.leads_on) for task in looking._tasks] == tasks
    assert all(task.start.start_delay == DELAY for task in looking._tasks)
    for door in (task.door for task in looking._tasks):
        assert (door.key, door.state, door.lives) == (HERE.key, HERE.state, HERE.lives)
    assert list(looking._turns.waiting) == looking._tasks
    assert looking.won == won
    assert all(task.start.stage in looking._known for task in looking._tasks)


@pytest.mark.parametrize("reached", [True, False])
def test_the_next_task_begins_anew(reached: bool) -> None:
    """With the frame that the agent sees now and nothing else, as an episode does."""
    looking, trying = new(), attempt()
    trying.order.task.found = int(reached)
    looking._go_on(trying, reached, HERE, landed(stage=4).info[0])
    (task,) = looking._tasks
    assert (task.door.memory, task.door.previous_action) == (None, 0)
    assert [frame.tolist() for frame in task.door.frames] == [SEEN[-1].tolist()] * len(SEEN)
    # Who was trained on whole games goes on.
    looking = new(stages="game")
    looking._go_on(trying, reached, HERE, landed(stage=4).info[0])
    assert [task.door for task in looking._tasks] == [HERE]


def test_stages_that_are_reached_later_are_left_like_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looking = new()
    later = Start(9, DELAY)

    def play(*_: Any) -> None:
        if len(looking._tasks) == 1:
            looking._add(later, HERE)

    monkeypatch.setattr(looking, "_play", play)
    found = looking.explore([Start(0, DELAY)], 10)
    assert found.left == [Start(0, DELAY), later]


def test_behind_a_flag_of_a_single_stage_comes_nothing() -> None:
    looking = new(Explorer)
    looking._go_on(attempt(), True, HERE, landed().info[0])
    assert not looking._tasks
