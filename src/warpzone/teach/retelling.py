"""Lessons that trials found, decided roughly, as the agent sees and judges them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from warpzone.eval.eval_lanes import EvalLanes
from warpzone.teach.lessons import Step, make_lesson
from warpzone.teach.table import Table
from warpzone.teach.tasks import Task


def retell(
    tasks: Sequence[Task], lanes: EvalLanes, table: Table, each_step: Callable[[], None]
) -> int:
    """Plays the actions of these tasks' lessons once more, from their doors; the steps taken. What
    the agent cleared alone is left as it is."""
    told = [
        (task, task.lesson.actions.numpy())
        for task in tasks
        if task.lesson is not None and not task.lesson.alone
    ]
    told.sort(key=lambda one: len(one[1]))
    for first in range(0, len(told), len(table)):
        _retell(told[first : first + len(table)], lanes, table, each_step)
    return sum(len(actions) for _, actions in told)


def _retell(
    told: Sequence[tuple[Task, NDArray[np.int64]]],
    lanes: EvalLanes,
    table: Table,
    each_step: Callable[[], None],
) -> None:
    """At most as many as there are lanes, the shortest first."""
    tasks, actions = zip(*told, strict=True)
    for lane, task in enumerate(tasks):
        lanes.vector.load(lane, task.door.state)
        table.sit(lane, task.door)
    steps: list[list[Step]] = [[] for _ in tasks]
    for number in range(len(actions[-1])):
        each_step()
        playing = np.array([lane for lane, one in enumerate(actions) if number < len(one)])
        chosen = np.array([actions[lane][number] for lane in playing])
        decisions = table.decide(playing)
        likeliest = decisions.logits.argmax(-1).tolist()
        encoded, logits = decisions.encoded.numpy(), decisions.logits.half().numpy()
        values = decisions.values.tolist()
        for row, lane in enumerate(playing.tolist()):
            action = int(chosen[row])
            shown = action != likeliest[row]
            steps[lane].append(Step(encoded[row], action, shown, logits[row], values[row]))
        landing = lanes.step(chosen, playing)
        table.land(playing, landing.frames, torch.from_numpy(chosen))
    for task, taken in zip(tasks, steps, strict=True):
        start, door = task.start, task.door
        task.lesson = make_lesson(
            start.stage, start.start_delay, taken, door.memory, door.previous_action
        )
