"""Reports: whole, self-contained, and safe whatever a run's files say."""

import base64
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from html_pages import EVIL, read
from tiny_runs import tiny

from warpzone import rom as roms
from warpzone.config import ConfigError
from warpzone.maps.events import read_events
from warpzone.report import charts
from warpzone.report.data import read_run, told_apart
from warpzone.report.embedded import video
from warpzone.report.html import Markup, table, tag
from warpzone.report.page import make_page
from warpzone.report.published import RESULTS, SOURCES
from warpzone.run.opening import File


def metric(step: int, **changes: Any) -> dict[str, Any]:
    return {
        "global_step": step, "seconds": step / 100, "clear_rate": step / 1000, "avg_return": step,
        "env_steps_per_sec": 5000.0, "time_engine": 1.0, "time_learn": 2.0, "time_wait": None,
        "entropy": 1.0, **changes,
    }  # fmt: skip


def evaluated(step: int, delay: int, cleared: bool, stage: str = "1-1") -> list[dict[str, Any]]:
    return [
        {"global_step": step, "seconds": step / 100, "stage": stage, "policy": policy,
         "start_delay": delay, "cleared": cleared, "furthest_x": 900 + delay,
         "reason": "flag" if cleared else "death"}
        for policy in ("argmax", "sampled")
    ]  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "runs" / "first"
    path.mkdir(parents=True)
    (path / "config.json").write_text(tiny(run_name=EVIL, lr=0.001).to_json())
    rows = [metric(step) for step in range(100, 1100, 100)]
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"glo')
    found = [
        *evaluated(500, 0, False),
        *evaluated(500, 1, False),
        *evaluated(1000, 0, True),
        *evaluated(1000, 1, False),
    ]
    (path / "evals.jsonl").write_text("".join(json.dumps(row) + "\n" for row in found))
    episode = {"stage": 0, "reason": "death", "furthest_x": 700, "global_step": 100}
    (path / "episodes.jsonl").write_text(json.dumps(episode) + "\n")
    return path


def test_baselines_stand_beside_the_run_and_nowhere_else(run: Path, tmp_path: Path) -> None:
    assert "Beside baselines" not in make_page([read_run(run)], tmp_path / "r.html", rom=None)
    rows = [
        {"stage": "1-1", "policy": policy, "start_delay": delay, "cleared": cleared,
         "furthest_x": x, "x": x, "reason": "death"}
        for policy, cleared, x in
        (("argmax", True, 3000), ("random", False, 300), ("scripted", False, 800))
        for delay in (0, 1)
    ]  # fmt: skip
    (run / "eval.json").write_text(json.dumps({"episodes": rows}))
    data = read_run(run)
    assert {row["policy"] for row in data.best_rows()} == {"argmax"}
    page = make_page([data], tmp_path / "r.html", rom=None)
    part = page.partition("Beside baselines")[2].partition("</table>")[0]
    cells = re.findall("<td[^>]*>([^<]*)</td>", part)
    assert cells[-5:] == ["1-1", "100%, x 3000", "-", "0%, x 300", "0%, x 800"]


@pytest.mark.parametrize("start", [{"start_halfway": True}, {"start_power": "fire"}])
def test_clears_from_elsewhere_than_the_door_are_left_out(run: Path, start: dict[str, Any]) -> None:
    rows = [{"stage": "1-1", "policy": "argmax", "start_delay": 0, "cleared": True}]
    for about, taken in (({"start_power": "small", "start_halfway": False}, True), (start, False)):
        (run / "eval.json").write_text(json.dumps({**about, "episodes": rows}))
        assert (read_run(run).evaluation == rows) is taken


def test_one_run(run: Path, tmp_path: Path) -> None:
    page = make_page([read_run(run)], tmp_path / "r.html", rom=None)
    text = "".join(read(page).text)
    assert "argmax clears: 1 of 2" in text
    assert "0:10 minto the first argmax clear, 1k steps" in text
    assert "there is no ROM" in text
    assert "lr" in text
    assert "0.45M / 0.6h" in text
    assert page.count("<polyline") >= 4
    assert page.count("<polygon") == 2


