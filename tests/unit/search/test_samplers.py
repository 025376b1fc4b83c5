"""Samplers and pruners of Optuna, as spaces ask for them."""

import math
from typing import Any

import pytest
from tiny_spaces import tiny_space

optuna = pytest.importorskip("optuna")

from warpzone.search.samplers import make_pruner, make_sampler  # noqa: E402
from warpzone.search.storage import quiet  # noqa: E402


def drawn(trials: int, sessions: int = 1, **changes: Any) -> list[dict[str, Any]]:
    """What a sampler draws, for a value that the learning rate decides; in several sessions, each
    with a sampler of its own."""
    quiet()
    space = tiny_space(**changes)
    storage = optuna.storages.InMemoryStorage()

    def objective(trial: Any) -> float:
        found: dict[str, Any] = {}
        for parameter in space.parameters:
            if parameter.holds(found):
                found[parameter.name] = parameter.suggest(trial)
        return float(abs(math.log10(found["lr"]) + 3.0) + found["entropy"])

    for _ in range(sessions):
        study = optuna.create_study(
            study_name="s", storage=storage, sampler=make_sampler(space), load_if_exists=True
        )
        study.optimize(objective, n_trials=trials // sessions)
    return [trial.params for trial in study.trials]


@pytest.mark.parametrize("sampler", ["tpe", "cmaes", "qmc", "random"])
def test_values_are_those_of_the_space(sampler: str) -> None:
    found = drawn(12, sampler=sampler)
    for params in found:
        assert 1e-5 <= params["lr"] <= 1e-2
        assert 0.0 <= params["entropy"] <= 0.1
        assert ("clip" in params) == (params["algo"] == "ppo")
    assert {params["algo"] for params in found} == {"ppo", "a2c"}
    assert len({params["lr"] for params in found}) == 12


@pytest.mark.parametrize("sampler", ["tpe", "cmaes", "random"])
def test_a_sweep_in_parts_draws_what_one_at_once_draws(sampler: str) -> None:
    whole = drawn(12, sampler=sampler)
    assert drawn(12, sessions=3, sampler=sampler) == whole
    assert drawn(12, sampler=sampler, seed=2) != whole


@pytest.mark.parametrize("sampler", ["tpe", "cmaes"])
def test_what_was_found_guides_what_is_drawn(sampler: str) -> None:
    """Closer to the best learning rate than chance, which is on average 0.83 decades away."""
    found = drawn(40, sampler=sampler)[20:]
    mean = sum(abs(math.log10(params["lr"]) + 3.0) for params in found) / len(found)
    assert mean < 0.7


def test_sobol_points_are_spread_evenly() -> None:
    """Of 16 points in a row, each quarter of an axis has four."""
    found = drawn(17, sampler="qmc")[1:]
    for name, low, high in (("lr", -5.0, -2.0), ("entropy", 0.0, 0.1)):
        values = [math.log10(p[name]) if name == "lr" else p[name] for p in found]
        quarters = [int(4 * (value - low) / (high - low)) for value in values]
        assert [quarters.count(quarter) for quarter in range(4)] == [4, 4, 4, 4]


def four_good_ones(trial: Any) -> float:
    """The first trials are better than all that follow."""
    value = float(trial.number < 4)
    for step in range(32, 289, 32):
        trial.report(value, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return value


@pytest.mark.parametrize(("pruner", "ends_early"), [("none", 0), ("median", 1), ("hyperband", 1)])
def test_pruners_end_what_is_worse(pruner: str, ends_early: int) -> None:
    quiet()
    space = tiny_space(pruner=pruner, startup_trials=2, fixed={"max_steps": 288})
    study = optuna.create_study(pruner=make_pruner(space), direction="maximize", study_name="s")

    study.optimize(four_good_ones, n_trials=16)
    states = [trial.state.name for trial in study.trials]
    assert ("PRUNED" in states[4:]) == bool(ends_early)
    assert states[0] == "COMPLETE"


def test_nothing_is_pruned_in_the_warm_up() -> None:
    quiet()
    changes: dict[str, Any] = {"startup_trials": 2, "warmup_steps": 128}
    space = tiny_space(pruner="median", fixed={"max_steps": 288}, **changes)
    study = optuna.create_study(pruner=make_pruner(space), direction="maximize")

    study.optimize(four_good_ones, n_trials=8)
    pruned = [trial for trial in study.trials if trial.state.name == "PRUNED"]
    assert {trial.last_step for trial in pruned} == {128}
