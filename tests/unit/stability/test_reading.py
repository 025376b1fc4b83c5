"""Reports and diagnostics of trials that somebody else has written."""

import json
from pathlib import Path
from typing import Any

import pytest

from warpzone.env.backends.events import EVENTS
from warpzone.run.opening import MOST_DEPTH
from warpzone.stability import regression, report
from warpzone.stability.digest import describe, digest

#: Deeper than Python follows, and deeper than is followed here.
DEEP = ["[" * 100_000, '{"env": 1, "text": ' + "[" * MOST_DEPTH + "]" * MOST_DEPTH + "}"]
READY = {"kind": "ready", "env": 1, "seconds": 0.5, "text": "ready"}


@pytest.mark.parametrize("line", [*DEEP, "9" * 5000, "{"])
def test_a_line_that_is_no_event_is_left_out(tmp_path: Path, line: str) -> None:
    (tmp_path / EVENTS).write_text(f"{line}\n{json.dumps(READY)}\n")
    assert digest(tmp_path)["envs"] == [{"env": 1, "lost": [], "seconds": 0.5}]


@pytest.mark.parametrize("line", [*DEEP, "9" * 5000, "{"])
def test_a_report_names_the_line_that_is_no_row(
    tmp_path: Path, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "report.jsonl"
    path.write_text(f"{{}}\n{line}\n")
    with pytest.raises(ValueError, match=r"^line 2 of .* is not JSON: "):
        report.read(path)
    assert regression.parse_main([str(path)]) == 1
    assert capsys.readouterr().err.startswith("parse_env_report: line 2 of ")


@pytest.mark.parametrize("duration", [{"a": 1}, [2], "x", None])
def test_a_duration_that_is_no_number_counts_as_none(duration: Any) -> None:
    said = report.summary([{"kind": "async", "duration": duration}])
    assert "duration min 0.00 s" in said


def test_nothing_of_the_files_steers_a_terminal(tmp_path: Path) -> None:
    (tmp_path / EVENTS).write_text(
        json.dumps({"kind": "lost", "env": 1, "text": "it\x1b[2J died\nat last"}) + "\n"
    )
    assert "lost: it?[2J died at last" in describe(digest(tmp_path))
    assert "1 x \x1b" not in (said := report.summary([{"error": "\x1b[2J", "kind": "\x07"}]))
    assert "1 x ?[2J" in said
