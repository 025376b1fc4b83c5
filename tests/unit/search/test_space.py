"""Search spaces: what a file may say, and what is refused with which reason."""

from pathlib import Path
from typing import Any

import pytest
from tiny_spaces import tiny_space, values, write

pytest.importorskip("optuna")

from warpzone.config import ConfigError, TrainConfig
from warpzone.search.parameter import Parameter
from warpzone.search.space import parse_space, read_space


def test_a_file_is_what_it_says(tmp_path: Path) -> None:
    space = read_space(write(tmp_path / "mine.toml", pruner="hyperband", seed=3))
    assert space == parse_space(values(pruner="hyperband", seed=3), "mine")
    assert (space.name, space.pruner, space.seed, space.sampler) == ("mine", "hyperband", 3, "tpe")
    assert space.base.hidden_size == 16
    assert [parameter.name for parameter in space.parameters] == ["lr", "entropy", "algo", "clip"]
    assert space.parameters[0] == Parameter("lr", 1e-5, 1e-2, log=True)


def test_a_trial_has_the_drawn_values_and_the_base_for_the_rest() -> None:
    rule = {"low": 2, "high": 4, "when": {"algo": ["ppo"]}, "otherwise": 1}
    space = tiny_space(space={"epochs": rule})
    assert space.base.epochs == 3
    assert space.config({"algo": "a2c", "lr": 0.001}) == space.base.replace(
        algo="a2c", lr=0.001, epochs=1
    )
    assert space.config({"algo": "ppo", "epochs": 3}).epochs == 3
    with pytest.raises(ConfigError, match="--epochs 3 needs --algo ppo"):
        space.config({"algo": "a2c", "epochs": 3})


def test_trials_end_at_equal_steps_or_once_enough_is_cleared() -> None:
    assert tiny_space().base.stop_at == 0.0
    space = tiny_space(objective="steps", clears=24)
    assert space.base.clears_to_stop == 24
    assert space.objective.direction == "minimize"


def test_conditions_come_after_what_they_name() -> None:
    late = {"clip": {"low": 0.1, "high": 0.3, "when": {"normalize_advantages": True}}}
    late["normalize_advantages"] = {"choices": [True, False], "when": {"algo": "a2c"}}
    space = parse_space({**values(), "space": {**late, "algo": {"choices": ["ppo", "a2c"]}}}, "x")
    assert [p.name for p in space.parameters] == ["algo", "normalize_advantages", "clip"]
    clip = space.parameters[2]
    assert clip.holds({"algo": "a2c", "normalize_advantages": True})
    assert not clip.holds({"algo": "a2c", "normalize_advantages": False})
    assert not clip.holds({"algo": "ppo"})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"space": {"lrr": {"low": 1, "high": 2}}},
            "lrr is no field of the configuration, did",
        ),
        ({"space": {"zzz": {"low": 1, "high": 2}}}, "zzz is no field of the configuration"),
        ({"fixed": {"zzz": 1}}, "fixed: zzz is no field"),
        ({"space": {"lr": {"low": 0.0, "high": 1.0}}}, "leaves the field's range: --lr must be ab"),
        ({"space": {"gamma": {"low": 0.9, "high": 1.1}}}, "high leaves the field's range: --gamma"),
        ({"space": {"algo": {"choices": ["ppo", "dqn"]}}}, "--algo must be one of"),
        (
            {"space": {"epochs": {"low": 1.5, "high": 3}}},
            "--epochs must be a whole number",
        ),
        ({"space": {"lr": {"low": 1e-3, "high": 1e-4}}}, "low must be below high"),
        ({"space": {"lr": {"low": 1e-3}}}, "high must be a number"),
        (
            {"space": {"lr": {"low": 1e-3, "high": 1e-2, "choices": [1.0]}}},
            "either low and high",
        ),
        ({"space": {"lr": {"choices": [0.1]}}}, "two values or more"),
        ({"space": {"lr": {"choices": [0.1, 0.1]}}}, "a choice is given twice"),
        ({"space": {"lr": {"low": 1e-3, "high": 1e-2, "lgo": True}}}, "space.lr has 'lgo'"),
        ({"space": {"entropy": {"low": 0.0, "high": 0.1, "log": True}}}, "must be above 0"),
        ({"space": {"amp": {"low": 0, "high": 1}}}, "amp is no number; give choices"),
        ({"space": {"max_steps": {"low": 100, "high": 200}}}, "must be the same for all"),
        ({"space": {"run_name": {"choices": ["a", "b"]}}}, "must be the same for all"),
        ({"fixed": {"runs_dir": "/x"}}, "runs_dir is set by the search"),
        ({"fixed": {"devices": 2}}, "devices is set by the search"),
        ({"fixed": {"lr": 0.1}}, "lr is fixed and searched"),
        ({"fixed": {"minibatch": 7}}, "does not divide into minibatches of 7"),
        ({"space": {"minibatch": {"choices": [16, 7]}}}, "minibatch: 7 cannot be: a rollout of"),
        (
            {"space": {"clip": {"low": 0.1, "high": 0.3, "when": {"gamma": 1}}}},
            "names gamma",
        ),
        ({"space": {"clip": {"low": 0.1, "high": 0.3, "when": {"lr": 1}}}}, "it needs choices"),
        ({"space": {"clip": {"low": 0.1, "high": 0.3, "when": {"algo": "x"}}}}, "'x' is no choice"),
        ({"sampler": "best"}, "sampler must be one of tpe, cmaes, qmc, random, not 'best'"),
        ({"pruner": 3}, "pruner must be text, not 3"),
        ({"startup_trials": -1}, "startup_trials must be at least 0"),
        ({"reduction_factor": 1}, "reduction_factor must be at least 2"),
        ({"objective": "steps"}, "needs clears in 1..31, and it is 0"),
        ({"objective": "steps", "clears": 32}, "needs clears in 1..31, and it is 32"),
        ({"clears": 3}, "clears is about objective steps"),
        ({"trials": 3}, "unknown key 'trials'"),
        ({"preset": "nowhere"}, "there is no preset 'nowhere'"),
        ({"name": "../x"}, "name is the name of one folder"),
        ({"fixed": {"eval_interval": 0}}, "pruning looks at evaluations"),
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        tiny_space(**changes)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a = ", "cannot be read"),
        ("a = " + "[" * 5000 + "]" * 5000, "cannot be"),
        ("space = 3", "space must be a table"),
        ("preset = 'quick'", "there is nothing to search"),
        ("space.lr = 3", "space.lr must be a table"),
    ],
)
def test_files_that_are_no_space(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=sentence):
        read_space(path)


