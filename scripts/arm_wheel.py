"""Builds a wheel for 64-bit ARM Linux on a machine of another kind.

Debian's cross compiler makes the engine, against the headers of Debian's Python for that machine,
which apt fetches into a folder; nothing is installed. The C++ library is linked in, and the wheel
is named for the oldest glibc that the engine's symbols ask for. The release's wheels are built by
cibuildwheel, with an older glibc.

`--python 3.13` takes another interpreter, found by uv or pyenv, and the headers of the Debian that
has it. From Python 3.12 on the wheel is one for all later versions (the stable ABI).
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

from compatibility import interpreter_for, uv

ROOT = Path(__file__).parents[1]
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
MACHINE = "aarch64-linux-gnu"
#: Which Debian has a Python; of another one than this machine's, packages come from the archive.
SUITES = {"3.11": "bookworm", "3.13": "trixie"}
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
#: What every glibc brings; anything else would have to be in the wheel.
LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-aarch64.so.1"}


class MissingError(RuntimeError):
    """What this machine lacks."""


class Packages:
    """Debian packages of 64-bit ARM, unpacked below a folder by an apt with lists of its own."""

    def __init__(self, folder: Path, version: str = VERSION) -> None:
        self.version = version
        self.folder = folder.resolve() / version

    @property
    def headers(self) -> Path:
        return self.folder / "headers"

    @property
    def python(self) -> Path:
        """A root with Python and all that it needs, for qemu to run."""
        return self.folder / "python"

    def fetch(self) -> None:
        """Fetches what is not there yet; MissingError where it cannot be had."""
        if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
            raise MissingError("there is no apt here; the packages of 64-bit ARM come from Debian")
        if (self.folder / "complete").exists():
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "state" / "lists" / "partial").mkdir(parents=True)
        (self.folder / "state" / "status").touch()
        (self.folder / "cache" / "archives" / "partial").mkdir(parents=True)
        if self._elsewhere():
            suite = SUITES[self.version]
            self._sources.write_text(f"deb [signed-by={KEYS}] {debian()} {suite} main\n")
        self._apt("update")
        # NumPy's wheels need the C++ library too.
        runtime = ["install", "--download-only", f"python{self.version}", "libstdc++6"]
        for target, words in (
            (self.headers, ["download", f"libpython{self.version}-dev"]),
            (self.python, runtime),
        ):
            for archive in self._archives(words):
                subprocess.run(["dpkg-deb", "-x", str(archive), str(target)], check=True)
                archive.unlink()
        # From Debian 13 on packages count on this link, which an installed system has.
        if not (self.python / "lib").exists():
            (self.python / "lib").symlink_to("usr/lib")
        (self.folder / "complete").touch()

    @property
    def _sources(self) -> Path:
        return self.folder / "sources.list"

    def _elsewhere(self) -> bool:
        """Whether this machine's Debian has another Python."""
        if self.version not in SUITES:
            return False
        release = Path("/etc/os-release")
        named = f"VERSION_CODENAME={SUITES[self.version]}"
        return named not in (release.read_text().splitlines() if release.exists() else [])

    def _archives(self, words: list[str]) -> list[Path]:
        self._apt(*words, "--yes", "--no-install-recommends")
        found = [*self.folder.glob("*.deb"), *(self.folder / "cache" / "archives").glob("*.deb")]
        if not found:
            raise MissingError("apt has no packages of 64-bit ARM here: it fetched nothing")
        return sorted(found)

    def _apt(self, *words: str) -> None:
        options = {
            "APT::Architecture": "arm64",
            "APT::Architectures": "arm64",
            "APT::Sandbox::User": "root",  # _apt may not write to this folder
            "APT::Update::Error-Mode": "any",
            "Debug::NoLocking": "1",  # the lock is for the machine's own packages
            "Dir::State": self.folder / "state",
            "Dir::State::status": self.folder / "state" / "status",
            "Dir::Cache": self.folder / "cache",
        }
        if self._sources.exists():
            options |= {"Dir::Etc::sourcelist": self._sources, "Dir::Etc::sourceparts": "-"}
        command = ["apt-get", "-qq", *(f"-o{key}={value}" for key, value in options.items())]
        done = subprocess.run([*command, *words], capture_output=True, text=True, cwd=self.folder)
        if done.returncode:
            why = (done.stderr.strip().splitlines() or ["no reason was given"])[-1]
            raise MissingError(f"apt has no packages of 64-bit ARM here: {why}")


