"""The queue between actors and learner: single promises, random events, hours of simulated
time."""

from __future__ import annotations

import heapq
import itertools
import pickle
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from warpzone.dist.queue import Arrived, RolloutQueue, Ticket


def queue_of(actors: int = 2, *, batch: int = 2, lag: int = 1, most: int = 2) -> RolloutQueue[Any]:
    queue: RolloutQueue[Any] = RolloutQueue(actors, batch=batch, most_lag=lag, outstanding=most)
    for actor in range(actors):
        queue.join(actor)
    return queue


def test_without_lag_every_actor_plays_once_for_each_update() -> None:
    queue = queue_of(3, batch=3, lag=0)
    assert not queue.may_begin(0)
    for update in range(4):
        queue.publish(update)
        tickets = [queue.begin(actor) for actor in (2, 0, 1) if queue.may_begin(actor)]
        assert [ticket.version for ticket in tickets] == [update] * 3
        for ticket in tickets:
            assert queue.arrive(ticket, ticket.actor)
        # It must wait for the weights that the others lead to.
        assert not any(queue.may_begin(actor) for actor in range(3))
        assert [one.rollout for one in queue.take()] == [0, 1, 2]
        assert not any(queue.may_begin(actor) for actor in range(3))


def test_an_update_waits_for_a_rollout_that_the_next_could_not_take() -> None:
    queue = queue_of(2, batch=1, lag=1, most=4)
    queue.publish(0)
    slow, quick = queue.begin(0), queue.begin(1)
    queue.arrive(quick, "quick")
    assert [one.rollout for one in queue.take()] == ["quick"]
    queue.publish(1)
    queue.arrive(queue.begin(1), "younger")
    assert not queue.ready()
    queue.arrive(slow, "slow")
    assert [one.rollout for one in queue.take()] == ["slow"]
    queue.publish(2)
    assert [one.rollout for one in queue.take()] == ["younger"]


def test_an_actor_has_few_rollouts_outstanding() -> None:
    queue = queue_of(2, batch=2, lag=9, most=2)
    queue.publish(0)
    for _ in range(2):
        queue.arrive(queue.begin(0), None)
    assert not queue.may_begin(0)
    assert queue.may_begin(1)


def test_one_actor_alone_can_fill_an_update() -> None:
    queue = queue_of(4, batch=4, lag=0, most=1)
    for actor in (1, 2, 3):
        queue.lose(actor)
    queue.publish(0)
    for _ in range(4):
        queue.arrive(queue.begin(0), None)
    assert not queue.may_begin(0)
    assert [one.ticket.serial for one in queue.take()] == [0, 1, 2, 3]


def test_a_lost_actor_costs_the_rollout_under_way_and_nothing_else() -> None:
    queue = queue_of(2, batch=1, lag=2)
    queue.publish(0)
    queue.arrive(queue.begin(0), "arrived")
    under_way = queue.begin(0)
    assert queue.lose(0)
    assert not queue.lose(0)
    queue.join(0)
    # What the one that was given up sends after all is refused, and what came before twice.
    again = queue.begin(0)
    assert not queue.arrive(under_way, "late")
    assert queue.arrive(again, "again")
    assert not queue.arrive(again, "twice")
    assert [one.rollout for one in queue.take()] == ["arrived"]
    assert (queue.begun, queue.came, queue.taken, queue.lost) == (3, 2, 1, 1)


def test_wrong_calls_are_refused() -> None:
    queue = queue_of()
    with pytest.raises(ValueError, match="actor 1 is there already"):
        queue.join(1)
    with pytest.raises(ValueError, match="actor 1 may not begin"):
        queue.begin(1)
    with pytest.raises(ValueError, match="update 0 must wait"):
        queue.take()
    with pytest.raises(ValueError, match="update 0 is next"):
        queue.publish(1)


class Ledger:
    """What a queue was given and what it gave back, kept apart from it."""

    def __init__(self, queue: RolloutQueue[Ticket], lag: int) -> None:
        self.queue = queue
        self.lag = lag
        self.arrived: set[Ticket] = set()
        self.taken: set[Ticket] = set()
        self.last: dict[int, int] = {}
        self.lags: list[int] = []

    def arrive(self, ticket: Ticket) -> None:
        assert self.queue.arrive(ticket, ticket)
        self.arrived.add(ticket)

    def take(self) -> None:
        update = self.queue.update
        for one in self.queue.take():
            self.check(one, update)

    def check(self, one: Arrived[Ticket], update: int) -> None:
        ticket = one.ticket
        assert one.rollout == ticket
        assert ticket in self.arrived, "never arrived"
        assert ticket not in self.taken, "doubled"
        assert ticket.serial > self.last.get(ticket.actor, -1), "reordered"
        assert 0 <= update - ticket.version <= self.lag
        self.taken.add(ticket)
        self.last[ticket.actor] = ticket.serial
        self.lags.append(update - ticket.version)

    def require_nothing_lost(self) -> None:
        assert len(self.arrived) == self.queue.came == self.queue.taken + self.queue.waiting
        assert len(self.taken) == self.queue.taken
        assert self.queue.begun == self.queue.came + self.queue.lost + self.queue.playing


