"""Augments observations for learning, on the device; acting and evaluation never use it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from warpzone.collect.streams import generator
from warpzone.config import TrainConfig


class Change(NamedTuple):
    """Changes of N observations or lanes, [N] each; None for no change."""

    #: Pixels, down and to the right.
    shifts: tuple[Tensor, Tensor] | None
    #: What pixels are multiplied by.
    factor: Tensor | None


class Augmentation:
    """Shifts and brightens observations at random, the same for all frames of a stack."""

    def __init__(
        self, config: TrainConfig, device: torch.device, *, ahead: bool | None = None
    ) -> None:
        """ahead: numbers are drawn before an optimiser step, by `prepare`; the default on CUDA."""
        self.shift = config.augment_shift
        self.brightness = config.augment_brightness
        self._colors = 3 if config.color else 1
        self._device = device
        # The device's own generator belongs to the actors, which draw from another thread and
        # another stream with --overlap-collect. A recorded graph cannot draw from the host, so it
        # reads numbers that were drawn for it, always from the same memory.
        self._random = generator(config.seed, "augment")
        self._ahead = device.type == "cuda" if ahead is None else ahead
        self._drawn = torch.zeros(0, device=device)
        self._at = 0

    def prepare(self, counts: Sequence[int]) -> None:
        """Draws the numbers of one optimiser step, whose minibatches have so many observations or
        lanes. The first step must be the largest."""
        parts = 2 * bool(self.shift) + bool(self.brightness)
        if not self._ahead or parts == 0:
            return
        drawn = torch.cat([self._rand(count) for count in counts for _ in range(parts)])
        if len(self._drawn) == 0:
            self._drawn = torch.zeros_like(drawn, device=self._device)
        self._drawn[: len(drawn)].copy_(drawn)
        self.rewind()

    def rewind(self) -> None:
        """Starts again with the numbers that were prepared: recording a step runs it repeatedly."""
        self._at = 0

    def draw(self, count: int) -> Change | None:
        """A change for each of so many observations or lanes; None if nothing is to be done."""
        shifts = factor = None
        if self.shift:
            shifts = self._shift(count), self._shift(count)
        if self.brightness:
            factor = 1.0 + self.brightness * (2.0 * self._uniform(count) - 1.0)
        return None if shifts is None and factor is None else Change(shifts, factor)

    def steps(self, obs: Tensor, change: Change | None) -> Tensor:
        """Single observations, [N, stack, rows, columns]: each on its own."""
        return obs if change is None else self._changed(obs, change)

    def sequences(self, obs: Tensor, change: Change | None) -> Tensor:
        """[T, B, stack, rows, columns]: one change for each lane, so that pictures do not jump."""
        if change is None:
            return obs
        time, lanes, stack, *picture = obs.shape
        whole = obs.transpose(0, 1).reshape(lanes, time * stack, *picture)
        changed = self._changed(whole, change).view(lanes, time, stack, *picture)
        return changed.transpose(0, 1)

    def state_dict(self) -> dict[str, Tensor]:
        """State of the random generator."""
        return {"random": self._random.get_state()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Restores `state_dict`."""
        if "random" in state:
            self._random.set_state(state["random"])

    def _changed(self, obs: Tensor, change: Change) -> Tensor:
        count, frames, rows, columns = obs.shape
        obs = obs.reshape(count, frames * self._colors, rows // self._colors, columns)
        if change.shifts is not None:
            obs = _shifted(obs, change.shifts)
        if change.factor is not None:
            bright = (obs * change.factor[:, None, None, None]).clamp_(0.0, 255.0)
            obs = bright.round_().to(torch.uint8)
        return obs.reshape(count, frames, rows, columns)

    def _shift(self, count: int) -> Tensor:
        return (self._uniform(count) * (2 * self.shift + 1)).long() - self.shift

    def _uniform(self, count: int) -> Tensor:
        if not self._ahead:
            return self._rand(count).to(self._device)
        self._at += count
        if self._at > len(self._drawn):
            raise RuntimeError("more numbers are asked for than were prepared")
        return self._drawn[self._at - count : self._at]

    def _rand(self, count: int) -> Tensor:
        return torch.rand(count, generator=self._random)


def _shifted(obs: Tensor, shifts: tuple[Tensor, Tensor]) -> Tensor:
    """Pixels that come in at an edge repeat it."""
    count, _, height, width = obs.shape
    places = []
    for size, moved in zip((height, width), shifts, strict=True):
        place = torch.arange(size, device=obs.device) + moved[:, None]
        places.append(place.clamp_(0, size - 1))
    row, column = places
    each = torch.arange(count, device=obs.device)[:, None, None]
    # Channels last while gathering: one index then moves all of them.
    picked = obs.permute(0, 2, 3, 1)[each, row[:, :, None], column[:, None, :]]
    return picked.permute(0, 3, 1, 2)
