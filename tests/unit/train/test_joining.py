"""A checkpoint of ranks is the one that a single process with all lanes would write."""

from typing import Any

import pytest
import torch

from warpzone.collect.packing import pack, unpack
from warpzone.train.joining import joined, own_lanes


def state(first: int, last: int, **more: Any) -> dict[str, Any]:
    """A collector's, with some lanes of six; each of them has numbers of its own."""
    numbers = torch.arange(first, last)
    return {
        "lanes": pack([bytes([65 + lane]) * (lane + 1) for lane in numbers.tolist()]),
        "actors": {"memory": numbers[:, None] * torch.ones(1, 3), "previous": numbers.clone()},
        "history": numbers[None].repeat(4, 1),
        "age": numbers + 10,
        "infos": numbers[:, None] + 20,
        "episodes": {"returns": (numbers / 2).tolist(), "steps": numbers.tolist(), "count": 7},
        "random": "of rank 0",
        **more,
    }


def test_parts_in_the_order_of_ranks_are_the_whole() -> None:
    parts = [state(0, 2), state(2, 3), state(3, 6)]
    found = joined(parts[0], [own_lanes(part) for part in parts])
    whole = state(0, 6)
    assert found.keys() == whole.keys()
    assert unpack(found["lanes"]) == unpack(whole["lanes"])
    assert found["episodes"] == whole["episodes"]
    assert found["random"] == "of rank 0"
    for name in ("history", "age", "infos"):
        assert torch.equal(found[name], whole[name])
    for name, values in whole["actors"].items():
        assert torch.equal(found["actors"][name], values)


@pytest.mark.parametrize("missing", [0, 1])
def test_lanes_that_cannot_be_saved_are_left_out_by_all(missing: int) -> None:
    parts = [state(0, 3), state(3, 6)]
    del parts[missing]["lanes"]
    found = joined(state(0, 3), [own_lanes(part) for part in parts])
    assert set(found) == {"episodes", "random"}
    assert found["episodes"]["steps"] == list(range(6))
