"""Exported networks decide as the agents they were made of."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from small_agents import small_run
from tiny_runs import make_agent, tiny

from warpzone.eval.loaded import LoadedAgent, load_agent
from warpzone.eval.weights import Found, find_agent
from warpzone.model.agent import Agent
from warpzone.run.files import sha256
from warpzone.run.shipped import shipped_names
from warpzone.share import exporting
from warpzone.share.exporting import NOTES, TOLERANCE, write_onnx, write_torch
from warpzone.share.playing import NEW, Playing

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

#: As `warpzone train` makes them, but for the width.
WIDE: dict[str, Any] = {"size": 84, "encoder_width": 0.5, "hidden_size": 64}
NETWORKS: dict[str, dict[str, Any]] = {
    "nature": WIDE,
    "impala": {**WIDE, "encoder": "impala"},
    "memory": {**WIDE, "memory": "gru", "previous_action": True},
}


class Stranger:
    """Plays an ONNX file with nothing but the file: shapes and names are read out of it."""

    def __init__(self, path: Path, lanes: int) -> None:
        self.session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.notes = self.session.get_modelmeta().custom_metadata_map
        kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(bool)": np.bool_}
        self.given: dict[str, Any] = {
            one.name: np.zeros((lanes, *one.shape[1:]), kinds[one.type])
            for one in self.session.get_inputs()
            if one.name != "obs"
        }
        if "starts" in self.given:
            self.given["starts"][:] = True

    def decide(self, obs: NDArray[np.uint8]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Logits and values; the memory moves on with the likeliest action."""
        names = [one.name for one in self.session.get_outputs()]
        found = dict(zip(names, self.session.run(None, {**self.given, "obs": obs}), strict=True))
        for name in self.given:
            if NEW + name in found:
                self.given[name] = found[NEW + name]
        if "previous_action" in self.given:
            self.given["previous_action"] = found["logits"].argmax(-1)
        if "starts" in self.given:
            self.given["starts"] = np.zeros_like(self.given["starts"])
        return found["logits"], found["value"]


@torch.no_grad()
def play(
    agent: LoadedAgent, file: Path, *, loaded: bool, **options: Any
) -> tuple[list[int], dict[str, Any]]:
    """A whole episode of both, each with a memory of its own; the actions and the last infos.
    loaded: the agent of `load_agent` is asked as well, which decides for 32 lanes each time."""
    network, stranger = agent.network, Stranger(file, 1)
    assert stranger.notes["actions"] == agent.config.actions
    env = agent.make_env(1, stages="1-1", autoreset_mode="disabled", **options)
    obs, infos = env.reset(seed=0)
    state, previous = network.initial_state(1), torch.zeros(1, dtype=torch.int64)
    starts, actions, over = torch.ones(1, dtype=torch.bool), [], False
    while not over:
        seen = torch.from_numpy(obs.copy())
        wanted = network.act(seen, previous, state, starts)
        logits, value = stranger.decide(obs)
        near = TOLERANCE * max(1.0, float(wanted.logits.abs().max()))
        assert np.abs(logits - wanted.logits.numpy()).max() <= near
        assert np.abs(value - wanted.value.numpy()).max() <= 10 * near
        state, previous, starts = wanted.state, wanted.logits.argmax(-1), torch.zeros_like(starts)
        action = logits.argmax(-1)
        assert action.tolist() == previous.tolist()
        assert not loaded or action.tolist() == agent.act(obs).tolist()
        actions.append(int(action[0]))
        obs, _, terminated, truncated, infos = env.step(action)
        over = bool(terminated[0] or truncated[0])
    env.close()
    return actions, infos


