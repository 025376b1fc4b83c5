"""Every script says what it is for, and what it would do without doing it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[3] / "scripts"
NAMES = sorted(path.name for path in SCRIPTS.glob("*.py"))
ROW = {"kind": "sync", "reset_ok": True, "game_ok": True, "duration": 1.0}
COVERED = {"line_covered": 1, "line_total": 2, "branch_covered": 0, "branch_total": 0}
MEASURED = {"covered_lines": 1, "num_statements": 2, "covered_branches": 0, "num_branches": 0}


def words(name: str, folder: Path) -> list[str]:
    """What a script cannot do without."""
    (folder / "rows.jsonl").write_text(json.dumps(ROW) + "\n")
    (folder / "engine.json").write_text(json.dumps({"files": [{"filename": "nes/x", **COVERED}]}))
    (folder / "python.json").write_text(
        json.dumps({"files": {"warpzone/x": {"summary": MEASURED}}})
    )
    needed = {
        "async_trial_worker.py": ["2", "1"],
        "parse_env_report.py": [str(folder / "rows.jsonl")],
        "coverage_summary.py": [
            *("--engine", str(folder / "engine.json"), "--python", str(folder / "python.json")),
            *("--out", str(folder / "out.json")),
        ],
        "make_agent.py": ["runs/one", "--name", "one"],
        "release_notes.py": ["--tag", "v0.1.0"],
        "backfill_global_step.py": ["--root", str(folder)],
        "benchmark_overlap.py": ["--device", "cpu", "--num-envs-list", "4", "--rollout-list", "8"],
    }
    return needed.get(name, [])


def start(name: str, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPTS / name), *flags]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=600)


@pytest.mark.parametrize("name", NAMES)
def test_every_script_has_help(tmp_path: Path, name: str) -> None:
    done = start(name, tmp_path, "-h")
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout.lower()
    assert "--dry-run" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_dry_run_does_nothing(tmp_path: Path, name: str) -> None:
    needed = words(name, tmp_path)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    done = start(name, tmp_path, *needed, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert (done.stdout + done.stderr).strip()
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
