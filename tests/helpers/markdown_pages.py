"""The Markdown pages of the repository: their links, headings, tables and code blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from site_hook import prose

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "benchmarks", "deploy", "docker", "examples", "scripts", "src", "tests")
#: English page -> Chinese page, where the name does not say so.
CHINESE = {"README.md": "README.zh-CN.md"}
COMMENT = re.compile(r"<!-- (not run|tested by|before): (.*?) -->", re.S)


@dataclass(frozen=True)
class Block:
    """A fenced block of code, with what the comment above it says about running it."""

    page: str
    line: int
    language: str
    text: str
    #: `not run`, `tested by`, `before` or nothing, and the words after it.
    mark: str = ""
    note: str = ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def all_pages() -> list[str]:
    """The names of all Markdown files of the repository."""
    found = [
        *ROOT.glob("*.md"),
        *(path for name in FOLDERS for path in (ROOT / name).rglob("*.md")),
    ]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def is_chinese(name: str) -> bool:
    return name.endswith(".zh.md") or name in CHINESE.values()


def chinese_of(name: str) -> str:
    """The name of a page's translation."""
    return CHINESE.get(name, f"{name.removesuffix('.md')}.zh.md")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name: str, text: str | None = None) -> list[Block]:
    """The code blocks of a page, in order."""
    found: list[Block] = []
    before = ""
    start, language, body = 0, "", ""
    inside = False
    lines = read(name) if text is None else text
    for number, (line, plain) in enumerate(prose(lines), 1):
        if plain:
            before = (before + line) if line.strip() and not inside else line
            inside = False
        elif not inside:
            inside, start, body = True, number, ""
            language = line.strip().strip("`~").split(" ")[0]
        elif re.fullmatch(r" *(`{3,}|~{3,})\n?", line):
            mark, note = _mark(before)
            found.append(Block(name, start, language, body, mark, note))
            inside, before = False, ""
        else:
            body += line
    return found


def _mark(before: str) -> tuple[str, str]:
    """What the lines above a block say about it."""
    match = COMMENT.search(before)
    return (match[1], match[2]) if match and before[match.end() :].strip() == "" else ("", "")


def plain_text(text: str) -> str:
    """A page without its code blocks."""
    return "".join(line for line, plain in prose(text) if plain)


def table_cells(text: str) -> list[list[str]]:
    """The rows of all tables of a page."""
    rows = [line.strip() for line in plain_text(text).splitlines() if line.lstrip().startswith("|")]
    return [re.split(r"(?<!\\)\|", row.strip("|")) for row in rows]
