"""Worker processes: what they play, and what a lost one costs."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from backend_games import DIE, FAIL, HANG
from backend_rigs import QUICK, Rig, rig

from warpzone import _engine
from warpzone import rom as roms
from warpzone.env.backends import stage_warning, worker_lanes
from warpzone.env.backends.diagnostics import Diagnostics, last_marker, log_of
from warpzone.env.backends.factory_lanes import HINT_AFTER
from warpzone.env.backends.interface import BackendError
from warpzone.env.backends.opening import RomFile, make_spec
from warpzone.env.backends.rom_lock import rom_lock
from warpzone.env.backends.worker import Assignment
from warpzone.env.backends.worker_lanes import MAX_FAILURES, WorkerLanes, start_method
from warpzone.env.backends.worker_process import WorkerLost
from warpzone.env.infos import COLUMN
from warpzone.env.options import Options
from warpzone.stability.digest import describe, digest

RIGHT = 1
FRAGILE = "backend_games:fragile"


def run_on(game: Rig, lane: int, action: int) -> None:
    """A step in which one of three lanes does something special."""
    actions = [RIGHT] * 3
    actions[lane] = action
    game.step(*actions)


@pytest.mark.parametrize("method", ["forkserver", "spawn", "fork"])
def test_same_as_in_one_process(method: str) -> None:
    results = []
    for sync in (True, False):
        settings = replace(QUICK, start_method=method)
        with rig(FRAGILE, 2, sync=sync, settings=settings, start_delay=(0, 9), sticky=0.3) as game:
            game.reset(5, 6)
            for step in range(40):
                game.step(RIGHT, step % 2)
            results.append({name: array.copy() for name, array in game.arrays.items()})
            results[-1]["shaping"] = np.array(game.lanes.take_shaping())
    for name, array in results[0].items():
        np.testing.assert_array_equal(array, results[1][name], err_msg=name)


def test_lost_workers_cost_their_lane_one_episode(tmp_path: Path) -> None:
    """One dies, one raises and one hangs, in mid-step; the others play on as if nothing was."""
    said: list[str] = []
    settings = replace(QUICK, step_timeout=10.0, folder=str(tmp_path))
    with rig(FRAGILE, 3, sync=False, settings=settings, said=said, frame_skip=1) as game:
        game.reset(1, 2, 3)
        pids = game.lanes.pids()
        for lane, action in ((1, DIE), (0, FAIL), (2, HANG)):
            run_on(game, 0, RIGHT)
            before = game.info[:, COLUMN["x_pos"]].copy()
            run_on(game, lane, action)
            others = [other for other in range(3) if other != lane]
            assert game.truncated.tolist() == [other == lane for other in range(3)]
            assert not game.terminated.any()
            assert game.reward[lane] == 0.0
            assert game.final_info[lane, COLUMN["x_pos"]] == before[lane]
            assert game.info[lane, COLUMN["x_pos"]] == 40
            assert (game.info[others, COLUMN["x_pos"]] == before[others] + 3).all()
        assert game.lanes.counters() == {"env_worker_restarts": 3}
        assert not set(pids) & set(game.lanes.pids())
        folder = game.lanes.folder
    assert folder.parent == tmp_path
    logs = {path.name: path.read_text() for path in folder.iterdir()}
    assert len([name for name in logs if name.startswith("env_init_idx")]) == 6
    # The one that raised says why, and the one that hung shows where.
    failed = logs[f"env_init_idx0_pid{pids[0]}.log"]
    assert "failed RuntimeError: the cartridge fell out" in failed
    assert "backend_games.py" in logs[f"env_init_idx2_pid{pids[2]}.log"]
    for marker in ("startup_wait", "start", "lock_acquired", "mario_make_done", "done"):
        assert f"Z {marker}\n" in failed
    events = [json.loads(line) for line in logs["events.jsonl"].splitlines()]
    kinds = Counter(event["kind"] for event in events)
    assert (kinds["constructing"], kinds["ready"], kinds["lost"]) == (3, 6, 3)
    assert [event["env"] for event in events if event["kind"] == "lost"] == [2, 1, 3]
    marked = [event["text"] for event in events if event["pid"] == pids[0]]
    assert marked[-1] == "failed RuntimeError: the cartridge fell out"
    assert {event["env"] for event in events if event["pid"] == pids[0]} == {1}
    found = digest(folder)
    assert [len(env["lost"]) for env in found["envs"]] == [1, 1, 1]
    assert all(env["seconds"] > 0 for env in found["envs"])
    assert any("backend_games.py" in frame for frame in found["envs"][2]["stack"])
    assert f"{folder}: 3 of 3 environments were made, in " in describe(found)
    assert "lost: worker 1" in describe(found)
    text = "\n".join(said)
    assert "died in step with exit code -9" in text
    assert "hung in step" in text


def test_worker_killed_between_steps() -> None:
    with rig(FRAGILE, 2, sync=False) as game:
        game.reset(1, 2)
        os.kill(game.lanes.pids()[1], signal.SIGKILL)
        game.step(RIGHT, RIGHT)
        assert game.truncated.tolist() == [False, True]
        game.step(RIGHT, RIGHT)
        assert not game.truncated.any()


def test_worker_killed_before_something_else_is_asked() -> None:
    """What is asked between two steps goes on without it; the next step ends its episode."""
    with rig(FRAGILE, 2, sync=False) as game:
        game.reset(1, 2)
        game.step(RIGHT, RIGHT)
        os.kill(game.lanes.pids()[1], signal.SIGKILL)
        assert game.lanes.take_shaping()[4] == 1
        game.lanes.set_reward_weights(_engine.RewardWeights(pixel=1.0))
        game.lanes.force([0, 1], bytes([128]) * 8)
        game.step(RIGHT, RIGHT)
        assert game.truncated.tolist() == [False, True]
        assert game.reward.tolist() == [12.0, 0.0]


def test_workers_do_not_outlive_their_parent() -> None:
    """A parent that is killed takes its workers with it."""
    code = (
        "import sys, time\n"
        "from backend_rigs import rig\n"
        "if __name__ == '__main__':\n"
        "    with rig('backend_games:walk', 2, sync=False) as game:\n"
        "        print(*game.lanes.pids(), flush=True)\n"
        "        time.sleep(600)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    parent = subprocess.Popen(
        [sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert len(pids) == 2
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 120
    while any(map(alive, pids)):
        assert time.monotonic() < deadline, "workers are still there"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_orders_reach_workers_that_come_later() -> None:
    weights = _engine.RewardWeights(pixel=1.0)
    with rig(FRAGILE, 1, sync=False, frame_skip=1) as game:
        game.reset(1)
        game.lanes.set_reward_weights(weights)
        game.lanes.set_script(bytes([128]) * 2)
        game.step(DIE)
        for _ in range(2):
            game.step(0)
            assert game.reward[0] == 3.0
            assert game.info[0, COLUMN["forced"]] == 1
        game.step(0)
        assert game.reward[0] == 0.0


def test_a_lane_that_keeps_failing_is_given_up(tmp_path: Path) -> None:
    settings = replace(QUICK, folder=str(tmp_path))
    refused = pytest.raises(BackendError, match=f"{MAX_FAILURES} workers of env 1 in a row")
    with refused as error, rig("backend_games:broken", sync=False, settings=settings):
        pass
    assert str(tmp_path) in str(error.value)
    logs = [path.read_text() for path in tmp_path.rglob("env_init_idx0_pid*.log")]
    assert len(logs) == MAX_FAILURES
    assert all("failed OSError: no cartridge" in log for log in logs)


@pytest.mark.parametrize(
    ("lost", "said"), [(True, "workers of env 6 in a row"), (False, r"env 6 observes \(1, 2, 3\)")]
)
def test_errors_number_environments_over_all_groups(
    lost: bool, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As events do: a lane of the second group is not the first environment."""

    class Answering:
        began = 0.0

        def __init__(self, _context: Any, work: Assignment) -> None:
            self.index = work.index

        def answer(self, _deadline: float, _command: str) -> tuple[int, ...]:
            if self.index and lost:
                raise WorkerLost("it died")
            return (1, 2, 3) if self.index else (1, 42, 42)

        def close(self) -> None:
            pass

    monkeypatch.setattr(worker_lanes, "WorkerProcess", Answering)
    monkeypatch.setattr(worker_lanes, "first_to_answer", lambda workers, _limit: workers)
    file = RomFile(roms.load_stored("eu").data)
    spec = make_spec(FRAGILE, file, Options(frame_stack=1, size=42), 2, before=4, total=6)
    file.close()
    with pytest.raises(BackendError, match=said):
        WorkerLanes(spec, replace(QUICK, folder=str(tmp_path)), lambda event: None)


