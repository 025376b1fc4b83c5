"""Back-ends that are code of the current folder: only what the user named runs. Plug-ins, for which
the same rule holds, are in `tests/unit/config/test_outside.py`."""

from __future__ import annotations

import json
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpzone
from warpzone import ConfigError
from warpzone.cli.main import main
from warpzone.env import outside
from warpzone.env.backends import BackendEnv, BackendError, BackendVectorEnv
from warpzone.eval import evaluate as protocol
from warpzone.media.video import VideoError

SETTINGS = {
    "num-envs": 4,
    "groups": 1,
    "rollout-steps": 8,
    "minibatch": 16,
    "epochs": 1,
    "size": 36,
    "hidden-size": 16,
    "stagnation-limit": 3,
    "max-steps": 96,
    "device": "cpu",
    "seed": 7,
    "run-name": "mine",
    "actions": "simple",
    "worker-start-delay": 0,
    "preset": "quick",
}
WORDS = [word for name, value in SETTINGS.items() for word in (f"--{name}", str(value))]


@pytest.fixture(autouse=True)
def small_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of its own, nothing agreed to, one start delay."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(outside, "agreed_folder", lambda: tmp_path / "agreed")
    monkeypatch.setattr(outside, "_agreed", set[str]())
    monkeypatch.setattr(outside, "_loaded", {})
    monkeypatch.delitem(sys.modules, "game", raising=False)
    few = partial(protocol.evaluate, delays=(0,))
    monkeypatch.setattr("warpzone.train.evaluator.evaluate", few)
    monkeypatch.setattr(protocol, "STUCK_AFTER", 20)
    monkeypatch.setattr("warpzone.eval.best_video.write_best", no_video)


def no_video(*_: Any, **__: Any) -> None:
    raise VideoError("not here")


def said(capsys: pytest.CaptureFixture[str], words: list[str], code: int) -> str:
    """What a command writes to standard error."""
    capsys.readouterr()
    assert main(words) == code
    return capsys.readouterr().err


#: A back-end of somebody else's, which leaves a trace when it is imported.
GAME = """
from pathlib import Path
Path("trace").touch()
from backend_games import Walk as make
"""


@pytest.mark.parametrize("sync", [["--force-sync"], []], ids=["here", "workers"])
def test_somebody_elses_run_brings_no_back_end_to_run(
    capsys: pytest.CaptureFixture[str], sync: list[str]
) -> None:
    """Neither at resume, nor by a preset, nor in workers; what the user names runs, and is the
    only content that does."""
    Path("game.py").write_text(GAME)
    named = ["--backend", "game:make"]
    said(capsys, ["train", *WORDS, *sync, *named], 0)
    config = json.loads(Path("runs/mine/config.json").read_text())
    assert config["plugins_sha256"].startswith("game:make=")
    again = ["train", "--resume", "runs/mine", "--max-steps", "128"]
    said(capsys, again, 0)

    # The same folder, unpacked by somebody who never named that code.
    shutil.rmtree("agreed")
    outside._agreed.clear()
    outside._loaded.clear()
    Path("trace").unlink()
    Path("theirs.toml").write_text("backend = 'game:make'\nnum_envs = 4\nminibatch = 16\n")
    theirs = ["theirs.toml" if word == "quick" else word for word in WORDS]
    for strange in (again, ["train", *theirs, *sync]):
        sentence = said(capsys, strange, 2)
        assert "the back-end game:make is code in" in sentence
        assert "game.py that you have not used yet; read it, and give --backend" in sentence
    with pytest.raises(ConfigError, match="have not used yet"):
        warpzone.train(resume="runs/mine", max_steps=160, quiet=True)
    assert not Path("trace").exists()

    # Nor another content under the name that was agreed to.
    said(capsys, [*again[:-1], "160", *named], 0)
    Path("trace").unlink()
    Path("game.py").write_text(GAME + "# Changed\n")
    assert "the back-end game:make has changed" in said(capsys, [*again[:-1], "192"], 2)
    assert not Path("trace").exists()
    Path("game.py").unlink()
    assert "cannot be imported: there is no module game" in said(capsys, [*again[:-1], "192"], 1)


def test_programs_name_what_they_play() -> None:
    """Whoever makes an environment in Python agrees to its back-end; workers hear of it."""
    Path("game.py").write_text(GAME)
    env = BackendEnv("game:make", frame_skip=1)
    env.reset(seed=1)
    assert env.step(np.int64(1))[4]["x_pos"] == 43
    env.close()
    shutil.rmtree("agreed")
    outside._agreed.clear()
    lanes = BackendVectorEnv("game:make", 2, frame_skip=1)
    assert lanes.reset(seed=1)[1]["x_pos"].tolist() == [40, 40]
    lanes.close()
    with pytest.raises(BackendError, match="cannot be imported: there is no module no_such_game"):
        BackendEnv("no_such_game:make")


def test_packages_of_the_current_folder_are_not_imported() -> None:
    """Their parts cannot all be agreed to; on the Python path, from elsewhere, they can be used."""
    Path("pack").mkdir()
    Path("pack/__init__.py").write_text("raise SystemExit('it ran')\n")
    Path("pack/game.py").write_text(GAME)
    sys.path.insert(0, "")
    try:
        with pytest.raises(BackendError, match=r"there is no module pack\.game on"):
            BackendEnv("pack.game:make")
    finally:
        sys.path.pop(0)
