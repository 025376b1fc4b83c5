"""Clients that send rubbish, half of something, or leave in the middle: the right status code, one
line in the log at most, never a traceback, and no connection that stays."""

import contextlib
import os
import signal
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from dashboard_server import PATIENCE, Dashboard, make_run, wait

HOST = b"Host: 127.0.0.1\r\n"
UPGRADE = (
    b"GET /ws HTTP/1.1\r\n" + HOST + b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
)
CHUNKED = b"POST /health HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
LONG = b"POST /health HTTP/1.1\r\n" + HOST + b"Content-Length: 100000000\r\n\r\n"
#: Until a silent server counts as one that has forgotten a connection.
SECONDS = 30.0
RUBBISH = b"\0\x01rubbish\r\n\r\n"


def frame(data: bytes, kind: int = 0x81) -> bytes:
    return bytes([kind, 0x80 | len(data)]) + b"\0\0\0\0" + data


SOCKET = UPGRADE + b"\r\n"
HELLO = frame(b'{"type": "hello"}')
#: In between: until the server has answered.
ANSWER = b""

#: What is sent, and how the last answer begins.
CASES: dict[str, tuple[list[bytes], bytes]] = {
    "no HTTP": ([RUBBISH], b"HTTP/1.1 400"),
    "no HTTP after a request": (
        [b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n", RUBBISH],
        b"HTTP/1.1 200",
    ),
    "a body that nobody asked for": ([LONG, *[b"x" * 100_000] * 20], b"HTTP/1.1 413"),
    "a body of rubbish": ([CHUNKED + b"zz\r\nrubbish\r\n"], b"HTTP/1.1 4"),
    "a body of rubbish later": ([CHUNKED, b"zz\r\nrubbish\r\n"], b"HTTP/1.1 4"),
    "a socket with a body": ([UPGRADE + b"Content-Length: 5\r\n\r\nabcde"], b"HTTP/1.1 400"),
    "a socket with many headers": ([UPGRADE + b"X: y\r\n" * 200 + b"\r\n"], b"HTTP/1.1 400"),
    "a socket with a long header": (
        [UPGRADE + b"X: " + b"y" * 9000 + b"\r\n\r\n"],
        b"HTTP/1.1 400",
    ),
    "a socket of another name": (
        [SOCKET.replace(b"127.0.0.1", b"evil.example")],
        b"HTTP/1.1 403",
    ),
    "a message that is no text": (
        [SOCKET, ANSWER, HELLO + frame(b"\xff\xfe")],
        b"\x88\x02\x03\xef",
    ),
    "a frame that is none": ([SOCKET, ANSWER, HELLO + frame(b"x", 0xF1)], b"\x88"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    folder = tmp_path_factory.mktemp("rubbish") / "runs"
    make_run(folder)
    with Dashboard(folder) as dashboard:
        yield dashboard


@pytest.fixture(scope="module")
def own(server: Dashboard) -> int:
    """Sockets that are open without a client."""
    counts = []
    for _ in range(20):
        counts.append(sockets(server))
        time.sleep(0.02)
    return min(counts)


def refusals(text: str) -> list[str]:
    return [line for line in text.splitlines() if " INFO " not in line]


def sockets(server: Dashboard) -> int:
    """How many the server holds open: those of clients, and those of its own."""
    assert server.process is not None
    found = 0
    for entry in Path(f"/proc/{server.process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found += os.readlink(entry).startswith("socket:")
    return found


def answers(link: socket.socket, data: bytes) -> list[bytes]:
    """Everything until the server closes: HTTP first, then frames, one by one."""
    try:
        while got := link.recv(1 << 16):
            data += got
    except ConnectionResetError:
        pass
    head, _, rest = data.partition(b"\r\n\r\n")
    found = [head]
    while head.startswith(b"HTTP/1.1 101") and rest:
        size = rest[1] if rest[1] < 126 else 2 + int.from_bytes(rest[2:4])
        found.append(rest[: 2 + size])
        rest = rest[2 + size :]
    return found


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("leaves", [False, True], ids=["stays", "leaves"])
def test_one_line_and_the_right_code(server: Dashboard, own: int, case: str, leaves: bool) -> None:
    parts, wanted = CASES[case]
    before = len(server.log())
    with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as link:
        got = b""
        try:
            for part in parts:
                link.sendall(part)
                while part == ANSWER and b"\r\n\r\n" not in got:
                    got += link.recv(1 << 16)
        except (ConnectionResetError, BrokenPipeError):
            pass
        if leaves:
            # Closed with a reset, as by a process that was killed.
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            assert any(answer.startswith(wanted) for answer in answers(link, got))
    # The server has taken it up after this, and may let it wait for its turn.
    assert server.get("/health")[0] == 200
    wait(lambda: sockets(server) <= own, SECONDS)
    assert server.get("/health")[0] == 200
    said = server.log()[before:]
    assert "Traceback" not in said
    assert len(refusals(said)) <= 1, said


def test_a_socket_that_waits_does_not_break_the_end(tmp_path: Path) -> None:
    make_run(tmp_path / "runs")
    with Dashboard(tmp_path / "runs") as dashboard:
        links = []
        for _ in range(200):
            link = socket.create_connection(("127.0.0.1", dashboard.port), timeout=PATIENCE)
            link.sendall(UPGRADE + b"\r\n")
            links.append(link)
        assert dashboard.process is not None
        dashboard.process.send_signal(signal.SIGTERM)
        dashboard.process.wait(PATIENCE)
        for link in links:
            link.close()
        assert "Traceback" not in dashboard.log()


def test_a_browser_that_takes_nothing_does_not_break_the_end(tmp_path: Path) -> None:
    make_run(tmp_path / "runs")
    (tmp_path / "runs" / "one" / "best.gif").write_bytes(b"a video" * 5_000_000)
    with Dashboard(tmp_path / "runs") as dashboard:
        talk = dashboard.talk()
        run = talk.run()
        talk.say({"type": "watch", "runs": [run]})
        talk.hear("news")
        with socket.create_connection(("127.0.0.1", dashboard.port), timeout=PATIENCE) as link:
            link.sendall(f"GET /video/{run}/best.gif HTTP/1.1\r\n".encode() + HOST + b"\r\n")
            assert link.recv(12) == b"HTTP/1.1 200"
            assert dashboard.process is not None
            dashboard.process.send_signal(signal.SIGTERM)
            dashboard.process.wait(PATIENCE)
        talk.link.close()
        assert "cut off" in dashboard.log()
        assert "Traceback" not in dashboard.log()


def test_more_connections_than_files(tmp_path: Path) -> None:
    """Where a process may open few files, connections wait, and a line says so."""
    resource = pytest.importorskip("resource")
    make_run(tmp_path / "runs")
    with Dashboard(tmp_path / "runs") as dashboard:
        assert dashboard.process is not None
        opened = len(list(Path(f"/proc/{dashboard.process.pid}/fd").iterdir()))
        resource.prlimit(dashboard.process.pid, resource.RLIMIT_NOFILE, (opened + 5, opened + 5))
        links = [socket.create_connection(("127.0.0.1", dashboard.port)) for _ in range(40)]
        wait(lambda: "open files" in dashboard.log())
        for link in links:
            link.close()
        assert dashboard.get("/health")[0] == 200
        assert "Traceback" not in dashboard.log()
