"""How a killed run is judged; the kills themselves are in `tests/e2e/test_disasters.py`."""

import pytest
from kill_test import CUDA_ENVIRONMENT
from killing.comparing import FACTOR, differing, judge_beside
from killing.settings import settings_of

SAME = {"same_update": True, "same_weights": True, "same_state": True, "same_episodes": True}
NAME = "largest_difference_of_weights"


def found(difference: float, **changes: bool) -> dict[str, object]:
    apart = {} if difference == 0.0 else {"same_weights": False}
    return {**SAME, **apart, **changes, NAME: difference}


@pytest.mark.parametrize(
    ("killed", "unkilled", "ok"),
    [
        (found(0.0), found(0.0), True),
        (found(1e-9), found(0.0), False),
        (found(0.0, same_state=False), found(0.0), False),
        (found(0.1 * FACTOR), found(0.1), True),
        (found(0.1 * FACTOR + 0.01), found(0.1), False),
        (found(0.0, same_update=False), found(0.1), False),
        (found(float("nan")), found(0.1), False),
    ],
)
def test_a_killed_run_is_judged_by_two_unkilled_ones(
    killed: dict[str, object], unkilled: dict[str, object], ok: bool
) -> None:
    assert judge_beside(killed, unkilled) is ok


def test_clocks_may_differ_and_nothing_else() -> None:
    state = {"counters": {"global_step": 3, "gpu_seconds": 1.0}, "seconds": 5.0, "learner": [1]}
    later = {**state, "counters": {"global_step": 3, "gpu_seconds": 2.0}, "seconds": 6.0}
    assert differing(state, later) == []
    assert differing(state, {**later, "counters": {"global_step": 4}}) == ["counters"]
    assert differing(state, {**later, "learner": [2], "replay": None}) == ["learner", "replay"]


def test_on_cuda_the_run_has_graphs_and_keeps_its_parts() -> None:
    settings = settings_of("stateful", "cuda")
    assert settings["device"] == "cuda"
    assert settings["cuda_graphs"] is True
    parts = ("memory", "per", "curriculum", "archive_share")
    assert all(settings[name] == settings_of("stateful", "cpu")[name] for name in parts)
    # PyTorch asks NVML then, which does not spoil CUDA for processes forked later.
    assert CUDA_ENVIRONMENT["PYTORCH_NVML_BASED_CUDA_CHECK"] == "1"
