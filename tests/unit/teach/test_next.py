"""What an exploration does next: whose trials, and when a search."""

from typing import Any

import pytest
from explorers import STAGE, STARTS, clear, new, task

from warpzone.collect.search import Way
from warpzone.teach import searching, turns
from warpzone.teach.places import Known, Path
from warpzone.teach.tasks import GENTLE_TRIALS, PATIENCE, Attempt, Order, Start, Task
from warpzone.teach.turns import PIONEERS


def test_pioneers_go_first_where_nothing_is_known() -> None:
    known = {STAGE: Known(), STAGE + 1: Known()}
    looking = new(known=known)
    tasks = [task(delay) for delay in range(PIONEERS + 2)]
    other = task(0)
    other.start = other.start._replace(stage=STAGE + 1)
    for one in (*tasks, other):
        one.begun = True
        one.paths.add(Path([one.door], 1, 0))
    looking._turns.waiting.extend((*tasks, other))

    def tried(count: int) -> set[Task]:
        orders = [looking._turns.next(100) for _ in range(count)]
        return {order.task for order in orders if order is not None}

    assert tried(20) == {*tasks[:PIONEERS], other}
    assert [one.pioneer for one in tasks] == [True] * PIONEERS + [False] * 2
    # They have more steps than others.
    for one in tasks[:PIONEERS]:
        one.steps = 100 * PATIENCE - 1
    assert tried(20) == {*tasks[:PIONEERS], other}
    # What one of them finds, others may try, and those that are late end.
    tasks[0].found, tasks[0].steps_to_first = 1, 100 * PATIENCE - 2
    known[STAGE].add_way(0, [1, 2])
    assert tried(20) == {tasks[0], *tasks[PIONEERS:], other}
    assert [one.pioneer for one in tasks] == [True] + [False] * (PIONEERS + 1)
    assert not any(one.paths.patient for one in tasks[1:])
    assert all(one.closed for one in tasks[1:PIONEERS])


def test_pioneers_where_little_is_known() -> None:
    """Where half of the starts are left without a lesson, a few of those get many more steps."""
    looking = new(known={STAGE + stage: Known() for stage in range(3)})
    stages = [0] * 8 + [1] * 3 + [2] * 2
    tasks = [task(delay) for delay in range(len(stages))]
    for one, stage in zip(tasks, stages, strict=True):
        one.start = one.start._replace(stage=STAGE + stage)
        one.begun, one.steps = True, 100
    # Of the first stage five of eight are left, of the second one of three; of the last nothing is
    # known.
    for index in (0, 1, 2, 8, 9):
        clear(looking, tasks[index], 1)
    looking._turns.send_pioneers(tasks)
    sent = tasks[3 : 3 + PIONEERS]
    assert list(looking._turns.waiting) == sent
    assert [one for one in tasks if one.pioneer] == sent
    for one in sent:
        assert (one.begun, one.steps) == (False, 0)
        assert one.paths.patient
        one.begun = True
        one.paths.add(Path([one.door], 1, 0))
        one.steps = 100 * PATIENCE - 1
    # What is known is from others, and ends nothing.
    assert {order.task for _ in range(20) if (order := looking._turns.next(100))} == set(sent)
    # What is left after them gets the steps of others.
    looking._turns.waiting.clear()
    looking._turns.begin_again(tasks)
    assert list(looking._turns.waiting) == [*tasks[3:8], tasks[10]]
    assert not any(one.pioneer for one in tasks)


def test_those_that_waited_for_nothing_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """And begin again when a search has found a way."""
    monkeypatch.setattr(turns, "PIONEERS", 1)
    looking = new(patience=1)
    found = looking.explore(STARTS[::2], 1_000)
    # What is under way when they are spent goes on, in all lanes.
    assert all(one.steps < 1_000 * PATIENCE / 2 for one in looking._tasks)
    assert [(start, cleared) for start, cleared in found.alone] == [
        (start, False) for start in STARTS[::2]
    ]
    assert found.left == list(STARTS[::2])
    assert all(one.closed and not one.paths.kept for one in looking._tasks)
    assert [one.pioneer for one in looking._tasks].count(True) == 1


