"""A lesson has what its steps have, and a price: how far the agent is from it."""

import numpy as np
import pytest
import torch

from warpzone.teach.lessons import MARGIN, STEP_COST, Step, cost, make_lesson, missing


def steps(actions: str, shown: str) -> list[Step]:
    return [
        Step(
            encoded=np.full(4, 10.0 + int(action), np.float16),
            action=int(action),
            shown=mark == "!",
            logits=np.full(3, float(action), np.float16),
            value=20.0 + int(action),
        )
        for action, mark in zip(actions, shown, strict=True)
    ]


def test_a_lesson_has_what_its_steps_have() -> None:
    lesson = make_lesson(7, 30, steps("2012", "..!."))
    assert (lesson.stage, lesson.start_delay, lesson.length) == (7, 30, 4)
    assert lesson.actions.tolist() == [2, 0, 1, 2]
    assert lesson.shown.tolist() == [False, False, True, False]
    assert lesson.encoded[:, 0].tolist() == [12, 10, 11, 12]
    assert lesson.logits.shape == (4, 3)
    assert lesson.values.tolist() == [22, 20, 21, 22]
    assert not lesson.alone
    assert make_lesson(7, 30, steps("20", "..")).alone


def test_what_an_action_lacks_of_leading() -> None:
    logits = torch.tensor([[1.0, 3.0, 2.0], [1.0, 3.0, 2.5], [0.0, 0.0, 0.0]])
    lacking = missing(logits, torch.tensor([1, 2, 0]))
    assert lacking.tolist() == pytest.approx([0.0, MARGIN + 0.5, MARGIN])


def test_the_price_of_a_lesson_is_that_of_what_is_shown() -> None:
    lesson = make_lesson(0, 0, steps("0111", ".!!."))
    logits = lesson.logits.clone()
    logits[1] = torch.tensor([2.0, 0.0, 0.0])
    logits[2] = torch.tensor([0.0, 9.0, 0.0])
    logits[3] = torch.tensor([9.0, 0.0, 0.0])
    lacking = 2.0 + MARGIN
    assert cost(lesson._replace(logits=logits)) == pytest.approx(lacking + 4 * STEP_COST, rel=1e-3)
    assert cost(make_lesson(0, 0, steps("01", ".."))) == 2 * STEP_COST
