"""Configurations that cannot work are refused with the reason."""

from typing import Any

import pytest
from tiny_runs import tiny

from warpzone.config import ConfigError, TrainConfig, from_dict, load_preset, preset_names
from warpzone.config.play import START_DELAYS
from warpzone.eval.cases import DELAYS

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"num_envs": 0}, "--num-envs must be at least 1"),
    ({"size": 20}, "--size must be at least 27"),
    ({"gamma": 1.5}, "--gamma must be in 0..1"),
    ({"sticky": 1.0}, "--sticky must be in 0..1"),
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
    ({"compile": True}, "exclude each other"),
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


def test_a_width_that_heads_do_not_divide_is_fine_without_them() -> None:
    assert tiny(hidden_size=17).hidden_size == 17


@pytest.mark.parametrize("name", preset_names())
def test_presets(name: str) -> None:
    config = load_preset(name)
    assert config.updates >= 1
    assert from_dict({"stages": "1-2"}) == TrainConfig(stages="1-2")


def test_unknown_fields_and_presets() -> None:
    with pytest.raises(ConfigError, match="unknown configuration field 'speed'"):
        from_dict({"speed": 1})
    with pytest.raises(ConfigError, match="there is no preset 'none'; presets are"):
        load_preset("none")
