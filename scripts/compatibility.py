"""Tries the package with the oldest and newest supported versions of what it depends on.

Each combination is a virtual environment of its own, made by uv, with a wheel of this tree. There
`tests/helpers/releases.py` plays, loads the agents and resumes the checkpoints of every release,
and trains. The matrix is printed, kept as JSON and shown by docs/compatibility.md
and its translation.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from translation import chinese

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "compatibility.md"
CHINESE_PAGE = ROOT / "docs" / "compatibility.zh.md"
KEPT = ROOT / "benchmarks" / "compatibility.json"
CHECKS = ROOT / "tests" / "helpers" / "releases.py"
PACKAGES = ("torch", "gymnasium", "numpy")
HEADINGS = {
    "play": "environments",
    "agent": "agents of releases",
    "resume": "checkpoints of releases",
    "train": "training",
}
BEGIN, END = "<!-- matrix -->", "<!-- /matrix -->"


@dataclass(frozen=True)
class Combination:
    """Versions that are tried together; an empty one is the newest that there is."""

    name: str
    python: str
    torch: str = ""
    gymnasium: str = ""
    numpy: str = ""

    @property
    def requirements(self) -> list[str]:
        pins = {package: getattr(self, package) for package in PACKAGES}
        return [f"{package}=={pin}" if pin else package for package, pin in pins.items()]


#: pyproject.toml states the oldest ones; `tests/unit/scripts/test_compatibility.py` compares.
COMBINATIONS = (
    Combination("oldest", "3.11", "2.6.0", "1.1.0", "2.0.0"),
    Combination("oldest PyTorch, newer Python", "3.12", "2.6.0"),
    Combination("newest, Python 3.13", "3.13"),
    Combination("newest, Python 3.14", "3.14"),
)


def uv(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "uv", *words]
    return subprocess.run(command, text=True, check=True, **options)


def interpreter_for(python: str) -> str:
    """What uv is asked for: the newest of this version that pyenv keeps, which it offers to nobody
    unless it is switched on; without one the version itself, for uv to look for."""
    home = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    kept = home.glob(f"versions/{python}.*/bin/python{python}")
    numbered = {path: path.parts[-3].removeprefix(f"{python}.") for path in kept}
    found = sorted((int(n), str(path)) for path, n in numbered.items() if n.isdecimal())
    return found[-1][1] if found else python


def source() -> str:
    """The commit of this tree, and whether what wheels are made of has changed since."""
    git = ["git", "-C", str(ROOT)]
    made_of = ["src", "engine", "cmake", "CMakeLists.txt", "pyproject.toml"]
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    changed = subprocess.run([*git, "status", "--porcelain", *made_of], capture_output=True).stdout
    return commit.strip()[:12] + (" and changes" if changed else "")


def wheel_for(python: str, folder: Path) -> Path:
    """A wheel that this Python can install, built if there is none: 3.12 and later share one."""
    tag = "cp311-cp311" if python == "3.11" else "cp312-abi3"
    built = sorted(folder.glob(f"warpzone-*-{tag}-*.whl"))
    if not built:
        builder = interpreter_for("3.11" if python == "3.11" else "3.12")
        uv("build", "--wheel", "--python", builder, "--out-dir", str(folder), str(ROOT))
        built = sorted(folder.glob(f"warpzone-*-{tag}-*.whl"))
    return built[-1]


def attempt(combination: Combination, work: Path, wheels: Path) -> dict[str, Any]:
    """One row of the matrix."""
    row: dict[str, Any] = {"name": combination.name, "python": combination.python}
    place = work / combination.name.replace(" ", "-").replace(",", "")
    interpreter = place / "bin" / "python"
    try:
        if not interpreter.exists():
            wanted = ["--python", interpreter_for(combination.python), "--no-python-downloads"]
            uv("venv", "--quiet", *wanted, str(place), capture_output=True)
    except subprocess.CalledProcessError:
        return {**row, "missing": f"there is no Python {combination.python} on this machine"}
    wheel = wheel_for(combination.python, wheels)
    needed = [*combination.requirements, f"{wheel}[train]"]
    upgrade = ["--upgrade", "--reinstall-package", "warpzone"]
    try:
        uv("pip", "install", "--quiet", "--python", str(interpreter), *upgrade, *needed)
    except subprocess.CalledProcessError:
        return {**row, "missing": "uv could not install this combination"}
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [str(interpreter), str(CHECKS)], capture_output=True, text=True, env=variables, check=False
    )
    lines = done.stdout.strip().splitlines() or ["{}"]
    if done.returncode:
        print(done.stderr[-4000:], file=sys.stderr)
    found = {**row, **versions(interpreter), "source": source()}
    return {**found, "checks": json.loads(lines[-1])}


def versions(interpreter: Path) -> dict[str, str]:
    program = (
        "import json, platform; from importlib.metadata import version as v; "
        f"found = {{p: v(p) for p in {PACKAGES}}}; "
        "print(json.dumps({'python': platform.python_version(), **found}))"
    )
    found: dict[str, str] = json.loads(
        subprocess.run(
            [str(interpreter), "-c", program], capture_output=True, text=True, check=True
        ).stdout
    )
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """The matrix as Markdown."""
    heads = ["Python", "PyTorch", "Gymnasium", "NumPy", *HEADINGS.values()]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for row in rows:
        if "missing" in row:
            cells = [row["python"], *["-"] * len(PACKAGES), f"not run: {row['missing']}"]
            cells += [""] * (len(heads) - len(cells))
        else:
            checks = row["checks"]
            cells = [row["python"], *(row[package] for package in PACKAGES)]
            cells += ["yes" if checks.get(c, "").startswith("ok") else "**no**" for c in HEADINGS]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write_pages(rows: list[dict[str, Any]]) -> None:
    matrix = table(rows)
    for page, shown in ((PAGE, matrix), (CHINESE_PAGE, chinese("compatibility", matrix))):
        before, _, rest = page.read_text().partition(BEGIN)
        page.write_text(f"{before}{BEGIN}\n{shown}\n{END}{rest.partition(END)[2]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, help="folder for environments, several GB each")
    parser.add_argument("--wheels", type=Path, help="folder with wheels (default: built anew)")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="combinations by their names")
    parser.add_argument("--out", type=Path, help="where the matrix is kept as JSON")
    parser.add_argument(
        "--page", action="store_true", help=f"write it into {PAGE.name} and {CHINESE_PAGE.name} too"
    )
    parser.add_argument("--dry-run", action="store_true", help="print what would be tried")
    args = parser.parse_args()
    chosen = [c for c in COMBINATIONS if not args.only or c.name in args.only]
    if args.dry_run:
        for combination in chosen:
            print(
                f"{combination.name}: {combination.python}, {', '.join(combination.requirements)}"
            )
        return 0
    if args.work is None:
        parser.error("--work FOLDER is missing")
    args.work.mkdir(parents=True, exist_ok=True)
    wheels = args.wheels or args.work / "wheels"
    if args.wheels is None:  # what an earlier run built is of an earlier tree
        shutil.rmtree(wheels, ignore_errors=True)
    rows = []
    for combination in chosen:
        rows.append(attempt(combination, args.work.resolve(), wheels.resolve()))
        print(json.dumps(rows[-1]), flush=True)
    print(table(rows))
    if args.out:
        args.out.write_text(json.dumps(rows, indent=1) + "\n")
    if args.page:
        write_pages(rows)
    tried = [row for row in rows if "checks" in row]
    good = all(text.startswith("ok") for row in tried for text in row["checks"].values())
    return 0 if tried and good else 1


if __name__ == "__main__":
    sys.exit(main())
