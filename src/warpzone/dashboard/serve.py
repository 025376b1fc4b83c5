"""Starts the server and prints its address."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import socket
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn

from warpzone.config.dashboard import TOKEN, address
from warpzone.dashboard.access import Access
from warpzone.dashboard.app import make_app
from warpzone.dashboard.guard import GuardedProtocol, GuardedSocket
from warpzone.dashboard.messages import MAX_SIZE
from warpzone.dashboard.sparing import Sparing

#: Connections that wait to be taken.
BACKLOG = 64


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
        # Connections taken at a time: in a flood the requests of those before are read in between.
        backlog=BACKLOG,
        timeout_graceful_shutdown=2,
        server_header=False,
        access_log=False,
        log_config=None,
    )
    server = uvicorn.Server(config)
    # Listens before the address is printed: a failure prints nothing else, and who opens the
    # address at once is served.
    listener = _listen(settings.host, settings.port)
    _announce(settings, access, "" if given else token)
    if settings.with_parent:
        threading.Thread(target=_end_with_parent, args=(server,), daemon=True).start()
    server.run(sockets=[listener])
    return 0 if server.started else 1


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
    for name, level in (("warpzone.dashboard", logging.INFO), ("uvicorn.error", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False
