"""Rows of runs from others: every field within its range, or absent."""

import pytest

from warpzone.run import rows

#: Readers in JavaScript hold whole numbers exactly up to here.
EXACT = 2**53
RANGES = {
    "global_step": (0, EXACT),
    "global_update": (0, EXACT),
    "start_delay": (0, 2**31),
    "steps": (0, EXACT),
    "frames": (0, EXACT),
    "restart": (0, EXACT),
    "furthest_x": (0, 2**16),
    "x": (0, 2**16),
    "y": (0, 2**16),
    "area_type": (-1, 255),
    "area_index": (-1, 255),
}


@pytest.mark.parametrize("name", rows.COUNTS)
def test_counts_are_kept_within_their_range_only(name: str) -> None:
    low, high = RANGES[name]
    for value in (low, high):
        assert rows.episode({name: value}) == {name: value}
    for outside in (low - 1, high + 1, float(high), True, str(low), None):
        assert rows.episode({name: outside}) == {}
