"""`warpzone export`: files for other programs, and what is refused."""

import os
import sys
from pathlib import Path

import pytest
from examples import code_in
from small_agents import small_run

from warpzone.cli.main import main
from warpzone.share import exporting

OUT = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small_run(Path("runs/small"), memory="gru")


def test_both_files_of_a_run(capsys: OUT) -> None:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    Path("a.onnx").write_text("an older file")
    assert main(["export", "small", "--onnx", "a.onnx", "--torch", "a.pt2"]) == 0
    said = capsys.readouterr()
    assert [line.partition(":")[0] for line in said.out.splitlines()] == ["a.onnx", "a.pt2"]
    assert said.err == ""
    session = runtime.InferenceSession("a.onnx", providers=["CPUExecutionProvider"])
    assert [one.name for one in session.get_inputs()] == ["obs", "starts", "hidden"]
    assert sorted(path.name for path in Path().iterdir()) == ["a.onnx", "a.pt2", "runs"]


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["small"], 2, "say what to write: --onnx FILE, --torch FILE, or both"),
        (["small", "--onnx", "a", "--torch", "a"], 2, "cannot be the same file"),
        (["smal", "--onnx", "a.onnx"], 2, "did you mean small?"),
        (["empty", "--onnx", "a.onnx"], 2, "has no weights yet"),
        (["small", "--onnx", "runs"], 2, "runs is a folder; give a file's name"),
        (["small", "--onnx", "none/a.onnx"], 1, "the folder none does not exist"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    capsys: OUT, words: list[str], code: int, sentence: str
) -> None:
    small_run(Path("runs/empty"))
    Path("runs/empty/best.safetensors").unlink()
    assert main(["export", *words]) == code
    said = capsys.readouterr().err
    assert sentence in said
    assert said.startswith("warpzone export: ")
    assert said.count("\n") == 1
    assert not list(Path().glob("a*"))


@pytest.mark.parametrize("module", ["onnx", "onnxruntime", "onnxscript"])
def test_a_missing_package_names_the_extra(
    capsys: OUT, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["export", "small", "--onnx", "a.onnx"]) == 1
    said = capsys.readouterr().err
    assert f"{module} is not installed (export to ONNX)" in said
    assert "pip install 'warpzone[export]'" in said
    assert said.count("\n") == 1
    # PyTorch's own format needs none of them.
    assert main(["export", "small", "--torch", "a.pt2"]) == 0


def test_a_file_that_cannot_be_written_leaves_nothing(
    capsys: OUT, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        path.write_bytes(content[:100])
        raise OSError(28, os.strerror(28), str(path))

    Path("a.pt2").write_text("before")
    monkeypatch.setattr(exporting, "_put", full)
    assert main(["export", "small", "--torch", "a.pt2"]) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert Path("a.pt2").read_text() == "before"
    assert sorted(path.name for path in Path().iterdir()) == ["a.pt2", "runs"]


def test_a_damaged_file_of_weights_is_one_sentence(capsys: OUT) -> None:
    weights = Path("runs/small/best.safetensors")
    weights.write_bytes(weights.read_bytes()[:-5])
    assert main(["export", str(weights), "--onnx", "a.onnx"]) == 1
    assert "its header describes" in capsys.readouterr().err


def test_the_examples_of_the_guide_work(capsys: OUT) -> None:
    pytest.importorskip("onnxruntime")
    assert main(["export", "all", "--onnx", "all.onnx"]) == 0
    assert main(["export", "small", "--torch", "agent.pt2"]) == 0
    play, load = code_in("export.md")
    found: dict[str, object] = {}
    exec(play, found)
    assert int(found["infos"]["x_pos"][0]) > 300  # type: ignore[index]
    exec(load, found)
    assert callable(found["program"])
    assert "small" in found["notes"]["warpzone.json"]  # type: ignore[index]
    assert capsys.readouterr().err == ""