@pytest.mark.parametrize("name", NETWORKS)
def test_an_onnx_file_plays_an_episode_as_the_network_does(name: str, tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", **NETWORKS[name])
    found = find_agent(run)
    assert write_onnx(found, tmp_path / "agent.onnx") <= TOLERANCE * 50
    actions, _ = play(load_agent(run), tmp_path / "agent.onnx", loaded=True, stagnation_limit=40)
    assert len(actions) > 20


@pytest.mark.parametrize("name", shipped_names())
def test_a_shipped_agent_clears_a_stage_from_its_onnx_file(name: str, tmp_path: Path) -> None:
    found = find_agent(f"shipped:{name}")
    write_onnx(found, tmp_path / "agent.onnx")
    actions, infos = play(load_agent(f"shipped:{name}"), tmp_path / "agent.onnx", loaded=False)
    assert len(set(actions)) > 3
    assert bool(infos["flag_get"][0])


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    run = small_run(tmp_path / "mine", memory="lstm", previous_action=True, stages="1-1..1-2")
    found = find_agent(run)
    write_onnx(found, tmp_path / "a.onnx")
    model = onnx.load(tmp_path / "a.onnx")
    notes = {one.key: one.value for one in model.metadata_props}
    assert notes["agent"] == "mine"
    assert notes["weights_sha256"] == sha256(run / "best.safetensors")
    assert (notes["stages"], notes["picture"], notes["frame_skip"]) == ("1-1..1-2", "36x36", "4")
    assert json.loads(notes["action_names"])[:2] == ["NOOP", "RIGHT"]
    assert json.loads(notes["action_masks"])[:2] == [0, 128]
    assert json.loads(notes["config"])["mask_status_bar"] == found.config.mask_status_bar
    assert str(tmp_path) not in model.SerializeToString().decode(errors="replace")
    inputs = {one.name: one.type.tensor_type for one in model.graph.input}
    assert list(inputs) == ["obs", "previous_action", "starts", "hidden", "carried"]
    assert list(inputs) == json.loads(notes["inputs"])
    assert inputs["obs"].elem_type == onnx.TensorProto.UINT8
    assert {part.shape.dim[0].dim_param for part in inputs.values()} == {"batch"}
    outputs = [one.name for one in model.graph.output]
    assert outputs == ["logits", "value", "new_hidden", "new_carried"]
    assert "zeros in the first step" in model.doc_string


def test_a_network_that_only_looks_takes_only_pictures(tmp_path: Path) -> None:
    agent = find_agent(small_run(tmp_path / "run")).agent
    playing = Playing(agent)
    assert playing.inputs == ("obs",)
    assert playing.outputs == ("logits", "value")


@pytest.mark.parametrize(
    "changes",
    [
        {"memory": "gtrxl"},
        {"color": True, "memory": "gru"},
        {"observation": "tiles", "noisy": True},
        {"observation": "ram", "previous_action": True},
    ],
)
def test_other_networks_can_be_exported(changes: dict[str, Any], tmp_path: Path) -> None:
    """Each file is compared with its network before it is written."""
    found = find_agent(small_run(tmp_path / "run", **changes))
    write_onnx(found, tmp_path / "a.onnx")
    stranger = Stranger(tmp_path / "a.onnx", 5)
    obs = Playing(found.agent).first(5)["obs"].numpy()
    assert stranger.decide(obs)[0].shape[0] == 5
    write_torch(found, tmp_path / "a.pt2")


def test_an_exported_program_decides_alike(tmp_path: Path) -> None:
    found = find_agent(small_run(tmp_path / "run", **NETWORKS["memory"]))
    assert write_torch(found, tmp_path / "a.pt2") <= TOLERANCE
    notes = {NOTES: ""}
    program = torch.export.load(tmp_path / "a.pt2", extra_files=notes).module()
    assert json.loads(notes[NOTES])["weights_sha256"] == sha256(found.path)
    given = Playing(found.agent).first(1)
    given["obs"].random_(generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        wanted = found.agent.act(
            given["obs"], given["previous_action"], (given["hidden"],), given["starts"]
        )
    logits, value, hidden = program(*given.values())
    assert torch.allclose(logits, wanted.logits, atol=TOLERANCE)
    assert torch.allclose(value, wanted.value, atol=TOLERANCE)
    assert torch.allclose(hidden, wanted.state[0], atol=TOLERANCE)


def test_a_file_that_disagrees_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network changes between export and comparison."""
    found = find_agent(small_run(tmp_path / "run"))
    whole = exporting._program

    def other(playing: Playing) -> Any:
        made = whole(playing)
        policy = playing.agent.heads.policy
        policy.bias = torch.nn.Parameter(policy.bias.detach() + 0.5)
        return made

    monkeypatch.setattr(exporting, "_program", other)
    (tmp_path / "a.onnx").write_text("before")
    with pytest.raises(OSError, match="was not written: its logits differ"):
        write_onnx(found, tmp_path / "a.onnx")
    assert (tmp_path / "a.onnx").read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.onnx", "run"]


def test_weights_that_are_not_numbers_are_refused(tmp_path: Path) -> None:
    agent = make_agent(tiny())
    with torch.no_grad():
        agent.heads.policy.bias.fill_(float("nan"))
    run = small_run(tmp_path / "run")
    found = find_agent(run)
    broken = Found(agent, found.config, found.path, found.global_step)
    with pytest.raises(OSError, match="was not written"):
        write_torch(broken, tmp_path / "a.pt2")
    assert not (tmp_path / "a.pt2").exists()


class Counting(torch.nn.Module):
    """An encoder that no graph can hold: it decides by what it sees."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(1, features)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        mean = frames.float().mean((1, 2, 3))
        features: torch.Tensor = self.linear((mean if float(mean.sum()) > 3 else -mean)[:, None])
        return features


def test_a_network_that_cannot_be_exported_is_one_sentence(tmp_path: Path) -> None:
    found = find_agent(small_run(tmp_path / "run"))
    agent = Agent(found.agent.spec, encoder=Counting(found.agent.spec.scaled_features))
    own = Found(agent, found.config, found.path, found.global_step)
    with pytest.raises(OSError, match="the network cannot be exported: ") as caught:
        write_torch(own, tmp_path / "a.pt2")
    assert "\n" not in str(caught.value)
