"""The roadmap: rows that can be ticked, and what they say about the shipped agent."""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
ROADMAP = (ROOT / "docs" / "roadmap.md").read_text()


def agent() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "src/warpzone/agents/all.json").read_text())
    return found


def ticked(text: str) -> bool:
    (row,) = [row for row in ROADMAP.splitlines() if text in row]
    assert row[:6] in ("- [x] ", "- [ ] ")
    return row[3] == "x"


def test_rows_and_links() -> None:
    rows = [line for line in ROADMAP.splitlines() if line.startswith("-")]
    assert len(rows) > 30
    assert all(re.match(r"- \[[x ]\] \S", row) for row in rows)
    assert len(set(rows)) == len(rows)
    for target in re.findall(r"\]\(([^)#]+)", ROADMAP):
        assert (ROOT / "docs" / target).exists(), target


def test_what_it_says_of_the_agent_is_what_was_measured() -> None:
    measured = next(one for one in agent()["measured"] if one["delays"] == "0..30")
    clears = {stage: row.count("1") for stage, row in measured["clears"]["argmax"].items()}
    assert f"8-4 from {clears['8-4']} of 31 start delays" in ROADMAP
    assert ticked("Every stage cleared from some start") == (min(clears.values()) > 0)


def test_the_whole_game_is_ticked_when_it_is_won() -> None:
    assert ticked("The whole game won") == any(games["won"] for games in agent()["games"].values())
