"""Augmentation: what moves moves as a whole, and nothing does by default."""

import pytest
import torch
from reference_replay import ToyLanes
from tiny_runs import CPU, make_agent, tiny

from warpzone.learn.augment import Augmentation
from warpzone.learn.learner import Learner


def pictures(*shape: int) -> torch.Tensor:
    """Random ones."""
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)


def steps(augmentation: Augmentation, obs: torch.Tensor) -> torch.Tensor:
    """Each changed on its own."""
    return augmentation.steps(obs, augmentation.draw(len(obs)))


def lanes(augmentation: Augmentation, obs: torch.Tensor) -> torch.Tensor:
    """Each lane changed on its own."""
    return augmentation.sequences(obs, augmentation.draw(obs.shape[1]))


def test_off_by_default() -> None:
    obs = pictures(3, 4, 10, 10)
    augmentation = Augmentation(tiny(), CPU)
    assert steps(augmentation, obs) is obs
    assert lanes(augmentation, obs[None]).shape == (1, *obs.shape)


def test_a_stack_is_shifted_as_one() -> None:
    obs = pictures(64, 1, 12, 12).expand(64, 4, 12, 12).contiguous()
    shifted = steps(Augmentation(tiny(augment_shift=2), CPU), obs)
    assert (shifted == shifted[:, :1]).all()
    moves = set()
    for before, after in zip(obs[:, 0], shifted[:, 0], strict=True):
        found = [
            (dy, dx)
            for dy in range(-2, 3)
            for dx in range(-2, 3)
            if torch.equal(before[2 + dy : 10 + dy, 2 + dx : 10 + dx], after[2:10, 2:10])
        ]
        assert len(found) == 1
        moves.add(found[0])
    assert len(moves) > 15


def test_brightness_keeps_to_its_range() -> None:
    obs = torch.full((200, 2, 4, 4), 100, dtype=torch.uint8)
    bright = steps(Augmentation(tiny(augment_brightness=0.5), CPU), obs)
    assert bright.dtype == torch.uint8
    values = bright[:, 0, 0, 0]
    assert (bright == values[:, None, None, None]).all()
    assert 50 <= int(values.min()) < 70
    assert 130 < int(values.max()) <= 150


def test_a_lane_is_shifted_as_one_and_colours_keep_apart() -> None:
    picture = torch.arange(3, dtype=torch.uint8).repeat_interleave(8) * 100
    obs = picture[None, None, None, :, None].expand(5, 3, 4, 24, 6).contiguous()
    config = tiny(augment_shift=3, color=True)
    shifted = lanes(Augmentation(config, CPU), obs)
    assert torch.equal(shifted, obs)  # each colour is one plain surface
    moving = pictures(1, 3, 1, 36, 12).expand(5, 3, 4, 36, 12).contiguous()
    moved = lanes(Augmentation(config, CPU), moving)
    assert (moved == moved[:1]).all()


def test_random_numbers_can_be_saved() -> None:
    obs = pictures(8, 4, 12, 12)
    first, second = (Augmentation(tiny(augment_shift=3), CPU) for _ in range(2))
    steps(first, obs)
    second.load_state_dict(first.state_dict())
    assert torch.equal(steps(first, obs), steps(second, obs))


def test_numbers_drawn_ahead_are_those_drawn_in_place() -> None:
    """As on CUDA, where another thread uses the device's generator: none but its own is touched,
    a step that is recorded repeatedly sees the same numbers, and the next one sees others."""
    config = tiny(augment_shift=3, augment_brightness=0.5)
    place, ahead = Augmentation(config, CPU), Augmentation(config, CPU, ahead=True)
    everyone = torch.get_rng_state()
    for counts in ((6, 2), (5, 1), (1,)):
        ahead.prepare(counts)
        expected = [place.draw(count) for count in counts]
        for _ in range(3):
            ahead.rewind()
            for count, wanted in zip(counts, expected, strict=True):
                assert repr(ahead.draw(count)) == repr(wanted)
    assert torch.equal(torch.get_rng_state(), everyone)
    assert torch.equal(ahead.state_dict()["random"], place.state_dict()["random"])
    with pytest.raises(RuntimeError, match="more numbers are asked for"):
        for _ in range(9):
            ahead.draw(6)


def test_a_learner_with_numbers_drawn_ahead_learns_the_same() -> None:
    weights = []
    for ahead in (False, True):
        config = tiny(augment_shift=2, algo="vtrace", per=True, per_memory_gb=0.001, per_segments=3)
        config = config.replace(grad_accum=2, minibatch=8)
        agent = make_agent(config)
        learner = Learner(config, agent, CPU)
        learner.network.augmentation = Augmentation(config, CPU, ahead=ahead)
        toy = ToyLanes(4, config.frame_stack, agent.spec.actions, seed=0, picture=config.picture)
        for _ in range(2):
            learner.update(toy.rollout(config.rollout_steps)[0], 0.0)
        weights.append([part.tolist() for part in agent.parameters()])
    assert weights[0] == weights[1]
