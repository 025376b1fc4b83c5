"""The observers that a configuration asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpzone.config import ConfigError, TrainConfig
from warpzone.config.outside import load_plugin
from warpzone.observers.alerts import AlertObserver
from warpzone.observers.archive import ArchiveObserver
from warpzone.observers.control import ControlObserver
from warpzone.observers.dashboard import DashboardObserver
from warpzone.observers.env_events import EnvObserver
from warpzone.observers.health import HealthObserver
from warpzone.observers.log import LogObserver
from warpzone.observers.metrics import MetricsObserver
from warpzone.observers.observer import Observer
from warpzone.observers.video import VideoObserver
from warpzone.observers.video_maker import VideoMaker
from warpzone.observers.wall import WallObserver

if TYPE_CHECKING:
    from warpzone.health.webhook import Webhook


def make_observers(config: TrainConfig, webhook: Webhook | None = None) -> list[Observer]:
    """In the order of their calls: the metrics writer comes after the observers that add to a
    row. A video that is waited for at the end comes first, while the others still observe."""
    maker = VideoMaker()
    observers: list[Observer] = [maker]
    if config.video_interval:
        observers.append(VideoObserver(config.video_interval, config.video_overlay, maker))
    observers += [LogObserver(), EnvObserver()]
    observers += [WallObserver(config.wall_lanes, config.wall_rate)] if config.wall_lanes else []
    observers += [ArchiveObserver()] if config.archive_share else []
    observers += [DashboardObserver(config)] if config.dashboard else []
    alerts = AlertObserver(config, webhook)
    metrics = MetricsObserver(config)
    observers += [HealthObserver(config, alerts.stalled, metrics.take_heartbeat), alerts]
    observers += [_own(name, config) for name in config.observers]
    observers += [metrics, ControlObserver(maker)]
    return observers


def _own(name: str, config: TrainConfig) -> Observer:
    """An observer of `--observer`."""
    found = load_plugin("observer", name, config)
    if not (isinstance(found, type) and issubclass(found, Observer)):
        raise ConfigError(f"the observer {name} is no class of warpzone.Observer")
    try:
        made = found()
    except TypeError as error:
        raise ConfigError(f"the observer {name} cannot be made: {error}") from error
    return made


def make_followers(config: TrainConfig) -> list[Observer]:
    """Of ranks other than the first: they obey the same commands, and show nothing."""
    return [ControlObserver()]
