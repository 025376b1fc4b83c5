"""The notes of a release: the section of CHANGELOG.md that has the tag's version.

Fails unless the tag is the version of pyproject.toml, and with --signers unless one of the SSH keys
in that file signed the tag. Needs nothing but Python's standard library, git and ssh-keygen.
"""

import argparse
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SIGNATURE = "-----BEGIN SSH SIGNATURE-----"


def section(text: str, version: str) -> str:
    """What stands below the heading of a version; ValueError if there is none."""
    pattern = rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## \[|\Z)"
    found = re.search(pattern, text, re.MULTILINE | re.DOTALL)
    if found is None or not found[1].strip():
        raise ValueError(f"CHANGELOG.md has no section [{version}]")
    return found[1].strip() + "\n"


def verify(tag: str, root: Path, signers: Path) -> None:
    """ValueError unless a key that `signers` names (the format of ssh-keygen) signed the tag."""
    lines = signers.read_text().splitlines() if signers.is_file() else []
    if not any(line.strip() and not line.lstrip().startswith("#") for line in lines):
        raise ValueError(f"{signers.name} names no key, so no tag can be released")
    git = ["git", "-C", str(root), "-c", f"gpg.ssh.allowedSignersFile={signers.resolve()}"]
    git += ["-c", "gpg.minTrustLevel=fully"]
    shown = subprocess.run([*git, "cat-file", "tag", tag], capture_output=True, text=True)
    if SIGNATURE not in shown.stdout:
        raise ValueError(
            f"{tag} is not a tag with the signature of an SSH key; make it with `git tag -s {tag}` "
            "and gpg.format=ssh"
        )
    if subprocess.run([*git, "verify-tag", tag], capture_output=True).returncode:
        raise ValueError(f"{tag} is not signed by a key that {signers.name} names")


def check(tag: str, root: Path, *, signers: Path | None) -> str:
    """The notes; ValueError says what is wrong with the tag."""
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    if tag != f"v{version}":
        raise ValueError(f"the tag is {tag}, and the version is {version}")
    if signers is not None:
        verify(tag, root, signers)
    return section((root / "CHANGELOG.md").read_text(), version)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tag", required=True, help="v and the version, v0.1.0 say")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    parser.add_argument(
        "--signers", type=Path, metavar="FILE", help="refuse a tag that none of these keys signed"
    )
    parser.add_argument("--out", type=Path, help="where the notes are written (default: printed)")
    parser.add_argument("--dry-run", action="store_true", help="print what would be checked")
    args = parser.parse_args()
    if args.dry_run:
        print(f"compares {args.tag} with pyproject.toml, takes its section from CHANGELOG.md")
        return 0
    try:
        notes = check(args.tag, args.root, signers=args.signers)
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
