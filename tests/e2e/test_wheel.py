"""The wheel as a user gets it: in an environment of its own, without a compiler."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import clean_env
import pytest
from clean_env import CleanEnv
from wheel_play import PLAY, rom_pieces, seen_here

from warpzone import rom as roms
from warpzone.rom import paths


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> CleanEnv:
    return clean_env.make(tmp_path_factory.mktemp("clean") / "env")


@pytest.fixture(scope="module")
def ready(clean: CleanEnv) -> CleanEnv:
    """The same with the ROM."""
    source = roms.load_stored("eu").path
    done = clean.run("warpzone", "rom", "install", "--from", str(source))
    assert done.returncode == 0, done.stderr
    assert "eu: " in done.stdout
    assert re.search(r"eu: translated without a compiler, by the emitter", done.stdout)
    assert done.stderr == ""
    return clean


def members() -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(clean_env.wheel()) as archive:
        for info in archive.infolist():
            yield info.filename, archive.read(info)


def test_no_rom_and_nothing_of_the_tree_is_inside() -> None:
    pieces = rom_pieces("eu")
    for name, content in members():
        assert name.startswith(("warpzone/", "warpzone-")), name
        assert not name.endswith((".nes", ".mp4", ".c", ".cpp", ".hpp", ".pyc")), name
        assert not any(piece in content for piece in pieces), f"{name} holds a part of the ROM"
    names = {name for name, _ in members()}
    libraries = [name for name in names if name.endswith(".so")]
    assert len(libraries) == 1, "one engine, and no translated program"
    assert {"warpzone/py.typed", "warpzone/_engine.pyi", "warpzone/agents/all.safetensors"} <= names
    assert "warpzone/dashboard/page/index.html" in names


def test_one_wheel_serves_all_versions_from_3_12_on() -> None:
    tag = clean_env.wheel().stem.split("-", 2)[2]
    expected = "cp311-cp311-" if sys.version_info < (3, 12) else "cp312-abi3-"
    assert tag.startswith(expected)


def test_twine_accepts_it() -> None:
    command = [sys.executable, "-m", "twine", "check", "--strict", str(clean_env.wheel())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_doctor_names_what_is_missing(clean: CleanEnv, tmp_path: Path) -> None:
    elsewhere = str(tmp_path / "data")
    done = clean.run("warpzone", "doctor", "--json", WARPZONE_DATA=elsewhere)
    found = {check["name"]: check for check in json.loads(done.stdout)}
    assert done.returncode == 1
    assert found["rom"]["advice"] == "warpzone rom install"
    assert found["compiler"]["status"] == "note"
    assert found["torch"]["advice"] == "pip install 'warpzone[train]'"
    assert "neither pip nor uv" in found["network"]["detail"]
    assert "--from FILE" in found["network"]["advice"]


def test_it_plays_without_a_compiler(ready: CleanEnv) -> None:
    assert ready.run("warpzone", "doctor").returncode == 0
    done = ready.run("python", "-W", "ignore", "-c", PLAY)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == seen_here()


@pytest.mark.parametrize("command", [("train",), ("dashboard",), ("eval", "all")])
def test_a_missing_extra_is_one_sentence(ready: CleanEnv, command: tuple[str, ...]) -> None:
    done = ready.run("warpzone", *command)
    assert done.returncode == 1
    assert "pip install 'warpzone[" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_a_cpu_without_avx_sees_the_same(ready: CleanEnv) -> None:
    """No instruction beyond x86-64-v2, which NumPy asks for, is used where the CPU has none."""
    emulator = shutil.which("qemu-x86_64")
    if emulator is None:
        pytest.skip("qemu-x86_64 is not installed")
    words = ("python", "-W", "ignore", "-c", PLAY)
    done = ready.run(*words, before=[emulator, "-cpu", "Nehalem"], OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [seen_here(), "portable"]


def test_it_trains_with_its_extra(ready: CleanEnv, tmp_path: Path) -> None:
    env = clean_env.make(tmp_path / "env", extras=["train"])
    data = str(ready.folder / "home" / ".local" / "share" / "warpzone")
    small = ["--num-envs", "4", "--rollout-steps", "8", "--minibatch", "16", "--epochs", "1"]
    small += ["--size", "36", "--encoder-width", "0.125", "--hidden-size", "16"]
    budget = ["--max-steps", "64", "--eval-interval", "0", "--run-name", "small", "--device", "cpu"]
    # Translated by the tests' own environment: playing 31 start delays takes seconds, not minutes.
    cache = str(paths.cache_dir())
    done = env.run("warpzone", "train", *small, *budget, WARPZONE_DATA=data, WARPZONE_CACHE=cache)
    assert done.returncode == 0, done.stderr
    assert list((env.folder / "runs" / "small" / "checkpoints").iterdir())
