"""A run that obeys its inbox, and shows its lanes to who looks."""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_runs import tiny

from warpzone.dashboard.messages import packed
from warpzone.dashboard.wall_file import WallFile
from warpzone.observers import video_maker
from warpzone.observers.control import ControlObserver
from warpzone.observers.log import LogObserver
from warpzone.observers.observer import Observer
from warpzone.observers.progress import Progress
from warpzone.observers.wall import WallObserver
from warpzone.run import control
from warpzone.run.control import Command
from warpzone.run.names import ANSWERS
from warpzone.train.loop import Run


class Script(Observer):
    """Sends commands after given updates."""

    def __init__(self, orders: dict[int, list[tuple[str, float | None]]]) -> None:
        self.orders = orders
        self.rows: list[dict[str, Any]] = []

    def updated(self, run: Any, row: dict[str, Any], collected: Any) -> None:
        self.rows.append(dict(row))
        for what, value in self.orders.get(run.global_update, []):
            control.send(run.folder.path, Command.new("test", what, value))


def train(folder: Path, *observers: Observer, reason: str = "normal", **changes: Any) -> Run:
    """A run without the evaluation at its end."""
    run = Run(tiny(runs_dir=str(folder), run_name="one", **changes), observers)
    try:
        for observer in observers:
            observer.started(run)
        run.learn(Progress(run.config, "test"))
    finally:
        run.close()
        for observer in observers:
            observer.ended(run, reason)
    return run


def answers(run: Run) -> list[tuple[str, str]]:
    lines = (run.folder.path / ANSWERS).read_text().splitlines()
    return [(row["what"], row["result"]) for row in map(json.loads, lines)]


@pytest.mark.parametrize("overlap", [False, True])
def test_commands_are_obeyed_between_updates(tmp_path: Path, overlap: bool) -> None:
    script = Script({2: [("entropy", 0.05), ("lr", 1e-5)], 4: [("lr", None), ("save", None)]})
    run = train(
        tmp_path,
        LogObserver(),
        script,
        ControlObserver(),
        overlap_collect=overlap,
        max_steps=32 * 8,
    )
    rates = {row["update"]: row["learning_rate"] for row in script.rows}
    bonus = {row["update"]: row["entropy_bonus"] for row in script.rows}
    assert rates[3] == rates[4] == pytest.approx(1e-5)
    assert rates[5] > 1e-5
    assert bonus[3] == bonus[8] == pytest.approx(0.05)
    assert answers(run) == [(w, "done") for w in ("entropy", "lr", "lr", "save")]
    row = json.loads((run.folder.path / ANSWERS).read_text().splitlines()[-1])
    assert (row["who"], row["update"]) == ("test", 5 if overlap else 4)
    assert (run.folder.path / "checkpoints" / row["message"].split()[-1]).is_file()
    assert "save (asked for by test)" in (run.folder.path / "logs" / "train.log").read_text()
    assert control.read_state(run.folder.path)["doing"] == "ended"


def test_a_paused_run_makes_no_update_and_goes_on(tmp_path: Path) -> None:
    script, controlled = Script({2: [("pause", None), ("pause", None)]}), ControlObserver()
    run = Run(tiny(runs_dir=str(tmp_path), max_steps=32 * 4), (script, controlled))
    script.started(run)
    controlled.started(run)
    thread = threading.Thread(target=run.learn, args=(Progress(run.config, "test"),))
    thread.start()
    until = time.monotonic() + 300
    while control.read_state(run.folder.path).get("doing") != "paused":
        assert time.monotonic() < until
        time.sleep(0.05)
    time.sleep(1)
    assert run.global_update == 2
    assert run.pulse.phase == "pause"
    control.send(run.folder.path, Command.new("test", "resume"))
    thread.join(300)
    run.close()
    assert run.global_update == 4
    # The second of the pause is not the run's own.
    assert max(row["seconds"] for row in script.rows) < time.perf_counter() - run.started + 1
    assert answers(run) == [("pause", "done"), ("pause", "refused"), ("resume", "done")]


def test_stop_ends_a_paused_run_in_good_order(tmp_path: Path) -> None:
    script = Script({2: [("pause", None), ("stop", None)]})
    run = train(tmp_path, script, ControlObserver(), max_steps=32 * 50)
    assert run.global_update == 2
    assert run.stopping
    assert answers(run) == [("pause", "done"), ("stop", "done")]


