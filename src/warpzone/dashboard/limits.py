"""Who may go when: limits for each client and for all of them together."""

from __future__ import annotations

from collections import OrderedDict

#: Clients that are remembered. Whoever is forgotten begins anew, within the limit of all.
MOST_CLIENTS = 1024


class Turns:
    """When each of many may go: so many at once, then so many a second, in the order they came."""

    def __init__(self, rate: float, burst: float) -> None:
        self._each = 1.0 / rate
        self._ahead = burst / rate
        self._next = 0.0

    def wait(self, now: float, most: float) -> float | None:
        """Seconds until the turn of the next one; None, and no turn, beyond `most`."""
        begin = max(self._next, now)
        seconds = max(0.0, begin - now - self._ahead)
        if seconds > most:
            return None
        self._next = begin + self._each
        return seconds


class Clients:
    """The turns of every address; all of them together have `share` times as many as one."""

    def __init__(self, rate: float, burst: float, share: float = 4.0) -> None:
        self._rate, self._burst = rate, burst
        self._all = Turns(rate * share, burst * share)
        self._each: OrderedDict[str, Turns] = OrderedDict()

    def wait(self, address: str, now: float, most: float) -> float | None:
        """As `Turns.wait`, for the next one of an address."""
        turns = self._each.get(address)
        if turns is None:
            turns = self._each[address] = Turns(self._rate, self._burst)
            if len(self._each) > MOST_CLIENTS:
                self._each.popitem(last=False)
        self._each.move_to_end(address)
        own = turns.wait(now, most)
        if own is None:
            return None
        shared = self._all.wait(now, most)
        return None if shared is None else max(own, shared)