def test_so_many_tasks_are_worked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "ACTIVE", 2)
    looking = new(known={STAGE: Known()})
    looking._known[STAGE].add_way(0, [1])
    tasks = [task(delay) for delay in range(4)]
    looking._turns.waiting.extend(tasks)
    # First the agent plays all of them alone.
    orders = [looking._turns.next(100) for _ in range(5)]
    assert [order and order.task for order in orders] == [*tasks, None]
    assert all(order is None or order.alone for order in orders)
    for one in tasks:
        one.paths.add(Path([one.door], 1, 0))

    def tried() -> set[Task]:
        orders = [looking._turns.next(100) for _ in range(20)]
        assert not any(order is None or order.alone for order in orders)
        return {order.task for order in orders if order is not None}

    assert tried() == set(tasks[:2])
    tasks[0].over = True
    assert tried() == set(tasks[1:3])
    # Nothing more begins of what has taken too long; what is under way goes on.
    tasks[1].steps = 100
    assert tried() == set(tasks[2:])
    assert not tasks[1].over
    looking._failed(Attempt(Order(tasks[1], tasks[1].door, alone=True), ()))
    assert not tasks[1].paths.kept
    assert tasks[1].cleared_alone is False


def test_a_search_is_for_stages_of_which_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    looking = new(known={STAGE + stage: Known() for stage in range(4)})
    tasks = [task(5), task(6), task(7), task(8), task(9), task(10), task(11), task(12)]
    for one, stage in zip(tasks, (0, 0, 1, 1, 2, 3, 3, 3), strict=True):
        one.start = one.start._replace(stage=STAGE + stage)
        one.begun, one.steps, one.ways_tried = True, 100, 4
    for index in (2, 7):
        clear(looking, tasks[index], 1)
    asked: list[tuple[int, Any, int]] = []

    def find(options: Any, *_: Any, **others: Any) -> tuple[Way | None, int]:
        asked.append((others["stage"], options.start_delay, others["most_steps"]))
        return (Way(STAGE, 0, [1, 2, 3]) if others["stage"] == STAGE else None), 77

    monkeypatch.setattr(searching, "find_way", find)
    assert looking._search(tasks, 1_000) == 2 * 77
    # Where one start has a lesson, there is no search.
    delays = {STAGE: (5, 5), STAGE + 2: (9, 9)}
    assert asked == [(stage, delay, 1_000) for stage, delay in delays.items()]
    # Those for which there is something new to try have their steps again.
    looking._turns.begin_again(tasks)
    assert list(looking._turns.waiting) == [*tasks[:2], tasks[3], *tasks[5:7]]
    assert not any(one.begun or one.steps for one in looking._turns.waiting)
    assert tasks[4].begun
    tasks[0].paths.add(Path([tasks[0].door], 1, 0))
    order = looking._turns.trials.draw(tasks[0])
    assert (order.place, order.forced) == (tasks[0].door, [1, 2, 3])
    assert tasks[0].trials == GENTLE_TRIALS + 1


def test_nothing_is_searched_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials end when their steps are used up."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(searching, "find_way", refuse)
    found = new().explore([Start(STAGE, 4)], 800)
    assert found.searched_steps == 0
    assert 800 <= found.steps < 800 * PATIENCE + 20_000


def test_where_only_clears_are_kept_nothing_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(searching, "find_way", refuse)
    monkeypatch.setattr("warpzone.teach.trials.Trials.draw", refuse)
    start = Start(STAGE, 4, tried=False)
    looking = new()
    found = looking.explore([start], 2_000, 1_000)
    assert found.alone == [(start, False)]
    assert (found.left, found.lessons, found.searched_steps) == ([], [], 0)
    # What it does clear is kept.
    looking = new(known={STAGE: Known()})
    one = task()
    one.start = one.start._replace(tried=False)
    clear(looking, one, 0, alone=True)
    assert one.lesson is not None
    assert one.lesson.alone


def test_what_the_agent_does_alone_is_no_trial() -> None:
    """An agent that stands about for longer than trials may take is tried from all the same."""
    looking = new()
    found = looking.explore([Start(STAGE, 4)], 20)
    (one,) = looking._tasks
    assert one.trials > 0
    assert one.pioneer
    assert 20 * PATIENCE <= one.steps < found.steps
