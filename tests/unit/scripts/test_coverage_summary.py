"""What `make coverage` keeps of two long reports."""

import json
import runpy
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "coverage_summary.py"


def engine_file(name: str, covered: int, total: int) -> dict[str, object]:
    counts = {"line_covered": covered, "line_total": total, "branch_covered": 1, "branch_total": 4}
    return {"filename": name, **counts}


def python_file(covered: int, total: int) -> dict[str, object]:
    lines = {"covered_lines": covered, "num_statements": total}
    return {"summary": {**lines, "covered_branches": 0, "num_branches": 0}}


def test_totals_and_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [engine_file("nes/cpu.cpp", 5, 10), engine_file("vec/lane.cpp", 10, 10)]
    (tmp_path / "engine.json").write_text(json.dumps({"files": files}))
    found = {
        "src/warpzone/env/vector.py": python_file(3, 4),
        "/x/warpzone/src/warpzone/env/options.py": python_file(0, 4),
        "src/warpzone/__init__.py": python_file(8, 8),
    }
    (tmp_path / "python.json").write_text(json.dumps({"files": found}))
    words = ["--engine", "engine.json", "--python", "python.json", "--out", "out.json"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *words])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    summary = json.loads((tmp_path / "out.json").read_text())
    assert list(summary["engine"]) == ["total", "nes", "vec"]
    assert summary["engine"]["total"] == {
        "lines": 20,
        "line_percent": 75.0,
        "branches": 8,
        "branch_percent": 25.0,
    }
    assert list(summary["python"]) == ["total", "env", "warpzone"]
    assert summary["python"]["env"]["line_percent"] == 37.5
    assert summary["python"]["total"]["line_percent"] == 68.8
    assert capsys.readouterr().out.splitlines() == [
        "engine: 75.0 % of 20 lines, 25.0 % of 8 branches",
        "python: 68.8 % of 16 lines, 0.0 % of 0 branches",
    ]
