"""The folder of a run as ranks other than the first know it: by its name alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from warpzone.config import TrainConfig
from warpzone.model.agent import Agent
from warpzone.run.folder import RunFolder


class Elsewhere(RunFolder):
    """Takes everything and keeps nothing: rank 0, maybe on another machine, writes it."""

    def rewind(self, config: TrainConfig, global_step: int) -> None:
        pass

    def lock(self) -> None:
        pass

    def discard(self) -> None:
        pass

    def write_config(self, config: TrainConfig) -> None:
        pass

    def flush(self) -> None:
        pass

    def require(self) -> None:
        pass

    def append(self, name: str, rows: list[dict[str, Any]]) -> None:
        pass

    def save_weights(self, name: str, agent: Agent, meta: dict[str, Any]) -> Path:
        return self.path / name
