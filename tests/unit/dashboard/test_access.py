"""Who may look, who may command, and under which name."""

import pytest

from warpzone.dashboard.access import TRIES, Access, host_name, is_local

TOKEN = "0123456789abcdef"


def test_a_token_is_right_or_wrong() -> None:
    access = Access("127.0.0.1", control=True, token=TOKEN)
    assert access.right_token(TOKEN, "a")
    assert not access.right_token(TOKEN + "0", "a")
    assert not access.right_token("", "a")
    with pytest.raises(ValueError, match="16 characters"):
        Access("127.0.0.1", control=True, token="short")


def test_who_guesses_must_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("warpzone.dashboard.access.time.monotonic", lambda: now)
    access = Access("127.0.0.1", control=True, token=TOKEN)
    for _ in range(TRIES):
        assert not access.right_token("wrong", "guesser")
    assert not access.right_token(TOKEN, "guesser")
    assert access.right_token(TOKEN, "somebody else")
    now += 61
    assert access.right_token(TOKEN, "guesser")


@pytest.mark.parametrize(
    ("host", "local", "known"),
    [
        ("localhost:8765", True, True),
        ("127.0.0.1", True, True),
        ("[::1]:8765", True, True),
        ("evil.example:8765", True, False),
        ("192.168.1.9:8765", True, False),
        ("192.168.1.9:8765", False, True),
        ("evil.example", False, False),
        ("", True, False),
        ("localhost@evil.example", True, False),
        ("localhost/evil", True, False),
        ("localhost:notaport", True, False),
        ("gpu.lab.example", False, True),
    ],
)
def test_names(host: str, local: bool, known: bool) -> None:
    names = ("gpu.lab.example",)
    bind = "127.0.0.1" if local else "0.0.0.0"
    assert Access(bind, control=False, token=TOKEN, names=names).knows_host(host) is known


@pytest.mark.parametrize(
    ("origin", "known"),
    [
        (None, True),
        ("http://localhost:8765", True),
        ("https://localhost:8765", True),
        ("http://localhost:8766", False),
        ("http://evil.example", False),
        ("null", False),
        ("", False),
        ("file://localhost:8765", False),
        ("http://[", False),
        ("http://[localhost]:8765", False),
    ],
)
def test_origins(origin: str | None, known: bool) -> None:
    access = Access("127.0.0.1", control=False, token=TOKEN)
    assert access.knows_origin(origin, "localhost:8765") is known


def test_what_is_local() -> None:
    assert [is_local(host) for host in ("127.0.0.1", "::1", "localhost", "127.9.9.9")] == [True] * 4
    assert not any(is_local(host) for host in ("0.0.0.0", "::", "192.168.0.1", "example.org"))
    assert host_name("[::1]:80") == "::1"
