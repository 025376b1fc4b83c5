"""Somebody who types what a page says, made small by flags behind its own, of which the last
counts: a narrow network, a few steps, one start delay."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from markdown_pages import Block
from shell_blocks import commands, own_words, without_options

from warpzone.cli.main import main

#: What a page says that is not run, and why; what is said behind the colon tests it.
NOT_RUN = {
    r"warpzone train --dashboard": "serves while it trains: tests/e2e/test_cli_dashboard.py",
    r"warpzone play (?!.*--out)": "opens a window: tests/e2e/test_cli_play.py",
    r"\S*warpzone rom install|warpzone doctor": "about the machine: tests/e2e/test_wheel.py",
    r"warpzone hub|hf ": "speaks with a server: tests/e2e/test_cli_hub.py",
    r"export WARPZONE_NOTIFY": "speaks with a server: tests/unit/cli/test_notify.py",
    r"export WARPZONE_STORAGE": "speaks with a database: tests/e2e/test_sweep.py",
    r"docker ": "needs Docker: tests/e2e/test_container_root.py",
    r"(pip|source) ": "sets up a machine: tests/e2e/test_wheel.py",
    r"(make) ": "works on this tree: tests/e2e/test_sdist.py",
    r"uv ": "sets up a machine: tests/e2e/test_uv.py",
    r"conda ": "conda cannot be had: tests/unit/delivery/test_ways.py",
    r"torchrun |srun ": "needs its launcher: tests/e2e/test_ranks.py",
    r"ray start|.* --ray ": "needs a cluster: tests/e2e/test_fleet.py",
    r"python (?!scripts/\w*(regression|stability|report))": "examples: tests/unit/scripts",
}
NETWORK = ["--size", "36", "--encoder-width", "0.125", "--hidden-size", "16"]
LANES = ["--num-envs", "4", "--groups", "2", "--num-threads", "1", "--rollout-steps", "8"]
LEARN = ["--minibatch", "16", "--epochs", "1", "--stagnation-limit", "3", "--device", "cpu"]
STEPS = [*LANES, *LEARN, "--max-steps"]
#: Of agents that play well, fewer stages.
FEW = {"eval": ["--stages", "4-3,8-4"], "video": ["--stage", "1-1..1-2", "--mosaic", "2x1"]}
PLAY = {
    "eval": ["--device", "cpu", "--delays", "0", "--stuck-after", "1"],
    "video": ["--device", "cpu", "--stuck-after", "1", "--scale", "1", "--slow", "1"],
    "teach": [
        *("--stages", "1-1", "--rounds", "1", "--episodes", "1", "--fit-steps", "1"),
        *("--trial-steps", "1", "--search-steps", "0"),
    ],
    "sweep": ["--trials", "2", "--workers", "1"],
    "population": ["--members", "2", "--workers", "1", "--exchange", "32"],
    "bench engine": ["--quick", "--seconds", "0.01", "--append", "ledger.jsonl"],
    "bench train": ["--seconds", "0.01", "--append", "ledger.jsonl", *LANES, *LEARN, *NETWORK],
    "bench overlap": [
        *("--updates", "3", "--num-envs-list", "4", "--rollout-list", "8"),
        *(*LANES, *LEARN, *NETWORK),
    ],
}
SCRIPTS = {
    "regression": " --trials 1 --num-envs 1",
    "native_stability": " --cycles 4 --most-lanes 4 --threads 2 --minutes 0.01 --lanes 4",
}


def smaller(words: list[str], resumed: int) -> list[str]:
    """The command with the flags that make it small; a run that is resumed goes further."""
    command = words[0]
    if command == "train" and "--dry-run" not in words:
        if "--resume" in words and "auto" not in words:
            return [*words, "--max-steps", str(96 * (resumed + 2))]
        if "--init" in words:  # the network is the agent's, and large
            return [*words, *STEPS, "32"]
        # The other way to train what the pages call `everything`.
        name = ["--run-name", "on-a-cpu"] if "all-cpu" in words else []
        # Processes with a lane each.
        several = {"--backend", "--devices", "--actors"} & set(words)
        alone = ["--groups", "1"] if several else []
        two = [part for flag in several - {"--backend"} for part in (flag, "2")]
        return [*words, *name, *STEPS, "96", *NETWORK, *alone, *two]
    few = FEW.get(command, []) if words[1:2] == ["all"] else []
    return [*words, *few, *PLAY.get(" ".join(words[:2]), PLAY.get(command, []))]


def lines_of(text: str) -> list[str]:
    """The lines of a block; one that ends in a backslash goes on, and so does one that is open."""
    found: list[str] = []
    rest = ""
    for line in re.sub(r"\\\n", " ", text).splitlines():
        rest += line
        try:
            parsed = commands(rest)
        except ValueError:
            rest += "\n"
            continue
        found += [rest] if parsed else []
        rest = ""
    return found


class Reader:
    """Types the blocks of a page in the current folder."""

    def __init__(self) -> None:
        self.resumed = 0
        self.ran: list[str] = []
        self.left_out: list[str] = []

    def read(self, block: Block) -> None:
        shell: list[str] = []
        port = 0
        with ExitStack() as open_until_the_block_ends:
            for line in lines_of(block.text):
                if reason := next((p for p in NOT_RUN if re.match(p, line.strip())), None):
                    self.left_out.append(reason)
                    continue
                if line.startswith("warpzone"):
                    line = without_options(line)
                parsed = [own_words(words) for words in commands(line)]
                if any(words is None for words in parsed):
                    shell.append(line)
                    continue
                for words in parsed:
                    if words and words[0] == "dashboard":
                        port = open_until_the_block_ends.enter_context(self.served(block, words))
                    else:
                        self.type(block, words or [])
            if shell:
                self.ask_shell(
                    block,
                    [
                        line.replace(":8765/", f":{port}/") if ":8765/" in line else line
                        for line in shell
                    ],
                )

    def type(self, block: Block, words: list[str]) -> None:
        told = smaller([self.meant(word) for word in words], self.resumed)
        if {"--devices", "--actors"} & set(told):  # starts processes, and ends with them
            command = [sys.executable, "-m", "warpzone.cli.main", *told]
            code = subprocess.run(command, timeout=600, check=False).returncode
        else:
            code = main(told)
        assert code == 0, f"{block}: warpzone {' '.join(told)}"
        self.ran.append(" ".join(words))
        self.resumed += "--resume" in words
        for flag in ("--out", "--json", "--onnx", "--torch"):
            if flag in told[:-1] and not told[(at := told.index(flag)) + 1].startswith("-"):
                assert os.path.getsize(told[at + 1]) > 0, f"{block}: {told[at + 1]}"

    def meant(self, word: str) -> str:
        if word == "PATH":
            return str(next(Path("RUN/checkpoints").glob("*.json")))
        return "runs" if word == "RUNS_DIR" else word

    @contextmanager
    def served(self, block: Block, words: list[str]) -> Iterator[int]:
        """A server until the block has been read; its port."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = int(free.getsockname()[1])
        told = [*map(self.meant, words), "--port", str(port)]
        command = [sys.executable, "-m", "warpzone.cli.main", *told]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            assert "<html" in _answer(f"http://127.0.0.1:{port}/", server), f"{block}: {words}"
            self.ran.append(" ".join(words))
            yield port
        finally:
            server.send_signal(signal.SIGINT)
            server.communicate(timeout=60)

    def ask_shell(self, block: Block, lines: list[str]) -> None:
        for tool in ("jq", "openssl", "curl"):
            if any(re.search(rf"\b{tool} ", line) for line in lines) and shutil.which(tool) is None:
                pytest.skip(f"{tool} is not installed")
        told = [line.partition("  #")[0].rstrip() + _fewer(line) for line in lines]
        script = ["bash", "-euo", "pipefail", "-c", "\n".join(told)]
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            script,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            env={**os.environ, "PATH": path},
        )
        assert done.returncode == 0, f"{block}: {done.stderr}"
        if not lines[0].startswith("mkdir"):
            assert done.stdout.strip(), f"{block} says nothing"
        self.ran += lines


def _fewer(line: str) -> str:
    return next((flags for name, flags in SCRIPTS.items() if f"{name}.py" in line), "")


def _answer(address: str, server: subprocess.Popen[bytes]) -> str:
    end = time.monotonic() + 120
    while time.monotonic() < end and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                return str(answer.read().decode())
        except OSError:
            time.sleep(0.1)
    server.kill()
    raise AssertionError(f"nothing answers at {address}: {server.communicate()[0]!r}")
