"""How ranks that torchrun started find each other in its store, which outlives them.

After a restart the store still has what the ranks before wrote there, their addresses too. The
agents of several machines count restarts each for itself, so no number that a rank was started with
tells one start from another. Rank 0 therefore counts meetings in the store, and every other rank
asks for the number under a name that nobody had before.
"""

from __future__ import annotations

import time
import uuid
from datetime import timedelta
from typing import NamedTuple

from torch._C._distributed_c10d import PrefixStore, Store

from warpzone.collect.ranks import RankLostError

#: Seconds after which rank 0 looks again who has come.
EVERY = 0.05


class Meeting(NamedTuple):
    """What the ranks of one start have in common."""

    #: Theirs alone.
    store: Store
    #: 1 for the first one in torchrun's store.
    number: int


def meet(store: Store, rank: int, size: int, timeout: timedelta) -> Meeting:
    """Waits until all ranks are there. RankLostError if one does not come, RuntimeError of the
    store if rank 0 does not."""
    number = _invite(store, size, timeout) if rank == 0 else _ask(store, rank, timeout)
    return Meeting(PrefixStore(f"warpzone/{number}", store), number)


def _invite(store: Store, size: int, timeout: timedelta) -> int:
    """Tells every rank the number of a new meeting. What a rank asked under may be of one that is
    dead, so it is looked at until the rank says that it has the number."""
    number = int(store.add("warpzone/meetings", 1))
    missing = list(range(1, size))
    ends = time.monotonic() + timeout.total_seconds()
    while missing := [one for one in missing if not store.check([_came(number, one)])]:
        for rank in missing:
            if store.check([_asks(rank)]):
                store.set(_told(store.get(_asks(rank)).decode()), str(number))
        if time.monotonic() > ends:
            who = ", ".join(str(rank) for rank in missing)
            raise RankLostError(f"rank {who} did not come in {timeout.total_seconds():.0f} s")
        time.sleep(EVERY)
    return number


def _ask(store: Store, rank: int, timeout: timedelta) -> int:
    name = uuid.uuid4().hex
    store.set(_asks(rank), name)
    store.wait([_told(name)], timeout)
    number = int(store.get(_told(name)))
    store.set(_came(number, rank), "")
    return number


def _asks(rank: int) -> str:
    """Where a rank writes the name under which it asks."""
    return f"warpzone/asks/{rank}"


def _told(name: str) -> str:
    return f"warpzone/told/{name}"


def _came(number: int, rank: int) -> str:
    return f"warpzone/{number}/came/{rank}"
