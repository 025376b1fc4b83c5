"""What is done for the CPU changes nothing but the time it takes."""

import resource
from collections.abc import Iterator

import pytest
import torch
from tiny_runs import CPU, make_agent, tiny

from warpzone.collect.actor import Actor
from warpzone.model.cpu import WORTHWHILE, acting_threads, computing_with, keep_freed_memory

PAGE = resource.getpagesize()


def test_the_stack_shifted_in_place_is_the_stack_shifted() -> None:
    config = tiny(frame_stack=3)
    actor = Actor(config, make_agent(config), 4, CPU)
    random = torch.Generator().manual_seed(0)
    for starting in ([0, 1, 2, 3], [], [2], [], [0, 3], []):
        actor.frame.random_(0, 256, generator=random)
        actor.fresh.zero_()
        actor.fresh[starting] = True
        expected = actor._shifted()
        actor.observe()
        assert torch.equal(actor.stack, expected)
    assert actor.stack.float().std() > 1.0


@pytest.fixture
def threads() -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield 4
    torch.set_num_threads(before)


def test_threads_are_put_back(threads: int) -> None:
    with pytest.raises(KeyError), computing_with(1):
        assert torch.get_num_threads() == 1
        raise KeyError
    assert torch.get_num_threads() == threads
    with computing_with(0):
        assert torch.get_num_threads() == threads


def test_small_decisions_are_made_by_one_thread(threads: int) -> None:
    agent = make_agent(tiny())
    assert acting_threads(agent, 1) == 1
    assert acting_threads(agent, WORTHWHILE) == threads
    counts = [acting_threads(agent, 2**power) for power in range(24)]
    assert counts == sorted(counts)
    assert {2, 3} & set(counts)


def test_freed_memory_stays() -> None:
    if not keep_freed_memory():
        pytest.skip("the C library here is not glibc")
    size = 24 << 20

    def faults() -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        torch.empty(size, dtype=torch.uint8).fill_(1)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    faults()
    assert sum(faults() for _ in range(4)) < 2 * size // PAGE
