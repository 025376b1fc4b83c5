"""What keeps a flood from the log and from the one serving thread."""

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import WebSocketDisconnect

from warpzone.dashboard import sparing
from warpzone.dashboard.guard import GuardedProtocol
from warpzone.dashboard.limits import Clients
from warpzone.dashboard.sparing import Sparing
from warpzone.dashboard.talk import Talk


# --- sockets ------------------------------------------------------------------------------------
class Transport:
    """A connection that is asked to become a WebSocket."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def pause_reading(self) -> None:
        self.said.append("pause")

    def resume_reading(self) -> None:
        self.said.append("resume")

    def abort(self) -> None:
        self.said.append("abort")

    def close(self) -> None:
        self.said.append("close")

    def is_closing(self) -> bool:
        return "abort" in self.said or "close" in self.said

    def get_protocol(self) -> None:
        """A WebSocket, if one were made."""


class Loop:
    """A clock that stands still, and what waits for it."""

    def __init__(self) -> None:
        self.later: list[Any] = []

    def time(self) -> float:
        return 50.0

    def call_later(self, seconds: float, call: Any, *args: Any) -> None:
        self.later.append((seconds, call, args))


def test_sockets_are_opened_at_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    parent = GuardedProtocol.__bases__[0]
    monkeypatch.setattr(parent, "handle_websocket_upgrade", lambda self, _: opened.append(self))
    monkeypatch.setattr(GuardedProtocol, "upgrades", Clients(rate=1.0, burst=1.0))
    loop, waiting = Loop(), []
    for _ in range(12):
        one = GuardedProtocol.__new__(GuardedProtocol)
        one.loop, one.client = loop, ("127.0.0.1", 1)  # type: ignore[assignment]
        one.transport = Transport()  # type: ignore[assignment]
        one.handle_websocket_upgrade(None)  # type: ignore[arg-type]
        waiting.append(one)
    assert opened == waiting[:2]
    assert [seconds for seconds, _, _ in loop.later] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert all(one.transport.said == ["abort"] for one in waiting[8:])  # type: ignore[attr-defined]
    waiting[3].transport.abort()
    for _, call, args in loop.later[:2]:
        call(*args)
    assert opened == waiting[:3]
    assert waiting[2].transport.said == ["pause", "resume"]  # type: ignore[attr-defined]


def test_requests_of_a_connection_are_answered_at_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many are there already: the next one is looked at when its turn comes."""
    went_on: list[Any] = []
    parent = GuardedProtocol.__bases__[0]
    monkeypatch.setattr(parent, "on_response_complete", lambda self: went_on.append(self))
    monkeypatch.setattr(GuardedProtocol, "requests", Clients(rate=1.0, burst=1.0))
    loop = Loop()
    one = GuardedProtocol.__new__(GuardedProtocol)
    one.loop, one.client = loop, ("127.0.0.1", 1)  # type: ignore[assignment]
    one.transport = Transport()  # type: ignore[assignment]
    for _ in range(8):
        one.on_response_complete()
    assert len(went_on) == 2
    assert [seconds for seconds, _, _ in loop.later] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert one.transport.said == ["close"]  # type: ignore[attr-defined]
    for _, call, args in loop.later:
        call(*args)
    assert len(went_on) == 2, "a closed connection goes on"
    other = GuardedProtocol.__new__(GuardedProtocol)
    other.loop, other.client = loop, ("10.0.0.1", 1)  # type: ignore[assignment]
    other.transport = Transport()  # type: ignore[assignment]
    other.on_response_complete()
    assert went_on[2:] == []
    loop.later[-1][1]()
    assert went_on[2:] == [other]


