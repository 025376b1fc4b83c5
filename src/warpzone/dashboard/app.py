"""The web application: a page and a socket; no request contains a path."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    MutableMapping,
)
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

from fastapi import FastAPI, Request, Response, WebSocket
from fastapi.responses import StreamingResponse

from warpzone.dashboard import exposition
from warpzone.dashboard.access import Access
from warpzone.dashboard.catalogue import Catalogue
from warpzone.dashboard.hub import Hub
from warpzone.dashboard.peer import GoneError, ends, who
from warpzone.dashboard.reply import HEADERS
from warpzone.dashboard.talk import Talk
from warpzone.run.opening import open_file

LOG = logging.getLogger("warpzone.dashboard")

PAGE = Path(__file__).parent / "page"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
VIDEO_TYPES = {".mp4": "video/mp4", ".gif": "image/gif"}
#: Bytes of a video that are sent at a time.
PIECE = 1 << 16
#: Browsers at the same time.
MOST_SOCKETS = 64

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Page(NamedTuple):
    """A whole answer that never changes."""

    headers: list[tuple[bytes, bytes]]
    body: bytes


class Doorman:
    """Looks at Host and Origin of every request before anything else does, and adds the headers
    that keep a page from doing more than it should. Answers `pages` itself, which are asked for
    most and cost least."""

    def __init__(self, app: Application, access: Access, pages: Mapping[str, Page]) -> None:
        self.app = app
        self.access = access
        self.pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        host, origin = _one(scope, b"host") or "", _one(scope, b"origin")
        client = scope["client"][0] if scope.get("client") else "?"
        if not self.access.knows_host(host):
            LOG.warning("request of %s refused: not our name: %.60r", client, host)
            await _refuse(scope, send, "this server does not answer to that name")
        elif not self.access.knows_origin(origin, host):
            LOG.warning("request of %s refused: from another page: %.60r", client, origin)
            await _refuse(scope, send, "requests from other pages are refused")
        elif scope["type"] == "http" and _has_body(scope):
            await _refuse(scope, send, "requests to this server have no body", 413)
        elif scope["type"] == "http" and (page := self.pages.get(scope["path"])) is not None:
            if scope["method"] == "GET":
                await send({"type": "http.response.start", "status": 200, "headers": page.headers})
                await send({"type": "http.response.body", "body": page.body})
            else:
                await _refuse(scope, send, "this page can only be read", 405)
        else:
            try:
                await self.app(scope, receive, _with_headers(send))
            except asyncio.CancelledError:
                # The server ends, and waits no longer for this one.
                LOG.info("request of %s cut off", client)


def make_app(folder: Path, access: Access, *, metrics: bool = False) -> Application:
    """The application for a folder of runs; with `/metrics` if wanted."""
    hub = Hub(Catalogue(folder.resolve()))
    open_sockets: set[Talk] = set()

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        worker = asyncio.create_task(hub.work())
        worker.add_done_callback(_ended)
        yield
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)

    def refused(request: Request) -> Response | None:
        """The answer to a request without the token where looking needs one."""
        if not access.closed:
            return None
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        try:
            right = access.right_token(token, who(*ends(request.scope)))
        except GoneError:
            right = False
        return None if right else Response("a token is needed\n", 403, media_type="text/plain")

    if metrics:
        scraping = asyncio.Lock()

        @app.get("/metrics")
        async def exposed(request: Request) -> Response:
            if (refusal := refused(request)) is not None:
                return refusal
            newest = list(hub.catalogue.paths.values())[: exposition.MOST_RUNS]
            runs = [(path, hub.catalogue.config(path)) for path in newest]
            # One at a time: who asks often waits for the others.
            async with scraping:
                text = await asyncio.to_thread(exposition.expose, runs)
            return Response(text, media_type=exposition.TYPE)

    @app.get("/video/{run}/{name}")
    async def video(run: str, name: str, request: Request) -> Response:
        if (refusal := refused(request)) is not None:
            return refusal
        data = hub.catalogue.get(run)
        # Only files that the server has listed: no path is built from input.
        listed = None if data is None else data.video_names.get(name)
        if data is None or listed is None:
            return Response("not found\n", 404, media_type="text/plain")
        try:
            file = await asyncio.to_thread(open_file, data.path, listed)
        except OSError as error:
            # Removed or replaced by a link since it was listed.
            LOG.warning("video %.60r is not sent: %s", name, error.strerror)
            return Response("not found\n", 404, media_type="text/plain")
        size = os.fstat(file.fileno()).st_size
        kind = VIDEO_TYPES[Path(listed).suffix]
        return StreamingResponse(
            _pieces(file, size), media_type=kind, headers={"content-length": str(size)}
        )

    @app.websocket("/ws")
    async def talk(socket: WebSocket) -> None:
        conversation = Talk(socket, hub, access)
        if len(open_sockets) >= MOST_SOCKETS:
            # The socket that has been silent longest is closed, so that idle sockets block no one.
            silent = min(open_sockets, key=lambda one: one.heard)
            open_sockets.discard(silent)
            silent.evict()
        open_sockets.add(conversation)
        try:
            await conversation.run()
        finally:
            open_sockets.discard(conversation)

    return Doorman(app, access, _pages())


def _pages() -> dict[str, Page]:
    found = {"/health": _page(b"ok\n", "text/plain; charset=utf-8")}
    for path in PAGE.iterdir():
        if path.suffix in TYPES:
            found[f"/page/{path.name}"] = _page(path.read_bytes(), TYPES[path.suffix])
    return {"/": found["/page/index.html"], **found}


def _page(body: bytes, kind: str) -> Page:
    headers = {"content-type": kind, "content-length": str(len(body)), **HEADERS}
    return Page([(name.encode(), value.encode()) for name, value in headers.items()], body)


def _ended(worker: asyncio.Task[None]) -> None:
    """Without updates a page would show old data as if it were live, so the server ends."""
    if not worker.cancelled() and (error := worker.exception()) is not None:
        LOG.error("reading run folders failed, so this server ends", exc_info=error)
        signal.raise_signal(signal.SIGTERM)


def _pieces(file: BufferedReader, size: int) -> Iterator[bytes]:
    """A file as it was when it was opened: what is added meanwhile is not sent."""
    with file:
        while size > 0 and (data := file.read(min(PIECE, size))):
            size -= len(data)
            yield data


def _one(scope: Scope, name: bytes) -> str | None:
    """The only header of that name; a request with two is refused."""
    found = [value for key, value in scope["headers"] if key == name]
    if not found:
        return None
    return found[0].decode("latin-1") if len(found) == 1 else ""


def _has_body(scope: Scope) -> bool:
    """Whether a request says that more follows. Nothing here reads it, but without a refusal it
    would be received to its end."""
    return any(
        key == b"transfer-encoding" or (key == b"content-length" and value != b"0")
        for key, value in scope["headers"]
    )


def _with_headers(send: Send) -> Send:
    async def wrapped(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            extra = [(key.encode(), value.encode()) for key, value in HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", ()), *extra]}
        await send(message)

    return wrapped


async def _refuse(scope: Scope, send: Send, sentence: str, status: int = 403) -> None:
    kind = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    body = f"{sentence}\n".encode()
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(body)).encode())]
    if status == 413:
        headers.append((b"connection", b"close"))
    if status == 405:
        headers.append((b"allow", b"GET"))
    await send({"type": f"{kind}.start", "status": status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})
