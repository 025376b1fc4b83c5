"""Makes videos during training: each in its own low-priority process, from a file with the
weights of that update."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import save

from warpzone.observers.observer import ObservedRun, Observer
from warpzone.run.names import CONFIG, VIDEOS, WEIGHTS

#: The command that makes a video, without the arguments of `warpzone video`.
MAKER = (sys.executable, "-m", "warpzone.run.behind", "warpzone.cli.main", "video")
#: Name of a temporary folder beside the finished videos; the process id follows.
PLACE = ".film-"
#: Time-out of a video in seconds: long, because it only gets the time that training leaves; then
#: the time-out at the end of a run.
LONGEST = 3600.0
LONGEST_AT_END = 300.0
#: Seconds between two polls while waiting for a video.
LOOK_EVERY = 0.1


@dataclass(frozen=True)
class Made:
    """Result of a video: what it shows, or why it failed."""

    good: bool
    text: str


class Video:
    """A video in progress."""

    def __init__(self, run: ObservedRun, path: Path, words: Sequence[str]) -> None:
        """Writes the weights and starts the process; `words` are flags of `warpzone video`."""
        self.path = path
        self.made: Made | None = None
        path.parent.mkdir(exist_ok=True)
        name = f"{PLACE}{os.getpid()}-"
        self._place = Path(tempfile.mkdtemp(prefix=name, dir=path.parent))
        with ExitStack() as undo:
            undo.callback(shutil.rmtree, self._place, ignore_errors=True)
            self._process = self._start(run, words)
            undo.pop_all()
        self._began = time.monotonic()

    def _start(self, run: ObservedRun, words: Sequence[str]) -> subprocess.Popen[bytes]:
        agent = run.evaluated_agent()
        weights = {name: value.detach().cpu() for name, value in agent.state_dict().items()}
        content = save({name: value.contiguous() for name, value in weights.items()})
        (self._place / WEIGHTS).write_bytes(content)
        (self._place / CONFIG).write_text(run.config.to_json())
        flags = (str(self._place / WEIGHTS), "--out", str(self._file), "--device", "cpu")
        with (self._place / "out").open("wb") as out, (self._place / "err").open("wb") as err:
            return subprocess.Popen(  # noqa: S603 (our own interpreter and modules)
                [*MAKER, *flags, *words],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
                # Ctrl-C goes to the run, which then ends its video.
                process_group=0,
            )

    @property
    def _file(self) -> Path:
        return self._place / f"video{self.path.suffix}"

    def look(self) -> Made | None:
        """The result; None while it is being made."""
        if self.made is None:
            code = self._process.poll()
            if code is not None:
                self._finish(self._take(code))
            elif time.monotonic() - self._began > LONGEST:
                self.cancel(f"it was not ready after {LONGEST:.0f} s")
        return self.made

    def cancel(self, why: str) -> None:
        """Kills the process and removes its files."""
        if self.made is None:
            self._process.kill()
            self._process.wait()
            self._finish(Made(False, why))

    def end(self, run: ObservedRun, reason: str) -> Made:
        """At the end of a run: waits for the video after a normal end, and cancels it otherwise."""
        if reason != "normal":
            self.cancel("the run ended first")
        began = time.monotonic()
        try:
            while (made := self.look()) is None:
                if run.interrupt:
                    self.cancel("the run was interrupted")
                elif time.monotonic() - began > LONGEST_AT_END:
                    self.cancel(f"it was not ready {LONGEST_AT_END:.0f} s after the run")
                else:
                    run.pulse.beat()
                    time.sleep(LOOK_EVERY)
        finally:
            self.cancel("the run was interrupted")
        # Not counted as part of the run.
        run.started += time.monotonic() - began
        return made

    def _take(self, code: int) -> Made:
        if code == 0:
            try:
                self._file.replace(self.path)
            except OSError as error:
                return Made(False, str(error))
            return Made(True, _line(self._place / "out", 0))
        if code < 0:
            return Made(False, f"its process was ended by {signal.Signals(-code).name}")
        return Made(False, _line(self._place / "err", -1) or f"its process ended with {code}")

    def _finish(self, made: Made) -> None:
        self.made = made
        if self._process.stdin is not None:
            self._process.stdin.close()
        shutil.rmtree(self._place, ignore_errors=True)


class VideoMaker(Observer):
    """Makes one video at a time."""

    def __init__(self) -> None:
        self._video: Video | None = None

    @property
    def making(self) -> Path | None:
        """The video in progress."""
        return self._video.path if self._video is not None and self._video.look() is None else None

    def start(self, run: ObservedRun, path: Path, words: Sequence[str]) -> Video:
        """Starts a video; none may be in progress. Raises OSError if the process cannot be
        started."""
        self._video = Video(run, path, words)
        return self._video

    def started(self, run: ObservedRun) -> None:
        """Removes what a killed run left behind."""
        for place in (run.folder.path / VIDEOS).glob(f"{PLACE}*-*"):
            if not _alive(place.name.removeprefix(PLACE).partition("-")[0]):
                shutil.rmtree(place, ignore_errors=True)

    def ended(self, run: ObservedRun, reason: str) -> None:
        if self._video is not None:
            self._video.end(run, reason)


def _line(path: Path, index: int) -> str:
    try:
        lines = path.read_text(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[index] if lines else ""


def _alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True
