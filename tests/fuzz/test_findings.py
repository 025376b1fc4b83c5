"""What fuzzing has found in the files of searches: each is a page or one sentence now."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from warpzone.config import ConfigError
from warpzone.report.search import search_sections
from warpzone.run.names import POPULATION, SWEEP
from warpzone.search.space import read_space

GOOD = runpy.run_path(str(Path(__file__).parent / "search_files.py"))
LR = {"name": "lr", "low": 1e-4, "high": 1e-2, "log": True, "choices": []}


def page(folder: Path, name: str, document: dict[str, Any]) -> str:
    (folder / name).write_text(json.dumps(document))
    return "".join(search_sections(folder)[1])


@pytest.mark.parametrize(
    "changes",
    [
        {"parameters": [{**LR, "high": -1.0}]},
        {"parameters": [{**LR, "high": 0.0}]},
        {"trials": [{**GOOD["TRIAL"], "steps": 1e308}, {**GOOD["TRIAL"], "steps": 1e308}]},
    ],
)
def test_sweeps_with_impossible_numbers_have_a_page(tmp_path: Path, changes: Any) -> None:
    assert "<polyline" in page(tmp_path, SWEEP, {**GOOD["SWEEP"], **changes})


def test_a_member_that_began_beyond_all_steps_has_a_page(tmp_path: Path) -> None:
    runs = [{**GOOD["MEMBER"], "step": 1e308}]
    assert "member-0" in page(tmp_path, POPULATION, {**GOOD["POPULATION"], "runs": runs})


@pytest.mark.parametrize("key", ["low", "high", "step"])
def test_a_number_of_a_space_may_have_hundreds_of_digits(tmp_path: Path, key: str) -> None:
    numbers = {"low": "1e-4", "high": "1e-2", "step": "1e-4", key: "9" * 400}
    text = "".join(f"{name} = {value}\n" for name, value in numbers.items())
    (tmp_path / "space.toml").write_text(f"[space.lr]\n{text}")
    with pytest.raises(ConfigError, match=f"space.lr: {key} must be"):
        read_space(tmp_path / "space.toml")
