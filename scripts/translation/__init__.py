"""Chinese for the pages that scripts write. `zh.toml` has one line for each English sentence, cell
of a table or paragraph, with `#` where a number stands. A sentence that it does not have is an
error, so that no page in Chinese falls behind the English one unnoticed."""

import re
import tomllib
from pathlib import Path

FILE = Path(__file__).parent / "zh.toml"
#: By page: English sentence to Chinese sentence.
WORDS: dict[str, dict[str, str]] = tomllib.loads(FILE.read_text())
_STAGE = r"\d-\d(?: \(\d+\))?"
#: A list of stages, a range or a number: what `#` stands for.
_NUMBER = re.compile(rf"{_STAGE}(?:, {_STAGE})*|\d+\.\.\d+|\d+(?:[.,]\d+)*")
_CODE = re.compile(r"`[^`]*`")
_MARKS = re.compile(r"(#+ |- |)(.*)", re.DOTALL)


def _key(text: str) -> str:
    """A sentence as `zh.toml` names it."""
    return _NUMBER.sub("#", " ".join(text.split()))


def _needs_words(text: str) -> bool:
    """Whether there is anything but numbers, signs and code in it."""
    return re.search("[A-Za-z]", _CODE.sub("", text)) is not None


def chinese(page: str, text: str) -> str:
    """A page, or a part of one, in Chinese: paragraphs, headings, lists and tables."""
    return "\n\n".join(_block(page, block) for block in text.split("\n\n"))


def _block(page: str, block: str) -> str:
    if not block.startswith(("|", "- ")):
        end = block[len(block.rstrip("\n")) :]
        return _line(page, block) + end
    return "\n".join(_line(page, line) for line in block.split("\n"))


def _line(page: str, line: str) -> str:
    if line.startswith("|"):
        return "|".join(_cell(page, cell) for cell in line.split("|"))
    found = _MARKS.fullmatch(line.rstrip("\n"))
    assert found is not None
    return found[1] + _sentence(page, found[2])


def _cell(page: str, cell: str) -> str:
    return f" {_sentence(page, cell.strip())} " if _needs_words(cell) else cell


def _sentence(page: str, text: str) -> str:
    if not _needs_words(text):
        return text
    name = _key(text)
    if name not in WORDS[page]:
        raise ValueError(f"{FILE.name} has no Chinese for {name!r} in [{page}]")
    said = WORDS[page][name]
    numbers = _NUMBER.findall(text)
    if said.count("#") != len(numbers):
        raise ValueError(f"{FILE.name}: {said!r} has not the {len(numbers)} numbers of {name!r}")
    for number in numbers:
        said = said.replace("#", number, 1)
    return said
