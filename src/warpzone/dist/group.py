"""Ranks that exchange through torch.distributed: gloo between CPUs, NCCL between GPUs."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Generic, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from warpzone.collect.ranks import RankLostError, Ranks

T = TypeVar("T")

#: How often ranks hear of one that works for all, as a share of the time for which they wait.
OFTEN = 0.25
#: Errors of rank 0 that the others hear of. Any other one ends rank 0, and then the rest.
TOLD = (OSError, ValueError, RuntimeError, LookupError, TypeError, AttributeError, MemoryError)


class GroupRanks(Ranks):
    """The ranks of the process group that torch.distributed has been initialised with. Objects
    travel through gloo, tensors through the group's own backend. A group of one exchanges nothing
    but tensors of a GPU, which cost no time of the process."""

    grouped = True

    def __init__(
        self, timeout: float, local_size: int, *, thread: dist.ProcessGroup | None = None
    ) -> None:
        """timeout: seconds after which a rank that does not answer is lost; to start, ranks may
        take longer. thread: the group of another thread; all its exchanges are of objects."""
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        self.local_size = local_size
        self._timeout = timeout
        backend = dist.get_backend()
        self._objects = thread or self._new_group("gloo")
        self._tensors = self._objects
        if thread is None and backend != "gloo":
            self._tensors = self._new_group(backend)
        #: Whether the last error was rank 0's, which tells of it.
        self.followed = False
        self._seconds = 0.0
        self._events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []
        self._others: list[GroupRanks] = []

    def _new_group(self, backend: str) -> dist.ProcessGroup:
        with _exchange(self._timeout):
            group: dist.ProcessGroup = dist.new_group(
                backend=backend, timeout=timedelta(seconds=self._timeout)
            )
        return group

    def sum(self, tensor: Tensor) -> None:
        if tensor.is_cuda:
            self._sum_on_gpu(tensor)
            return
        if self.size == 1:
            return
        with self._timed():
            dist.all_reduce(tensor, group=self._tensors)

    def _sum_on_gpu(self, tensor: Tensor) -> None:
        """Not waited for: the events on both sides are read when the device has passed them."""
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        before.record()
        with _exchange(self._timeout):
            dist.all_reduce(tensor, group=self._tensors)
        after.record()
        self._events.append((before, after))

    def most(self, number: int) -> int:
        if self.size == 1:
            return number
        largest = torch.tensor(int(number))
        with self._timed():
            dist.all_reduce(largest, dist.ReduceOp.MAX, self._objects)
        return int(largest)

    def gather(self, value: T) -> list[T]:
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        with self._timed():
            dist.all_gather_object(values, value, self._objects)
        return values

    def collect(self, value: T) -> Sequence[T]:
        if self.size == 1:
            return [value]
        values: list[Any] | None = [None] * self.size if self.leads else None
        with self._timed():
            dist.gather_object(value, values, 0, self._objects)
        return values or ()

    def told(self, work: Callable[[], T]) -> T:
        if self.size == 1:
            return work()
        answer: list[Any] = [None, None]
        error: Exception | None = None
        if self.leads:
            try:
                answer[0] = work()
            except TOLD as raised:
                error, answer[1] = raised, _portable(raised)
        with self._timed():
            dist.broadcast_object_list(answer, 0, self._objects)
        if error is not None:
            raise error
        if answer[1] is not None:
            self.followed = True
            raise answer[1]
        result: T = answer[0]
        return result

    def told_late(self, work: Callable[[], T]) -> T:
        if self.size == 1:
            return work()
        if not self.leads:
            # Whatever is asked for here is done by rank 0.
            while not self.told(bool):
                pass
            return self.told(work)
        # A thread of its own, so that the others hear meanwhile that this rank is there.
        doing = _Doing(work)
        while not self.told(lambda: doing.over(self._timeout * OFTEN)):
            pass
        return self.told(doing.result)

    def beside(self) -> GroupRanks:
        other = GroupRanks(self._timeout, self.local_size, thread=self._new_group("gloo"))
        self._others.append(other)
        return other

    def seconds(self) -> float:
        spent, self._seconds = self._seconds, 0.0
        events, self._events = self._events, []
        for before, after in events:
            spent += float(before.elapsed_time(after)) / 1000
        return spent + sum(other.seconds() for other in self._others)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        began = time.perf_counter()
        with _exchange(self._timeout):
            yield
        self._seconds += time.perf_counter() - began


class _Doing(Generic[T]):
    """Work in a thread, which ends with the process if nobody waits for it."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._results: list[T] = []
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="told late", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._results.append(self._work())
        except TOLD as error:
            self._error = error

    def over(self, seconds: float) -> bool:
        """Whether it has ended; waits so long for it."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def result(self) -> T:
        """What it gave, or the error it ended with."""
        if self._error is not None:
            raise self._error
        if not self._results:
            raise RuntimeError("the work of rank 0 has failed; see above")
        return self._results[0]


@contextmanager
def _exchange(timeout: float) -> Iterator[None]:
    """An exchange that fails has lost a rank."""
    try:
        yield
    except RuntimeError as error:
        slow = "imed out" in str(error) or "imeout" in str(error)
        text = f"another rank did not answer for {timeout:g} s" if slow else "another rank ended"
        raise RankLostError(text) from error


def _portable(error: Exception) -> Exception:
    """The error as other ranks can raise it; some cannot be made again from their text."""
    try:
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 (its own bytes)
    except (TypeError, AttributeError, pickle.PicklingError):
        again = None
    if isinstance(again, Exception):
        return again
    return OSError(str(error)) if isinstance(error, OSError) else RuntimeError(str(error))