def test_nothing_comes_from_outside(run: Path, tmp_path: Path) -> None:
    (run / "videos").mkdir()
    (run / "videos" / "small.mp4").write_bytes(b"0" * 10)
    (run / "videos" / "large #1.mp4").write_bytes(b"0" * 5000)
    page = make_page([read_run(run)], tmp_path / "r.html", rom=None, embed=100)
    for name, attributes in read(page).seen:
        for key in ("src", "srcset", "data", "poster"):
            assert (attributes.get(key) or "data:").startswith("data:")
        assert name not in ("script", "link", "iframe", "object", "form")
        assert not any(key.startswith("on") for key in attributes)
    assert "@import" not in page
    assert "url(" not in page
    assert "runs/first/videos/large%20%231.mp4" in page
    assert "default-src 'none'" in page.replace("&#x27;", "'")


def test_a_linked_video_is_not_embedded(run: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.mp4"
    secret.write_bytes(b"of another folder")
    held = base64.b64encode(b"of another folder").decode()
    (run / "videos").mkdir()
    (run / "videos" / "one.mp4").symlink_to(secret)
    page = make_page([read_run(run)], tmp_path / "r.html", rom=None, embed=100)
    assert held not in page
    # It became a link after it was listed.
    with pytest.raises(OSError, match="is a link"):
        video(run, File("videos/one.mp4", 17, 0.0), tmp_path / "r.html", 100)


def test_everything_is_escaped(run: Path, tmp_path: Path) -> None:
    """Names, stages, metrics and configuration come from files that anybody may have written."""
    rows = [{**row, "stage": EVIL} for row in evaluated(1000, 2, True)]
    with (run / "evals.jsonl").open("a") as file:
        file.write("".join(json.dumps(row) + "\n" for row in rows))
    with (run / "metrics.jsonl").open("a") as file:
        file.write("\n" + json.dumps(metric(1200, **{f"time_{EVIL}": 1.0, "avg_return": EVIL})))
    (run / "versions.json").write_text(json.dumps({EVIL: EVIL}))
    named = run.with_name("<b>name & co")
    run.rename(named)
    page = make_page([read_run(named)], tmp_path / "r.html", rom=None)
    assert "<script" not in page
    assert "<b>name" not in page
    read(page)


def test_two_runs_show_what_differs(run: Path, tmp_path: Path) -> None:
    other = run.with_name("second")
    other.mkdir()
    (other / "config.json").write_text(tiny(lr=0.002, epochs=3).to_json())
    page = make_page([read_run(run), read_run(other)], tmp_path / "r.html", rom=None)
    text = "".join(read(page).text)
    differs = text[text.index("What differs") : text.index("Changed from the defaults")]
    assert "epochs" in differs
    assert "0.002" in differs
    assert "num_envs" not in differs
    assert "no data yet" in text


def test_maps_are_pictures_inside(run: Path, tmp_path: Path) -> None:
    image = roms.find()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WARPZONE_DATA", str(tmp_path / "data"))
        page = make_page([read_run(run)], tmp_path / "r.html", rom=image)
    pictures = [attributes["src"] or "" for name, attributes in read(page).seen if name == "img"]
    assert len(pictures) == 2
    assert all(url.startswith("data:image/png;base64,") for url in pictures)


def test_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a run"):
        read_run(tmp_path)
    (tmp_path / "config.json").write_text("{half")
    with pytest.raises(OSError, match="cannot be read"):
        read_run(tmp_path)


def test_a_run_that_has_hardly_begun(tmp_path: Path) -> None:
    """No time has passed, and a row tells of something else than an update."""
    (tmp_path / "config.json").write_text("{}")
    rows = [{"timestamp": 1.0}, {"global_step": 0, "seconds": 0.0, "time_learn": 1.0}]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "eval.json").write_text('{"episodes": null}')
    text = "".join(read(make_page([read_run(tmp_path)], tmp_path / "r.html", rom=None)).text)
    assert "Time split" in text


