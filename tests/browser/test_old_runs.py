"""The page and runs that are over, many, long or missing."""

import base64
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dashboard_server import (
    PATIENCE,
    SCREENSHOTS,
    TOKEN,
    Dashboard,
    make_run,
    wait,
    write_rows,
)
from websockets.exceptions import ConnectionClosed

from warpzone.dashboard.access import TRIES

Open = Callable[..., Any]
ROWS = 10_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    folder = tmp_path_factory.mktemp("old") / "runs"
    first = make_run(folder, "first")
    # Two places where episodes of 1-1 may begin, and one in another room of it.
    moments = [[0, 1, 5, x, 79, 10, 5, 0] for x in (300, 900)] + [[0, 2, 2, 40, 79, 10, 5, 0]]
    (first / "archive.json").write_text(json.dumps({"global_step": 1, "moments": moments}))
    long = make_run(folder, "long", rows=ROWS)
    (long / "config.json").write_text(json.dumps({"stages": "1-1", "max_steps": 7, "lr": 0.1}))
    alerts = [
        {"timestamp": 1.0, "kind": "disk", "text": "old <b>", "global_step": 5},
        {"timestamp": time.time(), "kind": "nan", "text": "not finite", "global_step": 9},
    ]
    write_rows(long / "alerts.jsonl", alerts)
    (long / "logs").mkdir()
    lines = ["[train] one", "[eval] two <b>bold</b>", "[train][warn] three"]
    (long / "logs" / "train.log").write_text("\n".join(lines) + "\n")
    rated = make_run(folder, "rated")
    (rated / "metrics.jsonl").write_text("")
    numbers = [
        {"update": n, "global_step": 100 * n, "seconds": n / 2, "clear_rate": n / 50}
        | {"entropy": 2 - n / 50, "avg_return": 3.0 * n, "recent_return_p50": 2.0 * n}
        | {"env_steps_per_sec": 1648.25, "env_frames_per_sec": 6593.0}
        for n in range(1, 51)
    ]
    write_rows(rated / "metrics.jsonl", numbers)
    write_rows(rated / "evals.jsonl", [{"global_step": 100, "clears": n} for n in (3, 27, 5)])
    (rated / "control").mkdir()
    (rated / "control" / "state.json").write_text(json.dumps({"doing": "ended"}))
    (rated / "best.mp4").write_bytes(b"no film, but a file")
    with Dashboard(folder) as dashboard:
        yield dashboard


def test_all_runs_are_the_first_page(server: Dashboard, open_page: Open) -> None:
    page = open_page(server.url, token=False)
    page.wait_for_selector("#run-rows tr[data-run=long]")
    assert page.is_visible("#all")
    assert not page.is_visible("#body")
    row = page.locator("#run-rows tr[data-run=rated]")
    assert "27 of 31" in row.inner_text()
    assert "0:00:25" in row.inner_text()
    assert row.locator("polyline").get_attribute("points").count(",") >= 20
    row.locator("button").click()
    page.wait_for_selector("#title >> text=rated")
    assert not page.is_visible("#all")
    page.screenshot(path=str(SCREENSHOTS / "one-of-many.png"))
    page.click("#home")
    page.wait_for_selector("#all", state="visible")
    page.screenshot(path=str(SCREENSHOTS / "all-runs.png"))
    assert not page.is_visible("#body")


def test_the_address_says_what_is_on_the_screen(server: Dashboard, open_page: Open) -> None:
    page = open_page(server.url, token=False)
    choose(page, "rated")
    page.click("#compare summary")
    page.check("#compare-list label:has-text('long') input")
    wait(lambda: page.url.endswith("?run=rated&with=long"))
    # Escape closes the menu.
    page.keyboard.press("Escape")
    assert page.get_attribute("#compare", "open") is None
    page.reload()
    page.wait_for_selector("#title >> text=rated")
    page.wait_for_selector("#legend >> text=long")
    # Names under the pointer, and no value of a run that was over.
    wait(lambda: points(page) > 300)
    box = page.locator("canvas[data-name=entropy]").bounding_box()
    page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 40)
    said = page.locator("figure:has(canvas[data-name=entropy]) output")
    wait(lambda: "long" in said.inner_text())
    assert "rated" not in said.inner_text()


def test_an_ended_run_is_done_and_shows_its_best(server: Dashboard, open_page: Open) -> None:
    page = open_page(server.url, token=False)
    choose(page, "rated")
    wait(lambda: page.inner_text("#badge") == "ended")
    wait(lambda: page.get_attribute("#progress", "aria-valuenow") == "100")
    page.wait_for_selector("#lanes video")
    assert not page.is_visible("#wall-none")
    assert page.inner_text("#link") == "connected"
    # Shares are percent in tiles and curves alike.
    clear = page.locator("figure:has(canvas[data-name=clear_rate]) output")
    wait(lambda: clear.inner_text() == "100.0 %")
    assert "100.0 %" in page.inner_text("[data-tile='clear rate']")
    assert "return, median" in page.inner_text("#tiles")
    assert "return, mean" in page.inner_text("#charts")
    # No tile cuts its value, on a phone either.
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        cut = page.eval_on_selector_all(
            "#tiles dd", "all => all.filter((one) => one.scrollWidth > one.clientWidth + 1).length"
        )
        assert cut == 0
    # Worlds are rows on a phone.
    tops = [page.locator(f"[data-stage='{name}']").bounding_box()["y"] for name in ("3-1", "3-4")]
    assert tops[0] == tops[1]


