"""Stacks gathered from frames stored once against stacks of the frames a lane really saw."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_replay import ToyLanes
from rollouts import check

from warpzone.data.stacking import stack_frames, stack_sequence, wide


@settings(max_examples=25, deadline=None)
@given(
    lanes=st.integers(1, 4),
    stack=st.integers(1, 5),
    length=st.integers(1, 9),
    seed=st.integers(0, 2**32),
    end=st.sampled_from([0.0, 0.2, 0.7, 1.0]),
)
def test_stacks_are_what_lanes_saw(
    lanes: int, stack: int, length: int, seed: int, end: float
) -> None:
    toy = ToyLanes(lanes, stack, actions=3, seed=seed, end=end)
    history = None
    for _ in range(3):
        rollout, seen = toy.rollout(length)
        check(rollout)
        assert (rollout.length, rollout.lanes, rollout.stack) == (length, lanes, stack)
        expected = torch.from_numpy(seen)
        assert torch.equal(stack_sequence(rollout.frames, rollout.age), expected)
        if history is not None:
            assert torch.equal(rollout.frames[:stack], history)
        history = rollout.frames[-stack:]

        generator = torch.Generator().manual_seed(seed)
        steps = torch.randint(0, length + 1, (7,), generator=generator)
        picks = torch.randint(0, lanes, (7,), generator=generator)
        stacked = stack_frames(rollout.frames, rollout.age, steps, picks)
        assert torch.equal(stacked, expected[steps, picks])


def test_selecting_lanes_selects_them_everywhere() -> None:
    state = (torch.arange(4.0)[:, None], torch.arange(4))
    rollout, seen = ToyLanes(4, 3, actions=3, seed=1).rollout(5, state)
    lanes = torch.tensor([2, 0])
    few = rollout.select(lanes)
    check(few)
    assert torch.equal(stack_sequence(few.frames, few.age), torch.from_numpy(seen)[:, lanes])
    assert torch.equal(few.last_value, rollout.last_value[lanes])
    assert [part.tolist() for part in few.state] == [[[2.0], [0.0]], [2, 0]]
    assert torch.equal(few.starts, few.age == 0)
    assert torch.equal(few.to("cpu").logits, few.logits)


def test_a_rollout_that_does_not_fit_is_refused() -> None:
    rollout, _ = ToyLanes(2, 3, actions=3, seed=1).rollout(5)
    with pytest.raises(ValueError, match=r"age must have the shape \(6, 2\), not \(5, 2\)"):
        check(rollout._replace(age=rollout.age[1:]))
    with pytest.raises(ValueError, match="needs at least 6 frames, and has 5"):
        check(rollout._replace(frames=rollout.frames[:5]))
    with pytest.raises(ValueError, match=r"forced must be torch\.bool"):
        check(rollout._replace(forced=rollout.forced.long()))
    with pytest.raises(ValueError, match="2 lanes has a memory state of 3 lanes"):
        check(rollout._replace(state=(torch.zeros(3, 1),)))


@pytest.mark.parametrize("size", [(84, 84), (6, 6), (5, 2), (5, 3)])
def test_wide_pictures_are_the_same_memory(size: tuple[int, int]) -> None:
    pictures = torch.randint(0, 256, (3, 2, *size), dtype=torch.uint8)
    numbers = wide(pictures)
    assert numbers.shape[:2] == (3, 2)
    assert numbers.shape[2] * numbers.element_size() == size[0] * size[1]
    assert numbers.data_ptr() == pictures.data_ptr()
    numbers[1] = numbers[0].clone()
    assert torch.equal(pictures[1], pictures[0])
