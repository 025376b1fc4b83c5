"""Identifies the other end of a connection. All users of one machine share its loopback address,
so there the system's table of sockets gives the owner."""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

#: Linux: one line for each socket, with addresses, state and owner.
TABLES = {4: Path("/proc/net/tcp"), 6: Path("/proc/net/tcp6")}
ESTABLISHED = "01"
#: Largest size of the table.
MOST_BYTES = 8 << 20

Address = tuple[str, int]


class GoneError(Exception):
    """The other end is closing, and its owner is no longer known."""


def ends(scope: Mapping[str, Any]) -> tuple[Address | None, Address | None]:
    """Both ends of a connection as the web framework describes it: client and server."""
    client, server = scope.get("client"), scope.get("server")
    return (
        (client[0], client[1]) if client else None,
        (server[0], server[1]) if server and server[1] is not None else None,
    )


def who(client: Address | None, server: Address | None) -> str:
    """A name for the peer of a connection: the address, on this machine the user as well. Empty
    where local users cannot be told apart. GoneError if the connection is not open any more."""
    if client is None:
        return ""
    address = _plain(client[0])
    if address is None or not address.is_loopback:
        return client[0]
    table = TABLES[address.version]
    if server is None or not table.is_file():
        return ""
    place, target = _hexadecimal(client), _hexadecimal(server)
    for local, remote, state, user in _rows(table):
        if (local, remote, state) == (place, target, ESTABLISHED):
            return f"{client[0]} (user {user})"
    raise GoneError("the connection is not open any more")


def _rows(table: Path) -> Iterator[tuple[str, str, str, int]]:
    with table.open() as file:
        for line in file.read(MOST_BYTES).splitlines()[1:]:
            fields = line.split()
            if len(fields) > 7:
                yield fields[1], fields[2], fields[3], int(fields[7])


def _plain(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _hexadecimal(place: Address) -> str:
    """As the table has it: words of four bytes, each in the machine's order."""
    address = _plain(place[0])
    packed = address.packed if address is not None else b""
    words = [packed[start : start + 4] for start in range(0, len(packed), 4)]
    if sys.byteorder == "little":
        words = [word[::-1] for word in words]
    return f"{b''.join(words).hex().upper()}:{place[1]:04X}"
