"""The ranks of a run: processes that each own some of its lanes and learn as one.

`Ranks` is a run of one process, in which every exchange is trivial. `dist.group` has the ranks of
torch.distributed. The parts of a run call these methods at the same points of every update, on all
ranks, so they need not know how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")


class RankLostError(RuntimeError):
    """Another rank died or did not answer; one sentence."""


class Ranks:
    """One rank: this process is the whole run."""

    #: Number of this rank, how many there are, and how many of them on this machine.
    rank = 0
    size = 1
    local_size = 1
    #: Whether there is a process group for gradients, counts and decisions; it may have one rank.
    grouped = False

    @property
    def leads(self) -> bool:
        """Whether this is rank 0: the only one that reads and writes the run's folder."""
        return self.rank == 0

    def lanes(self, total: int) -> slice:
        """The lanes of this rank, by their numbers in the run."""
        share = total // self.size
        return slice(self.rank * share, (self.rank + 1) * share)

    def sum(self, tensor: Tensor) -> None:
        """Adds up a tensor over all ranks, in place; every rank gets the same bits."""

    def most(self, number: int) -> int:
        """The largest number of any rank: 1 for a wish that one rank has."""
        return number

    def gather(self, value: T) -> list[T]:
        """The values of all ranks, by rank."""
        return [value]

    def collect(self, value: T) -> Sequence[T]:
        """The values of all ranks, by rank, on rank 0; nothing on the others."""
        return [value]

    def told(self, work: Callable[[], T]) -> T:
        """What `work` gives on rank 0; an error of it is raised on every rank."""
        return work()

    def told_late(self, work: Callable[[], T]) -> T:
        """The same for work that may take longer than ranks wait for each other."""
        return work()

    def beside(self) -> Ranks:
        """The same ranks for another thread: exchanges of two threads must not mix."""
        return self

    def seconds(self) -> float:
        """Seconds that this rank has spent in exchanges since the last call, its waits for slower
        ranks included."""
        return 0.0


#: A run of one process.
ALONE = Ranks()
