"""A hook of mkdocs (`mkdocs.yml`): hands it the pages of docs/ together with those of the
repository that stand elsewhere, so that one text serves GitHub and the site.

The pages are copied to a folder of their own, which mkdocs reads in place of docs/. On the way

- links that leave docs/ are led to the copy of what they name: README.md is the first page,
  ARCHITECTURE.md and its like are pages, data and source files lie under `files/`;
- headings of a Chinese page get the anchors of the English page, so that links into a page are
  the same in both languages.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pymdownx.slugs import slugify

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

#: Pages that do not stand in docs/ -> their place on the site.
PAGES = {
    "README.md": "index.md",
    "README.zh-CN.md": "index.zh.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
    "examples/README.md": "examples.md",
    "examples/README.zh.md": "examples.zh.md",
}
#: Links from one language to the other, which mkdocs would not let pass.
OTHER_LANGUAGE = {"README.zh-CN.md": "zh/index.html", "README.md": "../index.html"}
FENCE = re.compile(r" *(`{3,}|~{3,})")
HEADING = re.compile(r"(#{1,6}) +(.+?) *#* *$")
#: A code span, or a link or picture with its target.
INLINE = re.compile(r"(`+)(?:.(?!\1))*.?\1|\]\(<?([^()\s>]*(?:\([^()\s]*\))?[^()\s>]*)>?")
#: What a Chinese page may have above a heading, so that links work on GitHub too.
OWN_ANCHOR = re.compile(r'<a id="([^"]+)"></a>\s*')
_slug: Callable[[str, str], str] = slugify(case="lower")


def prose(text: str) -> Iterator[tuple[str, bool]]:
    """The lines of a page, and whether each stands outside of code blocks."""
    fence = ""
    for line in text.splitlines(keepends=True):
        match = FENCE.match(line)
        if fence:
            yield line, False
            if match and match[1].startswith(fence) and not line.strip(" `~\n"):
                fence = ""
        elif match:
            fence = match[1]
            yield line, False
        else:
            yield line, True


def links(text: str) -> list[str]:
    """The targets of all links and pictures of a page, in order."""
    found = (match for line, plain in prose(text) if plain for match in INLINE.finditer(line))
    return [match[2] for match in found if match[2]]


def headings(text: str) -> list[tuple[int, str]]:
    """Levels and texts of a page's headings."""
    matches = (HEADING.match(line) for line, plain in prose(text) if plain)
    return [(len(match[1]), match[2]) for match in matches if match]


def anchors(text: str) -> list[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    found: list[str] = []
    for _, title in headings(text):
        plain = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", title).replace("`", "").replace("*", "")
        name = _slug(plain, "-")
        found.append(name if name not in found else f"{name}_{found.count(name)}")
    return found


def relink(text: str, change: Callable[[str], str]) -> str:
    """The page with other targets of its links."""

    def changed(match: re.Match[str]) -> str:
        return match[0].replace(match[2], change(match[2]), 1) if match[2] else match[0]

    return "".join(INLINE.sub(changed, line) if plain else line for line, plain in prose(text))


def anchored(text: str, names: list[str]) -> str:
    """The page with these anchors at its headings."""
    lines: list[str] = []
    rest = iter(names)
    for line, plain in prose(text):
        if plain and HEADING.match(line):
            line = f"{line.rstrip()} {{: #{next(rest)} }}\n"
        elif plain and (own := OWN_ANCHOR.fullmatch(line)) and own[1] in names:
            continue
        lines.append(line)
    return "".join(lines)


class Pages:
    """The pages of a repository, and where they and what they link to lie on the site."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.places = {name: place for name, place in PAGES.items() if (root / name).is_file()}
        for path in sorted((root / "docs").rglob("*")):
            if path.is_file():
                name = path.relative_to(root).as_posix()
                self.places[name] = name.removeprefix("docs/")
        for card in sorted((root / "src/warpzone/agents").glob("*.md")):
            self.places[card.relative_to(root).as_posix()] = f"agent-{card.name}"

    def place(self, name: str) -> str | None:
        """Where a file or folder of the repository lies on the site; None if it is not there."""
        if f"{name}/README.md" in self.places:
            name = f"{name}/README.md"
        if name not in self.places and (self.root / name).is_file():
            self.places[name] = f"files/{name}"
        return self.places.get(name)

    def page(self, name: str) -> str:
        """The text of a page, for the site."""

        def led(target: str) -> str:
            path, mark, anchor = target.partition("#")
            if not path or re.match(r"[a-z]+:", path):
                return target
            named = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
            place = self.place(named)
            if place is None:
                return target
            # Of two languages, mkdocs chooses that of the page.
            place = place.replace(".zh.md", ".md")
            here = posixpath.dirname(self.places[name])
            return posixpath.relpath(place, here or ".") + mark + anchor

        text = (self.root / name).read_text(encoding="utf-8")
        for other, address in OTHER_LANGUAGE.items():
            text = re.sub(rf"\[([^]]+)\]\({other}\)", rf'<a href="{address}">\1</a>', text)
        text = relink(text, led)
        english = {"README.zh-CN.md": "README.md"}.get(name, name.replace(".zh.md", ".md"))
        if english != name:
            names = anchors((self.root / english).read_text(encoding="utf-8"))
            if len(names) == len(headings(text)):
                text = anchored(text, names)
        return text

    def write(self, folder: Path) -> None:
        """Puts the site's sources into a folder. What is there and has not changed is not touched:
        `mkdocs serve` builds anew when a file is."""
        done: set[str] = set()
        while missing := [name for name in self.places if name not in done]:
            for name in missing:
                done.add(name)
                page = name.endswith(".md")
                source = self.root / name
                content = self.page(name).encode() if page else source.read_bytes()
                target = folder / self.places[name]
                if target.is_file() and target.read_bytes() == content:
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
        for path in folder.rglob("*"):
            if path.is_file() and path.relative_to(folder).as_posix() not in self.places.values():
                path.unlink()


_folder: Path | None = None


def on_startup(command: str, dirty: bool) -> None:
    global _folder
    _folder = Path(tempfile.mkdtemp(prefix="warpzone-site-")).resolve()


def on_shutdown() -> None:
    if _folder is not None:
        shutil.rmtree(_folder)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    if _folder is None:
        raise RuntimeError("mkdocs has not been started by its command")
    Pages(Path(config.config_file_path).parent).write(_folder)
    config.docs_dir = str(_folder)
    return config
