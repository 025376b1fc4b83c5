"""Links of all Markdown files: what they name is there, on GitHub as well as on the site."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown_pages import ROOT, all_pages, plain_text, read
from site_hook import anchors, links

PAGES = all_pages()
#: HTML in a page names pictures and pages as well.
HTML = re.compile(r"""<(?:a|img)\b[^>]*?\b(?:href|src)=["']([^"']+)""")
IDS = re.compile(r"""\b(?:id|name)=["']([^"']+)""")


def marks(path: Path) -> set[str]:
    """What a link may name inside of a page."""
    text = path.read_text(encoding="utf-8")
    return {*anchors(text), *IDS.findall(plain_text(text))}


def wrong(name: str, text: str) -> list[str]:
    """The links of a page that lead nowhere."""
    found = []
    for target in [*links(text), *HTML.findall(plain_text(text))]:
        parts = urlsplit(target)
        if parts.scheme:
            good = parts.scheme in ("http", "https") and "." in parts.netloc and " " not in target
        else:
            path = ROOT / name
            if parts.path:
                path = (path.parent / unquote(parts.path)).resolve()
            good = path.exists() and path.is_relative_to(ROOT)
            if good and parts.fragment:
                good = path.suffix == ".md" and parts.fragment in marks(path)
        if not good:
            found.append(target)
    return found


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    assert wrong(name, read(name)) == []


def test_pages_are_found() -> None:
    assert {"README.md", "docs/runs.md", "docs/decisions/README.md"} <= set(PAGES)
    assert sum(len(links(read(name))) for name in PAGES) > 200


@pytest.mark.parametrize(
    "target",
    [
        "no.md",
        "runs.md#no-such-heading",
        "ftp://example.org/x",
        "https://nowhere",
        "../../x",
        "#no",
    ],
)
def test_a_broken_link_would_be_noticed(target: str) -> None:
    assert wrong("docs/stages.md", f"# Title\n\n[a]({target}) `[b](no.md)`\n") == [target]
    assert wrong("docs/stages.md", f'<a href="{target}">a</a>\n') == [target]


def test_links_in_code_are_no_links() -> None:
    assert wrong("docs/stages.md", "```\n[a](no.md)\n```\n") == []
