"""What a server on a network has to bear: no crash, no leak, a clear line in the log."""

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from dashboard_server import PATIENCE, TOKEN, Dashboard, Talk, make_run
from websockets.exceptions import ConnectionClosed, InvalidStatus

from warpzone.dashboard.app import MOST_SOCKETS

SECRET = "the content of a file outside"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    folder = tmp_path_factory.mktemp("served") / "runs"
    make_run(folder)
    (folder.parent / "secret.json").write_text(json.dumps({"secret": SECRET}))
    with Dashboard(folder, "--control") as dashboard:
        yield dashboard
        assert "Traceback" not in dashboard.log()


@pytest.fixture(autouse=True)
def _still_well(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "server" in request.fixturenames:
        dashboard = request.getfixturevalue("server")
        assert dashboard.get("/health")[0] == 200
        assert dashboard.talk().run()


@pytest.mark.parametrize(
    "path",
    [
        "/page/../../serve.py",
        "/page/..%2f..%2fserve.py",
        "/page/%2e%2e/%2e%2e/serve.py",
        "/page/..\\..\\serve.py",
        "/page//etc/passwd",
        "/../secret.json",
        "/secret.json",
        "/runs/one/config.json",
        "/page/%00index.html",
        "/page/" + "a" * 4000,
        "//evil.example/page/app.js",
        "/docs",
        "/openapi.json",
    ],
)
def test_no_path_reaches_the_file_system(server: Dashboard, path: str) -> None:
    status, _, body = server.get(path)
    assert status in (400, 404)
    assert b"import" not in body
    assert SECRET.encode() not in body


@pytest.mark.parametrize(
    "name", ["config.json", "..%2fconfig.json", "%2e%2e", "..%2f..%2fsecret.json"]
)
def test_only_listed_videos_are_sent(server: Dashboard, name: str) -> None:
    (server.folder / "one" / "best.gif").write_bytes(b"a video")
    talk = server.talk()
    run = talk.run()
    talk.say({"type": "watch", "runs": [run]})
    talk.hear("news")
    assert server.get(f"/video/{run}/best.gif")[2] == b"a video"
    assert server.get(f"/video/{run}/{name}")[0] == 404
    assert server.get(f"/video/{'0' * 16}/best.gif")[0] == 404


def test_a_listed_video_that_becomes_a_link_is_not_sent(server: Dashboard) -> None:
    videos = server.folder / "one" / "videos"
    videos.mkdir()
    (videos / "later.gif").write_bytes(b"a video" * 20_000)
    talk = server.talk()
    run = talk.run()
    talk.say({"type": "watch", "runs": [run]})
    talk.hear("news")
    status, headers, body = server.get(f"/video/{run}/later.gif")
    assert (status, body) == (200, b"a video" * 20_000)
    assert headers["content-type"] == "image/gif"
    (videos / "later.gif").unlink()
    (videos / "later.gif").symlink_to(server.folder.parent / "secret.json")
    status, _, body = server.get(f"/video/{run}/later.gif")
    assert status == 404
    assert SECRET.encode() not in body
    (videos / "later.gif").unlink()
    videos.rmdir()


@pytest.mark.parametrize("run", ["../secret", "..", "one", "0" * 16, "", "a" * 500])
def test_runs_are_named_by_ids_only(server: Dashboard, run: str) -> None:
    talk = server.talk(TOKEN)
    for message in (
        {"type": "part", "run": run, "what": "config", "request": 1},
        {"type": "do", "run": run, "what": "save", "request": 1},
    ):
        talk.say(message)
        while True:
            answer = json.loads(talk.link.recv(timeout=PATIENCE))
            if answer["type"] != "news":
                break
        assert SECRET not in json.dumps(answer)
        assert answer.get("missing") or answer.get("ok") is False or answer["type"] == "error"
    assert not list(server.folder.parent.rglob("control"))


def test_headers_keep_the_page_to_itself(server: Dashboard) -> None:
    status, headers, body = server.get("/")
    assert status == 200
    assert b"<script>" not in body
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers


def test_other_names_are_refused(server: Dashboard) -> None:
    status, _, body = server.get("/", {"Host": "evil.example"})
    assert status == 403
    assert b"does not answer to that name" in body
    upgrade = (
        "GET /ws HTTP/1.1\r\nHost: evil.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as link:
        link.sendall(upgrade.encode())
        assert link.recv(100).startswith(b"HTTP/1.1 403")
    assert "not our name: 'evil.example'" in server.log()


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1"])
def test_other_pages_get_no_socket(server: Dashboard, origin: str) -> None:
    with pytest.raises(InvalidStatus, match="403"):
        server.socket(origin=origin)
    assert f"from another page: {origin!r}" in server.log()


@pytest.mark.parametrize(
    "message",
    [
        "nonsense",
        "[]",
        "{}",
        '{"type": "watch"}',
        '{"type": "watch", "runs": 7}',
        '{"type": "curves", "request": 1e400, "runs": [], "names": []}',
        '{"type": "hello", "token": ""}, ',
        "[" * 10_000,
        '{"type": "do", "request": 1, "run": "0000000000000000", "what": "lr", "value": "1"}',
    ],
)
def test_malformed_messages(server: Dashboard, message: str) -> None:
    talk = server.talk()
    with pytest.raises(ConnectionClosed) as closed:
        for _ in range(10):
            talk.link.send(message)
            talk.hear("error")
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008
    assert "too many messages that make no sense" in server.log()


def test_a_first_message_that_is_no_hello(server: Dashboard) -> None:
    for data in ('{"type": "ack"}', b"bytes", "x"):
        link = server.socket()
        link.send(data)
        with pytest.raises(ConnectionClosed):
            link.recv(timeout=PATIENCE)


def test_oversized_messages(server: Dashboard) -> None:
    talk = server.talk()
    with pytest.raises(ConnectionClosed) as closed:
        talk.link.send("x" * 1_000_000)
        while True:
            talk.link.recv(timeout=PATIENCE)
    assert closed.value.sent is not None or closed.value.rcvd is not None
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as link:
        link.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100_000)
        assert link.recv(100).startswith(b"HTTP/1.1 4")


def test_a_flood_is_cut_off(server: Dashboard) -> None:
    talk = server.talk()
    with pytest.raises(ConnectionClosed):
        for _ in range(2000):
            talk.link.send('{"type": "ack"}')
        while True:
            talk.link.recv(timeout=PATIENCE)
    assert "too many messages a second" in server.log()


EMPTY = {"fragments": b"\x00", "pings": b"\x89", "pongs": b"\x8a"}


@pytest.mark.parametrize("kind", EMPTY)
def test_a_flood_of_empty_frames_is_cut_off(server: Dashboard, kind: str) -> None:
    """They are no messages, and each of them is work."""
    talk = server.talk()
    empty = b"\x80\0\0\0\0"
    before = server.log().count("too many frames a second")
    # Closed meanwhile, or with the last of them.
    with contextlib.suppress(OSError):
        talk.link.socket.sendall(b"\x01" + empty + (EMPTY[kind] + empty) * 20_000)
    with pytest.raises(ConnectionClosed):
        while True:
            talk.link.recv(timeout=PATIENCE)
    assert server.log().count("too many frames a second") == before + 1


def test_a_message_in_a_few_fragments_is_understood(server: Dashboard) -> None:
    talk = server.talk()
    talk.link.send(
        ["{", '"type": ', '"part", "run": "', "0" * 16, '", "what": "log", "request": 1}']
    )
    assert talk.hear("part")["missing"] is True
    talk.link.ping().wait(PATIENCE)


def test_commands_need_the_token(server: Dashboard) -> None:
    stranger = server.talk()
    assert stranger.welcome["allowed"] is False
    run = stranger.run()
    order = {"type": "do", "run": run, "what": "stop"}
    answer = stranger.ask(order, "did")
    assert (answer["ok"], answer["message"]) == (False, "commands need the token")
    assert not (server.folder / "one" / "control").exists()
    owner = server.talk(TOKEN)
    for what, value in (("lr", 0.5), ("entropy", -1.0), ("rm", None), ("pause", 3.0)):
        refused = owner.ask({**order, "what": what, "value": value}, "did")
        assert refused["ok"] is False
    assert owner.ask({**order, "what": "lr", "value": 1e-4, "name": "me"}, "did")["ok"]
    (sent,) = (server.folder / "one" / "control").glob("*.json")
    said = json.loads(sent.read_text())
    assert (said["who"], said["what"], said["value"]) == ("me @ 127.0.0.1", "lr", 1e-4)
    sent.unlink()
    sent.parent.rmdir()


def test_a_browser_that_does_not_answer_is_sent_no_more(server: Dashboard) -> None:
    link = server.socket()
    link.send(json.dumps({"type": "hello"}))
    assert json.loads(link.recv(timeout=PATIENCE))["type"] == "welcome"
    link.send(json.dumps({"type": "watch", "runs": []}))
    assert json.loads(link.recv(timeout=PATIENCE))["type"] == "news"
    make_run(server.folder, f"later-{time.time_ns()}", rows=1)
    with pytest.raises(TimeoutError):
        link.recv(timeout=4)
    link.send(json.dumps({"type": "ack"}))
    while len(json.loads(link.recv(timeout=PATIENCE)).get("runs", ())) < 2:
        link.send(json.dumps({"type": "ack"}))


def test_idle_sockets_keep_nobody_out(server: Dashboard) -> None:
    before = open_files(server)
    raw = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(200)]
    idle = [server.socket() for _ in range(MOST_SOCKETS + 20)]
    silent = [server.talk() for _ in range(MOST_SOCKETS + 20)]
    assert Talk(server.socket()).run()
    for connection in raw:
        connection.close()
    for link in (*idle, *(talk.link for talk in silent)):
        link.close()
    until = time.monotonic() + PATIENCE
    while open_files(server) > before + 5 and time.monotonic() < until:
        time.sleep(0.2)
    assert open_files(server) <= before + 5
    assert "too many are open" in server.log()


