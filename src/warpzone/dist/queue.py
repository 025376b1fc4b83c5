"""The queue between actors and the learner: who may begin a rollout, and what an update takes.

It only counts: no thread, no clock and no Ray is in here. Three promises hold whatever the speeds
of actors and learner are, and whoever dies:

- **Lag.** An update takes no rollout whose weights are more than `most_lag` updates old, and throws
  none away either. A rollout may begin only if the updates that may still take it have room for it;
  an update waits for rollouts that a later one could not take.
- **Order.** Every rollout that arrives is taken once, and those of one actor in the order in which
  it played them.
- **Memory.** An actor has at most `outstanding` rollouts that no update has taken, the one it is
  playing included; more only if there are so few actors that no update could be filled otherwise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Ticket(NamedTuple):
    """A rollout that was begun."""

    actor: int
    #: How often the actor had been lost before: what an earlier one of its number sends is refused.
    life: int
    #: The actor's rollouts, counted over all its lives.
    serial: int
    #: Updates that its weights have learned from.
    version: int


@dataclass(frozen=True)
class Arrived(Generic[T]):
    """A rollout that waits to be taken."""

    ticket: Ticket
    rollout: T
    #: Rollouts that had arrived before it.
    place: int


class RolloutQueue(Generic[T]):
    """Updates take `batch` rollouts each; `first` is the number of the first of them."""

    def __init__(
        self, actors: int, *, batch: int, most_lag: int, outstanding: int, first: int = 0
    ) -> None:
        self._batch = batch
        self._most_lag = most_lag
        self._outstanding = outstanding
        #: The newest weights that are out; -1 before the first.
        self.version = -1
        #: The update that takes rollouts next: weights of its number have learned from all before.
        self.update = first
        self._lives = [0] * actors
        self._serials = [0] * actors
        #: Actors that are there and play nothing, the one that has waited longest first.
        self._idle: list[int] = []
        self._playing: dict[int, Ticket] = {}
        self._arrived: list[Arrived[T]] = []
        self._present: set[int] = set()
        #: Rollouts that were begun, arrived, taken, and lost with their actor.
        self.begun = self.came = self.taken = self.lost = 0

    # --- actors come and go ---------------------------------------------------------------------
    def join(self, actor: int) -> None:
        """An actor is there, and idle."""
        if actor in self._present:
            raise ValueError(f"actor {actor} is there already")
        self._present.add(actor)
        self._idle.append(actor)

    def lose(self, actor: int) -> bool:
        """An actor is gone; whether a rollout went with it. What has arrived of it stays."""
        if actor not in self._present:
            return False
        self._present.remove(actor)
        self._lives[actor] += 1
        if actor in self._idle:
            self._idle.remove(actor)
        gone = self._playing.pop(actor, None) is not None
        self.lost += gone
        return gone

    def has(self, actor: int) -> bool:
        """Whether an actor is there."""
        return actor in self._present

    @property
    def present(self) -> int:
        """Actors that are there."""
        return len(self._present)

    @property
    def playing(self) -> int:
        """Rollouts under way."""
        return len(self._playing)

    @property
    def waiting(self) -> int:
        """Rollouts that have arrived and were not taken."""
        return len(self._arrived)

    # --- rollouts begin and arrive --------------------------------------------------------------
    def publish(self, version: int) -> None:
        """New weights are out, those that the next update begins with."""
        if version != self.update:
            raise ValueError(f"update {self.update} is next, and weights {version} are not its own")
        self.version = version

    def may_begin(self, actor: int) -> bool:
        """Whether an idle actor may begin a rollout with the newest weights, after those that have
        waited longer."""
        if actor not in self._idle or self.version < 0:
            return False
        ahead = self._idle[: self._idle.index(actor)]
        before = sum(self._below_limit(one) for one in ahead)
        return self._below_limit(actor) and before < self._room

    @property
    def _room(self) -> int:
        """Rollouts of the newest weights that updates could still take in time. All others that are
        outstanding must be taken no later, so only their number matters."""
        updates = self.version + self._most_lag - self.update + 1
        return self._batch * updates - len(self._playing) - len(self._arrived)

    def _below_limit(self, actor: int) -> bool:
        limit = max(self._outstanding, math.ceil(self._batch / len(self._present)))
        return sum(one.ticket.actor == actor for one in self._arrived) < limit

    def begin(self, actor: int) -> Ticket:
        """The actor plays a rollout with the newest weights."""
        if not self.may_begin(actor):
            raise ValueError(f"actor {actor} may not begin")
        self._idle.remove(actor)
        ticket = Ticket(actor, self._lives[actor], self._serials[actor], self.version)
        self._serials[actor] += 1
        self._playing[actor] = ticket
        self.begun += 1
        return ticket

    def arrive(self, ticket: Ticket, rollout: T) -> bool:
        """A rollout has arrived. False, and it is left out, if it was given up, or came before."""
        if self._playing.get(ticket.actor) != ticket:
            return False
        del self._playing[ticket.actor]
        self._idle.append(ticket.actor)
        self._arrived.append(Arrived(ticket, rollout, self.came))
        self.came += 1
        return True

    # --- updates take them ----------------------------------------------------------------------
    def ready(self) -> bool:
        """Whether the next update can take its rollouts. If not, others must arrive first."""
        if self.version != self.update or len(self._arrived) < self._batch:
            return False
        _, left = self._dealt()
        return self._in_time([*(one.ticket for one in left), *self._playing.values()])

    def _dealt(self) -> tuple[list[Arrived[T]], list[Arrived[T]]]:
        """The rollouts of the next update, and the others. The oldest weights come first: what is
        left is then as young as it can be."""
        by_age = sorted(self._arrived, key=lambda one: (one.ticket.version, one.place))
        return by_age[: self._batch], by_age[self._batch :]

    def _in_time(self, tickets: Iterable[Ticket]) -> bool:
        """Whether the updates after the next can take these before they are too old."""
        total = 0
        for version, count in sorted(Counter(ticket.version for ticket in tickets).items()):
            total += count
            if total > self._batch * (version + self._most_lag - self.update):
                return False
        return True

    def take(self) -> list[Arrived[T]]:
        """The rollouts of the next update, in the order of their actors."""
        if not self.ready():
            raise ValueError(f"update {self.update} must wait")
        chosen, self._arrived = self._dealt()
        self.taken += len(chosen)
        self.update += 1
        return sorted(chosen, key=lambda one: (one.ticket.actor, one.place))
