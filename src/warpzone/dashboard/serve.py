"""Starts the server and prints its address."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import secrets
import socket
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn

from warpzone.config.dashboard import TOKEN, address
from warpzone.dashboard.access import Access
from warpzone.dashboard.app import make_app
from warpzone.dashboard.door import BACKLOG, Door
from warpzone.dashboard.guard import GuardedProtocol, GuardedSocket
from warpzone.dashboard.messages import MAX_SIZE
from warpzone.dashboard.sparing import Sparing

LOG = logging.getLogger("warpzone.dashboard")

#: Files that the process may open: connections, and run folders.
FILES = 1024


@dataclass(frozen=True)
class Settings:
    """Settings of a server."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8765
    control: bool = False
    #: Whether `/metrics` is served.
    metrics: bool = False
    names: tuple[str, ...] = field(default=())
    #: Whether the process ends when its standard input does.
    with_parent: bool = False


def serve(settings: Settings) -> int:
    """Serves until a signal; returns the exit code."""
    _log_to_stderr()
    given = os.environ.get(TOKEN, "")
    token = given or secrets.token_urlsafe(24)
    access = Access(settings.host, control=settings.control, token=token, names=settings.names)
    config = uvicorn.Config(
        make_app(settings.folder, access, metrics=settings.metrics),
        host=settings.host,
        port=settings.port,
        http=GuardedProtocol,
        ws=GuardedSocket,
        ws_max_size=MAX_SIZE,
        ws_per_message_deflate=False,
        ws_ping_interval=15.0,
        ws_ping_timeout=20.0,
        h11_max_incomplete_event_size=MAX_SIZE,
        timeout_graceful_shutdown=2,
        server_header=False,
        access_log=False,
        log_config=None,
    )
    _allow_files()
    # Listens before the address is printed: a failure prints nothing else, and who opens the
    # address at once is served.
    listener = _listen(settings.host, settings.port)
    server = Server(config, listener, access)
    _announce(settings, access, "" if given else token)
    if settings.with_parent:
        threading.Thread(target=_end_with_parent, args=(server,), daemon=True).start()
    server.run(sockets=[])
    return 0 if server.started else 1


class Server(uvicorn.Server):
    """A server whose connections come through a door."""

    def __init__(self, config: uvicorn.Config, listener: socket.socket, access: Access) -> None:
        super().__init__(config)
        self._listener = listener
        self._access = access
        self._door: Door | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Called by uvicorn."""
        await super().startup(sockets)
        asyncio.get_running_loop().set_exception_handler(_one_line)
        self._door = Door(self._listener, self._access, self._protocol)
        self._door.open()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Called by uvicorn."""
        if self._door is not None:
            self._door.close()
        await super().shutdown(sockets)

    def _protocol(self) -> GuardedProtocol:
        return GuardedProtocol(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )


def _one_line(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What the event loop reports. A failure of the system (no more files, a connection that is
    gone) needs no traceback."""
    error = context.get("exception")
    if isinstance(error, OSError):
        LOG.warning("%s: %s", context["message"], error)
    else:
        loop.default_exception_handler(context)


def _allow_files() -> None:
    """Some systems begin with 256, which are fewer than there may be connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _listen(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    with contextlib.ExitStack() as undo:
        undo.callback(listener.close)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
        undo.pop_all()
    return listener


def _announce(settings: Settings, access: Access, token: str) -> None:
    url = address(settings.host, settings.port)
    print(f"[dashboard] runs in {settings.folder}: {url}", file=sys.stderr)
    if not (settings.control or access.closed):
        print("[dashboard] read only; --control allows commands", file=sys.stderr)
    elif token:
        what = "looking needs" if access.closed else "commands need"
        print(f"[dashboard] {what} the token: {url}#token={token}", file=sys.stderr)
    sys.stderr.flush()


def _end_with_parent(server: uvicorn.Server) -> None:
    sys.stdin.buffer.read()
    server.should_exit = True


def _log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("[dashboard] %(asctime)s %(levelname)s %(message)s"))
    handler.addFilter(Sparing())
    levels = {"warpzone.dashboard": logging.INFO}
    levels |= {"uvicorn.error": logging.WARNING, "asyncio": logging.WARNING}
    for name, level in levels.items():
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False
