"""Who is at the other end: an address, and on this machine a user."""

import os
import socket
from pathlib import Path

import pytest

from warpzone.dashboard import peer
from warpzone.dashboard.access import TRIES, Access

TOKEN = "0123456789abcdef"
HEAD = (
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout\n"
)
SERVER = ("127.0.0.1", 8765)


def table(folder: Path, *rows: tuple[int, str, int]) -> Path:
    """Sockets of this machine that are connected to the server: port, state and user."""
    path = folder / "tcp"
    place = peer._hexadecimal
    lines = [
        f"{n}: {place(('127.0.0.1', port))} {place(SERVER)} {state} 0:0 00:0 0 {user} 0 1\n"
        for n, (port, state, user) in enumerate(rows)
    ]
    path.write_text(HEAD + "".join(lines))
    return path


@pytest.mark.skipif(not peer.TABLES[4].is_file(), reason="needs Linux's table of sockets")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_user_of_a_real_connection(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as server:
        try:
            server.bind((host, 0))
        except OSError:
            pytest.skip("there is no IPv6 here")
        server.listen()
        client = socket.create_connection(server.getsockname()[:2])
        accepted, address = server.accept()
        with accepted:
            target = accepted.getsockname()[:2]
            assert peer.who(address[:2], target) == f"{host} (user {os.getuid()})"
            client.close()
            with pytest.raises(peer.GoneError):
                peer.who(address[:2], target)


def test_a_guesser_locks_out_itself_and_not_the_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both at the same address."""
    rows = [(40_000, "01", 1000), (40_001, "01", 4242), (40_002, "06", 0)]
    monkeypatch.setitem(peer.TABLES, 4, table(tmp_path, *rows))
    owner = peer.who(("127.0.0.1", 40_000), SERVER)
    guesser = peer.who(("127.0.0.1", 40_001), SERVER)
    access = Access("127.0.0.1", control=True, token=TOKEN)
    for _ in range(TRIES):
        assert access.judge("wrong", guesser) == "wrong"
    assert access.judge(TOKEN, guesser) == "wait"
    assert access.judge(TOKEN, owner) == "right"
    # A socket that is closing belongs to nobody any more, root included.
    with pytest.raises(peer.GoneError):
        peer.who(("127.0.0.1", 40_002), SERVER)


def test_where_users_cannot_be_told_apart_nobody_is_locked_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(peer.TABLES, 4, tmp_path / "missing")
    nobody = peer.who(("127.0.0.1", 40_000), SERVER)
    assert nobody == peer.who(None, SERVER) == ""
    access = Access("127.0.0.1", control=True, token=TOKEN)
    for _ in range(TRIES + 1):
        assert access.judge("wrong", nobody) == "wrong"
    assert access.judge(TOKEN, nobody) == "right"


def test_other_machines_are_their_addresses() -> None:
    assert peer.who(("192.0.2.7", 1), SERVER) == "192.0.2.7"
    assert peer.who(("not an address", 1), SERVER) == "not an address"
