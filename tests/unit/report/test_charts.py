"""Colours and text of charts."""

from __future__ import annotations

import re
from pathlib import Path

from warpzone.report import embedded
from warpzone.report.charts import PALETTE, PARTS, line_chart, stacked_chart
from warpzone.report.style import CSS
from warpzone.run.opening import File

POINTS = [(1.0, 0.5), (2.0, 0.7)]


def strokes(text: str) -> list[str]:
    return re.findall(r'<polyline[^>]* stroke="([^"]+)"', text)


def test_a_colour_means_the_same_run_in_every_chart() -> None:
    two = str(line_chart("return", {"first": POINTS, "second": POINTS}))
    assert strokes(two) == list(PALETTE[:2])
    # A run without values leaves the others' colours alone.
    assert strokes(str(line_chart("return", {"first": [], "second": POINTS}))) == [PALETTE[1]]
    evaluated = {f"{run}, {policy}": POINTS for run in "ab" for policy in ("argmax", "sampled")}
    owners = {name: "ab".index(name[0]) for name in evaluated}
    dashed = [name for name in evaluated if "sampled" in name]
    text = str(line_chart("clears", evaluated, runs=owners, dashed=dashed))
    assert strokes(text) == [PALETTE[0], PALETTE[0], PALETTE[1], PALETTE[1]]
    assert text.count("stroke-dasharray") == 2
    assert text.count('class="dash"') == 2


def test_parts_of_a_whole_have_colours_of_their_own() -> None:
    assert not set(PARTS) & set(PALETTE)
    text = str(stacked_chart("time", {"engine": POINTS, "learn": POINTS}))
    assert all(colour in text for colour in PARTS[:2])
    assert not any(colour in text for colour in PALETTE)


def test_numbers_so_large_that_one_more_is_none_more() -> None:
    """Found by fuzzing."""
    text = str(line_chart("return", {"first": [(0.0, -1e17), (1.0, -1e17)]}))
    assert "<polyline" in text
    assert "nan" not in text


def test_text_of_charts_can_be_read() -> None:
    """Charts of 560 pixels are shown at 24 rem: 16 pixels become 11."""
    assert "svg.chart text { font-size:16px; }" in CSS


def test_videos_show_a_picture_before_they_play(tmp_path: Path) -> None:
    (tmp_path / "best.mp4").write_bytes(b"film")
    shown, used = embedded.video(tmp_path, File("best.mp4", 4, 0.0), tmp_path / "page.html", 100)
    assert used == 4
    assert re.search(r'src="data:video/mp4;base64,[\w=]+#t=1"', str(shown))
