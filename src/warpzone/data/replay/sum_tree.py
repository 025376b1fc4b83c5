"""A sum tree over weights, vectorised: all leaves of a call walk the levels together."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class SumTree:
    """Node i has the children 2i and 2i + 1; node 1 is the root; a node is the sum of its children.

    Nodes above a change are added up again, never adjusted by the difference: rounding does not
    gather, and the leaves alone determine every bit of the tree.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"a sum tree has at least one leaf, not {capacity}")
        self.capacity = capacity
        self._leaves = 1 << (capacity - 1).bit_length()
        self._nodes = np.zeros(2 * self._leaves)

    @property
    def total(self) -> float:
        return float(self._nodes[1])

    @property
    def leaves(self) -> Floats:
        """The weights, as a view."""
        return self._nodes[self._leaves : self._leaves + self.capacity]

    def set(self, indices: Ints, weights: Floats) -> None:
        """Sets leaves. Of an index that comes twice the larger weight stays."""
        if indices.size == 0:
            return
        if indices.min() < 0 or indices.max() >= self.capacity:
            raise IndexError(f"a leaf index must be in [0, {self.capacity})")
        if not np.all(np.isfinite(weights)) or weights.min() < 0.0:
            raise ValueError("weights in a sum tree must be finite and not negative")
        # In an assignment with repeated indices the last one stays.
        order = np.argsort(weights, kind="stable")
        nodes = indices[order] + self._leaves
        self._nodes[nodes] = weights[order]
        while nodes[0] > 1:
            nodes = np.unique(nodes >> 1)
            self._nodes[nodes] = self._nodes[2 * nodes] + self._nodes[2 * nodes + 1]

    def find(self, sums: Floats) -> Ints:
        """For each number s in [0, total) the leaf i with prefix(i) <= s < prefix(i + 1).

        Never a leaf of weight zero, whatever rounding does to s, as long as total is above zero.
        """
        rest = np.array(sums, dtype=np.float64)
        nodes = np.ones(rest.shape, dtype=np.int64)
        for _ in range(self._leaves.bit_length() - 1):
            left = 2 * nodes
            before = self._nodes[left]
            right = (rest >= before) & (self._nodes[left + 1] > 0.0)
            rest -= np.where(right, before, 0.0)
            nodes = left + right
        return nodes - self._leaves
