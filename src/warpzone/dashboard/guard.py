"""Closes connections that send no request, send it too slowly, or flood frames."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, ClassVar

import h11
from h11 import Request
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from warpzone.dashboard.limits import Clients
from warpzone.dashboard.reply import reply

LOG = logging.getLogger("warpzone.dashboard")

#: Seconds a connection may take until its request is complete.
PATIENCE = 10.0
MOST_CONNECTIONS = 256
#: Frames of a WebSocket a second, on average and at once. A page's messages are one frame each.
FRAME_RATE, FRAME_BURST = 80.0, 300.0
#: WebSockets that an address opens a second, on average and at once, and the seconds that one may
#: wait for that.
UPGRADE_RATE, UPGRADE_BURST, UPGRADE_WAIT = 8.0, 128.0, 6.0
#: The same for further requests on a connection. A page needs 15.
REQUEST_RATE, REQUEST_BURST, REQUEST_WAIT = 20.0, 150.0, 5.0
#: Bytes taken apart before the frames in them are counted.
PIECE = 1024

#: Close code: content that does not match its type.
INVALID = 1007
MALFORMED = reply(400, "this is no request for a WebSocket")


class GuardedProtocol(H11Protocol):
    """HTTP with a limit on open connections, on the time without a request, and on WebSockets that
    are opened: each costs as much as dozens of requests, which would have to wait for it."""

    #: In the order of their arrival.
    connected: ClassVar[dict[GuardedProtocol, None]] = {}
    upgrades: ClassVar[Clients] = Clients(UPGRADE_RATE, UPGRADE_BURST)
    requests: ClassVar[Clients] = Clients(REQUEST_RATE, REQUEST_BURST)

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
        seconds = self.upgrades.wait(self._address(), self.loop.time(), UPGRADE_WAIT)
        if seconds is None:
            LOG.warning("socket of %s refused: too many are opened a second", self.client)
            self.transport.abort()
        elif seconds == 0:
            self._upgrade(event)
        else:
            self.transport.pause_reading()
            self.loop.call_later(seconds, self._upgrade, event)

    def _upgrade(self, event: Request) -> None:
        if self.transport.is_closing():
            return
        self.transport.resume_reading()
        super().handle_websocket_upgrade(event)
        socket = self.transport.get_protocol()
        if isinstance(socket, GuardedSocket) and not socket.handshake_initiated:
            # It was complete, and was not understood: no more would ever come.
            LOG.warning("socket of %s refused: malformed request", self.client)
            self.transport.write(MALFORMED)
            self.transport.close()

    def on_response_complete(self) -> None:
        """The next request, which may be there already, waits for its turn."""
        seconds = self.requests.wait(self._address(), self.loop.time(), REQUEST_WAIT)
        if seconds is None:
            LOG.warning("connection of %s closed: too many requests a second", self.client)
            self.transport.close()
        elif seconds == 0:
            super().on_response_complete()
        else:
            self.loop.call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        if not self.transport.is_closing():
            super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Called when what was received is no HTTP; an answer may be under way already."""
        if self.cycle is not None and not self.cycle.response_complete:
            # Whatever the application still says is for nobody.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def shutdown(self) -> None:
        """The server ends."""
        if self.conn.our_state is h11.SEND_RESPONSE and self.cycle is None:
            # Waits to become a WebSocket.
            self.transport.abort()
        else:
            super().shutdown()

    def _address(self) -> str:
        return self.client[0] if self.client else "?"

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

    def send_receive_event_to_app(self) -> None:
        """A message is complete."""
        if self.curr_msg_data_type == "text" and not _is_text(b"".join(self.frames)):
            LOG.warning("socket of %s closed: a message is no text", self.client)
            self.frames = []
            self.conn.send_close(INVALID)
            self.handle_parser_exception()
        else:
            super().send_receive_event_to_app()

    async def send(self, message: Any) -> None:
        """Called by the application."""
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            # Refused by an HTTP answer, which is no failure.
            self.handshake_complete = True

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


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
