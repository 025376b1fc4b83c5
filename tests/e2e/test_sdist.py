"""The source distribution: what is in it, and that a wheel can be built from it alone."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import clean_env
import pytest
from wheel_play import rom_pieces

#: Nothing of the game, no media, nothing compiled, nothing of a machine.
REFUSED = (
    *(".nes", ".fds", ".zip", ".mp4", ".webm", ".gif", ".png", ".jpg", ".jpeg", ".wav"),
    *(".so", ".o", ".a", ".pyc", ".whl", ".onnx", ".pt2"),
)
NEEDED = {
    *("pyproject.toml", "CMakeLists.txt", "LICENSE", "README.md", "CHANGELOG.md", "Makefile"),
    *("requirements.lock", "requirements-compare.lock", "engine/bindings/module.cpp"),
    *("src/warpzone/__init__.py", "src/warpzone/_engine.pyi", "src/warpzone/py.typed"),
    *("src/warpzone/agents/all.safetensors", "src/warpzone/presets/quick.toml"),
    *("src/warpzone/dashboard/page/index.html", "tests/conftest.py", "examples/README.md"),
}
#: Bytes; the agent has most of them.
MOST = 20 << 20
#: Plays, and prints where the package is and a hash of what was seen.
PLAY = """
import hashlib, numpy as np, warpzone
env = warpzone.MarioVectorEnv(2, stages="1-1", num_threads=1)
obs, _ = env.reset(seed=0)
for _ in range(12):
    obs, *_ = env.step(np.full(2, 1))
print(warpzone.__file__, hashlib.sha256(obs.tobytes()).hexdigest())
"""


def run(*words: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `make dist` builds it."""
    folder = tmp_path_factory.mktemp("sdist")
    run("-m", "build", "--sdist", "--no-isolation", "--outdir", str(folder), str(clean_env.ROOT))
    (found,) = folder.iterdir()
    return found


def members(sdist: Path) -> dict[str, bytes]:
    """Name below the folder that all are in -> content."""
    found = {}
    with tarfile.open(sdist) as archive:
        for member in archive:
            # Links and devices have no place in it.
            assert member.isfile(), member.name
            file = archive.extractfile(member)
            assert file is not None
            found[member.name.partition("/")[2]] = file.read()
    return found


def test_it_has_the_source_and_nothing_of_the_game(sdist: Path) -> None:
    found = members(sdist)
    assert NEEDED - found.keys() == set()
    assert [name for name in found if name.lower().endswith(REFUSED)] == []
    assert [name for name in found if name.startswith((".github", ".ci", "build/", "runs/"))] == []
    assert sdist.stat().st_size < MOST
    for variant in ("eu", "world"):
        pieces = rom_pieces(variant)
        for name, content in found.items():
            assert not any(piece in content for piece in pieces), f"{name} holds a part of the ROM"


def test_twine_accepts_it(sdist: Path) -> None:
    assert "PASSED" in run("-m", "twine", "check", "--strict", str(sdist))


@pytest.mark.long
@pytest.mark.limit(3600)
def test_a_wheel_can_be_built_from_it(sdist: Path, tmp_path: Path) -> None:
    """With the tools of this environment; it holds all of the source and plays the same game."""
    tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    words = ("-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index")
    run(*words, "--wheel-dir", str(tmp_path), str(sdist), PATH=tools)
    (wheel,) = tmp_path.glob("*.whl")
    folder = tmp_path / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    source = {name.removeprefix("src/") for name in members(sdist) if name.startswith("src/")}
    built = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert source - built == set()
    (library,) = [name for name in built if name.endswith(".so")]
    assert library.startswith("warpzone/_engine")
    place, seen = run("-c", PLAY, PYTHONPATH=str(folder)).split()
    assert place == str(folder / "warpzone" / "__init__.py")
    here, expected = run("-c", PLAY).split()
    assert here != place
    assert seen == expected
