"""Commands in README and in the pages: flags, targets, scripts and stages exist. Nothing is
trained; `warpzone train` resolves its flags as it does before it starts."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from examples import files_in
from markdown_pages import ROOT, Block, all_pages, blocks, is_chinese, plain_text, read
from shell_blocks import commands, own_words, without_options

from warpzone.cli import completion
from warpzone.cli.flags import resolve, take, take_switch
from warpzone.cli.main import build_parser
from warpzone.cli.parsing import OTHERS
from warpzone.env import outside

PAGES = [name for name in all_pages() if not is_chinese(name) and not name.startswith("tests/")]
SHELL = [block for name in PAGES for block in blocks(name) if block.language in ("sh", "bash")]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
KNOWN = completion.commands()
#: Pages about the past: what they name may be gone.
PAST = re.compile(r"CHANGELOG\.md|docs/decisions/|docs/roadmap\.md")
#: Runs and files that examples speak of.
RUNS = ("NAME", "RUN", "RUN1", "RUN2", "RUN3", "mine", "earlier", "mario", "everything")
#: Tables about flags of other programs.
ELSEWHERE = re.compile(r"^\| there \|.*\n(\|.*\n)+", re.M)
#: What stands for a number in the prose.
VALUES = {"N": "1", "M": "1", "S": "1", "SEED": "1", "NAME_OR_WEIGHTS": "all"}
VALUES["runs/NAME/checkpoints/FILE.json"] = "runs/NAME"
PLACEHOLDERS = re.compile(r"…|\.\.\.(?!\d)|\bflags\b")


def spans(name: str) -> list[str]:
    """Commands within the prose of a page."""
    found = re.findall(r"(?<!`)`((?:[A-Z_]+=\S+\s+)*warpzone\s[^`]+)`", plain_text(read(name)))
    return sorted({" ".join(span.split()) for span in found if not PLACEHOLDERS.search(span)})


@pytest.fixture(scope="module")
def small_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with a configuration, as far as flags are concerned."""
    from warpzone.config import load_preset

    folder = tmp_path_factory.mktemp("example") / "NAME"
    folder.mkdir()
    (folder / "config.json").write_text(load_preset("quick").to_json())
    return folder


@pytest.fixture
def place(small_weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that the examples are given in."""
    for name in RUNS:
        shutil.copytree(small_weights, tmp_path / "runs" / name)
    shutil.copytree(small_weights, tmp_path / "runs" / "NAME" / "trial-0003")
    for name, text in files_in("plug-ins.md").items():
        (tmp_path / name).write_text(text)
    (tmp_path / "my_module.py").write_text("def make_env(): ...\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(outside, "agreed_folder", lambda: tmp_path / "agreed")
    monkeypatch.setattr(outside, "_agreed", set[str]())
    for name in ("RUN_NAME", "AUTO_MEM"):
        monkeypatch.delenv(name, raising=False)


def check(words: list[str]) -> None:
    """Fails for a command line of `warpzone` that would be refused."""
    if words[:1] == ["train"]:
        given = words[1:]
        for name in OTHERS - {"--preset", "--dry-run", "--help"}:
            take(given, name)
        take_switch(given, "--dry-run")
        if "--help" not in given:
            resolve(given, prog="warpzone train", about="", say=lambda _: None)
        return
    command = next((word for word in words if not word.startswith("-")), None)
    try:
        build_parser(command).parse_args(words)
    except SystemExit as end:
        if end.code:
            pytest.fail(f"this would be refused: warpzone {shlex.join(words)}")


def refuse_unknown(words: list[str]) -> None:
    """Of other programs, what this repository decides: targets, scripts, files."""
    if words[0] == "make":
        for word in words[1:]:
            assert "=" in word or word in TARGETS, f"make {word}"
    for word in words:
        if re.match(r"(scripts|tests|benchmarks|examples)/[\w./-]+\.(py|sh)$", word):
            assert (ROOT / word).is_file(), word


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("block", SHELL, ids=str)
def test_shell_blocks(block: Block) -> None:
    text = without_options(block.text)
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    for words in commands(text):
        own = own_words(words)
        if own is None:
            refuse_unknown(words)
        else:
            check(own)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("name", [n for n in PAGES if spans(n) and not PAST.match(n)])
def test_commands_in_the_prose(name: str) -> None:
    for span in spans(name):
        for words in commands(without_options(span)):
            own = [VALUES.get(word, word) for word in own_words(words) or []]
            flags = [word.partition("=")[0] for word in own if word.startswith("--")]
            if own[:1] == ["train"] and flags:
                check(own)
            elif own and own[0] not in ("--version", "--help"):
                # A name and some flags; it need not be a whole line to type.
                assert set(flags) <= {*KNOWN[own[0]].flags, "--help"}, span


def test_flags_in_the_prose_exist() -> None:
    """`--flag` alone is one of ours, of a script, or of a tool that is named beside it."""
    known = {flag for command in KNOWN.values() for flag in command.flags}
    scripts = [*ROOT.glob("scripts/**/*.*"), *ROOT.glob("benchmarks/*.py"), ROOT / "compose.yaml"]
    scripts += [*ROOT.glob("tests/fuzz/*.py"), *ROOT.glob("src/warpzone/stability/*.py")]
    known |= {
        flag
        for path in scripts
        if path.suffix in (".py", ".sh", ".yaml")
        for flag in re.findall(r"--[a-z][a-z-]+", path.read_text())
    }
    strangers = {
        (name, flag)
        for name in PAGES
        if not PAST.match(name) and name != "docs/from-older-commands.md"
        for flag in re.findall(
            r"`(--[a-z][a-z0-9-]+)[ =`]", ELSEWHERE.sub("", plain_text(read(name)))
        )
        if flag not in known
    }
    assert strangers == set()


def test_blocks_of_commands_say_so() -> None:
    """A block without a language is not checked, so none may hold commands."""
    for name in PAGES:
        for block in blocks(name):
            if block.language in ("", "text"):
                assert not re.search(r"^(warpzone|pip|make|python) ", block.text, re.M), str(block)


def test_there_are_commands() -> None:
    found = [own_words(w) for block in SHELL for w in commands(without_options(block.text))]
    assert len([words for words in found if words is not None]) > 60


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    "line",
    [
        "warpzone train --no-such-flag 1",
        "warpzone evil",
        "warpzone eval RUN --delayed 1",
        "make no",
    ],
)
def test_a_wrong_command_would_be_noticed(line: str) -> None:
    (words,) = commands(line)
    with pytest.raises((AssertionError, ValueError, pytest.fail.Exception)):
        check(own) if (own := own_words(words)) is not None else refuse_unknown(words)


def test_lines_become_commands() -> None:
    text = "A=1 warpzone eval x --json a \\\n  -q > y   # why\ncd x && (make z | tail -n 1)\n"
    assert commands(text) == [
        ["warpzone", "eval", "x", "--json", "a", "-q"],
        ["cd", "x"],
        ["make", "z"],
        ["tail", "-n", "1"],
    ]
    assert own_words(["torchrun", "-m", "warpzone.cli.main", "train"]) == ["train"]
    assert own_words(["docker", "run", "warpzone:cpu", "train"]) == ["train"]
    assert own_words(["conda", "activate", "warpzone"]) is None
