"""Lessons are episodes of the game as the agent would have seen and judged them."""

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from explorers import STAGE, STARTS, clear, config_of, new, task
from tiny_runs import make_agent

from warpzone import rom
from warpzone.env.infos import COLUMN
from warpzone.eval.cases import Case
from warpzone.eval.eval_lanes import EvalLanes
from warpzone.eval.evaluate import evaluate
from warpzone.rom import native
from warpzone.teach import explorer
from warpzone.teach.explorer import DEAR, MOST_FOUND, MOST_FOUND_DEAR, STANDING, Explorer
from warpzone.teach.lessons import Lesson, Step, cost, make_lesson
from warpzone.teach.places import Known, Path, Place
from warpzone.teach.table import Decisions
from warpzone.teach.tasks import LESSONS_MORE, PATIENCE, Attempt, Findings, Order, Start, Task

MEMORIES = ("gru", "gtrxl", "none")


@cache
def explored(memory: str = "gru", seed: int = 4) -> Findings:
    """What such an agent cannot do, a search finds."""
    return new(memory, seed).explore(STARTS, 600, 3_000_000)


def played(lesson: Lesson, config: Any) -> tuple[list[torch.Tensor], bool]:
    """Plays a lesson's actions from the door: what is seen before each, and whether the flag is
    reached with the last of them."""
    image = rom.find(None)
    case = Case(lesson.stage, "argmax", lesson.start_delay)
    lanes = EvalLanes(config, image, native.load(image), [case], stagnation_limit=0)
    seen, frames = [], [lanes.first_frames[0].copy()] * config.frame_stack
    lane = np.zeros(1, np.int64)
    try:
        for index, action in enumerate(lesson.actions.tolist()):
            seen.append(torch.from_numpy(np.stack(frames)))
            landing = lanes.step(np.array([action]), lane)
            frames = [*frames[1:], landing.frames[0].copy()]
            if landing.terminated[0] or landing.truncated[0]:
                cleared = bool(landing.info[0, COLUMN["flag_get"]])
                return seen, cleared and index + 1 == lesson.length
    finally:
        lanes.close()
    return seen, False


def compare(lesson: Lesson, config: Any, tolerance: float = 4e-3) -> bool:
    """Whether the flag is reached; what the lesson holds is what the network says about the
    pictures of that episode, one step after the other from its start on."""
    agent = make_agent(config)
    seen, cleared = played(lesson, config)
    state, previous = agent.initial_state(1), 0
    for step, obs in enumerate(seen):
        with torch.no_grad():
            encoded = agent.encode(obs[None])
            output = agent.act(
                obs[None], torch.tensor([previous]), state, torch.tensor([step == 0])
            )
        state, previous = output.state, int(lesson.actions[step])
        torch.testing.assert_close(
            lesson.encoded[step].float(), encoded[0], atol=tolerance, rtol=tolerance
        )
        torch.testing.assert_close(
            lesson.logits[step].float(), output.logits[0], atol=1e-2, rtol=1e-2
        )
        torch.testing.assert_close(
            lesson.values[step].float(), output.value[0], atol=1e-2, rtol=1e-2
        )
    return cleared


@pytest.mark.parametrize("memory", MEMORIES)
def test_lessons_lead_from_their_door_to_the_flag(memory: str) -> None:
    found = explored(memory)
    delays = {lesson.start_delay for lesson in found.lessons}
    assert delays
    assert delays.isdisjoint(start.start_delay for start in found.left)
    assert len(delays) + len(found.left) == len(STARTS)
    assert found.alone == [(start, False) for start in STARTS]
    assert found.searched_steps > 0
    for lesson in found.lessons:
        assert compare(lesson, config_of(memory))


@pytest.mark.parametrize("rough", [True, False])
def test_what_rough_trials_find_is_told_as_the_agent_sees_it(
    monkeypatch: pytest.MonkeyPatch, rough: bool
) -> None:
    """Trials in bfloat16 lead to lessons with what single precision sees and thinks."""
    monkeypatch.setattr(explorer, "has_bfloat16", lambda: rough)
    found = new(seed=6).explore(STARTS[:1], 600, 3_000_000)
    (lesson,) = found.lessons
    assert not lesson.alone
    assert compare(lesson, config_of(), tolerance=1e-3)


