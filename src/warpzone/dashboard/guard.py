"""Connections that ask for nothing, or take forever to ask, are closed."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

LOG = logging.getLogger("warpzone.dashboard")

#: Seconds a connection may take until its request is complete.
PATIENCE = 10.0
MOST_CONNECTIONS = 256


class GuardedProtocol(H11Protocol):
    """HTTP with a limit on open connections and on the time without a request."""

    #: In the order of their arrival.
    connected: ClassVar[dict[GuardedProtocol, None]] = {}

    def connection_made(self, transport: Any) -> None:
        """Called by asyncio."""
        super().connection_made(transport)
        if len(self.connected) >= MOST_CONNECTIONS:
            LOG.warning("%d connections are open: the oldest one goes", MOST_CONNECTIONS)
            oldest = next(iter(self.connected))
            del self.connected[oldest]
            oldest.transport.abort()
        self.connected[self] = None
        self._timer: asyncio.TimerHandle = self.loop.call_later(PATIENCE, self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio."""
        self.connected.pop(self, None)
        self._timer.cancel()
        super().connection_lost(exc)

    def _late(self) -> None:
        if self.transport.get_protocol() is not self:
            # A WebSocket now, which has limits of its own.
            self.connected.pop(self, None)
        elif self.cycle is None or self.cycle.response_complete:
            self.transport.abort()
        else:
            self._timer = self.loop.call_later(PATIENCE, self._late)
