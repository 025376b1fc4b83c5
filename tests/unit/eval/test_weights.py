"""Finding agents: runs, files, names, and weights that come alone."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from tiny_runs import make_agent, same, tiny

from warpzone.config import ConfigError, TrainConfig
from warpzone.eval.guess import guess_config
from warpzone.eval.weights import find_agent
from warpzone.model.agent import Agent
from warpzone.model.spec import model_spec
from warpzone.run.checkpoints import Checkpoints, Snapshot
from warpzone.run.folder import RunFolder
from warpzone.run.names import BEST, WEIGHTS
from warpzone.run.reader import latest_run


def make_run(folder: Path, name: str, **changes: Any) -> tuple[Path, Agent, TrainConfig]:
    config = tiny(**changes)
    agent = make_agent(config)
    path = folder / name
    path.mkdir(parents=True)
    (path / "config.json").write_text(config.to_json())
    RunFolder(path).save_weights(WEIGHTS, agent, {"global_step": 64})
    return path, agent, config


def test_a_run_is_its_best_weights(tmp_path: Path) -> None:
    run, agent, config = make_run(tmp_path, "a")
    found = find_agent(run)
    assert (found.path.name, found.global_step) == (WEIGHTS, 64)
    assert same(found.agent, agent)
    assert found.config == config
    better = make_agent(config, seed=9)
    RunFolder(run).save_weights(BEST, better, {"global_step": 32})
    assert same(find_agent(run).agent, better)


def test_latest_is_the_run_that_wrote_last(tmp_path: Path) -> None:
    old, _, _ = make_run(tmp_path, "old")
    make_run(tmp_path, "new")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "config.json").write_text("{}")
    os.utime(old / WEIGHTS, (1, 1))
    found = latest_run(tmp_path)
    assert found is not None
    assert found.name == "new"
    assert find_agent("latest", tmp_path).path == tmp_path / "new" / WEIGHTS


def test_checkpoints_by_file_and_by_name(tmp_path: Path) -> None:
    run, agent, config = make_run(tmp_path, "a")
    (run / WEIGHTS).unlink()
    snapshot = Snapshot(
        config=config,
        global_step=448,
        global_update=7,
        reason="normal",
        weights=agent.state_dict(),
        state={},
        best={},
    )
    stem = Checkpoints(run / "checkpoints").write(snapshot).sidecar.stem
    names = (stem, f"{stem}.json", f"{stem}.safetensors", "ppo_world1_stage1_latest.json")
    for word in (run, *(run / "checkpoints" / name for name in names)):
        found = find_agent(word)
        assert same(found.agent, agent)
        assert (found.path.stem, found.global_step, found.config) == (stem, 448, config)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"size": 84, "encoder_width": 0.25, "actions": "complex"},
        {"encoder": "impala", "impala_blocks": 1, "size": 42},
        {"encoder": "impala", "encoder_channels": "4,6", "size": 42},
        {"encoder_channels": "4,6,6", "size": 42},
        {"encoder_channels": "4,6,10", "encoder_width": 1.0, "size": 42},
        {"memory": "gru", "previous_action": True},
        {"memory": "lstm", "frame_stack": 2},
        {"color": True},
        {"noisy": True, "actions": "right"},
    ],
)
def test_weights_alone_tell_their_network(tmp_path: Path, changes: dict[str, Any]) -> None:
    run, agent, config = make_run(tmp_path, "a", **changes)
    alone = tmp_path / "alone" / "some.safetensors"
    alone.parent.mkdir()
    (run / WEIGHTS).rename(alone)
    found = find_agent(alone)
    assert found.guessed
    assert same(found.agent, agent)
    for name in (
        "encoder",
        "memory",
        "actions",
        "frame_stack",
        "previous_action",
        "noisy",
        "color",
    ):
        assert getattr(found.config, name) == getattr(config, name)


@pytest.mark.parametrize("size", [84, 42, 96, 64, 48, 128, 36, 56, 72, 112])
def test_common_sizes_of_pictures_are_guessed(size: int) -> None:
    """Others lead to the same shapes; the usual one is meant."""
    config = TrainConfig(size=size, encoder_width=0.125, hidden_size=16)
    weights = Agent(model_spec(config, 7)).state_dict()
    assert guess_config(weights).size == size


def test_a_network_can_be_named_for_weights_without_a_configuration(tmp_path: Path) -> None:
    config = TrainConfig(size=36, encoder_width=0.125, hidden_size=16)
    file = tmp_path / "alone.safetensors"
    save_file(Agent(model_spec(config, 7)).state_dict(), file)
    assert find_agent(file).config.network == ""
    with pytest.raises(ConfigError, match="the network nowhere:Net is missing"):
        find_agent(file, network="nowhere:Net")


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing"):
        find_agent(tmp_path / "nothing")
    with pytest.raises(ConfigError, match="not a run"):
        find_agent(tmp_path)
    with pytest.raises(ConfigError, match="no run"):
        find_agent("latest", tmp_path)
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(b"not weights")
    with pytest.raises(OSError, match="cannot be read"):
        find_agent(broken)
    with pytest.raises(ConfigError, match="not those of an agent"):
        guess_config({"weight": torch.zeros(3)})
    run, _, config = make_run(tmp_path, "a")
    (run / "config.json").write_text(config.replace(hidden_size=64).to_json())
    with pytest.raises(ConfigError, match="another network"):
        find_agent(run)


@pytest.mark.parametrize(
    "claim",
    [
        {"hidden_size": 2**31},
        {"encoder_width": 1e8},
        {"encoder": "impala", "impala_blocks": 10**9},
        {"memory": "gtrxl", "memory_layers": 10**9},
        {"memory": "gru", "hidden_size": 10**6},
        {"frame_stack": 10**9},
        {"size": 10**9},
    ],
)
def test_a_network_that_the_weights_do_not_hold_takes_no_memory(
    tmp_path: Path, claim: dict[str, Any]
) -> None:
    run, _, config = make_run(tmp_path, "a")
    (run / "config.json").write_text(config.replace(**claim).to_json())
    with pytest.raises(ConfigError, match="another network"):
        find_agent(run)


def test_a_network_of_no_picture_is_a_sentence(tmp_path: Path) -> None:
    run, _, config = make_run(tmp_path, "a")
    claim = config.replace(size=30, encoder="impala", encoder_channels="1,1,1,1,1,1,1,1")
    (run / "config.json").write_text(claim.to_json())
    with pytest.raises(ConfigError):
        find_agent(run)
