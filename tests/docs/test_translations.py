"""English and Chinese pages say the same: code, structure, numbers and links are equal."""

import re
from collections import Counter

import pytest
from markdown_pages import (
    ROOT,
    all_pages,
    blocks,
    chinese_of,
    is_chinese,
    plain_text,
    read,
    table_cells,
)
from site_hook import headings, links

TRANSLATED = [name for name in all_pages() if (ROOT / chinese_of(name)).is_file()]
#: Pages of docs/ that are not for users: only they may be in English alone.
INTERNAL = {"docs/roadmap.md"}
NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


def comments_removed(text: str) -> str:
    """Code without its comments, which may be translated, and without the spaces before them."""
    return re.sub(r"(^|[ \t]+)#[^\n'\"]*$", "", text, flags=re.M).strip()


def code(name: str, text: str) -> list[tuple[str, str]]:
    """The code blocks; those called `text` hold words and may be translated."""
    found = blocks(name, text)
    return [(b.language, comments_removed(b.text) if b.language != "text" else "") for b in found]


def numbers(text: str) -> list[Counter[str]]:
    """The numbers in each row of each table, in any order: languages order words differently."""
    return [Counter(NUMBER.findall(" ".join(row))) for row in table_cells(text)]


def targets(text: str) -> Counter[str]:
    """Links, without the ones that lead to the other language."""
    return Counter(link for link in links(text) if not link.startswith("README"))


def commands(text: str) -> set[str]:
    """Flags and commands in the prose; `[words]` stand for something and may be translated."""
    spans = re.findall(r"`([^`]+)`", plain_text(text))
    spans = [re.sub(r"\s*\[[^]]*\]", "", " ".join(span.split())) for span in spans]
    return {span for span in spans if re.match(r"--[a-z]|warpzone |make ", span)}


def differences(english: str, chinese: str, name: str = "x.md") -> list[str]:
    """What one of two pages says and the other does not."""
    found = []
    if [level for level, _ in headings(english)] != [level for level, _ in headings(chinese)]:
        found.append("headings")
    if code(name, english) != code(name, chinese):
        found.append("code blocks")
    if numbers(english) != numbers(chinese):
        found.append("numbers in tables")
    if targets(english) != targets(chinese):
        found.append("links")
    if commands(english) != commands(chinese):
        found.append("flags and commands")
    return found


@pytest.mark.parametrize("name", TRANSLATED)
def test_translations_are_in_step(name: str) -> None:
    english, chinese = read(name), read(chinese_of(name))
    assert differences(english, chinese, name) == []
    assert re.search(r"[\u4e00-\u9fff]", chinese)


def test_every_page_for_users_is_translated() -> None:
    pages = {
        name for name in all_pages() if re.match(r"docs/[^/]+\.md|(examples/)?README\.md", name)
    }
    wanted = {name for name in pages if not is_chinese(name)} - INTERNAL
    assert sorted(wanted - set(TRANSLATED)) == []


def test_translations_have_an_original() -> None:
    originals = {chinese_of(name) for name in all_pages() if not is_chinese(name)}
    assert [name for name in all_pages() if is_chinese(name) and name not in originals] == []


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("## Two", "### Two", "headings"),
        ("--seed 1", "--seed 2", "code blocks"),
        ("| 31 |", "| 30 |", "numbers in tables"),
        ("b.md", "c.md", "links"),
        ("`--lr`", "`--learning-rate`", "flags and commands"),
    ],
)
def test_a_difference_would_be_noticed(old: str, new: str, what: str) -> None:
    page = (
        "# One\n\n```sh\nwarpzone train --seed 1   # why\n```\n\n## Two\n\n"
        "| a | b |\n|---|---|\n| x 1,000 | 31 |\n\n[here](b.md) and `--lr`\n"
    )
    translated = page.replace("# why", "# 为什么").replace("here", "这里").replace("One", "一")
    assert differences(page, translated) == []
    assert differences(page, translated.replace(old, new)) == [what]
