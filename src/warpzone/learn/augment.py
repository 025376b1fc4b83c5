"""Augmentation of what is learned from, on the device: acting and evaluation never see it."""

from __future__ import annotations

import torch
from torch import Tensor

from warpzone.collect.streams import generator
from warpzone.config import TrainConfig


class Augmentation:
    """Shifts and brightens observations at random, the same for all frames of a stack."""

    def __init__(self, config: TrainConfig, device: torch.device) -> None:
        self.shift = config.augment_shift
        self.brightness = config.augment_brightness
        self._colors = 3 if config.color else 1
        # On CUDA the device's own generator is used, which recorded graphs know how to advance.
        self._cpu = generator(config.seed, "augment") if device.type == "cpu" else None

    @property
    def active(self) -> bool:
        """Whether anything is done at all."""
        return self.shift > 0 or self.brightness > 0

    def steps(self, obs: Tensor) -> Tensor:
        """Single observations, [N, stack, rows, columns]: each on its own."""
        return self._change(obs) if self.active else obs

    def sequences(self, obs: Tensor) -> Tensor:
        """[T, B, stack, rows, columns]: each lane as a whole, so that things do not jump."""
        if not self.active:
            return obs
        time, lanes, stack, *picture = obs.shape
        whole = obs.transpose(0, 1).reshape(lanes, time * stack, *picture)
        changed = self._change(whole).view(lanes, time, stack, *picture)
        return changed.transpose(0, 1)

    def state_dict(self) -> dict[str, Tensor]:
        """The random numbers still to come."""
        return {} if self._cpu is None else {"random": self._cpu.get_state()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes on from `state_dict`."""
        if self._cpu is not None and "random" in state:
            self._cpu.set_state(state["random"])

    def _change(self, obs: Tensor) -> Tensor:
        count, frames, rows, columns = obs.shape
        obs = obs.reshape(count, frames * self._colors, rows // self._colors, columns)
        if self.shift:
            obs = self._shifted(obs)
        if self.brightness:
            factor = 1.0 + self.brightness * (2.0 * self._uniform(count, obs.device) - 1.0)
            bright = (obs * factor[:, None, None, None]).clamp_(0.0, 255.0)
            obs = bright.round_().to(torch.uint8)
        return obs.reshape(count, frames, rows, columns)

    def _shifted(self, obs: Tensor) -> Tensor:
        """Pixels that come in at an edge repeat it."""
        count, _, height, width = obs.shape
        places = []
        for size in (height, width):
            moved = (self._uniform(count, obs.device) * (2 * self.shift + 1)).long() - self.shift
            place = torch.arange(size, device=obs.device) + moved[:, None]
            places.append(place.clamp_(0, size - 1))
        row, column = places
        each = torch.arange(count, device=obs.device)[:, None, None]
        # Channels last while gathering: one index then moves all of them.
        picked = obs.permute(0, 2, 3, 1)[each, row[:, :, None], column[:, None, :]]
        return picked.permute(0, 3, 1, 2)

    def _uniform(self, count: int, device: torch.device) -> Tensor:
        return torch.rand(count, generator=self._cpu, device=device)
