"""The observers that a configuration asks for."""

from __future__ import annotations

from warpzone.config import TrainConfig
from warpzone.metrics.writer import MetricsWriter
from warpzone.train.controlled import Controlled
from warpzone.train.filmed import Filmed
from warpzone.train.logged import Logged
from warpzone.train.observer import Observer
from warpzone.train.served import Served
from warpzone.train.studio import Studio
from warpzone.train.wall import Wall
from warpzone.watch.watcher import Watcher


def make_observers(config: TrainConfig) -> list[Observer]:
    """In the order in which they are told: the writer comes after those who add to a row. A video
    that is waited for at the end comes first, while everybody still looks."""
    studio = Studio()
    observers: list[Observer] = [studio]
    if config.video_interval:
        observers.append(Filmed(config.video_interval, config.video_overlay, studio))
    observers.append(Logged())
    observers += [Wall(config.wall_lanes, config.wall_rate)] if config.wall_lanes else []
    observers += [Served(config)] if config.dashboard else []
    observers += [Watcher(config), MetricsWriter(config), Controlled(studio)]
    return observers
