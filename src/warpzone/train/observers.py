"""The observers that a configuration asks for."""

from __future__ import annotations

from warpzone.config import TrainConfig
from warpzone.train.observer import Observer


def make_observers(config: TrainConfig) -> list[Observer]:
    """In the order in which they are told."""
    return []
