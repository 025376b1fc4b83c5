"""Nothing is collected while a CUDA graph is recorded, or while a course explores."""

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from warpzone.collect.actor import record
from warpzone.collect.garbage import uncollected


class Thing:
    """Something that refers to itself, as runs do."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_it_goes_on_afterwards_also_after_an_error() -> None:
    with uncollected():
        assert not gc.isenabled()
        with uncollected():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="wrong"), uncollected():
        raise ValueError("wrong")
    assert gc.isenabled()


def test_what_was_off_stays_off() -> None:
    gc.disable()
    with uncollected():
        pass
    assert not gc.isenabled()


def test_the_last_of_several_threads_turns_it_on_again() -> None:
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with uncollected():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with uncollected():
        thread.start()
        assert inside.wait(10)
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_recording_comes_upon_no_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a stand-in for CUDA sees it: what was garbage is gone, and what becomes garbage stays."""
    gc.disable()
    left = weakref.ref(Thing())
    seen: list[tuple[bool, bool]] = []

    @contextmanager
    def graph(_: Any, **options: Any) -> Iterator[None]:
        seen.append((gc.isenabled(), left() is None))
        yield
        seen.append((gc.isenabled(), True))

    calm = SimpleNamespace(wait_stream=lambda other: None)
    stand_ins: dict[str, Callable[..., Any]] = {
        "Stream": lambda **options: calm,
        "current_stream": lambda: calm,
        "stream": lambda stream: nullcontext(),
        "CUDAGraph": lambda: SimpleNamespace(replay=lambda: None),
        "graph": graph,
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)
    assert left() is not None
    gc.enable()
    record(lambda: None, [torch.zeros(2)])
    assert seen == [(False, True), (False, True)]
    assert gc.isenabled()
