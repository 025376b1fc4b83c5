"""The page against a run that is training."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dashboard_server import SCREENSHOTS, Dashboard, wait

Open = Callable[..., Any]


def updates(run: Path) -> int:
    """Of the newest row that is complete."""
    lines = (run / "metrics.jsonl").read_text().splitlines()[:-1]
    return int(json.loads(lines[-1])["update"]) if lines else 0


def until(page: Any, name: str = "entropy") -> float:
    """How far a curve goes."""
    return float(page.get_attribute(f"canvas[data-name={name}]", "data-until") or 0)


def pictures(page: Any) -> str:
    """The pixels of the wall."""
    script = "[...document.querySelectorAll('#lanes canvas')].map(c => c.toDataURL()).join()"
    return str(page.evaluate(script))


def click(page: Any, command: str) -> None:
    page.locator(f"[data-do={command}]").click()


def test_curves_move(server: Dashboard, open_page: Open) -> None:
    page = open_page(server.url)
    page.wait_for_selector("canvas[data-name=entropy][data-until]")
    before = until(page)
    wait(lambda: until(page) > before)
    wait(lambda: int(page.get_attribute("canvas[data-name=entropy]", "data-points")) > 10)
    drawn = page.evaluate(
        "c => new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size",
        page.query_selector("canvas[data-name=entropy]").evaluate_handle("c => c"),
    )
    assert drawn > 5
    page.screenshot(path=SCREENSHOTS / "live-light.png")


def test_the_wall_shows_changing_frames(server: Dashboard, open_page: Open) -> None:
    page = open_page(server.url)
    page.wait_for_selector("#lanes[data-number] canvas")
    assert page.locator("#lanes canvas").count() == 8
    first = pictures(page)
    wait(lambda: pictures(page) != first)
    number = int(page.get_attribute("#lanes", "data-number"))
    wait(lambda: int(page.get_attribute("#lanes", "data-number")) > number)
    assert page.locator("#lanes figcaption").first.inner_text().startswith("1-")


def test_pause_really_pauses(server: Dashboard, live: Path, open_page: Open) -> None:
    page = open_page(server.url)
    click(page, "pause")
    page.wait_for_selector("#badge.paused")
    paused_at = updates(live)
    page.wait_for_timeout(1500)
    assert updates(live) == paused_at
    heartbeat = json.loads((live / "control" / "state.json").read_text())
    assert heartbeat["doing"] == "paused"
    assert page.locator("[data-do=pause]").is_disabled()
    click(page, "resume")
    wait(lambda: updates(live) > paused_at + 1)
    page.wait_for_selector("#badge.running")
    rows = [json.loads(line) for line in (live / "control.jsonl").read_text().splitlines()]
    assert [(row["what"], row["result"]) for row in rows[-2:]] == [
        ("pause", "done"),
        ("resume", "done"),
    ]
    assert "pause (asked for by browser @ 127.0.0.1)" in (live / "logs/train.log").read_text()


def test_save_really_saves(server: Dashboard, live: Path, open_page: Open) -> None:
    page = open_page(server.url)
    page.fill("#who", "Ada")
    click(page, "save")
    page.wait_for_selector("#answer-rows >> text=done: saved")
    row = page.locator("#answer-rows tr").first.inner_text()
    assert "Ada @ 127.0.0.1" in row
    name = row.split("done: saved ")[1].split()[0]
    sidecar = json.loads((live / "checkpoints" / name).read_text())
    for part in ("weights", "state"):
        said = sidecar["files"][part]
        assert (live / "checkpoints" / said["name"]).stat().st_size == said["bytes"]
    page.wait_for_selector(f"#file-rows >> text={name}")


def test_values_are_changed_within_bounds(server: Dashboard, live: Path, open_page: Open) -> None:
    page = open_page(server.url)
    page.fill("[data-set=entropy] input", "7")
    page.press("[data-set=entropy] input", "Enter")
    assert "must be in 0..0.2" in page.inner_text("#said")
    page.fill("[data-set=entropy] input", "0.03")
    page.press("[data-set=entropy] input", "Enter")
    page.wait_for_selector("#control-note >> text=entropy is held at 0.03")
    newest = json.loads((live / "metrics.jsonl").read_text().splitlines()[-2])
    after = newest["update"]
    wait(lambda: updates(live) > after + 1)
    newest = json.loads((live / "metrics.jsonl").read_text().splitlines()[-2])
    assert newest["entropy_bonus"] == pytest.approx(0.03)
    page.click("[data-reset=entropy]")
    page.wait_for_selector("#answer-rows >> text=follows its schedule")


def test_without_the_token_nothing_can_be_changed(
    server: Dashboard, live: Path, open_page: Open
) -> None:
    page = open_page(server.url, token=False)
    page.wait_for_selector("#login")
    assert not page.locator("#commands").is_visible()
    before = (live / "control.jsonl").read_text() if (live / "control.jsonl").exists() else ""
    answer = page.evaluate(
        """() => new Promise((resolve) => {
          const socket = new WebSocket(`ws://${location.host}/ws`);
          socket.onopen = () => socket.send(JSON.stringify({type: "hello"}));
          socket.onmessage = ({data}) => {
            const message = JSON.parse(data);
            const run = document.getElementById("run").value;
            if (message.type === "welcome")
              socket.send(JSON.stringify({type: "do", request: 1, run, what: "stop"}));
            else if (message.type === "did") resolve(message);  // News may come first.
          };
        })"""
    )
    assert (answer["ok"], answer["message"]) == (False, "commands need the token")
    page.fill("#token", "not-the-right-token-at-all")
    page.press("#token", "Enter")
    page.wait_for_selector("#notice >> text=not the right one")
    page.wait_for_selector("body[data-state=connected]")
    after = (live / "control.jsonl").read_text() if (live / "control.jsonl").exists() else ""
    assert after == before


def test_the_page_survives_a_restart_of_the_server(server: Dashboard, open_page: Open) -> None:
    page = open_page(server.url)
    page.wait_for_selector("canvas[data-name=entropy][data-until]")
    page.evaluate("window.same = true")
    server.stop()
    page.wait_for_selector("body[data-state=lost]")
    assert page.inner_text("#link") == "reconnecting …"
    before = until(page)
    server.start()
    page.wait_for_selector("body[data-state=connected]")
    wait(lambda: until(page) > before)
    number = int(page.get_attribute("#lanes", "data-number") or 0)
    wait(lambda: int(page.get_attribute("#lanes", "data-number") or 0) > number)
    assert page.evaluate("window.same") is True


def test_light_dark_and_phone(server: Dashboard, open_page: Open) -> None:
    phone = open_page(server.url, viewport={"width": 390, "height": 844}, has_touch=True)
    phone.wait_for_selector("#lanes[data-number]")
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
    phone.screenshot(path=SCREENSHOTS / "phone.png", full_page=True)
    dark = open_page(server.url, color_scheme="dark")
    dark.wait_for_selector("#lanes[data-number]")
    background = "getComputedStyle(document.body).backgroundColor"
    was = dark.evaluate(background)
    dark.screenshot(path=SCREENSHOTS / "live-dark.png")
    dark.click("#theme")
    assert dark.evaluate(background) != was
    dark.reload()
    dark.wait_for_selector("body[data-state=connected]")
    assert dark.evaluate(background) != was
