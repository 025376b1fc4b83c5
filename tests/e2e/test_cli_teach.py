"""`warpzone teach`, from words to an agent that others take."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from small_agents import ship, small_run

from warpzone.cli.main import main
from warpzone.teach import course
from warpzone.teach.course import Course, Plan

OUT = pytest.CaptureFixture[str]
#: An agent with a memory that has learned nothing; steps without new ground soon are too many.
NETWORK = {"memory": "gru", "previous_action": True}
SMALL = [
    *("--stages", "1-1", "--rounds", "1", "--episodes", "2", "--fit-steps", "2"),
    *("--trial-steps", "200", "--run-name", "taught"),
]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    ship(monkeypatch, tmp_path, **NETWORK)
    # All of them in the first round would take minutes.
    monkeypatch.setattr("warpzone.teach.course.LONGEST_DELAY", 4)
    # So small a network loses more by threads than it gains.
    torch.set_num_threads(1)


def test_a_taught_agent_is_one_like_others(capsys: OUT) -> None:
    assert main(["teach", "small", *SMALL, "--seed", "4"]) == 0
    printed = capsys.readouterr().out
    assert "[eval]" in printed
    assert "round 1: alone the flag from 0 of 5 starts" in printed
    assert "searched" in printed
    assert "of shown actions lead" in printed
    rows = [json.loads(line) for line in Path("runs/taught/evals.jsonl").read_text().splitlines()]
    steps = sorted({row["global_step"] for row in rows})
    assert steps[0] == 0
    assert steps[1] > 200
    assert len(rows) == 2 * 31
    config = json.loads(Path("runs/taught/config.json").read_text())
    assert config["init"] == "small"
    assert config["seed"] == 4
    # Lessons begin with any start delay, whatever the agent was trained with.
    assert config["start_delay"] == 120
    (session,) = json.loads(Path("runs/taught/versions.json").read_text())["sessions"]
    assert session["init"]["agent"] == "small"
    assert session["taught"] == (
        "warpzone teach small --stages 1-1 --rounds 1 --episodes 2 --trial-steps 200 "
        "--fit-steps 2 --seed 4"
    )
    # Weights, the run and `latest` are agents; reports and training go on from them.
    words = ["--delays", "0", "--policy", "argmax", "--stuck-after", "5", "--stages", "1-1"]
    assert main(["eval", "latest", *words]) == 0
    assert main(["eval", "runs/taught/weights.safetensors", *words]) == 0
    assert main(["report", "latest", "--out", "r.html"]) == 0
    words = ["runs/taught/weights.safetensors", *SMALL[:-1], "again", "--search-steps", "0"]
    assert main(["teach", *words]) in (0, 1)
    assert Path("runs/again/best.safetensors").is_file()
    (session,) = json.loads(Path("runs/again/versions.json").read_text())["sessions"]
    assert session["taught"].startswith("warpzone teach taught --stages 1-1 ")


def test_nothing_found(capsys: OUT) -> None:
    """Said in one sentence; what was there before is there."""
    words = [*SMALL, "--trial-steps", "1", "--search-steps", "0", "--keep", "1-1"]
    assert main(["teach", "small", *words]) == 1
    said = capsys.readouterr().err
    assert "no trial reached the flag" in said
    assert said.count("\n") == 1
    assert Path("runs/taught/best.safetensors").is_file()
    (session,) = json.loads(Path("runs/taught/versions.json").read_text())["sessions"]
    assert session["taught"].startswith("warpzone teach small --stages 1-1 --keep 1-1 --rounds 1 ")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["nobody"], 2, "nobody"),
        (["small", "--stages", "9-9"], 2, "9-9"),
        (["small", "--stages", "game"], 2, "single stages are taught"),
        (["small", "--stages", "1-1", "--keep", "1-2"], 2, "some of the stages that are taught"),
        (["small", "--stages", "1-1", "--keep", "game"], 2, "some of the stages that are taught"),
        (["small", "--stages", "1-1", "--keep", "9-9"], 2, "9-9"),
        (["small", "--rounds", "0"], 2, "--rounds"),
        (["small", "--episodes", "-1"], 2, "--episodes"),
        (["small", "--search-steps", "-1"], 2, "--search-steps"),
        (["small", "--games", "-1"], 2, "--games"),
        (["small", "--start-power", "tiny"], 2, "--start-power"),
        (["small", "--patience", "0"], 2, "--patience"),
        (["small", "--judge", "games"], 2, "--judge games needs --games"),
        (["small", "--judge", "nobody"], 2, "--judge"),
        (["small", "--lr", "0"], 2, "--lr"),
        (["small", "--lr", "nan"], 2, "--lr"),
        (["small", "--shown-weight", "inf"], 2, "--shown-weight"),
        (["small", "--sharpen", "0"], 2, "--sharpen"),
        (["small", "--fit-steps", "0"], 2, "--fit-steps"),
        (["small", "--seed", "-1"], 2, "--seed"),
        (["small", "--run-name", "../away"], 2, "run"),
        (["small", "--ways", "nothing"], 2, "nothing is not a run"),
        (["small", "--ways", "small-run"], 2, "no ways of a course"),
        (["small", "--rom", "nothing.nes"], 1, "nothing.nes"),
    ],
)
def test_bad_input(words: list[str], code: int, sentence: str, capsys: OUT) -> None:
    if "small-run" in words:
        small_run(Path("runs/small-run"), **NETWORK)
        (Path("runs/small-run") / "best.safetensors").unlink()
    try:
        found = main(["teach", *words])
    except SystemExit as ended:
        found = ended.code if isinstance(ended.code, int) else 1
    said = capsys.readouterr().err
    assert found == code, said
    assert sentence in said
    assert "Traceback" not in said
    assert not list(Path("runs").glob("*/best.safetensors")) if Path("runs").exists() else True


def test_what_a_course_found_is_tried_first(capsys: OUT, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every lesson of a course has its way in the folder, and another course asks nobody else."""
    #: Of each course, the places from which trials can go along ways that it was given.
    joined: list[int] = []

    class Watched(Course):
        def __init__(self, *args: Any, **options: Any) -> None:
            known = options["known"] or {}
            joined.append(sum(len(one._joined) for one in known.values()))
            super().__init__(*args, **options)

    monkeypatch.setattr(course, "Course", Watched)
    assert main(["teach", "small", *SMALL, "--seed", "4"]) == 0
    rows = [json.loads(line) for line in Path("runs/taught/ways.jsonl").read_text().splitlines()]
    assert rows
    assert {row["stage"] for row in rows} == {"1-1"}
    capsys.readouterr()
    words = [*SMALL[:-1], "again", "--search-steps", "0", "--trial-steps", "4000"]
    assert main(["teach", "small", *words, "--ways", "taught"]) == 0
    assert "; lessons for 5 others, none for none;" in capsys.readouterr().out
    (session,) = json.loads(Path("runs/again/versions.json").read_text())["sessions"]
    assert "--ways taught" in session["taught"]
    assert joined[0] == 0
    assert joined[1] > 20


