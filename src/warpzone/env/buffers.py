"""Output arrays that are never written again while a caller holds them."""

import sys
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


def _references(slots: list[NDArray[Any]], index: int) -> int:
    return sys.getrefcount(slots[index])


#: What `_references` says of an array that only the list holds. Measured, because interpreters
#: differ in how many references a call itself adds.
_UNSHARED = _references([np.empty(1)], 0)


class BufferPool:
    """Recycles arrays of one shape.

    Fresh memory for a large batch of observations costs page faults at every step. An array (or any
    view of it) that the caller still holds is not reused; another one is used instead.
    """

    def __init__(self, shape: tuple[int, ...], dtype: DTypeLike, slots: int = 3) -> None:
        self._shape = shape
        self._dtype = np.dtype(dtype)
        self._limit = slots
        self._slots: list[NDArray[Any]] = []

    def take(self) -> NDArray[Any]:
        """An array that no caller holds; its content is arbitrary."""
        slots = self._slots
        for index in range(len(slots)):
            if _references(slots, index) == _UNSHARED:
                return slots[index]
        array = np.empty(self._shape, self._dtype)
        if len(slots) == self._limit:
            # A caller who keeps every batch (a replay buffer) gains nothing from old slots.
            slots.pop(0)
        slots.append(array)
        return array
