"""An agent with packed matrices, wherever an agent is taken."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from small_agents import META, TINY, ship
from tiny_runs import make_agent, tiny

import warpzone
from warpzone.cli.main import main
from warpzone.eval.weights import find_agent
from warpzone.run import packing
from warpzone.run.packing import MATRIX, SCALES
from warpzone.run.shipped import read_card, read_description

OUT = pytest.CaptureFixture[str]
#: With a memory, whose matrices are the largest of so small a network.
NETWORK: dict[str, Any] = {"memory": "gru", "hidden_size": 32}


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The weights of the only agent that is shipped."""
    (tmp_path / "here").mkdir(exist_ok=True)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(packing, "LEAST", 1 << 10)
    return ship(monkeypatch, tmp_path, **NETWORK)


def expected() -> dict[str, torch.Tensor]:
    """What its network has: rows in 255 steps, other tensors in half precision."""
    found = {}
    for name, value in make_agent(tiny(**NETWORK)).state_dict().items():
        found[name] = value.half().float()
        if value.ndim == 2 and 2 * value.numel() >= 1 << 10:
            step = value.abs().amax(1, keepdim=True) / 127
            found[name] = (value / step).round() * step
    return found


def test_every_reader_has_the_same_weights(packed: Path, capsys: OUT) -> None:
    kinds = {name: value.dtype for name, value in load_file(packed).items()}
    assert kinds["memory.from_hidden.weight" + MATRIX] == torch.int8
    assert set(kinds.values()) == {torch.int8, torch.float16, torch.float32}
    wanted = expected()
    network = warpzone.load_agent("small").network.state_dict()
    assert network.keys() == wanted.keys()
    for name, value in wanted.items():
        assert network[name].dtype == torch.float32
        assert torch.equal(network[name], value), name
    words = ["eval", "small", "--delays", "0", "--policy", "argmax", "--stuck-after", "5"]
    assert main([*words, "--json", "e.json"]) == 0
    document = json.loads(Path("e.json").read_text())
    assert document["sha256"] == read_description("small")["sha256"]
    assert main(["play", "small", "--steps", "3", "--json"]) == 0
    assert main(["video", "small", "--scale", "1", "--stuck-after", "2"]) == 0
    assert main(["agents", "small"]) == 0
    assert "half precision, large matrices in 8 bits" in capsys.readouterr().out
    # With this rate the weights are still those of the agent.
    assert main(["train", *TINY, "--init", "small", "--lr", "1e-9", "--run-name", "tuned"]) == 0
    tuned = find_agent("tuned").agent.state_dict()
    for name, value in wanted.items():
        assert float((tuned[name] - value).abs().max()) < 1e-6


@pytest.mark.usefixtures("packed")
def test_an_exported_network_is_the_same_one() -> None:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    assert main(["export", "small", "--onnx", "a.onnx"]) == 0
    session = runtime.InferenceSession("a.onnx", providers=["CPUExecutionProvider"])
    agent = find_agent("small").agent
    obs = torch.randint(0, 256, (2, 4, 36, 36), dtype=torch.uint8)
    state, starts = torch.zeros(2, 32), torch.ones(2, dtype=torch.bool)
    given = {"obs": obs.numpy(), "starts": starts.numpy(), "hidden": state.numpy()}
    logits = session.run(["logits"], given)[0]
    with torch.no_grad():
        ours = agent.act(
            obs, torch.zeros(2, dtype=torch.int64), agent.initial_state(2), starts
        ).logits
    assert torch.allclose(torch.from_numpy(logits), ours, atol=1e-4)


def test_it_goes_to_the_hub_and_comes_back_packed(hub: Any, packed: Path) -> None:
    assert main(["hub", "push", "shipped:small", "mario"]) == 0
    assert hub.repos["somebody/mario"].files["model.safetensors"] == packed.read_bytes()
    assert main(["hub", "pull", "somebody/mario", "--name", "theirs"]) == 0
    about = read_description("theirs")
    assert (about["precision"], about["parameters"]) == (
        "mixed",
        sum(map(torch.numel, expected().values())),
    )
    assert "large matrices in 8 bits" in read_card("theirs")
    # With notes that are not for others the file is written anew, and stays packed.
    stored = load_file(packed)
    save_file(stored, packed, metadata={"meta": json.dumps(META), "more": "secret"})
    about = json.loads(packed.with_suffix(".json").read_text())
    about.pop("sha256")
    packed.with_suffix(".json").write_text(json.dumps(about))
    assert main(["hub", "push", "shipped:small", "again"]) == 0
    content = hub.repos["somebody/again"].files["model.safetensors"]
    assert b"secret" not in content
    assert b"memory.from_hidden.weight:int8" in content


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("none", "'memory.from_hidden.weight:int8' is a matrix without scales"),
        ("nan", "'memory.from_hidden.weight:int8' has a scale that no row can have"),
        ("short", "'memory.from_hidden.weight:int8' does not have one scale for each row"),
        ("half", "'memory.from_hidden.weight:int8' has other numbers than a matrix in 8 bits"),
    ],
)
def test_hostile_files_are_one_sentence(
    packed: Path, capsys: OUT, kind: str, sentence: str
) -> None:
    stored = load_file(packed)
    name = "memory.from_hidden.weight" + SCALES
    scales = stored.pop(name)
    changed = {
        "nan": torch.full_like(scales, float("nan")),
        "short": scales[1:].clone(),
        "half": scales.half(),
    }
    if kind in changed:
        stored[name] = changed[kind]
    save_file(stored, "bad.safetensors")
    for words in (["eval", "bad.safetensors"], ["train", *TINY, "--init", "bad.safetensors"]):
        assert main(words) == 1
        said = capsys.readouterr().err.splitlines()
        assert said[-1].endswith(f"bad.safetensors cannot be read: {sentence}")
        assert len(said) == 1
    assert not Path("runs").exists()
