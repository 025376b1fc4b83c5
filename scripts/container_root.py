"""Executes every step of a target of the Dockerfile in an empty root, without Docker.

The root is a Debian made by debootstrap, with Debian's Python in the place of the base image's;
COPY, ENV, ARG, WORKDIR and USER are followed, RUN lines run under bubblewrap. It needs root, a
Debian mirror and a package index. pip's variables (PIP_*) reach the root, and so do folders that
they name.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUITE = "bookworm"
PACKAGES = "python3,python3-dev,python3-pip,ca-certificates"
#: Instructions that change nothing in a root.
SILENT = ("EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD", "VOLUME", "LABEL")


@dataclass
class Stage:
    """One FROM and what follows it."""

    name: str
    base: str
    steps: list[tuple[str, str]] = field(default_factory=list)


def parse(text: str) -> dict[str, Stage]:
    """The stages of a Dockerfile by name; lines that go on are joined, comments left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    stages: dict[str, Stage] = {}
    for line in filter(None, (line.strip() for line in joined.splitlines())):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            stages[name.strip()] = Stage(name.strip(), base.strip())
        else:
            stages[next(reversed(stages))].steps.append((word, rest.strip()))
    return stages


def order(stages: dict[str, Stage], target: str) -> list[Stage]:
    """What a target needs, bases and sources of copies first."""
    stage = stages[target]
    needed = [stage.base]
    needed += [found for _, rest in stage.steps for found in re.findall(r"--from=(\w+)", rest)]
    before = [other for name in needed if name in stages for other in order(stages, name)]
    unique: dict[str, Stage] = {other.name: other for other in [*before, stage]}
    return list(unique.values())


def ignored(path: str, patterns: list[str]) -> bool:
    """Whether .dockerignore keeps a path out: the last pattern that fits decides."""
    out = False
    for pattern in patterns:
        bare = pattern.lstrip("!")
        parents = [path, *(str(parent) for parent in Path(path).parents)]
        names = [bare, bare.removeprefix("**/")]
        if any(fnmatch.fnmatch(part, name) for part in parents for name in names):
            out = not pattern.startswith("!")
    return out


def context() -> list[str]:
    """The files that `COPY .` copies: those of the tree that .dockerignore lets through."""
    text = (ROOT / ".dockerignore").read_text().splitlines()
    patterns = [line.strip() for line in text if line.strip() and not line.startswith("#")]
    tops = [p.lstrip("!") for p in patterns if p.startswith("!")]
    files: list[Path] = []
    for top in tops:
        place = ROOT / top
        files += [place] if place.is_file() else [p for p in place.rglob("*") if p.is_file()]
    names = (str(file.relative_to(ROOT)) for file in files)
    return sorted(name for name in names if not ignored(name, patterns))


