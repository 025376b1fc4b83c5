"""Ranks that meet in a store in which others have met before."""

from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta

import pytest
from torch._C._distributed_c10d import HashStore, PrefixStore, Store

from warpzone.collect.ranks import RankLostError
from warpzone.dist.meeting import Meeting, meet

SOON = timedelta(seconds=30)


def all_of(store: Store, size: int) -> list[Meeting]:
    """The meetings of ranks that all come, one thread for each."""
    with ThreadPoolExecutor(size) as threads:
        return list(threads.map(lambda rank: meet(store, rank, size, SOON), range(size)))


def write(one: Meeting, key: str) -> None:
    one.store.set(key, "written")


def test_ranks_of_each_start_have_a_store_of_their_own() -> None:
    store = HashStore()
    first = all_of(store, 3)
    assert [one.number for one in first] == [1, 1, 1]
    write(first[1], "address")
    assert all(one.store.check(["address"]) for one in first)
    again = all_of(store, 3)
    assert [one.number for one in again] == [2, 2, 2]
    assert not any(one.store.check(["address"]) for one in again)


def test_a_rank_alone_meets_nobody() -> None:
    assert meet(HashStore(), 0, 1, SOON).number == 1


def test_a_dead_rank_that_asked_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store still has what the dead one asked; the living one comes after rank 0 looked."""
    store = HashStore()
    with pytest.raises(RuntimeError):
        meet(store, 1, 2, timedelta(milliseconds=1))
    with ThreadPoolExecutor(1) as threads:
        late: list[Future[Meeting]] = []

        def come(seconds: float) -> None:
            if not late:
                late.append(threads.submit(meet, store, 1, 2, SOON))

        monkeypatch.setattr("warpzone.dist.meeting.time.sleep", come)
        assert meet(store, 0, 2, SOON).number == 1
        assert late[0].result().number == 1


def test_a_rank_0_that_died_while_it_waited_is_not_answered() -> None:
    """Its number is never used again, and what it told nobody has read."""
    store = HashStore()
    with pytest.raises(RankLostError, match="rank 1, 2 did not come in 0 s"):
        meet(store, 0, 3, timedelta(0))
    assert [one.number for one in all_of(store, 3)] == [2, 2, 2]


def test_what_others_keep_in_the_store_is_left_alone() -> None:
    store = HashStore()
    store.set("MASTER_ADDR", "there")
    write(all_of(store, 2)[0], "MASTER_ADDR")
    assert store.get("MASTER_ADDR") == b"there"
    assert PrefixStore("warpzone/1", store).get("MASTER_ADDR") == b"written"
