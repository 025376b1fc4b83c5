"""Targets of rows."""

from __future__ import annotations

from typing import Any, Protocol


class Sink(Protocol):
    """Receives rows one after the other, in the thread that learns."""

    def write(self, row: dict[str, Any]) -> None:
        """Writes one row; values it cannot show are left out."""

    def close(self) -> None:
        """Flushes and closes. Called once."""
