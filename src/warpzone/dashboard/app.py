"""The web application: a page and a socket; no request contains a path."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from io import BufferedReader
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response, WebSocket
from fastapi.responses import StreamingResponse

from warpzone.dashboard import exposition
from warpzone.dashboard.access import Access
from warpzone.dashboard.catalogue import Catalogue
from warpzone.dashboard.hub import Hub
from warpzone.dashboard.peer import GoneError, ends, who
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
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
        "media-src blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Doorman:
    """Looks at Host and Origin of every request before anything else does, and adds the headers
    that keep a page from doing more than it should."""

    def __init__(self, app: Application, access: Access) -> None:
        self.app = app
        self.access = access

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
        else:
            await self.app(scope, receive, _with_headers(send))


def make_app(folder: Path, access: Access, *, metrics: bool = False) -> Application:
    """The application for a folder of runs; with `/metrics` if wanted."""
    hub = Hub(Catalogue(folder.resolve()))
    assets = {
        path.name: (path.read_bytes(), TYPES[path.suffix])
        for path in PAGE.iterdir()
        if path.suffix in TYPES
    }
    open_sockets: set[Talk] = set()

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        worker = asyncio.create_task(hub.work())
        worker.add_done_callback(_ended)
        yield
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)

    def asset(name: str) -> Response:
        if name not in assets:
            return Response("not found\n", 404, media_type="text/plain")
        body, kind = assets[name]
        return Response(body, media_type=kind)

    @app.get("/")
    async def index() -> Response:
        return asset("index.html")

    @app.get("/page/{name}")
    async def page(name: str) -> Response:
        return asset(name)

    @app.get("/health")
    async def health() -> Response:
        return Response("ok\n", media_type="text/plain")

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
        await socket.accept()
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

    return Doorman(app, access)


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


def _with_headers(send: Send) -> Send:
    async def wrapped(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            extra = [(key.encode(), value.encode()) for key, value in HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", ()), *extra]}
        await send(message)

    return wrapped


async def _refuse(scope: Scope, send: Send, sentence: str) -> None:
    kind = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    body = f"{sentence}\n".encode()
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(body)).encode())]
    await send({"type": f"{kind}.start", "status": 403, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})
