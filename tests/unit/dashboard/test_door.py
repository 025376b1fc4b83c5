"""What happens to a connection before anything is built for it."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable

import pytest

from warpzone.dashboard import door
from warpzone.dashboard.access import Access
from warpzone.dashboard.door import Door, asks_for_health
from warpzone.dashboard.limits import Clients

ACCESS = Access("127.0.0.1", control=False, token="a token of twenty letters")
ASKED = b"GET /health HTTP/1.1\r\nHost: localhost:8765\r\nAccept: */*\r\n\r\n"
OTHER = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    "data",
    [
        ASKED[:-2],
        ASKED + ASKED,
        ASKED.replace(b"GET", b"POST"),
        ASKED.replace(b"/health", b"/health/"),
        ASKED.replace(b"HTTP/1.1", b"HTTP/2"),
        ASKED.replace(b"localhost", b"evil.example"),
        ASKED.replace(b"Host", b"Most"),
        ASKED.replace(b"Accept: */*", b"Host: localhost"),
        ASKED.replace(b"Accept: */*", b"Origin: http://evil.example"),
        ASKED.replace(b"Accept: */*", b"content-length : 5"),
        ASKED.replace(b"Accept: */*", b"Upgrade: websocket"),
        OTHER,
        b"\xff",
    ],
)
def test_only_a_plain_question_is_answered_at_the_door(data: bytes) -> None:
    assert asks_for_health(ASKED, ACCESS)
    assert asks_for_health(ASKED.replace(b"Host", b"hOST"), ACCESS)
    assert not asks_for_health(data, ACCESS)


class Inside(asyncio.Protocol):
    """Says what it got."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        assert isinstance(self.transport, asyncio.Transport)
        self.transport.write(b"inside: " + data)
        self.transport.close()


def at_the_door(scene: Callable[[Door, int], Awaitable[None]]) -> None:
    async def play() -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            opened = Door(listener, ACCESS, Inside)
            opened.open()
            try:
                await scene(opened, listener.getsockname()[1])
            finally:
                opened.close()

    asyncio.run(asyncio.wait_for(play(), 60))


async def ask(port: int, *parts: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for part in parts:
        writer.write(part)
        await asyncio.sleep(0.02)
    with contextlib.suppress(ConnectionResetError):
        return await reader.read()
    return b"reset"


def test_health_is_answered_whoever_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(opened: Door, port: int) -> None:
        opened.clients = Clients(rate=0.001, burst=1.0)
        assert await ask(port, OTHER) == b"inside: " + OTHER
        assert await ask(port, b"GE") == b"inside: GE"
        refused = await ask(port, OTHER)
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nretry-after: 2\r\n" in refused
        for parts in ((ASKED,), (b"", ASKED)):
            answer = await ask(port, *parts)
            assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
            assert answer.endswith(b"\r\n\r\nok\n")
            assert b"\r\nx-content-type-options: nosniff\r\n" in answer

    at_the_door(scene)


def test_the_oldest_silent_connection_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "MOST_SILENT", 3)

    async def scene(opened: Door, port: int) -> None:
        links = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]
        assert await links[0][0].read() == b""
        for reader, writer in links[1:]:
            writer.write(OTHER)
            assert await reader.read() == b"inside: " + OTHER
        assert not opened._silent

    at_the_door(scene)


def test_silent_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "PATIENCE", 0.05)

    async def scene(opened: Door, port: int) -> None:
        assert await ask(port) == b""
        assert not opened._silent

    at_the_door(scene)
