"""The webhook: what it sends, that nobody waits for it, and that its address stays secret."""

import socket
import time

import pytest
from http_servers import listening

from warpzone.health.webhook import MOST_WAITING, Webhook

SECRET = "T0K3N"


def test_events_arrive_in_order_and_the_user_becomes_a_header() -> None:
    said: list[str] = []
    with listening() as posted:
        hook = Webhook(f"http://me:{SECRET}@127.0.0.1:{posted.port}/hook/{SECRET}?a=b", said.append)
        hook.send("stall", "no progress", run="one", global_step=7)
        hook.send("end", "done")
        hook.close()
    assert posted.events == ["stall", "end"]
    assert posted.paths == [f"/hook/{SECRET}?a=b"] * 2
    first = posted.messages[0]
    assert (first["text"], first["content"]) == ("no progress", "no progress")
    assert (first["run"], first["global_step"]) == ("one", 7)
    assert first["timestamp"] <= time.time()
    assert posted.headers[0]["authorization"] == "Basic bWU6VDBLM04="
    assert posted.headers[0]["content-type"] == "application/json"
    assert said == []
    assert hook.name == "http://127.0.0.1/…"


@pytest.mark.parametrize("status", [302, 404, 500])
def test_a_refused_event_is_tried_again_and_reported_without_the_address(status: int) -> None:
    said: list[str] = []
    with listening() as posted:
        posted.status = status
        hook = Webhook(f"http://127.0.0.1:{posted.port}/{SECRET}", said.append, pause=0.0)
        hook.send("end", "done")
        hook.close()
        assert posted.paths == [f"/{SECRET}"] * 2  # A redirection is not followed.
    assert said == [
        f"[notify][warn] event end did not reach http://127.0.0.1/…: it answered {status}"
    ]


def test_a_dead_server_is_reported() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    said: list[str] = []
    hook = Webhook(f"http://127.0.0.1:{port}/{SECRET}", said.append, pause=0.0)
    hook.send("end", "done")
    hook.close()
    hook.close()
    assert said == ["[notify][warn] event end did not reach http://127.0.0.1/…: Connection refused"]


def test_a_server_that_does_not_answer_keeps_nobody_waiting() -> None:
    said: list[str] = []
    with listening() as posted:
        posted.answering.clear()
        hook = Webhook(f"http://127.0.0.1:{posted.port}/{SECRET}", said.append, timeout=60.0)
        # One event is under way at most; as many wait as there is room for.
        for number in range(MOST_WAITING + 10):
            hook.send(f"alert{number}", "")
        hook.close(patience=0.05)
        # The thread goes on by itself, so that it is released before the server goes.
        posted.answering.set()
    dropped = [line for line in said if "too slow" in line]
    assert 9 <= len(dropped) <= 10
    assert said[-1].endswith("did not take all events in 0.05 s")
    assert SECRET not in "".join(said)


@pytest.mark.parametrize(
    "address", ["", "file:///etc/passwd", "127.0.0.1:80", "http://", "http://a:x/", "http://[::1"]
)
def test_what_is_no_address_is_refused_without_being_repeated(address: str) -> None:
    with pytest.raises(ValueError, match="--notify") as refused:
        Webhook(address + "?" + SECRET, print)
    assert SECRET not in str(refused.value)


def test_an_address_with_control_characters_is_never_shown() -> None:
    said: list[str] = []
    hook = Webhook(f"http://127.0.0.1:9/{SECRET} \x01", said.append, pause=0.0)
    hook.send("end", "done")
    hook.close()
    assert len(said) == 1
    assert SECRET not in said[0]