def test_axes_tell_their_ticks_apart_and_are_not_made_up(
    server: Dashboard, open_page: Open
) -> None:
    page = open_page(server.url, token=False)
    choose(page, "long")
    wait(lambda: points(page) > 300)
    chart = page.locator("canvas[data-name=entropy]")
    chart.focus()
    for _ in range(20):
        page.keyboard.press("+")
    wait(lambda: 2 < points(page) < 40)
    ticks = (chart.get_attribute("data-ticks") or "").split()
    assert len(ticks) > 1
    assert len(set(ticks)) == len(ticks)
    # What only one of two runs has is no axis from 0 to 1 in the other.
    choose(page, "rated")
    clear = page.locator("canvas[data-name=clear_rate]")
    clear.wait_for()
    clear.scroll_into_view_if_needed()
    wait(lambda: clear.get_attribute("data-axes") == "drawn")
    choose(page, "long")
    # In one look: the canvas may go between two.
    axes = "document.querySelector('canvas[data-name=clear_rate]')?.dataset.axes ?? 'none'"
    wait(lambda: page.evaluate(axes) == "none")


def test_a_curve_that_comes_into_view_while_others_load_is_loaded_too(
    server: Dashboard, open_page: Open
) -> None:
    page = open_page(server.url, token=False)

    def slowly(route: Any) -> None:
        there = route.connect_to_server()

        def answer(message: str | bytes) -> None:
            # Curves (the only answers in binary) are under way when a new one comes into view.
            if isinstance(message, bytes):
                page.wait_for_timeout(300)
            elif "metrics" in json.loads(message):
                page.wait_for_timeout(900)
            route.send(message)

        there.on_message(answer)

    page.route_web_socket("**/ws", slowly)
    page.reload()
    page.wait_for_selector("body[data-state=connected]")
    choose(page, "long")
    wait(lambda: points(page) > 300)
    choose(page, "rated")
    clear = page.locator("canvas[data-name=clear_rate]")
    clear.wait_for()
    clear.scroll_into_view_if_needed()
    wait(lambda: clear.get_attribute("data-axes") == "drawn")


def choose(page: Any, name: str) -> None:
    value = page.locator("#run option", has_text=name).get_attribute("value")
    page.select_option("#run", value)
    page.wait_for_selector(f"#title >> text={name}")


def points(page: Any) -> int:
    return int(page.get_attribute("canvas[data-name=entropy]", "data-points") or 0)


def test_ten_thousand_points_zoom_and_pan(server: Dashboard, open_page: Open) -> None:
    page = open_page(server.url, token=False)
    choose(page, "long")
    wait(lambda: points(page) > 300)
    assert points(page) < 1300
    chart = page.locator("canvas[data-name=entropy]")
    chart.focus()
    for _ in range(12):
        page.keyboard.press("+")
    # 1 % of the run: every point is there, and none of the rest.
    wait(lambda: 20 < points(page) < 300)
    inside = float(chart.get_attribute("data-until"))
    page.keyboard.press("ArrowRight")
    wait(lambda: float(chart.get_attribute("data-until")) > inside)
    page.click("#unzoom")
    wait(lambda: points(page) > 300)
    box = chart.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.4 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], middle, steps=5)
    page.mouse.up()
    wait(lambda: float(chart.get_attribute("data-until")) < 100 * ROWS * 0.8)
    assert page.locator("#unzoom").is_enabled()


def test_alerts_are_listed_and_a_new_one_is_said_loudly(server: Dashboard, open_page: Open) -> None:
    page = open_page(server.url, token=False)
    choose(page, "long")
    wait(lambda: page.locator("#event-rows tr").count() == 2)
    assert "Alert: not finite." in page.inner_text("#warning")
    assert "old" not in page.inner_text("#warning")
    page.select_option("#event-kind", "disk")
    assert page.locator("#event-rows tr").count() == 1
    assert "old <b>" in page.inner_text("#event-rows")
    choose(page, "first")
    wait(lambda: page.locator("#event-rows tr").count() == 0)
    assert page.is_visible("#events-none")


def test_the_chosen_run_is_remembered(server: Dashboard, open_page: Open) -> None:
    page = open_page(server.url, token=False)
    for name in ("first", "long", "first"):
        choose(page, name)
        page.reload()
        page.wait_for_selector(f"#title >> text={name}")


