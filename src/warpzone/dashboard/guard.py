"""Closes connections that send no request, send it too slowly, or flood frames."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

LOG = logging.getLogger("warpzone.dashboard")

#: Seconds a connection may take until its request is complete.
PATIENCE = 10.0
MOST_CONNECTIONS = 256
#: Frames of a WebSocket a second, on average and at once. A page's messages are one frame each.
FRAME_RATE, FRAME_BURST = 80.0, 300.0
#: Bytes taken apart before the frames in them are counted.
PIECE = 1024


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


class GuardedSocket(WebSocketsSansIOProtocol):
    """A WebSocket with a limit on frames. Empty fragments and pings are not messages, so no
    other limit counts them, but each costs time of the one serving thread."""

    _allowance = FRAME_BURST
    _counted = 0.0

    def data_received(self, data: bytes) -> None:
        """Called by asyncio. In pieces, so that what follows after too many frames is not read."""
        for start in range(0, len(data), PIECE):
            if self.transport.is_closing():
                return
            super().data_received(data[start : start + PIECE])

    def handle_cont(self, event: Frame) -> None:
        """A further fragment."""
        if self._count():
            super().handle_cont(event)

    def handle_text(self, event: Frame) -> None:
        """A message, or the first fragment of one."""
        if self._count():
            super().handle_text(event)

    def handle_bytes(self, event: Frame) -> None:
        """Like text."""
        if self._count():
            super().handle_bytes(event)

    def handle_ping(self) -> None:
        """To be answered."""
        if self._count():
            super().handle_ping()

    def handle_pong(self, event: Frame) -> None:
        """An answer, or none."""
        if self._count():
            super().handle_pong(event)

    def _count(self) -> bool:
        """Whether this frame is still one of those that are allowed."""
        now = self.loop.time()
        rest = min(FRAME_BURST, self._allowance + FRAME_RATE * (now - self._counted))
        self._allowance, self._counted = rest - 1, now
        if self._allowance >= 0:
            return True
        if not self.transport.is_closing():
            LOG.warning("socket of %s closed: too many frames a second", self.client)
            self.transport.abort()
        return False
