"""`warpzone completion`: what shells complete."""

from __future__ import annotations

import contextlib
import os
import pty
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest

from warpzone.cli.completion import commands
from warpzone.cli.main import COMMANDS, main

OUT = pytest.CaptureFixture[str]


def script(shell: str, capsys: OUT) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


#: What is typed, what must be offered, what must not be.
CASES: list[tuple[list[str], set[str], set[str]]] = [
    (["tr"], {"train"}, {"eval"}),
    ([""], set(COMMANDS), {"--lr"}),
    (["train", "--lear"], set(), {"--lr"}),
    (["train", "--max-"], {"--max-steps", "--max-time"}, {"--lr"}),
    (["train", "--no-cuda"], {"--no-cuda-graphs"}, set()),
    (["train", "--algo", ""], {"ppo", "vtrace", "appo", "a2c"}, {"quick"}),
    (["train", "--preset", "q"], {"quick"}, {"ppo"}),
    (["train", "--resume", ""], {"mine", "latest"}, {"ppo"}),
    (["train", "--runs-dir", "other", "--resume", ""], {"theirs", "latest"}, {"mine"}),
    (["train", "--stages", "8-"], {"8-1", "8-4"}, {"1-1"}),
    (["eval", ""], {"mine", "latest", "all"}, {"train"}),
    (["eval", "mine", "--po"], {"--policy"}, {"--lr"}),
    (["eval", "mine", "--policy", "s"], {"sampled"}, {"argmax"}),
    (["eval", "mine", "--stages", "a"], {"all"}, {"1-1"}),
    (["video", "--stage", "1-"], {"1-1", "1-4"}, {"2-1", "mine"}),
    (["map", "3"], {"3-1", "3-4"}, {"1-1"}),
    (["map", "1-1", "--run", "m"], {"mine"}, {"1-1"}),
    (["agents", ""], {"all"}, {"mine"}),
    (["checkpoints", ""], {"list", "verify", "mine"}, set()),
    (["rom", "i"], {"install", "info"}, set()),
    (["rom", "install", "--variant", "w"], {"world"}, {"eu"}),
    (["completion", ""], {"bash", "zsh", "fish"}, set()),
]
CASE = pytest.mark.parametrize(("typed", "offered", "not_offered"), CASES)
#: Names that a shell might run, from an archive of somebody else.
HOSTILE = ("$(touch ran)", "`touch ran`", "a;touch ran", "{a,b}", "'", "$HOME", "*")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with runs, some of them with names of somebody else's choice."""
    for name in ("runs/mine", "other/theirs", *(f"runs/{name}" for name in HOSTILE)):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def check(here: Path, found: set[str], offered: set[str], not_offered: set[str]) -> None:
    assert offered <= found
    assert not not_offered & found
    assert not (here / "ran").exists()
    assert not any(word in name for name in found for word in ("touch", "$", "{", str(Path.home())))


def bash(program: str, typed: list[str], here: Path) -> set[str]:
    words = " ".join(f"'{word}'" for word in ["warpzone", *typed])
    asked = f"COMP_WORDS=({words}); COMP_CWORD={len(typed)}; _warpzone\n"
    done = subprocess.run(
        ["bash", "--norc", "-c", program + asked + 'printf "%s\\n" "${COMPREPLY[@]}"\n'],
        cwd=here,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return set(done.stdout.splitlines())


@CASE
def test_bash_completes(
    typed: list[str], offered: set[str], not_offered: set[str], here: Path, capsys: OUT
) -> None:
    check(here, bash(script("bash", capsys), typed, here), offered, not_offered)


@CASE
def test_fish_completes(
    typed: list[str], offered: set[str], not_offered: set[str], here: Path, capsys: OUT
) -> None:
    """Asked as the shell asks itself when Tab is pressed."""
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    program = script("fish", capsys) + 'complete -C "$TYPED"\n'
    surroundings = {"PATH": os.environ["PATH"], "HOME": str(here), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["fish", "--no-config", "-c", program],
        cwd=here,
        env={**surroundings, "TYPED": " ".join(["warpzone", *typed])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    # A tab stands before what a candidate means.
    found = {line.partition("\t")[0] for line in done.stdout.splitlines()}
    check(here, found, offered, not_offered)


def test_zsh_completes(here: Path, capsys: OUT) -> None:
    """An interactive shell at a terminal, in which Tab is pressed for one case after another."""
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    (here / "script.zsh").write_text(script("zsh", capsys) + ZSH_LISTENS)
    answers = zsh_answers(here, [" ".join(["warpzone", *typed]) for typed, *_ in CASES])
    assert len(answers) == len(CASES)
    for found, (_, offered, not_offered) in zip(answers, CASES, strict=True):
        check(here, found, offered, not_offered)


def test_every_flag_of_every_command_is_known() -> None:
    known = commands()
    assert set(known) == set(COMMANDS)
    for name in set(COMMANDS) - {"train"}:
        assert "--help" in known[name].flags
    assert {"--lr", "--stages", "--dry-run", "--config-out"} <= set(known["train"].flags)
    assert "--with-parent" not in known["dashboard"].flags


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_theirs(shell: str, capsys: OUT) -> None:
    text = script(shell, capsys)
    for word in ("train", "max-steps", "ppo vtrace appo a2c", "latest"):
        assert word in text
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=text, text=True, check=True)


# --- zsh, which completes at a terminal only ----------------------------------------------------
#: Writes what is offered to a file, in place of a list on the screen; Control-T ends a case.
ZSH_LISTENS = """
compadd() {
  local -a hits
  builtin compadd -O hits "$@"
  print -rl -- $hits >> found
  builtin compadd "$@"
}
unsetopt auto_list beep
finish() { zle kill-whole-line; touch "done$CASE"; CASE=$((CASE + 1)) }
CASE=0
zle -N finish
bindkey '^I' complete-word
bindkey '^T' finish
finish_start() { touch ready }
zle -N zle-line-init finish_start
"""


def zsh_answers(here: Path, lines: list[str]) -> list[set[str]]:
    """What zsh offers for each line."""
    ours, theirs = pty.openpty()
    shell = subprocess.Popen(
        ["zsh", "-f", "-i"],
        cwd=here,
        env={"PATH": os.environ["PATH"], "HOME": str(here), "TERM": "dumb", "ZDOTDIR": str(here)},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    # Nobody looks at the screen, but a full one would stop the shell.
    threading.Thread(target=drain, args=(ours,), daemon=True).start()
    answers = []
    try:
        os.write(ours, b"autoload -Uz compinit && compinit -u -D && source ./script.zsh\n")
        wait_for(here / "ready")
        for number, line in enumerate(lines):
            (here / "found").unlink(missing_ok=True)
            os.write(ours, line.encode() + b"\t\x14")
            wait_for(here / f"done{number}")
            text = (here / "found").read_text() if (here / "found").exists() else ""
            answers.append(set(text.split("\n")) - {""})
    finally:
        shell.kill()
        shell.wait()
    return answers


def drain(terminal: int) -> None:
    with contextlib.suppress(OSError):
        while os.read(terminal, 4096):
            pass
    os.close(terminal)


def wait_for(file: Path) -> None:
    end = time.monotonic() + 120
    while not file.exists():
        assert time.monotonic() < end, f"zsh did not come to {file.name}"
        time.sleep(0.01)
