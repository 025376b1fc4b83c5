"""Populations: settings stay in their ranges, lineages are put together from what members say."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tiny_spaces import tiny_space

pytest.importorskip("optuna")
pytest.importorskip("ray")

from warpzone.config import ConfigError
from warpzone.search.lineage import MEMBERS, write_population
from warpzone.search.parameter import Parameter
from warpzone.search.population import (
    PopulationOrder,
    _fitting,
    _scheduler,
    check,
    draw,
    valid_draw,
)

PLAIN: dict[str, Any] = {"space": {"clip": {"low": 0.1, "high": 0.3}}}


def order(tmp_path: Path, **changes: Any) -> PopulationOrder:
    settings: dict[str, Any] = {"members": 4, "workers": 2, "exchange": 32, "quantile": 0.25}
    kept = {name: changes.pop(name, value) for name, value in settings.items()}
    space = tiny_space(**{**PLAIN, **changes})
    return PopulationOrder(tmp_path / "x.toml", space, tmp_path / "x", **kept)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"space": {}}, "`when` is for sweeps only"),
        ({"space": {"clip": {"low": 0.1, "high": 0.2}, "memory": {"choices": ["none", "gru"]}}},
         "is a setting of the network"),
        ({"members": 1}, "--members must be at least 2"),
        ({"quantile": 0.6}, "--quantile must be above 0 and at most 0.5"),
        ({"exchange": 97}, "--exchange 97 is more than max_steps 96"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        check(order(tmp_path, **changes))
    assert not (tmp_path / "x").exists()


def test_a_name_is_used_once(tmp_path: Path) -> None:
    check(order(tmp_path))
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "population.json").write_text("{}")
    with pytest.raises(ConfigError, match="exists already"):
        check(order(tmp_path))


@pytest.mark.parametrize(
    "parameter",
    [
        Parameter("lr", 1e-5, 1e-2, log=True),
        Parameter("entropy", 0.0, 0.1),
        Parameter("epochs", 1, 5),
        Parameter("minibatch", 16, 64, step=16),
        Parameter("algo", choices=("ppo", "a2c")),
    ],
)
def test_draws_are_spread_over_the_range(parameter: Parameter) -> None:
    rng = random.Random(1)
    values = [draw(parameter, rng) for _ in range(300)]
    if parameter.choices:
        assert set(values) == set(parameter.choices)
        return
    assert all(parameter.low <= value <= parameter.high for value in values)
    middle = (parameter.low * parameter.high) ** 0.5 if parameter.log else 0.0
    middle = middle or (parameter.low + parameter.high) / 2
    assert 0.25 < sum(value < middle for value in values) / 300 < 0.75
    assert all(isinstance(value, int) for value in values) == parameter.whole


def test_explored_settings_stay_in_their_ranges(tmp_path: Path) -> None:
    """Tune multiplies what it explores, whatever the range is."""
    from ray.tune.schedulers import pbt

    made = order(tmp_path)
    scheduler = _scheduler(made)
    config: dict[str, Any] = {**valid_draw(made.space), "_folder": "x", "lr": 1e-2, "clip": 0.3}
    explore: Any = pbt._explore
    for _ in range(200):
        config, _ = explore(
            config, scheduler._hyperparam_mutations, 0.25, (0.8, 1.25), _fitting(made.space)
        )
        assert config["_folder"] == "x"
        made.space.config({k: v for k, v in config.items() if k != "_folder"})
        assert 1e-5 <= config["lr"] <= 1e-2
        assert 0.1 <= config["clip"] <= 0.3


def test_the_worst_members_take_over_from_the_best(tmp_path: Path) -> None:
    """Tune compares scores, which are the larger the better whatever the objective is."""
    assert _scheduler(order(tmp_path))._metric_op == 1.0
    few = _scheduler(order(tmp_path, objective="steps", clears=3))
    assert few._metric_op == -1.0
    assert few._quantile_fraction == 0.25
    assert _scheduler(order(tmp_path, exchange=0)) is None


def test_settings_that_contradict_each_other_are_drawn_anew() -> None:
    both = {"minibatch": {"choices": [16, 32]}, "rollout_steps": {"choices": [8, 4]}}
    space = tiny_space(space={**both, "clip": {"low": 0.1, "high": 0.3}})
    wrong = {**valid_draw(space), "minibatch": 32, "rollout_steps": 4}
    fitted = _fitting(space)(wrong)
    assert (fitted["minibatch"], fitted["rollout_steps"]) != (32, 4)
    for _ in range(50):
        space.config(valid_draw(space))


def test_a_lineage_is_what_members_wrote_down(tmp_path: Path) -> None:
    """A session that was repeated after a kill counts once; half a line counts not at all."""
    (tmp_path / MEMBERS).mkdir()
    good, other = {"lr": 0.001}, {"lr": 0.002}
    rows = {
        "00": [
            {"event": "begin", "run": "member-00", "parent": None, "step": 0, "settings": good},
            {"event": "value", "run": "member-00", "step": 32, "value": 1.0, "settings": good},
            {"event": "value", "run": "member-00", "step": 32, "value": 1.0, "settings": good},
            {"event": "value", "run": "member-00", "step": 64, "value": 2.0, "settings": good},
        ],
        "01": [
            {"event": "begin", "run": "member-01", "parent": None, "step": 0, "settings": other},
            {"event": "value", "run": "member-01", "step": 32, "value": 0.5, "settings": other},
            {"event": "begin", "run": "member-01-2", "parent": "member-00", "step": 32,
             "settings": good},
            {"event": "value", "run": "member-01-2", "step": 64, "value": 3.0, "settings": good},
        ],
    }  # fmt: skip
    for name, lines in rows.items():
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (tmp_path / MEMBERS / f"{name}.jsonl").write_text(text + '{"event": "val')
    found = write_population(tiny_space(**PLAIN), tmp_path, {"members": 2})
    assert json.loads((tmp_path / "population.json").read_text()) == found
    assert [(run["run"], run["parent"], run["step"]) for run in found["runs"]] == [
        ("member-00", None, 0),
        ("member-01", None, 0),
        ("member-01-2", "member-00", 32),
    ]
    assert [point["step"] for point in found["runs"][0]["points"]] == [32, 64]
    assert found["best"] == {"value": 3.0, "step": 64, "run": "member-01-2", "settings": good}
    assert "--lr 0.001" in found["command"]
