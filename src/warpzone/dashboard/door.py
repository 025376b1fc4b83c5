"""Takes connections, and sends away at little cost what would be expensive.

A connection is a bare socket until its first bytes are there. A question for `/health` is answered
from them, so that it neither waits for others nor costs more than a few system calls; whoever
connects too often is told to come back later before anything is built for it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable

from warpzone.dashboard.access import Access
from warpzone.dashboard.limits import Clients
from warpzone.dashboard.reply import reply

LOG = logging.getLogger("warpzone.dashboard")

#: Connections that the system keeps until they are taken. One beyond is not refused but dropped,
#: and its client tries again only after a second.
BACKLOG = 1024
#: Connections taken at a time: in a flood the requests of those before are read in between.
AT_ONCE = 64
#: Seconds until the first byte, and how many may wait for it; then the oldest one goes.
PATIENCE, MOST_SILENT = 10.0, 256
#: Connections of an address a second, on average and at once.
RATE, BURST = 20.0, 200.0
#: Bytes of a request that are looked at.
MOST_BYTES = 2048
#: Seconds without taking connections when there are no more files for them.
PAUSE = 1.0

OK = reply(200, "ok")
BUSY = reply(503, "too many connections a second", ("retry-after", "2"))


class Door:
    """The listening socket of a server."""

    def __init__(
        self, listener: socket.socket, access: Access, make: Callable[[], asyncio.Protocol]
    ) -> None:
        self.listener = listener
        self.access = access
        self.make = make
        self.clients = Clients(RATE, BURST)
        self._loop = asyncio.get_running_loop()
        #: Connections without a byte, in the order of their arrival.
        self._silent: dict[socket.socket, asyncio.TimerHandle] = {}
        self._coming: set[asyncio.Task[None]] = set()
        self._again: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """From now on connections are taken."""
        self.listener.setblocking(False)
        self.listener.listen(BACKLOG)
        self._loop.add_reader(self.listener, self._take)

    def close(self) -> None:
        """Takes no more, and ends those that have said nothing."""
        if self._again is not None:
            self._again.cancel()
        self._loop.remove_reader(self.listener)
        self.listener.close()
        for link in tuple(self._silent):
            self._forget(link)
            link.close()

    def _take(self) -> None:
        for _ in range(AT_ONCE):
            try:
                link, address = self.listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # It would be asked again at once, for as long as there is no room.
                LOG.warning("no connection can be taken: %s", error.strerror)
                self._loop.remove_reader(self.listener)
                self._again = self._loop.call_later(PAUSE, self.open)
                return
            link.setblocking(False)
            self._look(link, str(address[0]))

    def _look(self, link: socket.socket, address: str) -> None:
        try:
            data = link.recv(MOST_BYTES, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            self._await(link, address)
            return
        except OSError:
            data = b""
        self._forget(link)
        if not data:
            link.close()
        elif asks_for_health(data, self.access):
            _answer(link, OK)
        elif self.clients.wait(address, self._loop.time(), 0.0) is None:
            LOG.warning("connection of %s refused: too many a second", address)
            _answer(link, BUSY)
        else:
            task = self._loop.create_task(self._let_in(link))
            self._coming.add(task)
            task.add_done_callback(self._coming.discard)

    def _await(self, link: socket.socket, address: str) -> None:
        if link in self._silent:
            return
        if len(self._silent) >= MOST_SILENT:
            LOG.warning("%d connections are silent: the oldest one goes", MOST_SILENT)
            oldest = next(iter(self._silent))
            self._forget(oldest)
            oldest.close()
        self._silent[link] = self._loop.call_later(PATIENCE, self._late, link)
        self._loop.add_reader(link, self._look, link, address)

    def _late(self, link: socket.socket) -> None:
        self._forget(link)
        link.close()

    def _forget(self, link: socket.socket) -> None:
        timer = self._silent.pop(link, None)
        if timer is not None:
            timer.cancel()
            self._loop.remove_reader(link)

    async def _let_in(self, link: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self.make, link)
        except OSError:
            # Gone already.
            link.close()


def asks_for_health(data: bytes, access: Access) -> bool:
    """Whether this is one whole plain question for `/health`. Whatever else there is about it, the
    application decides."""
    head, end, more = data.partition(b"\r\n\r\n")
    line, *headers = head.split(b"\r\n")
    if more or not end or line not in (b"GET /health HTTP/1.1", b"GET /health HTTP/1.0"):
        return False
    found = [header.partition(b":")[::2] for header in headers]
    hosts = [value for name, value in found if name.lower() == b"host"]
    special = {b"origin", b"content-length", b"transfer-encoding", b"upgrade", b"expect"}
    if len(hosts) != 1 or any(name.strip().lower() in special for name, _ in found):
        return False
    return access.knows_host(hosts[0].strip().decode("latin-1"))


def _answer(link: socket.socket, answer: bytes) -> None:
    """Sends the little there is, and closes."""
    with contextlib.suppress(OSError), link:
        # What is not read makes the system reset the connection, and the answer may be lost.
        link.recv(MOST_BYTES)
        link.send(answer)
        link.shutdown(socket.SHUT_WR)
