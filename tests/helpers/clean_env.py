"""A virtual environment with the package's wheel, what the wheel says it needs, and nothing else.

Its dependencies are links to those of the environment that runs the tests, so that neither network
nor minutes are needed."""

import os
import re
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


def wheel() -> Path:
    """The wheel that `make setup` built and installed."""
    found = sorted((ROOT / "build" / "dist").glob("warpzone-*.whl"))
    if not found:
        pytest.skip("there is no wheel in build/dist; `make setup` builds it")
    return found[-1]


def wheel_requires(path: Path) -> list[str]:
    """The lines Requires-Dist of a wheel."""
    with zipfile.ZipFile(path) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode()
    return re.findall(r"^Requires-Dist: (.*)$", text.partition("\n\n")[0], re.MULTILINE)


def needed(lines: Iterable[str], extras: Iterable[str]) -> set[str]:
    """The distributions that these lines need, directly or not."""
    wanted: set[str] = set()
    waiting = [(line, frozenset(extras)) for line in lines]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        line, active = waiting.pop()
        requirement = Requirement(line)
        marker = requirement.marker
        if marker and not any(marker.evaluate({"extra": extra}) for extra in (*active, "")):
            continue
        key = (requirement.name, frozenset(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        wanted.add(requirement.name)
        found = metadata.distribution(requirement.name).requires or []
        waiting += [(other, key[1]) for other in found]
    return wanted


@dataclass(frozen=True)
class CleanEnv:
    folder: Path

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    def variables(self, **changes: str) -> dict[str, str]:
        """No compiler and no other program is on the PATH; files are kept in the folder."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        return {
            "PATH": str(self.bin),
            "HOME": str(home),
            "COLUMNS": "160",
            "OMP_WAIT_POLICY": "PASSIVE",
            "PYTHONDONTWRITEBYTECODE": "1",
            **changes,
        }

    def run(
        self, *words: str, before: Iterable[str] = (), timeout: float = 300, **changes: str
    ) -> subprocess.CompletedProcess[str]:
        """A program of the environment; `before` stands before it, an emulator for example."""
        command = [*before, str(self.bin / words[0]), *words[1:]]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.variables(**changes),
            timeout=timeout,
            check=False,
        )


def make(folder: Path, extras: Iterable[str] = ()) -> CleanEnv:
    """The environment, with the wheel installed by pip."""
    venv.create(folder, with_pip=False, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = folder / "lib" / version / "site-packages"
    built = wheel()
    for name in sorted(needed(wheel_requires(built), extras)):
        _link(metadata.distribution(name), site)
    install = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    install += ["--python", str(folder / "bin" / "python"), "install", "--quiet"]
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    subprocess.run(
        [*install, "--no-deps", "--no-index", str(built)], check=True, timeout=300, env=variables
    )
    return CleanEnv(folder)


def _link(distribution: metadata.Distribution, site: Path) -> None:
    tops = {file.parts[0] for file in distribution.files or []}
    for top in tops - {"..", "__pycache__"}:
        if not (site / top).exists():
            (site / top).symlink_to(Path(str(distribution.locate_file(top))).resolve())
