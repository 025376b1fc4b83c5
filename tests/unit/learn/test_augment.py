"""Augmentation: what moves moves as a whole, and nothing does by default."""

import torch
from tiny_runs import CPU, tiny

from warpzone.learn.augment import Augmentation


def pictures(*shape: int) -> torch.Tensor:
    """Random ones."""
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)


def test_off_by_default() -> None:
    obs = pictures(3, 4, 10, 10)
    augmentation = Augmentation(tiny(), CPU)
    assert augmentation.steps(obs) is obs
    assert augmentation.sequences(obs[None]).shape == (1, *obs.shape)


def test_a_stack_is_shifted_as_one() -> None:
    obs = pictures(64, 1, 12, 12).expand(64, 4, 12, 12).contiguous()
    shifted = Augmentation(tiny(augment_shift=2), CPU).steps(obs)
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
    bright = Augmentation(tiny(augment_brightness=0.5), CPU).steps(obs)
    assert bright.dtype == torch.uint8
    values = bright[:, 0, 0, 0]
    assert (bright == values[:, None, None, None]).all()
    assert 50 <= int(values.min()) < 70
    assert 130 < int(values.max()) <= 150


def test_a_lane_is_shifted_as_one_and_colours_keep_apart() -> None:
    picture = torch.arange(3, dtype=torch.uint8).repeat_interleave(8) * 100
    obs = picture[None, None, None, :, None].expand(5, 3, 4, 24, 6).contiguous()
    config = tiny(augment_shift=3, color=True)
    shifted = Augmentation(config, CPU).sequences(obs)
    assert torch.equal(shifted, obs)  # each colour is one plain surface
    moving = pictures(1, 3, 1, 36, 12).expand(5, 3, 4, 36, 12).contiguous()
    moved = Augmentation(config, CPU).sequences(moving)
    assert (moved == moved[:1]).all()


def test_random_numbers_can_be_saved() -> None:
    obs = pictures(8, 4, 12, 12)
    first, second = (Augmentation(tiny(augment_shift=3), CPU) for _ in range(2))
    first.steps(obs)
    second.load_state_dict(first.state_dict())
    assert torch.equal(first.steps(obs), second.steps(obs))
