"""What keeps a flood from the log and from the one serving thread."""

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import WebSocketDisconnect

from warpzone.dashboard import sparing
from warpzone.dashboard.guard import GuardedProtocol, Turns
from warpzone.dashboard.sparing import Sparing
from warpzone.dashboard.talk import Talk


# --- turns ---------------------------------------------------------------------------------------
def test_some_go_at_once_and_the_rest_in_order() -> None:
    turns = Turns(rate=10.0, burst=3.0)
    waits = [turns.wait(now=100.0, most=1.0) for _ in range(20)]
    assert waits[:4] == [0.0] * 4
    assert waits[4:14] == pytest.approx([0.1 * n for n in range(1, 11)])
    assert waits[14:] == [None] * 6
    # Who was refused took no turn.
    assert turns.wait(now=100.5, most=1.0) == pytest.approx(0.6)
    assert turns.wait(now=200.0, most=1.0) == 0.0


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

    def is_closing(self) -> bool:
        return "abort" in self.said


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
    monkeypatch.setattr(GuardedProtocol, "turns", Turns(rate=1.0, burst=1.0))
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
