"""Videos that are made while a run goes on, and do not disturb it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import Recorder, same, tiny

from warpzone.observers import video, video_maker
from warpzone.observers.observer import Observer
from warpzone.observers.video import VideoObserver
from warpzone.observers.video_maker import VideoMaker
from warpzone.run import behind
from warpzone.train.loop import Run

OUT = pytest.CaptureFixture[str]
PATIENCE = 900.0
FIRST = "step_0000000032.mp4"


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(video, "STUCK_AFTER", 3)
    monkeypatch.setattr(video_maker, "LONGEST_AT_END", PATIENCE)


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Another maker of videos: Python code with the words of `warpzone video` in `sys.argv`."""

    def replace(code: str) -> None:
        text = f"import os, sys, time\nout = sys.argv[3]\n{code}"
        monkeypatch.setattr(video_maker, "MAKER", (sys.executable, "-c", text))

    return replace


def train(
    folder: Path, *observers: Observer, reason: str = "normal", **changes: Any
) -> tuple[Run, list[str]]:
    """A run but for its evaluation, and what was said meanwhile."""
    run = Run(tiny(runs_dir=str(folder), run_name="run", **changes), observers)
    shown = Recorder()
    try:
        for observer in observers:
            observer.started(run)
        run.learn(shown)  # type: ignore[arg-type]
    finally:
        run.close()
        for observer in observers:
            observer.ended(run, reason)
    return run, shown.said


def videos(run: Run) -> list[str]:
    return sorted(path.name for path in (run.folder.path / "videos").iterdir())


class Wait(Observer):
    """Gives a video the time that a tiny run does not take."""

    def __init__(self, one: VideoMaker) -> None:
        self._maker = one

    def updated(self, run: Any, row: dict[str, Any], collected: Any) -> None:
        until(lambda: self._maker.making is None)


def test_a_video_changes_nothing_and_is_waited_for(
    tmp_path: Path, capsys: OUT, monkeypatch: pytest.MonkeyPatch
) -> None:
    # At a low priority it would take minutes beside other tests.
    monkeypatch.setattr(video_maker, "MAKER", (sys.executable, "-m", *video_maker.MAKER[3:]))
    changes: dict[str, Any] = {"noisy": True, "ema": 0.9}
    plain, _ = train(tmp_path / "plain", **changes)
    run, _ = train(tmp_path / "video_observer", VideoObserver(96, "none"), **changes)
    assert same(plain.agent, run.agent)
    assert videos(run) == ["step_0000000096.mp4"]
    assert (run.folder.path / "videos" / "step_0000000096.mp4").stat().st_size > 1000
    said = capsys.readouterr().err
    assert "[video] step_0000000096.mp4: 1-1, start delay 0: " in said


@pytest.mark.parametrize("overlap", [False, True])
def test_one_at_a_time(tmp_path: Path, maker: Any, capsys: OUT, overlap: bool) -> None:
    go = tmp_path / "go"
    maker(
        f"while not os.path.exists({str(go)!r}): time.sleep(0.02)\n"
        "open(out, 'w').write('video')\nprint('a video')"
    )

    class Go(Observer):
        def updated(self, run: Any, row: dict[str, Any], collected: Any) -> None:
            if run.global_update == 3:
                go.touch()

    plain, _ = train(tmp_path / "plain", overlap_collect=overlap)
    video_observer = VideoObserver(32, "none")
    run, said = train(tmp_path / "video_observer", video_observer, Go(), overlap_collect=overlap)
    assert same(plain.agent, run.agent)
    late = f"is skipped: {FIRST} is still being made"
    assert said[0] == f"[video] step_0000000064.mp4 {late}"
    assert FIRST in videos(run)
    assert f"[video] {FIRST}: a video" in "\n".join((*said, capsys.readouterr().err))


def test_stages_take_turns(tmp_path: Path, maker: Any) -> None:
    maker("open(out, 'w').write(' '.join(sys.argv[4:]))")
    one = VideoMaker()
    video_observer = VideoObserver(32, "buttons", one)
    run, said = train(tmp_path, one, Wait(one), video_observer, stages="1-1,2-2", num_envs=4)
    assert [line.split(":")[0] for line in said] == [
        f"[video] step_00000000{n}.mp4" for n in (32, 64)
    ]
    texts = [path.read_text() for path in sorted((run.folder.path / "videos").iterdir())]
    starts = [("1-1", 0), ("2-2", 0), ("1-1", 1)]
    more = "--overlay buttons --scale 2 --slow 1 --stuck-after 3"
    assert texts == [f"--device cpu --stage {s} --delay {d} {more}" for s, d in starts]