def open_files(server: Dashboard) -> int:
    assert server.process is not None
    if not Path("/proc").is_dir():
        return 0
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


def test_guessing_the_token(tmp_path: Path) -> None:
    make_run(tmp_path / "runs")
    with Dashboard(tmp_path / "runs", "--control") as guessed:
        for _ in range(6):
            link = guessed.socket()
            link.send(json.dumps({"type": "hello", "token": "wrong" * 5}))
            with pytest.raises(ConnectionClosed, match="wrong token"):
                link.recv(timeout=PATIENCE)
        link = guessed.socket()
        link.send(json.dumps({"type": "hello", "token": TOKEN}))
        # Not the same words: the page keeps a token that was not looked at.
        with pytest.raises(ConnectionClosed, match="too many wrong tokens, wait"):
            link.recv(timeout=PATIENCE)
        assert guessed.talk().welcome["allowed"] is False
        assert "too many wrong ones from 127.0.0.1" in guessed.log()
        assert TOKEN not in guessed.log()


def test_a_bind_that_is_not_local_shows_nothing_without_the_token(tmp_path: Path) -> None:
    make_run(tmp_path / "runs")
    with Dashboard(tmp_path / "runs", host="0.0.0.0") as public:
        link = public.socket()
        link.send(json.dumps({"type": "hello"}))
        with pytest.raises(ConnectionClosed, match="needs its token"):
            link.recv(timeout=PATIENCE)
        owner = public.talk(TOKEN)
        run = owner.run()
        assert public.get(f"/video/{run}/best.gif")[0] == 403
        allowed = {"Authorization": f"Bearer {TOKEN}"}
        assert public.get(f"/video/{run}/best.gif", allowed)[0] == 404
        answer = owner.ask({"type": "do", "run": run, "what": "save"}, "did")
        assert "read only" in answer["message"]