def test_a_trial_is_one_process(tmp_path: Path) -> None:
    preset = tmp_path / "two.toml"
    preset.write_text("devices = 2\n")
    with pytest.raises(ConfigError, match="has 2 ranks; a trial or member is one process"):
        tiny_space(preset=str(preset))


def test_conditions_in_a_circle() -> None:
    wanted = {
        "algo": {"choices": ["ppo", "a2c"], "when": {"reward": "gym"}},
        "reward": {"choices": ["gym", "progress"], "when": {"algo": "ppo"}},
    }
    with pytest.raises(ConfigError, match="go in a circle"):
        parse_space({**values(), "space": wanted}, "x")


def test_two_spaces_are_one_if_they_mean_the_same() -> None:
    assert tiny_space(sampler="qmc", name="b").identity() == tiny_space().identity()
    for changes in (
        {"space": {"lr": {"low": 1e-5, "high": 1e-3, "log": True}}},
        {"space": {"lr": {"low": 1e-5, "high": 1e-2}}},
        {"fixed": {"gamma": 0.5}},
        {"fixed": {"max_steps": 128}},
        {"objective": "clears"},
    ):
        assert tiny_space(**changes).identity() != tiny_space().identity()
    # Where a run is trained, and how it is shown, changes no value.
    assert tiny_space(fixed={"log_interval": 7}).identity() == tiny_space().identity()


@pytest.mark.parametrize(
    ("parameter", "value", "nearest"),
    [
        (Parameter("lr", 1e-4, 1e-2, log=True), 0.5, 1e-2),
        (Parameter("lr", 1e-4, 1e-2), 1e-9, 1e-4),
        (Parameter("epochs", 1, 5), 3.6, 4),
        (Parameter("minibatch", 16, 60, step=16), 61, 48),
        (Parameter("algo", choices=("ppo", "a2c")), "ppo", "ppo"),
    ],
)
def test_values_are_fitted_into_the_range(parameter: Parameter, value: Any, nearest: Any) -> None:
    assert parameter.fit(value) == nearest
    assert type(parameter.fit(value)) is type(nearest)


def test_every_field_can_be_fixed_or_says_why_not() -> None:
    """Any field of the configuration, as it is by default."""
    import dataclasses

    accepted = 0
    for name, value in dataclasses.asdict(TrainConfig()).items():
        if value is None or name in values()["fixed"] or name in values()["space"]:
            continue
        try:
            tiny_space(fixed={name: value})
        except ConfigError as error:
            assert name in str(error).replace("-", "_")  # noqa: PT017
        else:
            accepted += 1
    assert accepted > 100
