"""Limits for each client and for all of them."""

import pytest

from warpzone.dashboard import limits
from warpzone.dashboard.limits import Clients, Turns


def test_some_go_at_once_and_the_rest_in_order() -> None:
    turns = Turns(rate=10.0, burst=3.0)
    waits = [turns.wait(now=100.0, most=1.0) for _ in range(20)]
    assert waits[:4] == [0.0] * 4
    assert waits[4:14] == pytest.approx([0.1 * n for n in range(1, 11)])
    assert waits[14:] == [None] * 6
    # Who was refused took no turn.
    assert turns.wait(now=100.5, most=1.0) == pytest.approx(0.6)
    assert turns.wait(now=200.0, most=1.0) == 0.0


def test_a_client_that_floods_is_refused_alone() -> None:
    clients = Clients(rate=10.0, burst=3.0)
    assert [clients.wait("a", 100.0, 0.0) for _ in range(6)] == [0.0] * 4 + [None] * 2
    assert clients.wait("b", 100.0, 0.0) == 0.0
    assert clients.wait("a", 100.2, 0.0) == 0.0


def test_many_clients_share_a_limit() -> None:
    clients = Clients(rate=10.0, burst=3.0, share=2.0)
    waits = [clients.wait(str(number), 100.0, 0.0) for number in range(20)]
    assert waits == [0.0] * 7 + [None] * 13


def test_clients_do_not_pile_up() -> None:
    clients = Clients(rate=10.0, burst=3.0)
    for number in range(3 * limits.MOST_CLIENTS):
        clients.wait(str(number), float(number), 0.0)
    assert len(clients._each) == limits.MOST_CLIENTS
