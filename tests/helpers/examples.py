"""The examples of a guide: fenced blocks, and the files that some of them are."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def files_in(page: str) -> dict[str, str]:
    """Name -> content of the blocks that follow a line with a file's name."""
    text = (DOCS / page).read_text()
    return dict(re.findall(r"^`([\w.-]+)`:\n\n```\w+\n(.*?)```", text, re.M | re.S))


def code_in(page: str) -> list[str]:
    """The Python blocks that are no files."""
    text = (DOCS / page).read_text()
    files = set(files_in(page).values())
    found = re.findall(r"^```python\n(.*?)```", text, re.M | re.S)
    return [block for block in found if block not in files]