def debian() -> str:
    """The address of the archive that this machine's own Debian comes from, which has the other
    ones too; MissingError if apt knows none."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    wanted = ["Created-By: Packages", "Label: Debian", "Component: main"]
    found = subprocess.run([*command, *wanted], capture_output=True, text=True, check=False)
    if not found.stdout.strip():
        raise MissingError("apt knows no archive of Debian here: it has no lists yet, or no source")
    return found.stdout.splitlines()[0]


def build(packages: Packages, folder: Path) -> Path:
    """The wheel as CMake and pip make it, with a tag that says nothing about glibc."""
    if shutil.which(f"{MACHINE}-g++") is None:
        raise MissingError(f"{MACHINE}-g++ is missing; install g++-{MACHINE}")
    include = packages.headers / "usr" / "include"
    defines = {
        "CMAKE_TOOLCHAIN_FILE": ROOT / "cmake" / "aarch64.cmake",
        "Python_INCLUDE_DIR": include / f"python{packages.version}",
        # Debian's pyconfig.h looks here for the one of the machine.
        "CMAKE_CXX_FLAGS": f"-isystem {include}",
        "CMAKE_MODULE_LINKER_FLAGS": "-static-libstdc++ -static-libgcc",
    }
    settings = [f"--config-settings=cmake.define.{key}={value}" for key, value in defines.items()]
    python = f"cpython-{packages.version.replace('.', '')}"
    builder = builder_for(packages)
    variables = {
        **os.environ,
        "PATH": f"{builder.parent}:{os.environ['PATH']}",
        "_PYTHON_HOST_PLATFORM": "linux-aarch64",
        "SETUPTOOLS_EXT_SUFFIX": f".{python}-{MACHINE}.so",
    }
    pip = [str(builder), "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    pip += ["--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), *settings, str(ROOT)]
    subprocess.run(pip, check=True, env=variables)
    (found,) = folder.glob("*-linux_aarch64.whl")
    return found


def builder_for(packages: Packages) -> Path:
    """The interpreter that builds: this one, or one of that version with what building takes."""
    if packages.version == VERSION:
        return Path(sys.executable)
    place = packages.folder / "env"
    python = place / "bin" / "python"
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    try:
        uv("venv", "--quiet", "--clear", "--python", interpreter_for(packages.version), str(place))
        uv("pip", "install", "--quiet", "--python", str(python), "pip", "cmake", "ninja", *about)
    except subprocess.CalledProcessError as error:
        raise MissingError(f"there is no Python {packages.version} that can build here") from error
    return python


def platform_tag(listed: str) -> str:
    """The manylinux tag of a library, by what `readelf -dV` lists; ValueError if it has none."""
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", listed)) - LIBRARIES
    if needed:
        raise ValueError(f"the engine needs {', '.join(sorted(needed))}, which glibc does not have")
    versions = [(int(a), int(b)) for a, b in re.findall(r"\bGLIBC_(\d+)\.(\d+)", listed)]
    if not versions:
        raise ValueError("the engine asks for no version of glibc")
    return "manylinux_{}_{}_aarch64".format(*max(versions))


def tagged(wheel: Path, tag: str, folder: Path) -> Path:
    """The same wheel under another platform tag: its name, WHEEL, and WHEEL's line in RECORD."""
    name = folder / wheel.name.replace("linux_aarch64", tag)
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as new:
        described = next(n for n in old.namelist() if n.endswith(".dist-info/WHEEL"))
        text = old.read(described).replace(b"-linux_aarch64", b"-" + tag.encode())
        digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
        line = f"{described},sha256={digest},{len(text)}"
        for info in old.infolist():
            content = old.read(info)
            if info.filename == described:
                content = text
            elif info.filename.endswith(".dist-info/RECORD"):
                pattern = rf"^{re.escape(described)},.*$"
                content = re.sub(pattern, line, content.decode(), flags=re.M).encode()
            new.writestr(info, content)
    return name


def make(packages: Packages, out: Path) -> Path:
    """The wheel with its final name, in `out`."""
    packages.fetch()
    work = packages.folder / "built"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    wheel = build(packages, work)
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".so"))
        engine = archive.extract(name, work)
    command = [f"{MACHINE}-readelf", "--wide", "-dV", engine]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    out.mkdir(parents=True, exist_ok=True)
    return tagged(wheel, platform_tag(listed), out)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the wheel is put")
    parser.add_argument(
        "--work",
        type=Path,
        default=ROOT / "build" / "arm",
        help="where Debian's packages are unpacked and kept",
    )
    parser.add_argument(
        "--python", default=VERSION, metavar="VERSION", help=f"of the wheel (default {VERSION})"
    )
    parser.add_argument("--dry-run", action="store_true", help="print what would be built")
    args = parser.parse_args()
    if args.dry_run:
        print(f"builds a wheel of Python {args.python} for {MACHINE} in {args.out}")
        return 0
    try:
        print(make(Packages(args.work, args.python), args.out))
    except (MissingError, ValueError) as error:
        print(f"arm_wheel: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"arm_wheel: {error.cmd[0]} failed, see above", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
