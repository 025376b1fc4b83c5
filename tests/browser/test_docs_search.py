"""The documentation site in a browser that has no network: its pages are opened as files."""

from pathlib import Path
from typing import Any

import pytest
from docs_site import shared_site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared_site(tmp_path_factory)


@pytest.mark.parametrize(
    ("first", "word", "found"),
    [
        ("index.html", "curriculum", "/curriculum.html"),
        ("zh/index.html", "术语表", "/zh/glossary.html"),
    ],
)
def test_search_works_in_files(site: Path, browser: Any, first: str, word: str, found: str) -> None:
    context = browser.new_context(offline=True)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    try:
        page.goto(f"file://{site / first}")
        query = page.locator("[data-md-component=search-query]")
        query.fill(word)
        query.press("End")  # the theme listens to keys
        links = page.locator(".md-search-result__link")
        links.first.wait_for(state="attached", timeout=60_000)
        addresses = [link.get_attribute("href").split("?")[0] for link in links.all()]
    finally:
        context.close()
    assert any(address.endswith(found) for address in addresses), addresses
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
