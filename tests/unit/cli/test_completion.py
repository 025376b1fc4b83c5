"""`warpzone completion`: what shells complete."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from warpzone.cli.completion import commands
from warpzone.cli.main import COMMANDS, main


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "offered", "not_offered"),
    [
        (["tr"], {"train"}, {"eval"}),
        ([""], set(COMMANDS), {"--lr"}),
        (["train", "--lear"], set(), {"--lr"}),
        (["train", "--max-"], {"--max-steps", "--max-time"}, {"--lr"}),
        (["train", "--no-cuda"], {"--no-cuda-graphs"}, set()),
        (["train", "--algo", ""], {"ppo", "vtrace", "a2c"}, {"quick"}),
        (["train", "--preset", "q"], {"quick"}, {"ppo"}),
        (["train", "--resume", ""], {"mine", "latest"}, {"ppo"}),
        (["eval", ""], {"mine", "latest", "all"}, {"train"}),
        (["eval", "mine", "--po"], {"--policy"}, {"--lr"}),
        (["eval", "mine", "--policy", "s"], {"sampled"}, {"argmax"}),
        (["checkpoints", ""], {"list", "verify", "mine"}, set()),
        (["rom", "i"], {"install", "info"}, set()),
        (["rom", "install", "--variant", "w"], {"world"}, {"eu"}),
        (["completion", ""], {"bash", "zsh", "fish"}, set()),
    ],
)
def test_bash_completes(
    typed: list[str],
    offered: set[str],
    not_offered: set[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    words = " ".join(f"'{word}'" for word in ["warpzone", *typed])
    asked = f"COMP_WORDS=({words}); COMP_CWORD={len(typed)}; _warpzone\n"
    program = script("bash", capsys) + asked + 'printf "%s\\n" "${COMPREPLY[@]}"\n'
    done = subprocess.run(
        ["bash", "--norc", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    found = set(done.stdout.split())
    assert offered <= found
    assert not not_offered & found
    assert done.stderr == ""


def test_every_flag_of_every_command_is_known() -> None:
    known = commands()
    assert set(known) == set(COMMANDS)
    for name in set(COMMANDS) - {"train"}:
        assert "--help" in known[name].flags
    assert {"--lr", "--stages", "--dry-run", "--config-out"} <= set(known["train"].flags)
    assert "--with-parent" not in known["dashboard"].flags


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_theirs(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = script(shell, capsys)
    for word in ("train", "max-steps", "ppo vtrace a2c", "latest"):
        assert word in text
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=text, text=True, check=True)
