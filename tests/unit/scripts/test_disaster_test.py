"""How a disaster is judged; the disasters themselves are long (`tests/e2e/test_disasters.py`)."""

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[3] / "scripts"))

from disaster_test import judge, shortened
from killing.comparing import same
from killing.lives import BrokenError

FULL = "warpzone train: the run's folder /tmp/x cannot be written: No space left on device.\n"
TERM = 143


def test_one_sentence_is_counted() -> None:
    counts = Counter[str]()
    judge("disk full", 1, True, f"[train] step=3\n{FULL}", counts)
    assert counts == {"the run's folder … cannot be written: No space left on device.": 1}


def test_a_clock_may_end_nothing() -> None:
    counts = Counter[str]()
    judge("clock jumps", TERM, False, "[train] step=3\n", counts)
    assert counts == {"went on until it was asked to end": 1}


@pytest.mark.parametrize(
    ("name", "code", "alone", "said"),
    [
        ("disk full", 1, True, f"Traceback (most recent call last):\n{FULL}"),
        ("disk full", 1, True, f"terminate called after throwing\n{FULL}"),
        ("disk full", 2, True, FULL),
        ("disk full", -6, True, FULL),
        ("disk full", 1, True, "[train] step=3\n"),
        ("disk full", 1, True, FULL + FULL),
        ("disk full", TERM, False, ""),
        ("clock jumps", 1, True, "something else\n"),
        ("clock jumps", TERM, False, FULL),
    ],
)
def test_everything_else_is_a_failure(name: str, code: int, alone: bool, said: str) -> None:
    with pytest.raises(BrokenError):
        judge(name, code, alone, said, Counter())


def test_names_and_numbers_are_left_out() -> None:
    assert shortened("warpzone train: 3.5 MiB do not fit into /a/b.") == "… MiB do not fit into …"


def test_states_are_compared_bit_by_bit() -> None:
    import torch

    nan = torch.tensor([float("nan"), 0.0])
    assert same({"a": [nan, 1, ("x", None)]}, {"a": [nan.clone(), 1, ("x", None)]})
    assert not same(torch.tensor(0.0), torch.tensor(-0.0))
    assert not same(torch.zeros(2), torch.zeros(2, dtype=torch.float64))
    assert not same([1, 2], [1])
    assert not same({"a": 1}, {"b": 1})
    assert not same(1, 1.0)
