"""Access rules: the token, the host names, and the origins that this server accepts."""

from __future__ import annotations

import ipaddress
import logging
import secrets
import socket
import time
from collections import OrderedDict
from typing import Literal
from urllib.parse import urlsplit

from warpzone.config.dashboard import LEAST_TOKEN

LOG = logging.getLogger("warpzone.dashboard")

Verdict = Literal["right", "wrong", "wait"]

#: Wrong tokens of one guesser before it must wait, and for how long.
TRIES = 5
WAIT = 60.0
#: Largest number of remembered senders of wrong tokens.
MOST_ADDRESSES = 1024


class Access:
    """The rules of one server."""

    def __init__(
        self, host: str, *, control: bool, token: str, names: tuple[str, ...] = ()
    ) -> None:
        if len(token) < LEAST_TOKEN:
            raise ValueError(f"a token needs at least {LEAST_TOKEN} characters")
        self.local = is_local(host)
        self.control = control
        #: Whether looking needs the token too.
        self.closed = not self.local
        self._token = token.encode()
        self._names = {"localhost", *(name.lower() for name in names)}
        if not self.local:
            self._names.add(socket.gethostname().lower())
        self._wrong: OrderedDict[str, list[float]] = OrderedDict()

    def right_token(self, token: str, who: str) -> bool:
        """Whether `judge` says so."""
        return self.judge(token, who) == "right"

    def judge(self, token: str, who: str) -> Verdict:
        """Compares in constant time; only the sender of wrong tokens must wait. `who` is empty
        where users cannot be told apart: locking out all of them would help an attacker, and a
        token of this length cannot be guessed."""
        moments = [when for when in self._wrong.get(who, ()) if time.monotonic() - when < WAIT]
        if who and len(moments) >= TRIES:
            LOG.warning("token refused unseen: too many wrong ones from %s", who)
            return "wait"
        if secrets.compare_digest(token.encode(errors="replace"), self._token):
            self._wrong.pop(who, None)
            return "right"
        if who:
            self._wrong[who] = [*moments, time.monotonic()]
            self._wrong.move_to_end(who)
        while len(self._wrong) > MOST_ADDRESSES:
            self._wrong.popitem(last=False)
        LOG.warning("wrong token from %s (%d of %d)", who or "?", len(moments) + 1, TRIES)
        return "wrong"

    def knows_host(self, header: str) -> bool:
        """Whether a request is meant for this server. A foreign page whose name resolves to this
        server (DNS rebinding) still sends that name."""
        name = host_name(header)
        if not name:
            return False
        if name in self._names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not self.local

    def knows_origin(self, origin: str | None, host: str) -> bool:
        """Whether a socket was opened by our own page. Programs other than browsers send none."""
        if origin is None:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def is_local(host: str) -> bool:
    """Whether only this machine can reach a server bound to `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_name(header: str) -> str:
    """The name in a Host header, without its port; empty if it is malformed."""
    try:
        parts = urlsplit(f"//{header}")
        _ = parts.port
    except ValueError:
        return ""
    if parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        return ""
    return (parts.hostname or "").lower()