def test_a_run_is_never_overwritten(capsys: OUT) -> None:
    small_run(Path("runs/taught"), **NETWORK)
    before = Path("runs/taught/best.safetensors").read_bytes()
    assert main(["teach", "small", *SMALL]) == 2
    assert "exists already" in capsys.readouterr().err
    assert Path("runs/taught/best.safetensors").read_bytes() == before


def test_stopped_before_there_is_an_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without weights would be the `latest` of every other command."""

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("warpzone.teach.course.evaluate", stop)
    assert main(["teach", "small", *SMALL]) == 130
    assert not Path("runs/taught").exists()


def test_every_flag_is_part_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[Plan] = []

    def note(plan: Plan, *_: object, **__: object) -> None:
        plans.append(plan)
        raise KeyboardInterrupt

    monkeypatch.setattr("warpzone.teach.course.Course", note)
    wanted = Plan((0, 14), (14,), 2, 3, "any", 40, 7, 50, 9, "games", 6, 0.25, 7.0, 1.5, 8)
    words = ["--stages", "1-1,4-3", "--rounds", "2", "--episodes", "3", "--trial-steps", "40"]
    words += ["--search-steps", "50", "--fit-steps", "6", "--lr", "0.25", "--shown-weight", "7"]
    words += ["--sharpen", "1.5", "--games", "9", "--judge", "games", "--keep", "4-3"]
    words += ["--start-power", "any", "--patience", "7"]
    assert main(["teach", "small", *words, "--seed", "8"]) == 130
    assert main(["teach", "small", "--stages", "1-1"]) == 130
    assert plans == [wanted, Plan((0,))]
