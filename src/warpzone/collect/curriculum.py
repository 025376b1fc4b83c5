"""Draws stages by clear rate or by learning progress; every stage keeps a share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.collect.episodes import Episode
from warpzone.config import TrainConfig
from warpzone.env.stages import NUM_STAGES, parse_stages, stage_name

#: Rates of the two averages whose distance is the learning progress.
FAST = 0.1
SLOW = 0.02


class Curriculum:
    """Statistics of every stage, and the weights with which stages are drawn.

    `clear-rate`: a stage weighs as much as it fails. `progress`: a stage weighs as much as its
    recent play differs from its longer past, for better or worse. Stages that were never played
    weigh the most. Only episodes from the start of a stage count.
    """

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.stages = sorted(set(parse_stages(config.stages)))
        self.episodes = np.zeros(NUM_STAGES, np.int64)
        #: Moving averages over about `curriculum_window` episodes.
        self.clear_rate = np.zeros(NUM_STAGES)
        #: How far episodes come, as a share of the furthest; 1 is the flag.
        self.fast = np.zeros(NUM_STAGES)
        self.slow = np.zeros(NUM_STAGES)
        self.furthest = np.ones(NUM_STAGES)

    @property
    def active(self) -> bool:
        """Whether draws are weighted at all."""
        return self.config.curriculum != "none" and len(self.stages) > 1

    def learn(self, ended: Iterable[Episode]) -> None:
        """Counts episodes that ended."""
        for episode in ended:
            if episode.stage >= 0 and not episode.restart:
                self._count(episode.stage, episode)

    def _count(self, stage: int, episode: Episode) -> None:
        cleared = float(episode.reason == "flag")
        self.furthest[stage] = max(self.furthest[stage], episode.furthest_x)
        reached = max(cleared, episode.furthest_x / self.furthest[stage] * 0.99)
        self.episodes[stage] += 1
        count = int(self.episodes[stage])
        # The first episodes are plain means, so that the averages start without a bias.
        window = min(count, self.config.curriculum_window)
        self.clear_rate[stage] += (cleared - self.clear_rate[stage]) / window
        self.fast[stage] += (reached - self.fast[stage]) * max(FAST, 1 / count)
        self.slow[stage] += (reached - self.slow[stage]) * max(SLOW, 1 / count)

    def weights(self) -> NDArray[np.float64]:
        """The chance of each of the 32 stages; they add up to one."""
        chosen = np.array(self.stages)
        if self.config.curriculum == "clear-rate":
            value = 1.0 - self.clear_rate[chosen]
        else:
            value = np.abs(self.fast[chosen] - self.slow[chosen])
        new = self.episodes[chosen] == 0
        if new.any():
            value = np.where(new, max(value.max(), 1.0 if new.all() else value[~new].max()), value)
        even = np.full(len(chosen), 1.0 / len(chosen))
        share = value / value.sum() if value.sum() > 0 else even
        floor = self.config.curriculum_floor
        weights = np.zeros(NUM_STAGES)
        weights[chosen] = floor * even + (1.0 - floor) * share
        return weights

    def room(self) -> NDArray[np.float64]:
        """How much of each stage is still to be learned: its failures from its own start."""
        return 1.0 - self.clear_rate

    def metrics(self) -> dict[str, float]:
        """The chance of each stage."""
        weights = self.weights()
        return {
            f"stage_share_{stage_name(stage).replace('-', '_')}": float(weights[stage])
            for stage in self.stages
        }

    def state_dict(self) -> dict[str, Any]:
        """Lists of numbers."""
        names = ("episodes", "clear_rate", "fast", "slow", "furthest")
        return {name: getattr(self, name).tolist() for name in names}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict`."""
        for name, values in state.items():
            getattr(self, name)[:] = values
