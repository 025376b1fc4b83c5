"""Of the ranks that end because of one, one says which it was."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from torch._C._distributed_c10d import FileStore, HashStore, Store

from warpzone.dist.parting import claim, claim_in
from warpzone.dist.watch import Peers, Watch, found

PATIENCE = 60.0


def test_one_of_a_folder_speaks(tmp_path: Path) -> None:
    assert [claim(tmp_path) for _ in range(3)] == [True, False, False]
    shutil.rmtree(tmp_path)
    assert [claim(tmp_path, gone=gone) for gone in (True, False)] == [True, False]


@pytest.mark.parametrize("kind", [HashStore, FileStore])
def test_one_of_a_store_speaks(kind: type[Store], tmp_path: Path) -> None:
    store = HashStore() if kind is HashStore else FileStore(str(tmp_path / "store"), 2)
    assert [claim_in(store) for _ in range(3)] == [True, False, False]


def test_without_a_store_everyone_speaks() -> None:
    class Gone(Store):
        def set_timeout(self, timeout: object) -> None:
            raise RuntimeError("Broken pipe")

    assert claim_in(None)
    assert claim_in(Gone())


@pytest.fixture
def waiting() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two processes that stand for ranks."""
    command = [sys.executable, "-c", "input()"]
    made = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(2)]
    yield made
    for process in made:
        process.kill()
        process.wait()
        assert process.stdin is not None
        process.stdin.close()


def test_the_rank_that_ended_is_named(waiting: list[subprocess.Popen[bytes]]) -> None:
    peers = Peers({4: waiting[0].pid, 7: waiting[1].pid})
    assert found(peers.sentence, 0) == ""
    os.kill(waiting[1].pid, signal.SIGKILL)
    # Nobody has asked for its exit code yet.
    assert found(peers.sentence, PATIENCE) == "rank 7 is gone"
    waiting[1].wait()
    assert peers.sentence() == "rank 7 is gone"


def test_ranks_that_are_not_seen_are_not_missed(waiting: list[subprocess.Popen[bytes]]) -> None:
    waiting[0].kill()
    waiting[0].wait()
    assert Peers({1: waiting[0].pid, 2: waiting[1].pid}).sentence() == ""


def test_ranks_of_the_second_machine_have_their_own_numbers(
    waiting: list[subprocess.Popen[bytes]],
) -> None:
    said: list[str] = []
    watch = Watch(waiting, said.append, first=2, child=False)
    try:
        assert watch.sentence() == ""
        waiting[1].kill()
        assert found(watch.sentence, PATIENCE) == "rank 4 was killed by SIGKILL"
    finally:
        watch.close()


def test_a_rank_that_nobody_of_the_run_started_has_no_parent_to_lose(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The shell it was started from may close."""
    ours, by_hand = (Watch([], print, first=2, child=child) for child in (True, False))
    try:
        monkeypatch.setattr(os, "getppid", lambda: 1 << 30)
        assert (ours.sentence(), by_hand.sentence()) == ("rank 2 is gone", "")
    finally:
        monkeypatch.undo()
        ours.close()
        by_hand.close()
