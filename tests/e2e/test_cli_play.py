"""`warpzone play` and `warpzone bench engine`, as a user runs them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpzone.bench import nespy
from warpzone.cli.main import main


def play(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["play", *words, "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out.splitlines()[-1]))


def test_demo_reaches_the_flag(capsys: pytest.CaptureFixture[str], variant: str) -> None:
    outcome = play(capsys, "--script", "demo", "--rom", variant)
    assert outcome["flags"] >= 1
    assert outcome["life"] == 2
    assert (outcome["furthest_stage"], outcome["stage"]) == ("1-1", "1-2")
    assert outcome["furthest_x"] > 3100


def test_demo_video(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    imageio = pytest.importorskip("imageio.v3")
    path = tmp_path / "demo.mp4"
    outcome = play(
        capsys, "--script", "RIGHT+B:30,RIGHT+A+B:10", "--out", str(path), "--scale", "1"
    )
    assert outcome["written"] == outcome["frames"] == 40
    frames = list(imageio.imiter(path))
    assert len(frames) == 40
    assert frames[0].shape == (240, 256, 3)
    assert np.abs(frames[-1].astype(int) - frames[0]).mean() > 1


def test_random_play_is_seeded(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--random", "--steps", "60", "--stage", "1-2")
    first = play(capsys, *words, "--seed", "1")
    assert play(capsys, *words, "--seed", "1") == first
    assert play(capsys, *words, "--seed", "2") != first
    assert first["stage"] == "1-2"


def test_it_begins_as_it_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def ended(*words: str) -> tuple[str, str, int]:
        outcome = play(capsys, "--script", "NOOP:8", *words)
        return outcome["began"], outcome["stage"], outcome["x_pos"]

    assert ended() == ("small", "1-1", 40)
    assert ended("--start-power", "fire", "--out", str(tmp_path / "fire.png")) == (
        *("fire", "1-1"),
        40,
    )
    began, stage, x = ended("--start-halfway")
    assert (began, stage) == ("halfway", "1-1")
    assert x > 5 * 256
    assert main(["play", "--script", "NOOP:8", "--stage", "1-4", "--start-halfway"]) == 0
    said = capsys.readouterr()
    assert said.err == (
        "warpzone play: 1-4 has no halfway page; the game begins at the door there\n"
    )
    assert main(["play", "--script", "NOOP:8", "--start-power", "big"]) == 0
    assert "8 frames, as big, furthest 1-1" in capsys.readouterr().out


def test_mosaic_of_lanes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    imageio = pytest.importorskip("imageio.v3")
    path = tmp_path / "lanes.png"
    words = ("--random", "--lanes", "9", "--stage", "all", "--steps", "5", "--out", str(path))
    play(capsys, *words)
    picture = imageio.imread(path)
    assert picture.shape[:2] == (362, 386)
    assert path.stat().st_size < 300_000


def test_terminal_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["play", "--script", "RIGHT:4", "--terminal"]) == 0
    text = capsys.readouterr().out
    assert text.count("\x1b[H") == 2
    assert "\N{UPPER HALF BLOCK}" in text
    assert text.rstrip().splitlines()[-1].startswith("4 frames")


def test_movie(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    movie = tmp_path / "start.txt"
    movie.write_text("0\n" * 60 + "8\n0\n" * 100 + "128\n" * 200)
    outcome = play(capsys, "--movie", str(movie))
    assert outcome["frames"] == 460


@pytest.mark.parametrize(
    ("words", "text", "code"),
    [
        (["--stage", "9-9"], "9-9", 2),
        (["--stage", "all"], "one stage", 2),
        (["--script", "nothing"], "nothing", 2),
        (["--script", "JUMP:4"], "JUMP", 2),
        (["--lanes", "4"], "--random", 2),
        (["--start-power", "big", "--start-halfway"], "small Mario", 2),
        (["--movie", "x.fm2", "--start-halfway"], "power-on", 2),
        (["--random", "--out", "x.avi"], "avi", 2),
        (["--random", "--out", "no/such/folder/x.mp4"], "no/such/folder", 1),
        (["--movie", "no-such-file.fm2"], "no-such-file", 2),
        (["--rom", "no-such-rom.nes"], "no-such-rom", 1),
    ],
)
def test_bad_input_is_one_sentence(
    capsys: pytest.CaptureFixture[str], words: list[str], text: str, code: int
) -> None:
    assert main(["play", *words]) == code
    error = capsys.readouterr().err
    assert text in error
    assert len(error.strip().splitlines()) == 1


def test_window_without_display(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert main(["play", "--random", "--window"]) == 1
    assert "window" in capsys.readouterr().err


def test_quick_bench(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers are of this moment; that they are all there is what counts."""
    monkeypatch.setattr(nespy, "available", lambda: False)
    out, ledger = tmp_path / "bench.json", tmp_path / "ledger.jsonl"
    words = ["bench", "engine", "--quick", "--seconds", "0.01"]
    assert main([*words, "--json", str(out), "--append", str(ledger)]) == 0
    assert "raw translated" in capsys.readouterr().out
    result = json.loads(out.read_text())
    units = {case["name"]: case["unit"] for case in result["cases"]}
    assert units["raw interpreter"] == "frames/s"
    assert units["steps translated 16x1"] == "steps/s"
    assert all(case["median"] > 0 and len(case["rates"]) == 5 for case in result["cases"])
    assert result["costs"]["memory_mib"] > 0
    assert result["costs"]["imports_torch"] is False
    (line,) = ledger.read_text().splitlines()
    assert json.loads(line)["machine"]["cpu"]


def test_bench_refuses_too_few_rounds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "engine", "--rounds", "3"]) == 2
    assert "5 rounds" in capsys.readouterr().err
