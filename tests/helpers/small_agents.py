"""Shipped agents of the smallest kind, made by the script that makes the real ones."""

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import make_agent, tiny

from warpzone.run import shipped
from warpzone.run.folder import RunFolder
from warpzone.run.names import BEST

SCRIPT = Path(__file__).parents[2] / "scripts" / "make_agent.py"
META = {"global_step": 64, "clears": 3, "seconds": 2.5}
#: The smallest run that `warpzone train` makes.
TINY = [
    *("--preset", "quick", "--num-envs", "4", "--rollout-steps", "8", "--minibatch", "16"),
    *("--max-steps", "64", "--eval-interval", "0", "--device", "cpu", "--num-threads", "1"),
    *("--epochs", "1", "--stages", "1-1"),
]


def small_run(path: Path, **changes: Any) -> Path:
    """A run's folder with best weights."""
    config = tiny(**changes)
    path.mkdir(parents=True)
    (path / "config.json").write_text(config.to_json())
    RunFolder(path).save_weights(BEST, make_agent(config), META)
    return path


def evaluation(stages: dict[str, str], **changes: Any) -> dict[str, Any]:
    """What `warpzone eval --json` writes; digits are the clears of start delays from 0 on."""
    episodes = [
        {"stage": stage, "policy": "argmax", "start_delay": delay, "cleared": digit == "1",
         "steps": 100 + delay}
        for stage, digits in stages.items()
        for delay, digit in enumerate(digits)
    ]  # fmt: skip
    rows = [
        {"stage": stage, "policy": "argmax", "worst_x": 800 if "0" in digits else None,
         "worst_count": digits.count("0"), "stuck": 0}
        for stage, digits in stages.items()
    ]  # fmt: skip
    last = len(next(iter(stages.values()))) - 1
    about = {"global_step": 64, "delays": f"0..{last}", "seed": 0, "rom": "eu"}
    return {**about, "totals": {"argmax": {}}, "stages": rows, "episodes": episodes, **changes}


def make(
    monkeypatch: pytest.MonkeyPatch, source: Path, out: Path, *words: str, name: str = "small"
) -> dict[str, Any]:
    """Runs the script; the description that it wrote."""
    command = [str(SCRIPT), str(source), "--name", name, "--out", str(out), *words]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    if ended.value.code:
        raise RuntimeError(str(ended.value.code))
    described: dict[str, Any] = json.loads((out / f"{name}.json").read_text())
    return described


def ship(monkeypatch: pytest.MonkeyPatch, folder: Path, **changes: Any) -> Path:
    """An agent `small` instead of those of the package; its weights."""
    run = small_run(folder / "trained" / "small", **changes)
    measured = folder / "eval.json"
    made = make(monkeypatch, run, folder / "agents")
    played = evaluation({"1-1": "11", "1-2": "00"}, sha256=made["sha256"])
    measured.write_text(json.dumps(played))
    make(monkeypatch, run, folder / "agents", "--evals", str(measured))
    monkeypatch.setattr(shipped, "AGENTS", folder / "agents")
    return folder / "agents" / "small.safetensors"
