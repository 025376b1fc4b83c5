"""The notebook runs from top to bottom, on a small budget."""

import os
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

#: nbformat says nothing about types.
read: Any = nbformat.read
NOTEBOOK = Path(__file__).parents[2] / "examples" / "colab.ipynb"
SMALL = 'STEPS = "128 --num-envs 8 --rollout-steps 16 --minibatch 64"\nDEVICE = "cpu"'


def test_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = read(NOTEBOOK, as_version=4)
    kept: list[Any] = []
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if "parameters" in tags:
            cell.source = SMALL
        if "install" not in tags:  # it is installed, or the tests would not run
            kept.append(cell)
    assert len(kept) == len(notebook.cells) - 1
    notebook.cells = kept
    # `warpzone` and the kernel are those of this environment.
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "warpzone"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m warpzone.cli.main "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("JUPYTER_PATH", f"{sys.prefix}/share/jupyter")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    said = [output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("furthest:" in text for text in said)
    assert any(text == "128 steps\n" for text in said)
    videos = [
        output for output in notebook.cells[-1].outputs if "text/html" in output.get("data", {})
    ]
    assert "video/mp4" in videos[0]["data"]["text/html"]


def test_it_is_stored_without_outputs() -> None:
    for cell in read(NOTEBOOK, as_version=4).cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None