def test_construction_has_a_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_lanes, "MAX_FAILURES", 1)
    # A busy machine may need longer to come to the place where it hangs.
    for limit in (3.0, 15.0, 75.0):
        settings = replace(QUICK, reset_timeout=limit, folder=str(tmp_path))
        refused = pytest.raises(BackendError, match="hung in construction")
        with refused, rig("backend_games:stuck", sync=False, settings=settings):
            pass
        logs = [path.read_text() for path in tmp_path.rglob("env_init_idx0_pid*.log")]
        if any("calling_mario_make" in log for log in logs):
            break
    assert any("calling_mario_make" in log and "in stuck" in log for log in logs)


def test_progress_is_said_and_nothing_is_left() -> None:
    said: list[str] = []
    with rig(FRAGILE, 2, sync=False, said=said, settings=replace(QUICK, prewarm=True)) as game:
        assert said[0] == "constructing env 1/2"
        ready = sorted(line.partition(" ready in ")[0] for line in said[2:])
        assert ready == ["env 1/2", "env 2/2"]
        took = [float(line.partition(" ready in ")[2].removesuffix(" s")) for line in said[2:]]
        assert all(0.0 < seconds < 600.0 for seconds in took)
        pids = game.lanes.pids()
    assert not game.lanes.folder.exists()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_what_all_workers_have_to_say_is_said_once(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_warning, "_warned", set())
    monkeypatch.delenv(stage_warning.SUPPRESS, raising=False)
    monkeypatch.delenv(stage_warning.STRICT, raising=False)
    # Spawned workers write where this process does.
    settings = replace(QUICK, start_method="spawn")
    options: dict[str, Any] = {"stages": "1-2", "frame_skip": 1, "settings": settings}
    with rig("backend_games:with_ram", 2, sync=False, **options) as game:
        game.reset(1, 2)
        for _ in range(HINT_AFTER):
            game.step(RIGHT, RIGHT)
    said = capfd.readouterr().err
    assert said.count("[env][warn]") == 1
    assert said.count("[env][hint]") == 1
    monkeypatch.setenv(stage_warning.STRICT, "1")
    with (
        pytest.raises(BackendError, match="can only start where it starts by itself"),
        rig("backend_games:with_ram", 2, sync=False, **options),
    ):
        pass


