"""Configurations that cannot work are refused with the reason."""

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import tiny

from warpzone.cli.flags import check, preset_config
from warpzone.config import ConfigError, TrainConfig, from_dict, load_preset, preset_names
from warpzone.config.play import START_DELAYS
from warpzone.config.run import name_problem
from warpzone.eval.cases import DELAYS
from warpzone.run.folder import RunFolder

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"num_envs": 0}, "--num-envs must be at least 1"),
    ({"size": 20}, "--size must be at least 27"),
    ({"gamma": 1.5}, "--gamma must be in 0..1"),
    ({"sticky": 1.0}, "--sticky must be in 0..1"),
    ({"start_power": "huge"}, "--start-power must be one of small, big, fire, any, not 'huge'"),
    ({"start_halfway": 1.5}, "--start-halfway must be in 0..1"),
    ({"start_halfway": 0.1, "whole_game": True}, "--start-halfway is for single stages"),
    ({"start_halfway": 0.1, "stages": "game"}, "--start-halfway is for single stages"),
    ({"end_on_setback": True, "stages": "game"}, "--end-on-setback is for single stages"),
    ({"backend": "nes-py", "start_power": "any"}, "made by the native engine"),
    ({"backend": "retro", "start_halfway": 0.5}, "made by the native engine"),
    ({"ema": 1.0}, "--ema must be in 0..1"),
    ({"lr": 0.0}, "--lr must be above 0"),
    ({"clip_grad": 0.0}, "--clip-grad must be above 0"),
    ({"seed": -1}, "--seed must be at least 0"),
    ({"warmup": 1.0}, "would be the whole run"),
    ({"groups": 3}, "4 lanes do not divide into 3 groups"),
    ({"minibatch": 12}, "does not divide into minibatches of 12"),
    ({"minibatch": 4, "memory": "gru"}, "must be a multiple of --rollout-steps"),
    ({"minibatch": 4, "algo": "vtrace"}, "must be a multiple of --rollout-steps"),
    ({"grad_accum": 3}, "2 minibatches of a rollout do not divide into steps of --grad-accum 3"),
    ({"max_steps": 10}, "more than --max-steps 10"),
    ({"per": True}, "--per needs --algo vtrace"),
    ({"per_burn_in": 8}, "leaves nothing to learn from"),
    ({"per_beta": 2.0}, "--per-beta must be in 0..1"),
    ({"algo": "vtrace", "epochs": 2}, "--epochs 2 needs --algo ppo"),
    ({"algo": "a2c", "target_kl": 0.1}, "--target-kl needs --algo ppo"),
    ({"memory": "gtrxl", "memory_heads": 3}, "does not divide into 3 attention heads"),
    ({"stages": "9-1"}, "'9-1' is not a stage"),
    ({"whole_game": True, "world": 3}, "leave out --world and --stage"),
    ({"whole_game": True, "stage": 2}, "leave out --world and --stage"),
    ({"stop_at_clears": 32}, "an evaluation has 31 start delays"),
    ({"stop_at_clears": 63, "stages": "1-1,1-2,1-1"}, "an evaluation has 62 start delays"),
    ({"stop_at_clears": 32, "whole_game": True}, "an evaluation has 31 start delays"),
    ({"actions": "all"}, "all"),
    ({"encoder_channels": "16,32,many"}, "whole numbers from 1 to 4,096 such as 16,32,32"),
    ({"encoder_channels": "16,0,32"}, "whole numbers from 1"),
    ({"encoder_channels": "16,32"}, "the nature encoder has 3 convolutions"),
    ({"encoder_channels": "1," * 8 + "1", "encoder": "impala"}, "no picture is left"),
    ({"encoder_channels": "8,8,8", "observation": "tiles"}, "is about pictures"),
]


@pytest.mark.parametrize(("changes", "reason"), REFUSED, ids=lambda value: str(value)[:40])
def test_nonsense_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError) as refused:
        tiny(**changes)
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_evaluation_has_as_many_start_delays_as_are_counted() -> None:
    assert len(DELAYS) == START_DELAYS
    assert tiny(stages="1-1,1-2", stop_at_clears=62).most_clears == 62
    assert tiny(stages="1-1,1-2", stop_at_clears=62).clears_to_stop == 62


def test_a_width_that_heads_do_not_divide_is_fine_without_them() -> None:
    assert tiny(hidden_size=17).hidden_size == 17


@pytest.mark.parametrize("name", preset_names())
def test_presets(name: str) -> None:
    config = load_preset(name)
    assert config.updates >= 1
    assert from_dict({"stages": "1-2"}) == TrainConfig(stages="1-2")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"max_steps = " + b"[" * 100_000, "nested too deeply"),
        (b"max_steps = " + b"9" * 5000, "digits"),
        (b"max_steps = \xff", "utf-8"),
        (b"max_steps", "Expected"),
        (bytes(2 << 20), "more than"),
    ],
)
def test_a_preset_of_somebody_elses_is_refused_in_one_sentence(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "hostile.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=reason) as caught:
        preset_config(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "plain", "with space", "größe", "名前", "a" * 200, ".x"])
def test_good_names_of_runs(name: str) -> None:
    assert name_problem(name) == ""


@pytest.mark.parametrize(
    "name",
    [
        "a\nb",
        "\x1b[2J",
        "\0",
        "a\tb",
        "\udcff",
        "\u202e",
        "a/b",
        "/",
        ".",
        "..",
        "a" * 201,
        "名" * 67,
    ],
)
def test_bad_names_of_runs(tmp_path: Path, name: str) -> None:
    """Refused before anything is trained, whoever starts the run, and nothing is made."""
    assert name_problem(name).isprintable()
    config = TrainConfig(run_name=name, runs_dir=str(tmp_path))
    with pytest.raises(ConfigError, match="--run-name"):
        check(config)
    with pytest.raises(ConfigError, match="--run-name"):
        RunFolder.create(config)
    assert list(tmp_path.iterdir()) == []


def test_a_configuration_of_before_loads() -> None:
    """As `config.json` of runs that were trained with an earlier version."""
    for path in sorted((Path(__file__).parent / "saved").glob("*.json")):
        values = json.loads(path.read_text())
        config = from_dict(values)
        assert config.num_envs == values["num_envs"]
        assert config.max_cost_gpu_hours == values["max_cost_gpu_hours"]
        assert config.stages == "1-1,1-2"
        assert (config.stop_at, config.clears_to_stop) == (0.5, 31)


def test_unknown_fields_and_presets() -> None:
    with pytest.raises(ConfigError, match="unknown configuration field 'speed'"):
        from_dict({"speed": 1})
    with pytest.raises(ConfigError, match="there is no preset 'none'; presets are"):
        load_preset("none")
