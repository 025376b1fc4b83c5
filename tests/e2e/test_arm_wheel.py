"""The wheel for 64-bit ARM that `make wheel-arm` builds: what is in it, and that Debian's Python
for that machine, run by qemu, plays the same game with it and with what pip chooses for it."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import arm_wheel
import pytest
from arm_wheel import Packages
from wheel_play import PLAY, rom_pieces, seen_here

from warpzone import rom as roms

pytestmark = [pytest.mark.long, pytest.mark.limit(3600)]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", params=["3.11", "3.13"])
def packages(request: pytest.FixtureRequest) -> Packages:
    """Of Debian 12, and of Debian 13 for the stable ABI."""
    found = Packages(ROOT / "build" / "arm", request.param)
    if not shutil.which("qemu-aarch64") or not shutil.which("aarch64-linux-gnu-g++"):
        pytest.skip("the cross compiler or qemu-aarch64 is not installed")
    try:
        found.fetch()
    except arm_wheel.MissingError as error:
        pytest.skip(str(error))
    return found


@pytest.fixture(scope="module")
def wheel(packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return arm_wheel.make(packages, tmp_path_factory.mktemp("dist"))
    except arm_wheel.MissingError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def site(wheel: Path, packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel and what it needs, chosen by pip as it does on a machine of that kind."""
    folder = tmp_path_factory.mktemp("arm") / "site"
    minor = int(wheel.stem.split("-")[-1].split("_")[2])
    platforms = [f"--platform=manylinux_2_{n}_aarch64" for n in range(17, minor + 1)]
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    command += [*platforms, "--platform=manylinux2014_aarch64", "--only-binary=:all:"]
    command += ["--no-compile", f"--constraint={ROOT / 'requirements.lock'}"]
    command += [f"--python-version={packages.version}", "--implementation=cp"]
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    target = [f"--target={folder}", str(wheel)]
    subprocess.run([*command, *target], check=True, timeout=1800, env=variables)
    return folder


def run(packages: Packages, site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Debian's Python for 64-bit ARM with what was installed; no other program is found."""
    emulator = shutil.which("qemu-aarch64")
    assert emulator is not None
    root = packages.python
    home = site.parent / "home"
    variables = {
        "PATH": str(home),
        "HOME": str(home),
        "PYTHONHOME": str(root / "usr"),
        "PYTHONPATH": str(site),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "COLUMNS": "160",
    }
    python = root / "usr" / "bin" / f"python{packages.version}"
    return subprocess.run(
        [emulator, "-L", str(root), str(python), "-W", "ignore", *words],
        env=variables,
        cwd=site.parent,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )


def test_name_and_contents(packages: Packages, wheel: Path) -> None:
    version = packages.version.replace(".", "")
    tags = f"cp{version}-cp{version}" if version == "311" else "cp312-abi3"
    assert re.fullmatch(rf"warpzone-[\d.]+-{tags}-manylinux_2_\d+_aarch64\.whl", wheel.name)
    pieces = rom_pieces("eu") + rom_pieces("world")
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        content = {name: archive.read(name) for name in archive.namelist()}
    for name, data in content.items():
        assert name.startswith(("warpzone/", "warpzone-")), name
        assert not name.endswith((".nes", ".mp4", ".c", ".cpp", ".hpp", ".pyc")), name
        assert not any(piece in data for piece in pieces), f"{name} holds a part of the ROM"
    (engine,) = [name for name in content if name.endswith(".so")]
    suffix = f"cpython-{version}-aarch64-linux-gnu" if version == "311" else "abi3"
    assert engine == f"warpzone/_engine.{suffix}.so"
    header = content[engine][:20]
    assert header[:6] == b"\x7fELF\x02\x01", "64 bits, the lowest byte first"
    assert int.from_bytes(header[18:20], "little") == 183, "EM_AARCH64"
    assert "warpzone/agents/all.safetensors" in content


def test_twine_accepts_it(wheel: Path) -> None:
    command = [sys.executable, "-m", "twine", "check", "--strict", str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_plays_the_same_game(packages: Packages, site: Path) -> None:
    """The interpreter, drawing and observations with NEON; here, translated code and AVX."""
    source = roms.load_stored("eu").path
    done = run(packages, site, "-m", "warpzone.cli.main", "rom", "install", "--from", str(source))
    assert done.returncode == 0, done.stderr
    done = run(packages, site, "-c", PLAY)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [seen_here(), "neon", "portable"]


def test_doctor_knows_the_machine(packages: Packages, site: Path) -> None:
    done = run(packages, site, "-m", "warpzone.cli.main", "doctor", "--json")
    found = {check["name"]: check for check in json.loads(done.stdout)}
    assert "aarch64" in found["machine"]["detail"]
    assert "neon" in found["engine"]["detail"]