def test_start_methods() -> None:
    assert start_method("auto") in ("forkserver", "spawn")
    with pytest.raises(BackendError, match="not teleport"):
        start_method("teleport")


class TestLock:
    def test_held_and_given_back(self, tmp_path: Path) -> None:
        with (tmp_path / "log").open("w+") as file:
            log = Diagnostics(file, tmp_path)
            with rom_lock(log) as first:
                assert first
                with rom_lock(log, wait=0.05) as second:
                    assert not second
            with rom_lock(log) as third:
                assert third
        marks = [line.split()[1] for line in (tmp_path / "log").read_text().splitlines()]
        released = "lock_released"
        assert marks == [
            *("lock_acquired", "lock_timeout", released, released, "lock_acquired", released)
        ]

    def test_where_there_is_none(self, tmp_path: Path) -> None:
        for folder in (None, tmp_path / "missing"):
            with rom_lock(Diagnostics(None, folder)) as held:
                assert not held


def test_the_last_marker_is_that_of_the_newest_process(tmp_path: Path) -> None:
    assert last_marker(tmp_path, 0) == ""
    each = [(7, "start done"), (8, "start lock_acquired failed"), (9, "")]
    for age, (pid, markers) in enumerate(each):
        lines = [f"2026-01-01T00:00:0{n}Z {marker}" for n, marker in enumerate(markers.split())]
        file = log_of(str(tmp_path), 1, pid)
        file.write_text("\n".join([*lines, "  File stack", ""]))
        os.utime(file, (100.0 + age, 100.0 + age))
        assert last_marker(tmp_path, 1) == (markers.split() or [""])[-1]
    assert last_marker(tmp_path, 0) == ""