@pytest.mark.parametrize("memory", MEMORIES)
def test_trials_go_on_where_their_place_was(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames, memory and the action before are those of the path, whatever lane is loaded."""
    monkeypatch.setattr(explorer, "has_bfloat16", lambda: False)
    looking, ended = new(memory), list[Lesson]()
    judge = looking._failed

    def failed(attempt: Attempt) -> None:
        judge(attempt)
        place, start = attempt.order.place, attempt.order.task.start
        if place.before is not None and len(attempt.steps) > 5:
            ended.append(make_lesson(STAGE, start.start_delay, place.path(attempt.steps)))

    looking._failed = failed  # type: ignore[method-assign]
    looking.explore([Start(STAGE, 9), Start(STAGE, 40)], 600)
    assert len(ended) > 2
    for lesson in ended[:5]:
        compare(lesson, config_of(memory))


def test_the_seed_decides() -> None:
    first, again = explored(), explored.__wrapped__()
    assert first.steps == again.steps
    for one, other in zip(first.lessons, again.lessons, strict=True):
        assert one.start_delay == other.start_delay
        assert torch.equal(one.actions, other.actions)
        assert torch.equal(one.shown, other.shown)


@pytest.mark.parametrize("drawn", [False, True])
def test_what_is_evaluated_is_what_the_agent_plays_alone(drawn: bool) -> None:
    """With its likeliest actions, to the step; drawn ones lead elsewhere, and are no lesson."""
    config, image = config_of(), rom.find(None)
    (outcome,) = evaluate(
        make_agent(config),
        config,
        image,
        native.load(image),
        stages="1-1",
        delays=[9],
        policies=("argmax",),
    )
    looking, alone = new(), list[Attempt]()

    def note(attempt: Attempt) -> None:
        alone.append(attempt)

    looking._failed = note  # type: ignore[method-assign]
    looking.explore([Start(STAGE, 9, drawn)], 1)
    (attempt,) = alone
    assert attempt.order.alone
    assert (len(attempt.steps) == outcome.steps) != drawn
    assert not any(step.shown for step in attempt.steps)
    likeliest = [step.action == int(step.logits.argmax()) for step in attempt.steps]
    assert all(likeliest) != drawn


def choose(order: Order, count: int, logits: list[float]) -> list[tuple[int, bool]]:
    """Actions of an attempt, and whether they are shown."""
    looking, attempt = new(), Attempt(order, ())
    row = torch.tensor([logits])
    for _ in range(count):
        looking._choose(Decisions(row, row, row[:, 0]), [attempt])
    return [(step.action, step.shown) for step in attempt.steps]


def test_what_is_shown_is_what_the_agent_would_not_have_done() -> None:
    one = task()
    assert choose(Order(one, one.door, [2, 1]), 4, [0.0, 5.0, 0.0]) == [
        (2, True),
        (1, False),  # It would have, too.
        (1, False),
        (1, False),
    ]


def test_drawn_actions_have_their_chances() -> None:
    one = task()
    chosen = choose(Order(one, one.door, drawn=3_000), 3_100, [0.0, 1.0, float("-inf")])
    chance = 1.0 / (1.0 + np.exp(1.0))
    drawn = chosen[:3_000]
    assert sum(action == 0 for action, _ in drawn) / 3_000 == pytest.approx(chance, abs=0.03)
    assert all(shown == (action == 0) for action, shown in drawn)
    assert set(chosen[3_000:]) == {(1, False)}
    hot = choose(Order(one, one.door, drawn=3_000, temperature=2.0), 3_000, [0.0, 1.0, -1e9])
    chance = 1.0 / (1.0 + np.exp(0.5))
    assert sum(action == 0 for action, _ in hot) / 3_000 == pytest.approx(chance, abs=0.03)


def test_the_lesson_is_the_one_that_is_nearest_to_the_agent() -> None:
    known = {STAGE: Known()}
    looking, one = new(known=known), task()
    one.steps = 70
    clear(looking, one, 5)
    first = one.lesson
    assert first is not None
    assert (one.found, one.steps_to_first) == (1, 70)
    one.steps = 90
    clear(looking, one, 3)
    second = one.lesson
    assert second is not None
    assert cost(second) < cost(first)
    assert one.steps_to_first == 70
    assert not one.over
    clear(looking, one, 4)
    assert one.lesson is second
    assert one.found == MOST_FOUND
    assert one.over
    # What is worse than what is known is not handed on.
    assert sorted(map(len, known[STAGE].ways(0))) == [4, 6]


def test_a_cheaper_lesson_is_looked_for_longer_where_it_is_dear() -> None:
    looking, one = new(known={STAGE: Known()}), task()
    clear(looking, one, 500)
    assert one.cost > DEAR
    for _ in range(MOST_FOUND):
        clear(looking, one, 501)
    assert not one.over
    for _ in range(MOST_FOUND_DEAR - MOST_FOUND - 1):
        clear(looking, one, 501)
    assert one.over


def test_where_the_agent_succeeds_alone_nothing_is_tried() -> None:
    known = {STAGE: Known()}
    looking, one = new(known=known), task()
    clear(looking, one, 0, alone=True)
    assert one.over
    assert one.cleared_alone
    assert one.lesson is not None
    assert one.lesson.alone
    # Others may go the same way.
    assert list(map(len, known[STAGE].ways(0))) == [1]
    assert len(known[STAGE]) == 0


def test_a_task_is_over_some_steps_after_the_first_flag() -> None:
    one = task()
    assert one.most_steps(6_000, 1_500) == 6_000
    one.lesson, one.steps_to_first = of_length(10), 1_000
    assert one.most_steps(6_000, 1_500) == 2_500
    one.steps_to_first = 2_000
    assert one.most_steps(6_000, 1_500) == 4_000
    one.steps_to_first = 5_500
    assert one.most_steps(6_000, 1_500) == 6_000
    one.pioneer = True
    assert one.most_steps(6_000, 1_500) == 11_000
    # An episode of a long stage takes as much as five of a short one.
    one.steps_to_first, one.lesson = 1_000, of_length(500)
    assert one.most_steps(6_000, 1_500) == 1_000 + LESSONS_MORE * 500
    one.lesson = None
    assert one.most_steps(6_000, 1_500) == 6_000 * PATIENCE


def of_length(steps: int) -> Lesson:
    """A lesson of so many steps."""
    row = np.zeros(2, np.float16)
    return make_lesson(STAGE, 0, [Step(row, 1, False, row, 0.0)] * steps)


def failed(looking: Explorer, one: Task, stale: int) -> Path:
    """An attempt of 200 steps, with a place after every second one, that came to nothing new in
    its last ones; its path."""
    attempt = Attempt(Order(one, one.door, alone=True), ())
    row = torch.tensor([[0.0, 1.0, 0.0]])
    for number in range(1, 201):
        looking._choose(Decisions(row, row, row[:, 0]), [attempt])
        if number % 2 == 0:
            place = Place((number,), b"", (), None, 0)
            place.come_from(one.door, attempt.steps, 0)
            attempt.places.append(place)
    attempt.stale = stale
    looking._failed(attempt)
    return one.paths.kept[-1]


def test_nothing_is_tried_from_where_the_agent_stands_still() -> None:
    path = failed(new(), task(), STANDING)
    assert (path.end, path.places[-1].depth) == (200, 200)
    path = failed(new(), task(), 150)
    assert (path.end, path.places[-1].depth) == (50, 50)
    # One that never came anywhere is tried from its door.
    path = failed(new(), task(), 200)
    assert (path.end, [place.depth for place in path.places]) == (0, [0])


def test_what_is_known_is_tried_elsewhere() -> None:
    """What led to the flag from one start delay is kept for the next exploration."""
    known: dict[int, Known] = {}
    found = new(known=known).explore(STARTS[:1], 2_000, 3_000_000)
    assert any(not lesson.alone for lesson in found.lessons)
    assert known[STAGE].ways(0)
    again = new(seed=5, known=known).explore([Start(STAGE, 3)], 40_000)
    assert len(again.lessons) == 1


def test_a_stopped_exploration_leaves_no_threads() -> None:
    import threading

    def stop() -> None:
        raise KeyboardInterrupt

    looking, before = new(each_step=stop), threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        looking.explore(STARTS, 100)
    assert threading.active_count() <= before


@pytest.mark.parametrize(
    ("power", "begun"), [("small", {0}), ("big", {1}), ("fire", {2}), ("any", {0, 1, 2})]
)
def test_starts_are_those_of_the_mario_that_is_asked_for(power: str, begun: set[int]) -> None:
    """Places hold what their lanes began as."""
    looking = new(start_power=power)
    starts = [Start(STAGE, delay) for delay in range(12)]
    looking._begin(starts)
    lanes = looking._lanes([starts[0]] * len(starts))
    try:
        for lane, one in enumerate(looking._tasks):
            lanes.vector.load(lane, one.door.state)
        idle = np.zeros(len(starts), np.int64)
        landing = lanes.step(idle, np.arange(len(starts)))
        assert set(landing.info[:, COLUMN["power"]].tolist()) == begun
    finally:
        lanes.close()
