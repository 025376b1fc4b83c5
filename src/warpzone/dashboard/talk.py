"""The connection to one browser. The server announces news, the browser requests what it shows,
and the next push waits for the acknowledgement of the last: a slow browser costs nothing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

from fastapi import WebSocket, WebSocketDisconnect

from warpzone.dashboard.access import Access
from warpzone.dashboard.hub import Hub
from warpzone.dashboard.levels import level_map
from warpzone.dashboard.messages import (
    MAX_SIZE,
    Ack,
    Curves,
    Do,
    Hello,
    Part,
    Watch,
    packed,
    parse,
)
from warpzone.dashboard.peer import GoneError, ends, who
from warpzone.run import control
from warpzone.run.jsonl import encode

LOG = logging.getLogger("warpzone.dashboard")

#: Seconds to say hello in, to take a message in, and to acknowledge a push in.
HELLO, SEND, ACK = 10.0, 20.0, 60.0
#: Messages a second, on average and at once.
RATE, BURST = 40.0, 120.0
#: Invalid messages before the socket is closed.
NONSENSE = 5
#: Reason sent while tokens are not checked.
TOO_MANY_WRONG = "too many wrong tokens, wait a minute"
#: Close codes: against the rules, and try again later.
POLICY, LATER = 1008, 1013
#: How a socket that makes room for another one is closed.
FULL = LATER, "too many browsers"


class RefusedError(Exception):
    """The socket is closed with this sentence."""


class Talk:
    """One socket."""

    def __init__(self, socket: WebSocket, hub: Hub, access: Access) -> None:
        self.socket = socket
        self.hub = hub
        self.access = access
        self.address = socket.client.host if socket.client else "?"
        self.runs: tuple[str, ...] = ()
        self.wall = False
        self.screens = False
        self.allowed = False
        self._news = asyncio.Event()
        self._acked = asyncio.Event()
        self._sending = asyncio.Lock()
        self._nonsense = 0
        self._tokens = BURST
        self._filled = asyncio.get_running_loop().time()
        #: Time of its last message.
        self.heard = self._filled
        self._task = asyncio.current_task()
        self._evicted = False

    def evict(self) -> None:
        """Makes room for another one."""
        self._evicted = True
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def wake(self) -> None:
        """Called by the hub."""
        self._news.set()

    async def run(self) -> None:
        """Serves until either side closes."""
        pusher: asyncio.Task[None] | None = None
        closing: tuple[int, str] | None = None
        try:
            await self.socket.accept()
            await self._hello()
            self.hub.viewers.add(self)
            pusher = asyncio.create_task(self._push())
            # `wait_for` may swallow a cancellation.
            while not self._evicted:
                await self._hear()
            closing = FULL
        except RefusedError as refused:
            LOG.warning("socket of %s closed: %s", self.address, refused)
            closing = POLICY, str(refused)[:120]
        except asyncio.CancelledError:
            if not self._evicted:
                raise
            closing = FULL
        except (WebSocketDisconnect, TimeoutError, OSError, RuntimeError) as error:
            # A send to a socket that has just gone is a RuntimeError of the framework.
            LOG.info("socket of %s ended: %s", self.address, type(error).__name__)
        finally:
            # It ends by itself from here on: a cancellation would interrupt that.
            self._task = None
            self.hub.viewers.discard(self)
            if pusher is not None:
                pusher.cancel()
                await asyncio.gather(pusher, return_exceptions=True)
        if closing is not None:
            if closing == FULL:
                LOG.warning("socket of %s closed: too many are open", self.address)
            await self._close(*closing)

    async def _close(self, code: int, why: str = "") -> None:
        """Closes the socket, unless the browser was quicker."""
        with contextlib.suppress(RuntimeError, OSError, WebSocketDisconnect):
            await self.socket.close(code, why)

    # --- hearing --------------------------------------------------------------------------------
    async def _hello(self) -> None:
        try:
            text = await asyncio.wait_for(self._text(), HELLO)
        except TimeoutError as error:
            raise RefusedError("no hello in time") from error
        try:
            hello = parse(text)
        except ValueError as error:
            raise RefusedError("the first message is not a hello") from error
        if not isinstance(hello, Hello):
            raise RefusedError("the first message is not a hello")
        if hello.token:
            self._check(hello.token)
            self.allowed = True
        if self.access.closed and not self.allowed:
            raise RefusedError("this dashboard needs its token")
        await self.send(
            {
                "type": "welcome",
                "control": self.access.control,
                "allowed": self.allowed,
                "bounds": control.BOUNDS,
            }
        )

    def _check(self, token: str) -> None:
        try:
            asking = who(*ends(self.socket.scope))
        except GoneError as error:
            raise RefusedError("the connection is closing") from error
        verdict = self.access.judge(token, asking)
        if verdict == "wait":
            # The page keeps its token and tries again: it may be the right one.
            raise RefusedError(TOO_MANY_WRONG)
        if verdict == "wrong":
            raise RefusedError("wrong token")

    async def _text(self) -> str:
        message = await self.socket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1005))
        self.heard = asyncio.get_running_loop().time()
        text = message.get("text")
        if text is None or len(text) > MAX_SIZE:
            raise RefusedError("only short text is understood")
        return str(text)

    async def _hear(self) -> None:
        text = await self._text()
        self._limit_rate()
        try:
            message = parse(text)
        except ValueError:
            self._nonsense += 1
            if self._nonsense >= NONSENSE:
                raise RefusedError("too many messages that make no sense") from None
            LOG.warning("message of %s refused (%d bytes)", self.address, len(text))
            await self.send({"type": "error", "message": "that message is not understood"})
            return
        if isinstance(message, Watch):
            self.runs, self.wall = tuple(message.runs), message.wall
            self.screens = message.screens
            await self.hub.refresh(set(message.runs))
            self.wake()
        elif isinstance(message, Ack):
            self._acked.set()
        elif isinstance(message, Curves):
            await self.send(await self.hub.curves(message))
        elif isinstance(message, Part):
            await self._answer_part(message)
        elif isinstance(message, Do):
            await self._do(message)
        else:
            raise RefusedError("hello was said already")

    def _limit_rate(self) -> None:
        now = asyncio.get_running_loop().time()
        self._tokens = min(BURST, self._tokens + RATE * (now - self._filled)) - 1
        self._filled = now
        if self._tokens < 0:
            raise RefusedError("too many messages a second")

    async def _answer_part(self, asked: Part) -> None:
        if asked.what == "map":
            header, picture = await asyncio.to_thread(level_map, asked.stage or "1-1")
            await self.send(packed({**header, "type": "map", "request": asked.request}, picture))
            return
        part = await self.hub.part(asked)
        found = {"missing": True} if part is None else part
        await self.send({"type": "part", "request": asked.request, "what": asked.what, **found})

    async def _do(self, asked: Do) -> None:
        answer: dict[str, Any] = {"type": "did", "request": asked.request}
        who = f"{asked.name or 'browser'} @ {self.address}"
        try:
            if not self.access.control:
                raise control.CommandError("this dashboard is read only; start it with --control")
            if not self.allowed:
                raise control.CommandError("commands need the token")
            path = self.hub.catalogue.paths.get(asked.run)
            if path is None:
                raise control.CommandError("there is no such run")
            command = control.Command.new(who, asked.what, asked.value)
            await asyncio.to_thread(control.send, path, command)
        except (control.CommandError, OSError) as error:
            LOG.warning("command %.20r of %s refused: %s", asked.what, who, error)
            await self.send({**answer, "ok": False, "message": str(error)})
            return
        LOG.info("command %s of %s to %s", command, who, path.name)
        await self.send({**answer, "ok": True, "id": command.id})

    # --- saying ---------------------------------------------------------------------------------
    async def _push(self) -> None:
        said = ""
        shown = ("", 0)
        listed: list[dict[str, Any]] | None = None
        looked: tuple[int, tuple[str, ...]] = (-1, ())
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                text = said
                if (self.hub.looks, self.runs) != looked:
                    looked = self.hub.looks, self.runs
                    news = await self.hub.news(self.runs)
                    # The list of runs is long and seldom changes.
                    if news["runs"] == listed:
                        del news["runs"]
                    else:
                        listed = news["runs"]
                    text = encode(news)
                if text != said:
                    said = text
                    await self._push_one(text)
                run = self.runs[0] if self.wall and self.runs else ""
                wall = self.hub.walls.get(run)
                if wall is not None and wall.message and (run, wall.version) != shown:
                    shown = run, wall.version
                    await self._push_one(wall.message)
        except (TimeoutError, OSError, RuntimeError, WebSocketDisconnect) as error:
            LOG.info("socket of %s is too slow or gone: %s", self.address, type(error).__name__)
            await self._close(LATER)

    async def _push_one(self, message: str | bytes) -> None:
        self._acked.clear()
        await self.send(message)
        await asyncio.wait_for(self._acked.wait(), ACK)

    async def send(self, message: dict[str, Any] | str | bytes) -> None:
        """One whole message, in the time it may take."""
        async with self._sending:
            if isinstance(message, bytes):
                await asyncio.wait_for(self.socket.send_bytes(message), SEND)
            else:
                text = message if isinstance(message, str) else encode(message)
                await asyncio.wait_for(self.socket.send_text(text), SEND)
