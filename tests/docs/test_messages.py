"""The messages that docs/troubleshooting.md explains are those that the program has."""

import ast
import re
from collections.abc import Iterator

import pytest
from markdown_pages import ROOT, read

PAGE = read("docs/troubleshooting.md").partition("\n## Messages\n")[2]
#: Spans with a sentence; others are flags, commands and names.
MESSAGES = sorted(
    {
        span
        for row in re.findall(r"^\| (.*?) \|", PAGE, re.M)
        for span in re.findall(r"`([^`]+)`", row)
        if " " in span
    }
)


def texts() -> Iterator[str]:
    """Every text of the package, with `…` for what is put in."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                yield "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "…"
                    for part in node.values
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
    for path in sorted((ROOT / "engine").rglob("*.cpp")):
        yield path.read_text()


ALL = "\0".join(texts())


def is_said(message: str) -> bool:
    pieces = [re.escape(piece) for piece in message.split("…")]
    return re.search(r"[^\0]*?".join(pieces), ALL) is not None


@pytest.mark.parametrize("message", MESSAGES)
def test_messages_exist(message: str) -> None:
    assert is_said(message)


def test_there_are_messages() -> None:
    assert len(MESSAGES) > 25
    assert not is_said("steps do not … divide")
