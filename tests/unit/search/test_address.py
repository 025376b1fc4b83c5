"""Addresses of storages: passwords are seen by nobody."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from warpzone.config import ConfigError
from warpzone.search import address
from warpzone.search.address import Address, find_address
from warpzone.search.scrub import hide_passwords

URL = "postgresql://mario:it's%20me@db.example:5433/runs"


def test_the_password_is_hidden_and_the_rest_is_not() -> None:
    assert Address(URL).shown == "postgresql://mario:***@db.example:5433/runs"
    assert "it's" not in repr(Address(URL))
    said = Address(URL).scrub(f"cannot connect to {URL} with it's%20me or it's me")
    assert said == "cannot connect to *** with *** or ***"
    # The name of a journal may be said.
    assert Address("runs/x.log").scrub("runs/x.log is full") == "runs/x.log is full"


def test_where_a_storage_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(address.VARIABLE, raising=False)
    assert find_address(None, Path("a/journal.log")) == Address("a/journal.log")
    assert find_address("other.log", Path("a")) == Address("other.log")
    monkeypatch.setenv(address.VARIABLE, URL)
    assert find_address(None, Path("a")) == Address(URL)
    # As the command line looks once the password has left it.
    assert find_address(hide_passwords(URL), Path("a")) == Address(URL)
    assert find_address("mine.log", Path("a")) == Address("mine.log")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("mysql://a:geheim@b/c", "mysql is no kind of storage"),
        ("http://a:geheim@b", "http is no kind of storage"),
        ("postgresql://a:geheim@b:port/c", "host or port"),
        ("", "needs a file or the URL"),
        ("mario:geheim@db.example/runs", "begins with postgresql://"),
    ],
)
def test_what_is_no_storage_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as refused:
        find_address(text, Path("a"))
    assert "geheim" not in str(refused.value)


PROGRAM = """
import sys
from warpzone.search.address import find_address, leave_command_line
from pathlib import Path
found = find_address(sys.argv[1], Path("x"))
leave_command_line(found)
print(Path("/proc/self/cmdline").read_bytes())
print(sys.argv)
print(found.text)
"""


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="there is no /proc here")
def test_a_password_leaves_the_command_line() -> None:
    environment = {k: v for k, v in os.environ.items() if k != address.VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, URL],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env=environment,
    )
    seen, words, known = done.stdout.splitlines()
    assert "it's" not in seen + words + done.stderr
    assert "mario:***@db" in words
    assert known == URL
    assert done.stderr.count("\n") == 1
