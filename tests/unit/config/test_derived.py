"""What follows from other choices is worked out in one place."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import tiny

from warpzone.config import ConfigError, TrainConfig, from_saved, load_preset

SAVED = Path(__file__).parent / "saved" / "2026-11-15.json"


@pytest.mark.parametrize(
    ("changes", "clears"),
    [
        ({}, 0),
        ({"stop_at": 0.774}, 24),
        ({"stop_at": 24 / 31}, 24),
        ({"stop_at": 1.0}, 31),
        ({"stop_at": 0.001}, 1),
        ({"stop_at": 0.774, "stages": "all"}, 768),
        ({"stop_at": 1.0, "whole_game": True}, 31),
    ],
)
def test_a_share_of_the_start_delays_ends_a_run(changes: dict[str, Any], clears: int) -> None:
    assert tiny(**changes).clears_to_stop == clears


def test_a_number_of_clears_is_understood_as_a_share() -> None:
    for clears in range(1, 32):
        config = tiny(stop_at_clears=clears)
        assert (config.stop_at_clears, config.clears_to_stop) == (0, clears)
    assert tiny(stop_at_clears=24, stages="all").clears_to_stop == 24
    again = tiny(stop_at_clears=24).replace(stages="1-1,1-2")
    assert again.clears_to_stop == 48
    with pytest.raises(ConfigError, match=r"--stop-at must be in 0\.\.1"):
        tiny(stop_at=24)


def test_presets_end_at_a_share() -> None:
    assert load_preset("quick").clears_to_stop == 24
    assert load_preset("fast-1-1").clears_to_stop == 30
    everything = load_preset("quick").replace(stages="all")
    assert everything.clears_to_stop / everything.most_clears > 0.77


def test_compiling_replaces_graphs() -> None:
    assert tiny().graphs
    assert not tiny(compile=True).graphs
    assert not tiny(cuda_graphs=False).graphs


@pytest.mark.parametrize(
    ("changes", "step"),
    [
        ({}, 100_000),
        ({"scripted_share": 0.5}, 500_000),
        ({"scripted_share": 1.0}, math.inf),
        ({"scripted_share": 0.0}, 0),
        ({"scripted_steps": 7}, 7),
        ({"scripted_steps": 7, "scripted_share": 1.0}, 7),
    ],
)
def test_when_scripts_end(changes: dict[str, Any], step: float) -> None:
    assert tiny(max_steps=1_000_000, **changes).script_ends == step


def test_a_run_of_before_keeps_its_script() -> None:
    """Scripts had no end then; a run that is resumed must not lose its own."""
    values = json.loads(SAVED.read_text())
    assert values["scripted_sequence"]
    assert from_saved(values).script_ends == math.inf
    # Without a script nothing tells it from a run of now, which it may be compared with.
    assert from_saved(values | {"scripted_sequence": ""}).scripted_share == 0.1
    assert from_saved(values | {"scripted_share": 0.3}).scripted_share == 0.3


def test_optimiser_steps_of_an_update() -> None:
    config = TrainConfig(num_envs=8, rollout_steps=16, minibatch=32, grad_accum=2, epochs=3)
    assert config.optimiser_steps == 6
