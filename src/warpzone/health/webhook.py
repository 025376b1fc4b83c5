"""Sends events of a run to a webhook, from a thread of its own: training never waits for it.

The address may hold a secret (Slack's, Discord's and the like do). It is kept here alone: it is no
field of the configuration, and messages about it name the host only.
"""

from __future__ import annotations

import base64
import json
import queue
import threading
import time
from collections.abc import Callable
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

#: The variable that holds the address, so that lists of processes do not show it.
VARIABLE = "WARPZONE_NOTIFY"
#: Seconds for one attempt; attempts; seconds between them.
TIMEOUT, TRIES, PAUSE = 5.0, 2, 1.0
#: Seconds that the end of a run waits for events that are not sent yet.
PATIENCE = 10.0
#: Events that wait; more are dropped.
MOST_WAITING = 100


class Webhook:
    """One address and the events on their way to it."""

    def __init__(
        self,
        address: str,
        say: Callable[[str], None],
        *,
        timeout: float = TIMEOUT,
        pause: float = PAUSE,
    ) -> None:
        """say: for what goes wrong. ValueError for an address that cannot be one."""
        parts = check_address(address)
        host = parts.hostname or ""
        #: What may be shown of the address.
        self.name = f"{parts.scheme}://{f'[{host}]' if ':' in host else host}/…"
        self._headers = {"content-type": "application/json", "user-agent": "warpzone"}
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        self._address = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        self._say = say
        self._timeout = timeout
        self._pause = pause
        self._opener: OpenerDirector = build_opener(_NoRedirect)
        self._waiting: queue.Queue[dict[str, Any] | None] = queue.Queue(MOST_WAITING)
        # A daemon: a server that keeps a connection open must not keep the process alive.
        self._thread = threading.Thread(target=self._work, name="webhook", daemon=True)
        self._thread.start()

    def send(self, event: str, text: str, **more: Any) -> None:
        """Queues an event and returns at once. `text` and `content` are what Slack and Discord
        show of it."""
        message = {"event": event, "text": text, "content": text, "timestamp": time.time(), **more}
        try:
            self._waiting.put_nowait(message)
        except queue.Full:
            self._say(f"[notify][warn] {self.name} is too slow: event {event} is dropped")

    def close(self, patience: float = PATIENCE) -> None:
        """Waits a while for what is queued. Closing twice does no harm."""
        if not self._thread.is_alive():
            return
        deadline = time.monotonic() + patience
        try:
            self._waiting.put(None, timeout=patience)
        except queue.Full:
            pass
        else:
            self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive():
            self._say(f"[notify][warn] {self.name} did not take all events in {patience:g} s")

    def _work(self) -> None:
        while (message := self._waiting.get()) is not None:
            problem = ""
            for attempt in range(TRIES):
                time.sleep(self._pause if attempt else 0.0)
                problem = self._post(message)
                if not problem:
                    break
            if problem:
                self._say(
                    f"[notify][warn] event {message['event']} did not reach {self.name}: {problem}"
                )

    def _post(self, message: dict[str, Any]) -> str:
        """What went wrong, without the address or what the server answered; empty if nothing."""
        data = json.dumps(message).encode()
        request = Request(self._address, data, self._headers, method="POST")  # noqa: S310
        try:
            with self._opener.open(request, timeout=self._timeout):
                return ""
        except HTTPError as error:
            with error:
                return f"it answered {error.code}"
        except URLError as error:
            reason = error.reason
            said = reason.strerror if isinstance(reason, OSError) else None
            return said or type(reason).__name__
        except OSError as error:
            return error.strerror or type(error).__name__
        except (HTTPException, ValueError) as error:
            # Their texts repeat the address.
            return type(error).__name__


class _NoRedirect(HTTPRedirectHandler):
    """A redirected POST would become a GET of another address."""

    def redirect_request(self, *_: Any) -> None:
        return None


def check_address(address: str) -> SplitResult:
    """The parts of an address; ValueError, which does not repeat it, if it cannot be one."""
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError as error:
        raise ValueError("the address given to --notify is not one") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("--notify takes an address that begins with http:// or https://")
    return parts
