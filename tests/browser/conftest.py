"""A real browser, a real training run and a real server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dashboard_server import SCREENSHOTS, TOKEN, Dashboard, wait

BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
LIVE = [
    *("--preset", "quick", "--num-envs", "8", "--groups", "2", "--num-threads", "1"),
    *("--rollout-steps", "16", "--minibatch", "64", "--epochs", "1", "--size", "36"),
    *("--encoder-width", "0.125", "--hidden-size", "16", "--device", "cpu"),
    *("--stages", "1-1,1-2", "--max-steps", "50000000", "--checkpoint-minutes", "0"),
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("there is no Chromium here (Debian: apt-get install chromium)")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    with playwright.sync_playwright() as started:
        # Containers often run as root, where Chromium's own sandbox cannot start.
        launched = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a run that is training."""
    folder = tmp_path_factory.mktemp("live") / "runs"
    words = [sys.executable, "-m", "warpzone.cli.main", "train", *LIVE]
    log = folder.parent / "train.log"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MARIO_ALLOW_CPU_AUTO": "1"}
    with log.open("wb") as said:
        process = subprocess.Popen(
            [*words, "--runs-dir", str(folder), "--run-name", "live"],
            stdout=said,
            stderr=said,
            env=environment,
        )
    try:
        wait(lambda: (folder / "live" / "metrics.jsonl").is_file() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield folder / "live"
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture(scope="module")
def server(live: Path) -> Iterator[Dashboard]:
    with Dashboard(live.parent, "--control") as dashboard:
        yield dashboard
        assert "Traceback" not in dashboard.log()


class Opened:
    """A page, and everything it complained about."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._heard)

    def _heard(self, message: Any) -> None:
        # A server that is gone for a while is part of life, and said by the browser itself.
        if message.type == "error" and "ERR_CONNECTION" not in message.text:
            self.complaints.append(message.text)

    def go(self, url: str) -> Any:
        self.page.goto(url)
        self.page.wait_for_selector("body[data-state=connected]")
        return self.page


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens pages, each as another person; none of them may complain."""
    opened: list[Opened] = []

    def make(url: str, *, token: bool = True, **options: Any) -> Any:
        options.setdefault("viewport", {"width": 1280, "height": 900})
        context = browser.new_context(**options)
        context.set_default_timeout(120_000)
        one = Opened(context.new_page())
        opened.append(one)
        return one.go(url + (f"/#token={TOKEN}" if token else "/"))

    yield make
    for one in opened:
        complaints = one.complaints
        one.page.context.close()
        assert complaints == []
