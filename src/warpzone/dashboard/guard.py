"""Closes connections that send no request, send it too slowly, or flood frames."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, ClassVar

from h11 import Request
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

LOG = logging.getLogger("warpzone.dashboard")

#: Seconds a connection may take until its request is complete.
PATIENCE = 10.0
MOST_CONNECTIONS = 256
#: Frames of a WebSocket a second, on average and at once. A page's messages are one frame each.
FRAME_RATE, FRAME_BURST = 80.0, 300.0
#: WebSockets opened a second, on average and at once, and the seconds that one may wait for that.
UPGRADE_RATE, UPGRADE_BURST, UPGRADE_WAIT = 30.0, 128.0, 6.0
#: Bytes taken apart before the frames in them are counted.
PIECE = 1024


class Turns:
    """When each of many may go: so many at once, then so many a second, in the order they came."""

    def __init__(self, rate: float, burst: float) -> None:
        self._each = 1.0 / rate
        self._ahead = burst / rate
        self._next = 0.0

    def wait(self, now: float, most: float) -> float | None:
        """Seconds until the turn of the next one; None, and no turn, beyond `most`."""
        begin = max(self._next, now)
        seconds = max(0.0, begin - now - self._ahead)
        if seconds > most:
            return None
        self._next = begin + self._each
        return seconds


class GuardedProtocol(H11Protocol):
    """HTTP with a limit on open connections, on the time without a request, and on WebSockets that
    are opened: each costs as much as dozens of requests, which would have to wait for it."""

    #: In the order of their arrival.
    connected: ClassVar[dict[GuardedProtocol, None]] = {}
    turns: ClassVar[Turns] = Turns(UPGRADE_RATE, UPGRADE_BURST)

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

    def handle_websocket_upgrade(self, event: Request) -> None:
        """A request to become a WebSocket is complete; it waits for its turn."""
        seconds = self.turns.wait(self.loop.time(), UPGRADE_WAIT)
        if seconds is None:
            LOG.warning("socket of %s refused: too many are opened a second", self.client)
            self.transport.abort()
        elif seconds == 0:
            super().handle_websocket_upgrade(event)
        else:
            self.transport.pause_reading()
            self.loop.call_later(seconds, self._upgrade, event)

    def _upgrade(self, event: Request) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()
            super().handle_websocket_upgrade(event)

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