def test_runs_side_by_side(server: Dashboard, open_page: Open) -> None:
    page = open_page(server.url, token=False)
    choose(page, "first")
    page.click("#compare summary")
    page.check("#compare-list label:has-text('long') input")
    page.wait_for_selector("#legend >> text=long")
    wait(lambda: points(page) > 350)
    page.check("#only-different")
    wait(lambda: page.locator("#setting-rows tr.differs").count() == 2)
    assert page.locator("#setting-rows tr").count() == 2


def test_the_log_by_prefix(server: Dashboard, open_page: Open) -> None:
    page = open_page(server.url, token=False)
    choose(page, "long")
    page.wait_for_selector("#prefixes >> text=eval")
    # What a run writes is shown, never run.
    assert "two <b>bold</b>" in page.inner_text("#log-lines")
    page.click("#prefixes >> text=train")
    assert page.inner_text("#log-lines").strip() == "[eval] two <b>bold</b>"
    page.fill("#log-find", "nothing like it")
    assert page.locator("#log-none").is_visible()


def test_stages_episodes_and_read_only(server: Dashboard, open_page: Open) -> None:
    page = open_page(server.url, token=False)
    choose(page, "first")
    page.wait_for_selector("[data-stage='1-1'] >> text=20 %")
    assert page.locator("#grid button").count() == 32
    # What nobody has played is empty, and no failure.
    untouched = page.locator("[data-stage='8-4']")
    assert untouched.inner_text().split() == ["8-4", "\N{EN DASH}"]
    assert untouched.get_attribute("title") == "8-4: not played"
    assert untouched.get_attribute("style") in (None, "")
    page.wait_for_selector("#ends-note >> text=20 episodes, 20.0 % cleared")
    # The map is there, and on it the archive.
    wait(lambda: page.get_attribute("#ends", "data-restarts") == "2")
    page.select_option("#episode-end", "flag")
    assert page.locator("#episode-rows tr").count() == 4
    assert "read only" in page.inner_text("#control-note")
    assert not page.locator("#login").is_visible()
    assert page.inner_text("#badge") == "silent" or page.inner_text("#badge") == "running"


def test_a_video_is_played(server: Dashboard, open_page: Open) -> None:
    picture = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
    (server.folder / "first" / "videos").mkdir(exist_ok=True)
    (server.folder / "first" / "videos" / "one.gif").write_bytes(base64.b64decode(picture))
    page = open_page(server.url, token=False)
    choose(page, "first")
    page.click("#file-rows >> text=play")
    page.wait_for_selector("#screen img")
    assert page.evaluate("document.querySelector('#screen img').decode().then(() => true)")
    page.click("#screen >> text=close")
    assert not page.locator("#screen").is_visible()


def test_everything_is_reached_by_keyboard(server: Dashboard, open_page: Open) -> None:
    page = open_page(server.url, token=False)
    choose(page, "first")
    page.wait_for_selector("canvas[data-name=entropy]")
    reached = set()
    for _ in range(90):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    wanted = {"run", "theme", "wall-switch", "axis", "more", "rate-of", "episode-end", "log-find"}
    assert wanted | {"CANVAS"} <= reached


def test_runs_come_and_go(tmp_path: Path, open_page: Open) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    with Dashboard(folder) as dashboard:
        page = open_page(dashboard.url, token=False)
        page.wait_for_selector("#empty")
        page.screenshot(path=SCREENSHOTS / "empty.png")
        run = make_run(folder, "new", rows=3)
        page.wait_for_selector("#title >> text=new")
        assert not page.locator("#empty").is_visible()
        write_rows(run / "metrics.jsonl", [{"update": 4, "global_step": 999, "entropy": 1.0}])
        page.wait_for_selector("[data-tile=steps] >> text=999")
        run.rename(tmp_path / "gone")
        page.wait_for_selector("#empty")


def test_a_run_that_learns_nothing_says_so(tmp_path: Path, open_page: Open) -> None:
    run = make_run(tmp_path / "runs", "forced", rows=3)
    with Dashboard(tmp_path / "runs") as dashboard:
        page = open_page(dashboard.url, token=False)
        page.wait_for_selector("#title >> text=forced")
        assert not page.locator("#warning").is_visible()
        row = {"update": 4, "global_step": 999, "forced_share": 0.97}
        write_rows(run / "metrics.jsonl", [row])
        page.wait_for_selector("#warning >> text=97.0 % of the newest steps were forced")


def test_a_good_token_outlives_a_guesser(tmp_path: Path, open_page: Open) -> None:
    """The guesser is the same user here, so the page has to wait, but keeps its token."""
    make_run(tmp_path / "runs")
    with Dashboard(tmp_path / "runs", "--control") as dashboard:
        page = open_page(dashboard.url)
        for _ in range(TRIES):
            with dashboard.socket() as link:
                link.send(json.dumps({"type": "hello", "token": "wrong" * 5}))
                with pytest.raises(ConnectionClosed, match="wrong token"):
                    link.recv(timeout=PATIENCE)
        page.reload()
        page.wait_for_selector("#notice >> text=Wrong tokens came")
        assert page.evaluate("sessionStorage.getItem('warpzone.token')") == TOKEN
