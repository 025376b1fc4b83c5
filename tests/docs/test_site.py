"""The documentation site: it builds without a warning in both languages, holds every page, shows
what GitHub shows, and needs nothing from elsewhere."""

import dataclasses
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from docs_site import ROOT, build_site, shared_site
from markdown_it import MarkdownIt
from site_hook import PAGES, Pages

import warpzone
from warpzone.config import TrainConfig

NAMES = sorted(path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md"))
ENGLISH = [name for name in NAMES if not name.endswith(".zh.md")]
#: What is counted in the source as GitHub reads it, and in the page that was built.
COUNTED = {
    "<table": ["table_open"],
    "<tr": ["tr_open"],
    "<td": ["td_open"],
    "<li": ["list_item_open"],
    "<code": ["fence", "code_inline"],
    "<pre": ["fence"],
    "<img": ["image"],
    "<strong": ["strong_open"],
}
#: Made of docstrings, which GitHub does not show.
MADE = {"api.md", "configuration.md"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared_site(tmp_path_factory)


def built(site: Path, name: str, language: str = "") -> Path:
    return site / language / re.sub(r"(README|index)\.html$", "index.html", f"{name[:-3]}.html")


def content(path: Path) -> str:
    """What stands between head and foot of a page."""
    text = path.read_text()
    return text[text.index("<article") : text.index("</article>")]


@pytest.mark.parametrize("language", ["", "zh"])
def test_every_page_is_there(site: Path, language: str) -> None:
    for name in [*ENGLISH, "index.md", "architecture.md", "changelog.md", "security.md"]:
        assert "<h1" in content(built(site, name, language)), name


def test_chinese_pages_are_chinese_where_there_is_one(site: Path) -> None:
    assert "训练" in content(site / "zh" / "index.html")
    for name in (name for name in NAMES if name.endswith(".zh.md")):
        text = content(built(site, name.replace(".zh.md", ".md"), "zh"))
        assert re.search(r"[\u4e00-\u9fff]", text), name


@pytest.mark.parametrize("name", [*sorted({*ENGLISH} - MADE), *PAGES])
def test_pages_show_what_github_shows(site: Path, name: str) -> None:
    """Two readers of Markdown, the same tables, lists and code."""
    source = ROOT / (name if name in PAGES else f"docs/{name}")
    target = PAGES.get(name, name)
    place = built(site, target.replace(".zh.md", ".md"), "zh" if ".zh.md" in target else "")
    parsed = MarkdownIt("commonmark").enable("table").parse(source.read_text())
    tokens = Counter(token.type for found in parsed for token in [found, *(found.children or ())])
    page = content(place)
    for tag, kinds in COUNTED.items():
        assert page.count(tag) == sum(tokens[kind] for kind in kinds), f"{tag} of {name}"


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        head = re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", path.read_text())
        assert not [tag for tag in head if re.search(r"""(?:src|href)=["']?(?:https?:)?//""", tag)]


def test_search_knows_both_languages(site: Path) -> None:
    index = (site / "search" / "search_index.js").read_text()
    assert '"location":"training.html"' in index
    assert '"location":"zh/index.html"' in index


def test_the_reference_is_complete(site: Path) -> None:
    """Every public name, and every field of the configuration with what it means."""
    api = (site / "api.html").read_text()
    for name in warpzone.__all__:
        assert name == "__version__" or f"warpzone.{name}\n" in api, name
    page = (site / "configuration.html").read_text()
    shown = set(re.findall(r'id="warpzone\.config\.\w+\.\w+\.(\w+)"', page))
    assert shown == {field.name for field in dataclasses.fields(TrainConfig)}


def test_files_that_pages_link_to_are_copied(site: Path) -> None:
    assert (site / "files/benchmarks/kill_test.json").is_file()
    assert 'href="files/benchmarks/kill_test.json"' in (site / "index.html").read_text()


def test_decisions_are_listed() -> None:
    listed = re.findall(r"\]\((2[^)]+)\)", (ROOT / "docs/decisions/README.md").read_text())
    assert listed == [name[10:] for name in ENGLISH if name.startswith("decisions/2")]


def copied(folder: Path) -> Path:
    """A tree with what mkdocs reads and no more."""
    for name in ("docs", "scripts", "benchmarks", "src", "deploy", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.so", "*.pyc"))
    for path in [*ROOT.glob("*.md"), ROOT / "mkdocs.yml"]:
        shutil.copy(path, folder)
    for name in MADE:  # they take most of the time
        (folder / "docs" / name).write_text("# Left out\n")
    return folder


def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    root = copied(tmp_path / "tree")
    with (root / "docs" / "stages.md").open("a") as page:
        page.write("\n[one](no-such-page.md) and [two](runs.md#no-such-anchor)\n")
    (root / "docs" / "stray.md").write_text("# In no section\n")
    done = build_site(tmp_path / "site", root)
    assert done.returncode == 1
    assert "no-such-page.md" in done.stderr
    assert "no-such-anchor" in done.stderr
    assert "stray.md" in done.stderr


def test_headings_of_chinese_pages_have_english_anchors(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "one.md").write_text("# One\n\n```sh\n# no heading\n```\n\n## Two `words`\n")
    chinese = (
        '# 一\n\n```sh\n# no heading\n```\n\n<a id="two-words"></a>\n\n## 二\n\n[a](../x.json)\n'
    )
    (docs / "one.zh.md").write_text(chinese)
    (tmp_path / "x.json").write_text("{}")
    pages = Pages(tmp_path)
    text = pages.page("docs/one.zh.md")
    assert "# 一 {: #one }" in text
    assert "## 二 {: #two-words }" in text
    assert "\n# no heading\n" in text
    assert "[a](files/x.json)" in text
    assert "<a id=" not in text, "it would be there twice"


def test_sections_have_chinese_names() -> None:
    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """Reads the configuration without making its Python objects."""

    Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)
    config = yaml.load((ROOT / "mkdocs.yml").read_text(), Loader)
    sections = {name for entry in config["nav"] for name in entry}
    names = config["plugins"]["i18n"]["languages"][1]["nav_translations"]
    assert sections == set(names)