# --- the log -------------------------------------------------------------------------------------
def test_a_flood_writes_few_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(sparing, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    spare, passed = Sparing(), list[str]()

    def log(text: str, *args: object) -> None:
        record = logging.LogRecord("x", logging.WARNING, "", 0, text, args, None)
        if spare.filter(record):
            passed.append(record.getMessage())

    for number in range(1000):
        log("refused: %d", number)
    log("another")
    assert passed == [*(f"refused: {number}" for number in range(sparing.MOST)), "another"]
    clock[0] = sparing.WHILE
    log("refused: %d", 1)
    log("refused: %d", 2)
    log("another")
    assert passed[-3:] == ["refused: 1 (and 980 more before)", "refused: 2", "another"]


def test_kinds_of_lines_do_not_pile_up() -> None:
    spare = Sparing()
    for number in range(3 * sparing.MOST_KINDS):
        text = f"line {number}"
        assert spare.filter(logging.LogRecord("x", logging.INFO, "", 0, text, (), None))
    assert len(spare._seen) <= sparing.MOST_KINDS + 1


# --- talk ----------------------------------------------------------------------------------------
class Gone:
    """A socket whose browser has just gone."""

    client = None

    async def accept(self) -> None:
        pass

    async def receive(self) -> Any:
        await asyncio.Event().wait()

    async def close(self, code: int, why: str) -> None:
        raise WebSocketDisconnect(1006)


def test_a_socket_that_makes_room_may_be_gone() -> None:
    async def scene() -> None:
        talk = Talk(Gone(), SimpleNamespace(viewers=set()), None)  # type: ignore[arg-type]
        asyncio.get_running_loop().call_later(0.01, talk.evict)
        await talk.run()

    asyncio.run(scene())


class Leaving:
    """A browser that goes at once; the server is slow to end its other half."""

    client = None

    async def accept(self) -> None:
        pass

    async def receive(self) -> Any:
        await asyncio.sleep(0)
        return {"type": "websocket.disconnect"}

    async def close(self, code: int, why: str) -> None:
        await asyncio.sleep(0.05)


class Rude(Leaving):
    """One that sends no hello."""

    async def receive(self) -> Any:
        return {"type": "websocket.receive", "text": "nonsense"}


@pytest.mark.parametrize("kind", [Leaving, Rude])
def test_a_socket_that_makes_room_may_be_ending(kind: type[Leaving]) -> None:
    """Making room cancels a task, which must not hit one that is closing already."""

    async def scene() -> None:
        talk = Talk(kind(), SimpleNamespace(viewers=set()), None)  # type: ignore[arg-type]
        for moment in range(20):
            asyncio.get_running_loop().call_later(0.002 * moment, talk.evict)
        await talk.run()

    asyncio.run(scene())


class EndsSlowly(Leaving):
    """One that says hello and goes while a push waits for it."""

    def __init__(self) -> None:
        self.heard = 0

    async def receive(self) -> Any:
        self.heard += 1
        if self.heard == 1:
            return {"type": "websocket.receive", "text": '{"type": "hello"}'}
        await asyncio.sleep(0.01)
        return {"type": "websocket.disconnect"}

    async def send_text(self, text: str) -> None:
        pass


def test_a_socket_that_makes_room_may_be_ending_its_push(monkeypatch: pytest.MonkeyPatch) -> None:
    talks: list[Talk] = []

    async def push(self: Talk) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            talks[0].evict()
            await asyncio.sleep(0.01)
            raise

    async def scene() -> None:
        access = SimpleNamespace(closed=False, control=False)
        hub = SimpleNamespace(viewers=set())
        talks.append(Talk(EndsSlowly(), hub, access))  # type: ignore[arg-type]
        await talks[0].run()
        assert not hub.viewers

    monkeypatch.setattr(Talk, "_push", push)
    asyncio.run(scene())


def test_a_browser_may_go_before_it_is_accepted() -> None:
    tried: list[object] = []

    class Early(Leaving):
        async def accept(self) -> None:
            tried.append(self)
            raise WebSocketDisconnect(1006)

    async def scene() -> None:
        await Talk(Early(), SimpleNamespace(viewers=set()), None).run()  # type: ignore[arg-type]

    asyncio.run(scene())
    assert tried
