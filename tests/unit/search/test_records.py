"""Which trial of a sweep is its best."""

import pytest

optuna = pytest.importorskip("optuna")

from warpzone.search.records import best_trial  # noqa: E402
from warpzone.search.storage import quiet  # noqa: E402


@pytest.mark.parametrize(("direction", "number"), [("maximize", 1), ("minimize", 0)])
def test_the_best_trial_is_complete_and_the_first_of_equal_ones(
    direction: str, number: int
) -> None:
    quiet()
    study = optuna.create_study(direction=direction)
    assert best_trial(study) is None
    for value in (1.0, 3.0, 2.0, 3.0, 1.0):
        study.tell(study.ask(), value)
    # Further than all others, and pruned.
    pruned = study.ask()
    pruned.report(9.0 if direction == "maximize" else -9.0, 1)
    study.tell(pruned, state=optuna.trial.TrialState.PRUNED)
    best = best_trial(study)
    assert best is not None
    assert best.number == number