def test_an_evaluation_on_demand(tmp_path: Path) -> None:
    run = train(tmp_path, Script({1: [("evaluate", None)]}), ControlObserver())
    assert answers(run) == [("evaluate", "done")]
    rows = [json.loads(line) for line in (run.folder.path / "evals.jsonl").read_text().splitlines()]
    assert {row["global_step"] for row in rows} == {32}


def test_a_video_is_made_while_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # At the lowest priority it would take minutes beside other tests.
    monkeypatch.setattr(video_maker, "MAKER", (sys.executable, "-m", *video_maker.MAKER[3:]))
    monkeypatch.setattr(video_maker, "LONGEST_AT_END", 900.0)
    script = Script({1: [("video", None)], 2: [("video", None)]})
    run = train(tmp_path, script, ControlObserver(), overlap_collect=True, max_steps=32 * 3)
    refused, made = map(json.loads, (run.folder.path / ANSWERS).read_text().splitlines())
    assert (refused["result"], refused["update"]) == ("refused", 2)
    assert refused["message"] == "a video is being made already"
    assert (made["result"], made["message"]) == ("done", "videos/update_0000001.mp4")
    assert (run.folder.path / made["message"]).stat().st_size > 1000
    # The weights alone were written; the run did not have to rest for it.
    assert not (run.folder.path / "checkpoints").exists()


def test_a_video_of_an_interrupted_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sleeper = (sys.executable, "-c", "import time; time.sleep(100000)")
    monkeypatch.setattr(video_maker, "MAKER", sleeper)
    script = Script({1: [("video", None)]})
    run = train(tmp_path, script, ControlObserver(), reason="interrupt")
    assert answers(run) == [("video", "failed")]
    assert list((run.folder.path / "videos").iterdir()) == []


def test_what_was_changed_goes_into_checkpoints() -> None:
    first, second = ControlObserver(), ControlObserver()
    first.overrides = {"lr": 1e-4}
    second.load_state_dict(first.state_dict())
    assert second.overrides == {"lr": 1e-4}


def test_nobody_looks_and_nothing_is_written(tmp_path: Path) -> None:
    run = train(tmp_path, WallObserver(4, 15.0))
    assert not (run.folder.path / "wall").exists()


def test_the_wall_shows_what_the_network_saw(tmp_path: Path) -> None:
    seen: list[np.ndarray[Any, Any]] = []

    class Look(Observer):
        def started(self, run: Any) -> None:
            WallFile(run.folder.path).want()

        def updated(self, run: Any, row: dict[str, Any], collected: Any) -> None:
            stack = run.config.frame_stack
            seen.append(collected.rollout.frames[stack - 1 : -1, ::3].numpy().copy())

    run = train(tmp_path, Look(), WallObserver(2, 30.0))
    wall = WallFile(run.folder.path)
    wall.read()
    assert wall.version == 1
    text, _, pixels = (run.folder.path / "wall" / "latest.bin").read_bytes().partition(b"\n")
    header = json.loads(text)
    steps, lanes = header["shape"][:2]
    assert [lane["lane"] for lane in header["lanes"]] == [0, 3]
    assert lanes == 2
    shown = np.frombuffer(pixels, np.uint8).reshape(header["shape"])
    assert (shown == seen[header["update"] - 1][-steps:]).all()
    assert len(header["actions"]) == len(header["values"]) == steps
    wall.read()
    assert wall.version == 1


def test_a_damaged_wall_is_no_wall(tmp_path: Path) -> None:
    wall = WallFile(tmp_path)
    wall.want()
    for data in (b"", b"{}\nxx", b'{"shape": [1, 1, 2, 2]}\nxxx', b"nonsense"):
        (tmp_path / "wall" / "latest.bin").write_bytes(data)
        wall.read()
        assert wall.version == 0
    (tmp_path / "wall" / "latest.bin").write_bytes(b'{"shape": [1, 1, 2, 2]}\nxxxx')
    wall.read()
    assert wall.version == 1


def test_binary_messages_can_be_looked_at_as_numbers() -> None:
    for text in ("", "a", "ab", "abc"):
        message = packed({"text": text}, b"x")
        assert (4 + int.from_bytes(message[:4], "little")) % 8 == 0


def test_the_name_in_checkpoints_stays() -> None:
    """Overrides of runs from before the class had its name of today are found again."""
    assert ControlObserver.key() == "Controlled"
