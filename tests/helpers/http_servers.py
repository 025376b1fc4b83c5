"""A local HTTP server that keeps what is posted to it."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Posted:
    """What arrived, and what is answered."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.messages: list[dict[str, Any]] = []
        self.status = 200
        self.port = 0
        #: Requests are answered once this is set.
        self.answering = threading.Event()
        self.answering.set()

    @property
    def events(self) -> list[str]:
        return [message["event"] for message in self.messages]


@contextlib.contextmanager
def listening() -> Iterator[Posted]:
    """The server, until the block is left."""
    posted = Posted()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            posted.paths.append(self.path)
            posted.headers.append({name.lower(): value for name, value in self.headers.items()})
            posted.messages.append(json.loads(body))
            posted.answering.wait(60)
            self.send_response(posted.status)
            if posted.status == 302:
                self.send_header("location", f"http://127.0.0.1:{posted.port}/elsewhere")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        posted.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield posted
        finally:
            posted.answering.set()
            server.shutdown()
            thread.join()