class Builder:
    """Roots below a folder, one for each stage."""

    def __init__(self, work: Path, arguments: dict[str, str]) -> None:
        self.work = work
        self.arguments = arguments

    def bootstrap(self) -> Path:
        """Debian with a Python, kept for later stages and runs."""
        root = self.work / "debian"
        if not (root / "done").exists():
            shutil.rmtree(root, ignore_errors=True)
            command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE]
            subprocess.run([*command, str(root)], check=True)
            (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
            for marker in root.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
                marker.unlink()  # the base image's Python belongs to no package manager
            certificates = Path("/etc/ssl/certs/ca-certificates.crt")
            if certificates.exists():
                shutil.copy(certificates, root / certificates.relative_to("/"))
            (root / "done").touch()
        return root

    def build(self, stages: list[Stage]) -> Path:
        """Follows the stages; the root of the last one."""
        places: dict[str, Path] = {}
        states: dict[str, State] = {}
        for stage in stages:
            base = places.get(stage.base) or self.bootstrap()
            root = places[stage.name] = self.work / stage.name
            shutil.rmtree(root, ignore_errors=True)
            subprocess.run(["cp", "-a", str(base), str(root)], check=True)
            state = states.get(stage.base, State()).copy()
            states[stage.name] = state
            for word, rest in stage.steps:
                print(f"[{stage.name}] {word} {rest}", flush=True)
                self.step(root, state, places, word, rest)
        return places[stages[-1].name]

    def step(self, root: Path, state: State, places: dict[str, Path], word: str, rest: str) -> None:
        if word == "RUN":
            run(root, state, ["sh", "-c", rest])
        elif word == "COPY":
            copy(root, state, places, rest)
        elif word == "ENV":
            state.variables |= dict(part.split("=", 1) for part in shlex.split(rest))
        elif word == "ARG":
            name, _, default = rest.partition("=")
            state.variables[name] = self.arguments.get(name, default)
        elif word == "WORKDIR":
            state.folder = rest
            (root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif word == "USER":
            state.user = rest
        elif word not in SILENT:
            raise SystemExit(f"container_root: the instruction {word} is not known here")


@dataclass
class State:
    """What instructions leave for those after them."""

    variables: dict[str, str] = field(default_factory=dict)
    folder: str = "/"
    user: str = "0"

    def copy(self) -> State:
        return State(dict(self.variables), self.folder, self.user)


def copy(root: Path, state: State, places: dict[str, Path], rest: str) -> None:
    words = shlex.split(rest)
    flags = [word for word in words if word.startswith("--")]
    source, target = (word for word in words if not word.startswith("--"))
    place = root / os.path.join(state.folder, target).lstrip("/")
    stage = next((flag.partition("=")[2] for flag in flags if flag.startswith("--from=")), None)
    if stage is not None:
        shutil.copytree(places[stage] / source.lstrip("/"), place, dirs_exist_ok=True)
        return
    names = context()
    if source != ".":
        if source not in names:
            raise SystemExit(f"container_root: .dockerignore keeps {source} out of the image")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / source, place)
        return
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, place / name)


def run(root: Path, state: State, command: list[str]) -> None:
    """A command in the root, as the state's user."""
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    variables = {"PATH": path, "HOME": "/root", **pip, **state.variables}
    box = ["bwrap", "--bind", str(root), "/", "--dev", "/dev", "--proc", "/proc", "--clearenv"]
    box += ["--ro-bind", "/etc/resolv.conf", "/etc/resolv.conf", "--chdir", state.folder]
    for value in pip.values():
        if value.startswith("/") and Path(value).is_dir():
            box += ["--ro-bind", value, value]
    for name, value in variables.items():
        box += ["--setenv", name, value]
    if state.user != "0":
        user = ["setpriv", "--reuid", state.user, "--regid", state.user, "--clear-groups", "--"]
        command = [*user, *command]
    subprocess.run([*box, *command], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", default="cpu", help="the stage to build (default: cpu)")
    parser.add_argument("--work", type=Path, help="folder for the roots, several GB")
    parser.add_argument("--build-arg", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--then", metavar="COMMAND", help="a command run in the finished root")
    parser.add_argument("--dry-run", action="store_true", help="print the steps and stop")
    args = parser.parse_args()
    stages = parse((ROOT / "Dockerfile").read_text())
    if args.target not in stages:
        parser.error(f"there is no target {args.target}; there are {', '.join(stages)}")
    chain = order(stages, args.target)
    if args.dry_run or args.work is None:
        for stage in chain:
            for word, rest in stage.steps:
                print(f"[{stage.name}] {word} {rest}")
        print(f"{len(context())} files are copied from the tree")
        return 0 if args.dry_run else parser.error("--work FOLDER is missing")
    missing = [tool for tool in ("debootstrap", "bwrap") if shutil.which(tool) is None]
    if missing or os.geteuid() != 0:
        print(
            f"container_root: needs root and {' and '.join(missing) or 'no more'}", file=sys.stderr
        )
        return 1
    args.work.mkdir(parents=True, exist_ok=True)
    builder = Builder(args.work, dict(word.split("=", 1) for word in args.build_arg))
    root = builder.build(chain)
    print(f"container_root: {args.target} is in {root}")
    if args.then:
        state = State({"WARPZONE_DATA": "/data/rom", "WARPZONE_CACHE": "/data/cache"})
        state.folder, state.user = "/home/warpzone", "1000"
        run(root, state, ["sh", "-c", args.then])
    return 0


if __name__ == "__main__":
    sys.exit(main())
