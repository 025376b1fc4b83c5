"""The notes of a release: the section of CHANGELOG.md that has the tag's version.

Fails unless the tag is the version of pyproject.toml, and with --signed unless the tag itself holds
a signature. Needs nothing but Python's standard library.
"""

import argparse
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SIGNATURES = ("-----BEGIN PGP SIGNATURE-----", "-----BEGIN SSH SIGNATURE-----")


def section(text: str, version: str) -> str:
    """What stands below the heading of a version; ValueError if there is none."""
    pattern = rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## \[|\Z)"
    found = re.search(pattern, text, re.MULTILINE | re.DOTALL)
    if found is None or not found[1].strip():
        raise ValueError(f"CHANGELOG.md has no section [{version}]")
    return found[1].strip() + "\n"


def check(tag: str, root: Path, *, signed: bool) -> str:
    """The notes; ValueError says what is wrong with the tag."""
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    if tag != f"v{version}":
        raise ValueError(f"the tag is {tag}, and the version is {version}")
    if signed:
        command = ["git", "-C", str(root), "cat-file", "tag", tag]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not any(mark in done.stdout for mark in SIGNATURES):
            raise ValueError(f"{tag} is not a signed tag; make it with `git tag -s {tag}`")
    return section((root / "CHANGELOG.md").read_text(), version)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tag", required=True, help="v and the version, v0.1.0 say")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    parser.add_argument("--signed", action="store_true", help="refuse a tag without a signature")
    parser.add_argument("--out", type=Path, help="where the notes are written (default: printed)")
    parser.add_argument("--dry-run", action="store_true", help="print what would be checked")
    args = parser.parse_args()
    if args.dry_run:
        print(f"compares {args.tag} with pyproject.toml, takes its section from CHANGELOG.md")
        return 0
    try:
        notes = check(args.tag, args.root, signed=args.signed)
    except ValueError as error:
        print(f"release_notes: {error}", file=sys.stderr)
        return 1
    if args.out:
        args.out.write_text(notes)
    else:
        print(notes, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
