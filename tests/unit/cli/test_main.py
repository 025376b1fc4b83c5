"""The entry point: what holds for every command."""

import os
import subprocess
import sys

import pytest

from warpzone.cli import suggest
from warpzone.cli.flags import resolve
from warpzone.cli.main import main
from warpzone.cli.parsing import sentence
from warpzone.config import ConfigError

#: Runs a command, then asks what PyTorch's OpenMP runtime reads when it is loaded.
PROGRAM = """
import sys
from warpzone.cli.main import main
assert main(sys.argv[1:]) == 0
assert "torch" not in sys.modules
import os, torch
print(os.environ["OMP_WAIT_POLICY"])
"""


@pytest.mark.parametrize(("given", "used"), [("", "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_waiting_threads_leave_the_cores_to_others(given: str, used: str) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"}
    if given:
        environment["OMP_WAIT_POLICY"] = given
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "agents"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == used


@pytest.mark.parametrize("text", ["", "Unable to allocate 1 TiB"])
def test_without_memory_a_command_ends_with_a_sentence(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: object) -> int:
        raise MemoryError(text)

    monkeypatch.setattr("warpzone.cli.agents.run", run)
    assert main(["agents"]) == 1
    why = f" ({text})" if text else ""
    assert capsys.readouterr().err == f"warpzone agents: memory ran out{why}.\n"


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("--learning-rate", "--lr"),
        ("--learning_rate=0.1", "--lr"),
        ("--learning-rte", "--lr"),
        ("--total-timestep", "--max-steps"),
        ("--levels", "--stages"),
        ("--max-step", "--max-steps"),
        ("--rolout-steps", "--rollout-steps"),
        ("--dryrun", "--dry-run"),
    ],
)
def test_training_suggests_the_flag_that_was_meant(word: str, meant: str) -> None:
    with pytest.raises(ConfigError) as refused:
        resolve([word, "3"], prog="warpzone train", about="", say=lambda _: None)
    name = word.partition("=")[0].replace("_", "-")
    assert str(refused.value) == (
        f"unknown flag {name}, did you mean {meant}? `warpzone train --help` shows what there is"
    )


def test_nothing_is_suggested_for_what_resembles_nothing() -> None:
    assert suggest.unknown("--frobnicate", {"--lr", "--stages"}) == "unknown flag --frobnicate"
    assert suggest.unknown("--learning-rate", {"--seed"}) == "unknown flag --learning-rate"
    assert suggest.unknown("--learning-rte", {"--seed"}) == "unknown flag --learning-rte"


def test_a_flag_of_its_own_goes_before_the_same_name_elsewhere() -> None:
    assert suggest.suggestion("--stage", {"--stage", "--stages"}) == "--stage"
    assert suggest.suggestion("--stags", {"--stages"}) == "--stages"


@pytest.mark.parametrize("word", ["--stage=1-2", "--stages=1-2"])
def test_a_stage_has_a_name(word: str) -> None:
    said: list[str] = []
    config = resolve(
        [word, "--device", "cpu", "--preset", "quick"], prog="", about="", say=said.append
    )
    assert config.stages == "1-2"
    assert ("--stage 1-2 is read as --stages 1-2" in said) == (word == "--stage=1-2")


@pytest.mark.parametrize(
    ("words", "usage", "sentence"),
    [
        ("eval mine --polcy both", "eval", "unknown flag --polcy, did you mean --policy?"),
        ("video mine --level 1-2", "video", "unknown flag --level, did you mean --stage?"),
        ("play --rom eu --output a.mp4", "play", "unknown flag --output, did you mean --out?"),
        ("checkpoints list --jsn", "checkpoints list", "--jsn, did you mean --json?"),
        ("doctor again", "doctor", "unknown word again"),
    ],
)
def test_unknown_words_are_refused_by_the_subcommand(
    words: str, usage: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(words.split())
    said = capsys.readouterr().err
    assert stop.value.code == 2
    assert said.startswith(f"usage: warpzone {usage} ")
    assert said.splitlines()[-1].startswith(f"warpzone {usage}: error: ")
    assert said.splitlines()[-1].endswith(sentence)


def test_slow_commands_say_at_once_that_they_start(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before PyTorch and the ROM are loaded, and where somebody looks."""
    from warpzone.cli import eval as command

    seen: list[str] = []

    def run(_: object) -> int:
        seen.append(capsys.readouterr().err)
        return 0

    monkeypatch.setattr(command, "run", run)
    for terminal in (True, False):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        assert main(["eval", "all"]) == 0
    assert seen == ["warpzone eval: starting\n", ""]


def test_a_mistyped_flag_on_a_terminal_is_one_sentence_too() -> None:
    """There tyro draws its box in colours."""
    red, off = "\x1b[31m", "\x1b[0m"
    box = "\n".join(
        [
            f"{red}╭─ Unrecognized options ─╮{off}",
            f"{red}│{off} Unrecognized options: --learning-rate, 3 {red}│{off}",
            f"{red}│{off} {red}────────{off} {red}│{off}",
            f"{red}│{off} For full helptext, run {off}warpzone train --help {red}│{off}",
            f"{red}╰────────╯{off}",
        ]
    )
    said = sentence(box, "warpzone train")
    assert said.startswith("unknown flag --learning-rate, did you mean --lr? `warpzone train")
    assert said.endswith("--help` shows what there is")


@pytest.mark.parametrize(
    ("word", "end"),
    [("evaluate", ", did you mean eval?"), ("trian", ", did you mean train?"), ("xyz", ";")],
)
def test_a_mistyped_command(word: str, end: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word, "--all"]) == 2
    assert capsys.readouterr().err == (
        f"warpzone: there is no command {word}{end} `warpzone --help` lists them.\n"
    )


@pytest.mark.parametrize("name", ["rom", "dashboard", "sweep", "population"])
def test_commands_that_take_a_while_say_that_they_start(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def run(_args: object) -> int:
        seen.append(capsys.readouterr().err)
        return 0

    monkeypatch.setattr(f"warpzone.cli.{name}.run", run)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    words = {
        "rom": ["install"],
        "sweep": ["x.toml", "--trials", "1"],
        "population": ["x.toml", "--members", "2"],
    }
    assert main([name, *words.get(name, [])]) == 0
    assert seen == [f"warpzone {name}: starting\n"]