def test_a_video_gets_the_weights_of_its_moment(tmp_path: Path, maker: Any) -> None:
    """Also when the run has gone on before the file is read."""
    from safetensors.torch import load_file

    copy = tmp_path / "weights.safetensors"
    maker(f"import shutil; shutil.copy(sys.argv[1], {str(copy)!r}); open(out, 'w')")
    early, _ = train(tmp_path / "early", max_steps=32)
    train(tmp_path / "late", VideoObserver(32, "none"), max_steps=32)
    copied = load_file(copy)
    assert all((value == copied[name]).all() for name, value in early.agent.state_dict().items())


def test_an_interrupted_run_does_without(tmp_path: Path, maker: Any, capsys: OUT) -> None:
    pid = tmp_path / "pid"
    maker(f"open({str(pid)!r} + 'x', 'w').write(str(os.getpid()))\n"
          f"os.rename({str(pid)!r} + 'x', {str(pid)!r})\nopen(out, 'w').write('half')\n"
          "time.sleep(100000)")  # fmt: skip

    class Begun(Observer):
        def updated(self, run: Any, row: dict[str, Any], collected: Any) -> None:
            if run.global_update == 3:
                until(pid.exists)

    run, _ = train(tmp_path, VideoObserver(32, "none"), Begun(), reason="interrupt")
    assert videos(run) == []
    assert f"[video][warn] no {FIRST}: the run ended first" in capsys.readouterr().err
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_signal_ends_the_wait(tmp_path: Path, maker: Any) -> None:
    maker("time.sleep(100000)")
    one = VideoMaker()
    run, _ = train(tmp_path)
    made = one.start(run, run.folder.path / "videos" / "a.mp4", ())
    assert one.making == made.path
    run.interrupt.signum = signal.SIGTERM
    assert not made.end(run, "normal").good
    assert one.making is None
    assert videos(run) == []


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("print('noise', file=sys.stderr); sys.exit('the disk is full')", "the disk is full"),
        ("sys.exit(3)", "its process ended with 3"),
        ("os.kill(os.getpid(), 9)", "its process was ended by SIGKILL"),
        ("pass", "No such file"),
    ],
)
def test_a_failed_video_is_a_warning(tmp_path: Path, maker: Any, code: str, why: str) -> None:
    maker(code)
    one = VideoMaker()
    run, said = train(tmp_path, one, Wait(one), VideoObserver(32, "none", one), max_steps=64)
    assert run.global_update == 2
    assert said[0].startswith(f"[video][warn] no {FIRST}: ")
    assert why in said[0]
    assert videos(run) == []


def test_a_video_that_cannot_be_started(tmp_path: Path) -> None:
    class Blocked(Observer):
        def started(self, run: Any) -> None:
            (run.folder.path / "videos").write_text("in the way")

    _, said = train(tmp_path, Blocked(), VideoObserver(64, "none"))
    assert len(said) == 1
    assert said[0].startswith("[video][warn] no step_0000000064.mp4: ")


def test_too_long_is_a_failure(tmp_path: Path, maker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    maker("time.sleep(100000)")
    monkeypatch.setattr(video_maker, "LONGEST", 0.0)
    one = VideoMaker()
    run, said = train(tmp_path, one, Wait(one), VideoObserver(32, "none", one), max_steps=64)
    assert said == [f"[video][warn] no {FIRST}: it was not ready after 0 s"]
    assert videos(run) == []


def test_what_a_killed_run_left_is_taken_away(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()

    class Before(Observer):
        def started(self, run: Any) -> None:
            for process in (ended.pid, os.getpid()):
                place = run.folder.path / "videos" / f"{video_maker.PLACE}{process}-abc"
                place.mkdir(parents=True)
                (place / "video.mp4").write_text("half")

    run, _ = train(tmp_path, Before(), VideoMaker())
    assert videos(run) == [f"{video_maker.PLACE}{os.getpid()}-abc"]


def test_a_process_behind_ends_with_its_parent(tmp_path: Path) -> None:
    """Even if the parent is killed; and it is as far back as there is."""
    (tmp_path / "sleeper.py").write_text(
        "import os, sys, time\nprint(os.getpid(), os.nice(0), *sys.argv[1:], flush=True)\n"
        "time.sleep(100000)\n"
    )
    words = [sys.executable, "-m", behind.__name__, "sleeper", "one", "--two"]
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys, time\n"
            f"subprocess.Popen({words!r}, stdin=subprocess.PIPE)\ntime.sleep(100000)",
        ],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), *sys.path))},
    )
    assert parent.stdout is not None
    with parent, parent.stdout:
        _, nice, *rest = parent.stdout.readline().decode().split()
        parent.kill()
        # The tests themselves may stand back already; 19 is as far as it goes.
        assert (int(nice), rest) == (min(19, os.nice(0) + behind.NICE), ["one", "--two"])
        # It inherited the pipe: its end is the end of the pipe.
        assert parent.stdout.read() == b""
