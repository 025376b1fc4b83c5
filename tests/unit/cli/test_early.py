"""Wrong words are noticed, and help is given, before PyTorch is loaded, which takes seconds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

#: Calls the command with each list of words; says how it ended and what it said.
PROGRAM = """
import contextlib, io, json, sys
from warpzone.cli.main import main
ends = []
for words in json.loads(sys.argv[1]):
    said = io.StringIO()
    said.isatty = lambda: sys.argv[2] == "terminal"
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(shown := io.StringIO()):
        try:
            code = main(words)
        except SystemExit as stop:
            code = stop.code
        except ZeroDivisionError:
            code = "torch"
    ends.append((code, said.getvalue(), shown.getvalue()))
print(json.dumps(ends))
"""
#: Stands in for PyTorch; it is there, and whoever imports it is found out.
TORCH = "1 / 0\n"
WRONG = {
    "train --lrr 1": "unknown flag --lrr, did you mean --lr?",
    "train --lr fast": "--lr must be a number",
    "train --lr -1": "--lr must be above 0",
    "train --dry-run --size 3": "--size must be at least",
    "train --algo dqn": "--algo must be one of",
    "train --algo vtrace --epochs 3 --device cpu": "--epochs 3 needs",
    "train --stages 9-9": "'9-9' is not a stage",
    "train --preset nope": "there is no preset 'nope'",
    "train --resume nowhere": "--resume nowhere: it is neither",
    "train --init nobody": "--init: there is no file",
    "train --init all --lrr 1": "unknown flag --lrr",
    "train --network nowhere:Net": "the network nowhere:Net is missing",
    "train --run-name a/b": "--run-name is the name of one folder",
    "train --rom no.nes": "There is no file no.nes",
    "train --ray auto": "--ray is where --actors are: say how many",
    "train --ray auto --init all": "--ray is where --actors are: say how many",
    "train --ray nowhere --actors 1 --max-lag 0": "--ray takes HOST:PORT",
    "train --notify nowhere": "--notify takes an address",
    "eval nobody": "there is no file",
    "eval all --stages 9-9": "'9-9' is not a stage",
    "eval all --delays x": "delay",
    "eval all --rom no.nes": "There is no file no.nes",
    "eval all --network nowhere:Net": "the network nowhere:Net is missing",
    "eval all --polcy both": "unknown flag --polcy",
    "video nobody": "there is no file",
    "video all --stage 9-9": "'9-9' is not a stage",
    "video all --stage 1-1..1-3": "is not one stage",
    "video all --overlay hat": "there is no overlay 'hat'",
    "video all --mosaic wide": "--mosaic is columns x rows",
    "video all --stage 1-1 --mosaic 16x16": "a mosaic of 256 lanes needs more",
    "play nobody": "there is no file",
    "play all --stage 9-9": "'9-9' is not a stage",
    "play all --stage 1-1..1-3": "is not one stage",
    "play all --delay 1000": "--delay must be in",
    "export nobody --onnx a.onnx": "there is no file",
    "export all": "say what to write",
}
HELP = {
    "train --help": "those of preset quick",
    "train -h --stages all": "those of preset all-cpu",
    "train --help --device cuda": "those of preset fast-1-1",
    "train --preset all --help": "those of preset all.",
    "bench train --help": "usage: warpzone bench train",
    "eval --help": "usage: warpzone eval",
    "sweep --help": "usage: warpzone sweep",
    "checkpoints --help": "usage: warpzone checkpoints",
}
RIGHT = ("train --device cpu --dry-run", "train", "eval all", "video all", "export all --onnx a")


#: What was registered first is called last.
ENDING = """
import atexit, gc
from warpzone.cli.main import main
atexit.register(lambda: print(gc.get_freeze_count() > 1000))
main(["agents"])
print(gc.get_freeze_count())
"""


def test_a_command_that_is_done_ends() -> None:
    """No garbage is looked for, which among the objects of PyTorch takes a second."""
    command = [sys.executable, "-c", ENDING]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split()[-2:] == ["0", "True"]


@pytest.mark.parametrize("where", ["terminal", "pipe"])
def test_wrong_words_are_noticed_before_pytorch_is_loaded(where: str, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(TORCH)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    cases = json.dumps([words.split() for words in (*WRONG, *HELP, *RIGHT)])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, cases, where],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )
    ends = json.loads(done.stdout)
    wrong, helped, right = ends[: len(WRONG)], ends[len(WRONG) : -len(RIGHT)], ends[-len(RIGHT) :]
    for (words, sentence), (code, said, _) in zip(WRONG.items(), wrong, strict=True):
        assert code in (1, 2), (words, code, said)
        assert sentence in said.splitlines()[-1], words
        assert "loading" not in said, words
    for (words, sentence), (code, said, shown) in zip(HELP.items(), helped, strict=True):
        assert code == 0, (words, code, said)
        assert "loading" not in said, words
        assert sentence in " ".join(shown.split()), words
    assert [code for code, *_ in right] == ["torch"] * len(RIGHT)
