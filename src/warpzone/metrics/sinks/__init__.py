"""Where rows go."""

from __future__ import annotations

from typing import Any, Protocol


class Sink(Protocol):
    """Takes rows one after the other, in the thread that learns."""

    def write(self, row: dict[str, Any]) -> None:
        """One row; what it cannot show is left out."""

    def close(self) -> None:
        """Everything written is on its way to the disk. Called once."""
