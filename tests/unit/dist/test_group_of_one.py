"""A group of one rank has nobody to exchange with, and spends no time on it."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore

from warpzone.dist.group import GroupRanks


@pytest.fixture
def ranks() -> Iterator[GroupRanks]:
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    try:
        yield GroupRanks(60.0, 1)
    finally:
        dist.destroy_process_group()


def test_nothing_is_exchanged(ranks: GroupRanks, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError

    for name in ("all_reduce", "all_gather_object", "gather_object", "broadcast_object_list"):
        monkeypatch.setattr(dist, name, refuse)
    tensor = torch.tensor([1.0, 2.0])
    ranks.sum(tensor)
    assert tensor.tolist() == [1.0, 2.0]
    assert ranks.most(7) == 7
    assert ranks.gather("a") == ["a"]
    assert list(ranks.collect("b")) == ["b"]
    assert ranks.told(lambda: 3) == 3
    assert ranks.told_late(lambda: 4) == 4
    assert ranks.grouped
    assert ranks.seconds() == 0.0
    beside = ranks.beside()
    assert beside.told(lambda: 5) == 5


@pytest.mark.parametrize("way", ["told", "told_late"])
def test_an_error_is_its_own(ranks: GroupRanks, way: str) -> None:
    def work() -> None:
        raise ValueError("not like this")

    with pytest.raises(ValueError, match="not like this"):
        getattr(ranks, way)(work)
    assert not ranks.followed
