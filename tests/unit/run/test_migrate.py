"""Old side-cars, and the commands about checkpoints."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from snapshots import snapshot
from tiny_runs import tiny

from warpzone.cli.checkpoints import backfill_main
from warpzone.cli.main import main
from warpzone.run.checkpoints import Checkpoints
from warpzone.run.migrate import backfill
from warpzone.run.sidecar import read_sidecar

OLD = Path(__file__).parent / "old_sidecars"
SCRIPT = Path(__file__).parents[3] / "scripts" / "backfill_global_step.py"
OUT = pytest.CaptureFixture[str]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return shutil.copytree(OLD, tmp_path / "trained_models")


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def read(path: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(path.read_text())
    return values


def test_a_dry_run_changes_nothing(old: Path) -> None:
    """As a script of its own, the way the check of every change runs it."""
    before = contents(old)
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--root", str(old), "--dry-run"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "would_update" in done.stdout
    assert "global_step=1280000" in done.stdout
    assert contents(old) == before


def test_steps_are_filled_in_once(capsys: OUT, old: Path) -> None:
    before = contents(old)
    assert backfill_main(["--root", str(old)]) == 0
    out = capsys.readouterr().out
    name = "a3c_world1_stage1_0002000.json"
    values = read(old / name)
    assert values["save_state"]["global_step"] == 2000 * 10 * 64
    source = values["reconstructed_step_source"]
    assert source["method"] == "rebuild"
    assert (source["rollout_steps"], source["rollout_steps_assumed"]) == (64, True)
    assert (old / f"{name}.bak").read_text() == before[name]
    assert "already_has_step 1, missing_num_envs 1, no_update_info 1, updated 1" in out
    # The rest is as it was, and a second time nothing happens.
    after = contents(old)
    assert {n: t for n, t in after.items() if n in before and n != name} == {
        n: t for n, t in before.items() if n != name
    }
    assert backfill_main(["--root", str(old), "--assume-rollout-steps", "128"]) == 0
    assert contents(old) == after


def test_another_assumption_and_no_backup(old: Path) -> None:
    assert backfill_main(["--root", str(old), "--assume-rollout-steps", "128", "--no-backup"]) == 0
    values = read(old / "a3c_world1_stage1_0002000.json")
    assert values["save_state"]["global_step"] == 2000 * 10 * 128
    assert not list(old.glob("*.bak"))


def test_a_backup_is_whole_or_not_there(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(source: Path, target: Path) -> None:
        target.write_text(source.read_text()[:10])
        raise OSError(28, "No space left on device")

    before = contents(old)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copy2", half)
        assert backfill_main(["--root", str(old)]) == 1
    assert contents(old) == before
    assert backfill_main(["--root", str(old)]) == 0
    name = "a3c_world1_stage1_0002000.json"
    assert (old / f"{name}.bak").read_text() == before[name]


def test_wrong_use_of_the_script(capsys: OUT, old: Path) -> None:
    assert backfill_main(["--root", str(old / "nowhere")]) == 2
    assert backfill_main(["--root", str(old), "--assume-rollout-steps", "0"]) == 2
    (old / "a_broken.json").write_text("{")
    assert backfill_main(["--root", str(old), "--dry-run"]) == 1
    assert "unreadable" in capsys.readouterr().out


# --- warpzone checkpoints ------------------------------------------------------------------------
@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "runs" / "one").mkdir(parents=True)
    store = Checkpoints(tmp_path / "runs" / "one" / "checkpoints")
    for update in (1, 2, 3, 4):
        store.write(snapshot(update, config=tiny(), best={"clears": 2, "update": 1}))
    return tmp_path / "runs" / "one"


def test_list_and_inspect(capsys: OUT, run: Path) -> None:
    assert main(["checkpoints", "list", str(run.parent), "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["global_update"] for row in rows] == [1, 2, 3, 4]
    assert main(["checkpoints", "list", str(run)]) == 0
    assert "update 4  step 128" in capsys.readouterr().out
    assert main(["checkpoints", "inspect", str(run)]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["save_state"]["global_update"] == 4
    assert shown["state"]["moments"] == "float32 [3]"
    assert shown["parameters"] == 8
    assert main(["checkpoints", "inspect", str(run / "nothing")]) == 1
    assert main(["checkpoints", "list", str(run / "nothing")]) == 2


def test_verify_finds_what_is_wrong(capsys: OUT, run: Path) -> None:
    assert main(["checkpoints", "verify", str(run)]) == 0
    assert "4 checkpoints are intact, 0 are not" in capsys.readouterr().out
    path = run / "checkpoints" / "ppo_world1_stage1_0000002.state.pt"
    path.write_bytes(path.read_bytes()[:-1])
    assert main(["checkpoints", "verify", str(run)]) == 1
    assert "0000002: ppo_world1_stage1_0000002.state.pt has" in capsys.readouterr().out
    for action in ("list", "verify", "prune", "migrate"):
        assert main(["checkpoints", action, str(path)]) == 2
        assert "is not a folder" in capsys.readouterr().err


def test_prune_keeps_the_best(capsys: OUT, run: Path) -> None:
    words = ["checkpoints", "prune", str(run), "--keep-last", "1"]
    assert main([*words, "--dry-run"]) == 0
    assert len(Checkpoints(run / "checkpoints").stems()) == 4
    assert main(words) == 0
    left = [stem[-1] for stem in Checkpoints(run / "checkpoints").stems()]
    assert left == ["4", "1"]
    assert capsys.readouterr().out.count("removed") == 2
    assert main(["checkpoints", "prune", str(run), "--keep-last", "0"]) == 2


def test_migrate_writes_lost_sidecars(capsys: OUT, run: Path) -> None:
    lost = run / "checkpoints" / "ppo_world1_stage1_0000003.json"
    before = lost.read_text()
    lost.unlink()
    assert main(["checkpoints", "migrate", str(run), "--dry-run"]) == 0
    assert not lost.exists()
    assert main(["checkpoints", "migrate", str(run)]) == 0
    assert lost.read_text() == before
    assert "[migrate] rebuilt ppo_world1_stage1_0000003" in capsys.readouterr().out


def test_a_side_car_with_a_hash_gets_a_new_one(tmp_path: Path) -> None:
    checkpoint = Checkpoints(tmp_path).write(snapshot(3, global_step=0))
    assert backfill_main(["--root", str(tmp_path)]) == 0
    assert read_sidecar(checkpoint.path).global_step > 0
    values = read(checkpoint.path)
    values["save_state"]["global_step"] = 0
    del values["reconstructed_step_source"]
    checkpoint.path.write_text(json.dumps(values))
    outcome = backfill(checkpoint.path, rollout_steps=64, dry_run=True, backup=False)
    assert outcome is not None
    assert outcome.status == "unreadable"
