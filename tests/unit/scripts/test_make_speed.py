"""README's table of speeds is the one that was measured."""

import json
import shutil
from pathlib import Path
from typing import Any

import make_speed
import pytest

ROOT = Path(__file__).parents[3]


def test_readme_says_what_was_measured() -> None:
    for page, words in make_speed.PAGES.items():
        text = (ROOT / page).read_text()
        assert f"<!-- speed -->\n{make_speed.block(words)}\n<!-- /speed -->" in text, page


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what the script reads and writes."""
    (tmp_path / "benchmarks").mkdir()
    for name in ("speed_eu.json", "speed_world.json", "ledger.jsonl"):
        shutil.copy(ROOT / "benchmarks" / name, tmp_path / "benchmarks")
    for page in make_speed.PAGES:
        shutil.copy(ROOT / page, tmp_path)
    monkeypatch.setattr(make_speed, "ROOT", tmp_path)
    return tmp_path


def changed(tree: Path, name: str, key: str, value: Any) -> None:
    path = tree / "benchmarks" / "speed_eu.json"
    result = json.loads(path.read_text())
    for case in result["cases"]:
        if case["name"] == name:
            case[key] = value
    path.write_text(json.dumps(result))


def test_another_measurement_is_noticed_and_written(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    changed(tree, "steps translated 16x1", "cpu_rates", [800.0, 900.0, 1000.0])
    changed(tree, "steps nes-py", "cpu_rates", [1.0, 2.0, 2.0])
    for name in ("steps translated 16x1 avx2", "steps interpreter 16x1"):
        changed(tree, name, "cpu_rates", [2.0, 2.0, 2.0])
    monkeypatch.setattr("sys.argv", ["make_speed.py", "--check"])
    assert make_speed.main() == 1
    assert capsys.readouterr().out.count("is not up to date") == 2
    assert "**500x**" not in (tree / "README.md").read_text()
    monkeypatch.setattr("sys.argv", ["make_speed.py"])
    assert make_speed.main() == 0
    for page in make_speed.PAGES:
        # The median of 800, 450 and 500; of medians it would be 450.
        assert "| **500x** |" in (tree / page).read_text()
    monkeypatch.setattr("sys.argv", ["make_speed.py", "--check"])
    assert make_speed.main() == 0


def test_the_wrong_rom_is_refused(tree: Path) -> None:
    shutil.copy(tree / "benchmarks" / "speed_world.json", tree / "benchmarks" / "speed_eu.json")
    with pytest.raises(ValueError, match=r"speed_eu\.json was measured with ROM world"):
        make_speed.measured("eu")