def test_runs_of_the_same_name_are_told_apart(run: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "first"
    shutil.copytree(run, other)
    found = told_apart([read_run(run), read_run(other)])
    assert [data.name for data in found] == ["runs/first", "elsewhere/first"]
    page = make_page(found, tmp_path / "r.html", rom=None)
    assert page.count("runs/first, argmax") == page.count("elsewhere/first, argmax") > 0
    with pytest.raises(ValueError, match="twice"):
        told_apart([read_run(run), read_run(run)])


def test_html_escapes_text_and_attributes() -> None:
    made = tag("a", "<&>", tag("b", "x"), href='"<', class_="k", none=None, stroke_width=2)
    expected = '<a href="&quot;&lt;" class="k" stroke-width="2">&lt;&amp;&gt;<b>x</b></a>'
    assert made == expected
    assert isinstance(made, Markup)
    assert tag("img", alt="'") == '<img alt="&#x27;">'
    assert "&lt;i&gt;" in table(["<i>"], [["<i>", 3]])


def test_ten_thousand_points_are_thinned() -> None:
    points = [(float(i), float(i % 10)) for i in range(10_000)]
    thin = charts.thinned(points)
    assert len(thin) <= charts.MOST_POINTS
    assert thin[-1] == points[-1]
    assert sum(y for _, y in thin) / len(thin) == pytest.approx(4.5, abs=0.3)
    assert charts.thinned(points[:10]) == points[:10]


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1.0), (0.0, 5_000_000.0), (-3.0, 7.0), (0.0, 0.004), (2.0, 2.0)]
)
def test_ticks_are_round_and_inside(low: float, high: float) -> None:
    ticks = charts._ticks(low, high)
    assert 1 <= len(ticks) <= 8
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in ticks)


def test_grid_has_every_stage() -> None:
    cells = {"1-1": charts.Cell(1.0, "31 of 31"), "8-4": charts.Cell(0.0, "0 of 31", worst_x=800)}
    grid = charts.stage_board(cells)
    assert grid.count("not played") == 30
    assert "1-1: 31 of 31" in grid
    assert "8-4: 0 of 31; most fail at x 800" in grid
    assert re.search(r"hsl\(120 .*hsl\(0 ", grid)


def test_published_table_is_whole() -> None:
    assert len(RESULTS) == 32
    assert all(len(cells) == len(SOURCES) for cells in RESULTS.values())
    assert all(source.url.startswith("https://") for source in SOURCES)


ODD: list[Any] = ["x", [], {}, None, True, -1, 1 << 70, 1e200, 1e-310, "1-1"]


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_rows_of_other_types_leave_a_report(run: Path, tmp_path: Path, odd: Any) -> None:
    """Each field of each file, one at a time."""
    good = {
        "metrics.jsonl": metric(1100),
        "evals.jsonl": {**evaluated(1100, 2, True)[0], "x": 5, "y": 5, "area_type": 1},
        "episodes.jsonl": {"stage": 0, "reason": "death", "furthest_x": 7, "global_step": 100},
    }
    for name, row in good.items():
        with (run / name).open("a") as file:
            file.writelines(json.dumps({**row, field: odd}) + "\n" for field in row)
    (run / "eval.json").write_text(json.dumps({"episodes": odd}))
    (run / "versions.json").write_text(json.dumps({"sessions": odd}))
    read(make_page([read_run(run)], tmp_path / "page.html", rom=None))
    (run / "eval.json").write_text(json.dumps({"episodes": [odd, good["evals.jsonl"]]}))
    read(make_page([read_run(run)], tmp_path / "page.html", rom=None))
    for source in ("evals.jsonl", "episodes.jsonl"):
        for event in read_events(run, "1-1", source):
            assert 0 <= event.x <= 1 << 16