class Machine(RuleBasedStateMachine):
    """Any order of events."""

    @initialize(
        actors=st.integers(1, 4),
        batch=st.integers(1, 5),
        lag=st.integers(0, 3),
        most=st.integers(1, 3),
    )
    def begin(self, actors: int, batch: int, lag: int, most: int) -> None:
        self.queue = queue_of(actors, batch=batch, lag=lag, most=most)
        self.ledger = Ledger(self.queue, lag)
        self.actors, self.bound = actors, max(actors * most, 2 * batch)
        self.playing: dict[int, Ticket] = {}
        self.gone: set[int] = set()

    @precondition(lambda self: self.queue.version != self.queue.update)
    @rule()
    def publish(self) -> None:
        self.queue.publish(self.queue.update)

    @rule(actor=st.integers(0, 3))
    def play(self, actor: int) -> None:
        if self.queue.may_begin(actor):
            self.playing[actor] = self.queue.begin(actor)

    @precondition(lambda self: self.playing)
    @rule(data=st.data())
    def arrive(self, data: st.DataObject) -> None:
        self.ledger.arrive(self.playing.pop(data.draw(st.sampled_from(sorted(self.playing)))))

    @rule(actor=st.integers(0, 3))
    def die(self, actor: int) -> None:
        if actor < self.actors and actor not in self.gone:
            assert self.queue.lose(actor) == (actor in self.playing)
            self.playing.pop(actor, None)
            self.gone.add(actor)

    @precondition(lambda self: self.gone)
    @rule()
    def come_back(self) -> None:
        self.queue.join(self.gone.pop())

    @precondition(lambda self: self.queue.ready())
    @rule()
    def take(self) -> None:
        self.ledger.take()

    @invariant()
    def bounded(self) -> None:
        if hasattr(self, "queue"):
            # Of actors that are gone, what has arrived may wait beside what the others fill up.
            assert self.queue.playing + self.queue.waiting <= self.bound + self.actors
            self.ledger.require_nothing_lost()

    def teardown(self) -> None:
        """It never hangs: with one actor there, whoever it is, updates go on."""
        if not hasattr(self, "queue"):
            return
        if len(self.gone) == self.actors:
            self.queue.join(self.gone.pop())
        for _ in range(3):
            if self.queue.version != self.queue.update:
                self.queue.publish(self.queue.update)
            while not self.queue.ready():
                begun = [actor for actor in range(self.actors) if self.queue.may_begin(actor)]
                self.playing |= {actor: self.queue.begin(actor) for actor in begun[:1]}
                assert self.playing, "nobody may begin, and the update cannot be filled"
                self.ledger.arrive(self.playing.pop(min(self.playing)))
            self.ledger.take()


TestAnyOrder = Machine.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)

HOUR = 3600.0


class Simulation:
    """Actors, deaths and a learner on a clock that costs nothing."""

    def __init__(self, seed: int, *, actors: int, lag: int, most: int) -> None:
        self.random = random.Random(seed)
        self.actors = actors
        self.queue: RolloutQueue[Ticket] = RolloutQueue(
            actors, batch=actors, most_lag=lag, outstanding=most
        )
        self.ledger = Ledger(self.queue, lag)
        self.clock = 0.0
        self.sizes: list[tuple[float, int]] = []
        self.deaths = 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self._learning = False
        #: Seconds of a rollout: some actors are twenty times as fast as others.
        self._pace = [10.0 * self.random.lognormvariate(0.0, 0.8) for _ in range(actors)]
        for actor in range(actors):
            self.queue.join(actor)
            self._after(self.random.expovariate(1 / HOUR), partial(self._die, actor))
        self.queue.publish(0)

    def _after(self, seconds: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.clock + seconds, next(self._count), event))

    def _die(self, actor: int) -> None:
        self.deaths += 1
        self.queue.lose(actor)
        self._after(self.random.expovariate(1 / 60.0), partial(self._come_back, actor))

    def _come_back(self, actor: int) -> None:
        self.queue.join(actor)
        self._pace[actor] = 10.0 * self.random.lognormvariate(0.0, 0.8)
        self._after(self.random.expovariate(1 / HOUR), partial(self._die, actor))

    def _arrive(self, ticket: Ticket) -> None:
        # One that died meanwhile sends nothing.
        if self.queue._playing.get(ticket.actor) == ticket:
            self.ledger.arrive(ticket)

    def _learned(self) -> None:
        self._learning = False
        self.queue.publish(self.queue.update)

    def run(self, seconds: float) -> None:
        """Plays the clock on."""
        while self.clock < seconds:
            for actor in range(self.actors):
                if self.queue.may_begin(actor):
                    ticket = self.queue.begin(actor)
                    pace = self._pace[actor] * self.random.uniform(0.5, 2.0)
                    self._after(pace, partial(self._arrive, ticket))
            if not self._learning and self.queue.ready():
                self.ledger.take()
                self._learning = True
                # Mostly slower than the actors; now and then an evaluation of minutes.
                slow = 300.0 if self.random.random() < 0.01 else self.random.uniform(1.0, 30.0)
                self._after(slow, self._learned)
            self.clock, _, event = heapq.heappop(self._events)
            event()
            self.sizes.append((self.clock, self.queue.playing + self.queue.waiting))


@pytest.mark.parametrize(("actors", "lag", "most"), [(24, 2, 2), (7, 0, 1), (16, 8, 3)])
def test_hours_of_actors_that_die_and_a_slow_learner(actors: int, lag: int, most: int) -> None:
    simulation = Simulation(actors, actors=actors, lag=lag, most=most)
    simulation.run(1 * HOUR)
    held = len(pickle.dumps(simulation.queue))
    simulation.run(6 * HOUR)
    ledger, queue = simulation.ledger, simulation.queue
    ledger.require_nothing_lost()
    assert simulation.deaths > 2 * actors
    assert 0 < queue.lost <= simulation.deaths
    assert queue.update > 400
    assert max(ledger.lags) <= lag
    assert (max(ledger.lags) > 0) == (lag > 0)
    # A rollout that waits is memory: there are never more of them than at the beginning.
    assert max(size for _, size in simulation.sizes) <= min(actors * most, actors * (lag + 1))
    assert len(pickle.dumps(queue)) < 3 * held
    # Every actor's rollouts were learned from, the slowest one's too.
    assert set(ledger.last) == set(range(actors))
