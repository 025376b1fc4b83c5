"""Executes the commands in a run's folder (`run/control.py`), between two updates."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from warpzone.algo.schedules import Anneal, Schedule
from warpzone.health.pulse import PAUSED
from warpzone.observers.observer import ObservedRun, Observer
from warpzone.observers.video_maker import Video, VideoMaker
from warpzone.run import control
from warpzone.run.control import Command, CommandError
from warpzone.run.names import VIDEOS

if TYPE_CHECKING:
    from warpzone.observers.progress import Progress

#: Commands that are executed even while the next rollout is being collected.
AT_ONCE = ("resume", "stop", "video", *control.BOUNDS)
#: Seconds between two polls of a paused run's inbox.
POLL = 0.2
#: Seconds after which the state is written again, so that readers see the run is alive.
STATE_EVERY = 5.0


class ControlObserver(Observer):
    """Pauses, saves, stops and changes a run by the commands in its inbox, and records the
    sender."""

    # The name in existing checkpoints.
    saved_as = "Controlled"

    def __init__(self, maker: VideoMaker | None = None) -> None:
        self.paused = False
        #: Values that override a schedule.
        self.overrides: dict[str, float] = {}
        self._schedules: dict[str, Any] = {}
        self._waiting: deque[Command] = deque()
        self._maker = maker if maker is not None else VideoMaker()
        #: The video being made, and its command.
        self._video: tuple[Video, Command] | None = None
        self._written = 0.0

    def state_dict(self) -> dict[str, Any]:
        return {"overrides": dict(self.overrides)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.overrides = {str(k): float(v) for k, v in state.get("overrides", {}).items()}

    def started(self, run: ObservedRun) -> None:
        self._schedules = {"lr": run.learner.learning_rate, "entropy": run.learner.entropy}
        for name, value in list(self.overrides.items()):
            self._override(run, name, value)
        if run.ranks.leads:
            # Old commands were meant for an earlier process.
            control.take(run.folder.path)
        self._say_state(run)

    def between(self, run: ObservedRun, progress: Progress) -> None:
        self._obey(run, progress)
        if self.paused:
            run.pulse.enter(PAUSED)
        while self.paused and not run.ranks.most(bool(run.stopping or run.interrupt)):
            began = time.perf_counter()
            time.sleep(POLL)
            self._obey(run, progress)
            # A pause does not count towards the time budget.
            run.started += time.perf_counter() - began

    def ended(self, run: ObservedRun, reason: str) -> None:
        if self._video is not None:
            self._video[0].end(run, reason)
            self._look_at_video(run, *self._video)
        for command in self._waiting:
            self._answer(run, command, "failed", "the run ended first")
        self._say_state(run, "ended", reason=reason)

    # --- commands -------------------------------------------------------------------------------
    def _obey(self, run: ObservedRun, progress: Progress) -> None:
        # Rank 0 has the inbox, and every rank obeys.
        commands, refused = run.ranks.told(lambda: control.take(run.folder.path))
        for sentence in refused:
            progress.say(f"[control][warn] refused: {sentence}")
        self._waiting.extend(commands)
        # With overlap a rollout may be under way; most commands wait until none is.
        while self._waiting and (run.between or self._waiting[0].what in AT_ONCE):
            self._run_one(run, self._waiting.popleft(), progress)
        run.rest_wanted = bool(self._waiting)
        if self._video is not None:
            self._look_at_video(run, *self._video, progress)
        if commands or time.monotonic() - self._written > STATE_EVERY:
            self._say_state(run)

    def _run_one(self, run: ObservedRun, command: Command, progress: Progress) -> None:
        act: dict[str, Callable[[], str | None]] = {
            "pause": self._pause,
            "resume": self._resume,
            "stop": lambda: self._stop(run, command),
            "save": lambda: _save(run),
            "evaluate": lambda: _evaluate(run, progress),
            "video": lambda: self._start_video(run, command),
            "lr": lambda: self._override(run, "lr", command.value),
            "entropy": lambda: self._override(run, "entropy", command.value),
        }
        progress.say(f"[control] {command} (asked for by {command.who})")
        self._say_state(run, command.what)
        try:
            message = act[command.what]()
        except CommandError as error:
            self._answer(run, command, "refused", str(error))
            progress.say(f"[control][warn] {command}: {error}")
        except OSError as error:
            # A failed save by command must not end the run, on a full disk for example.
            self._answer(run, command, "failed", str(error))
            progress.say(f"[control][warn] {command} failed: {error}")
        else:
            if message is not None:
                self._answer(run, command, "done", message)
                progress.say(f"[control] {command}: {message}")

    def _pause(self) -> str:
        if self.paused:
            raise CommandError("the run is paused already")
        self.paused = True
        return "paused"

    def _resume(self) -> str:
        if not self.paused:
            raise CommandError("the run is not paused")
        self.paused = False
        return "resumed"

    def _stop(self, run: ObservedRun, command: Command) -> str:
        self.paused = False
        run.stop(f"asked for by {command.who}")
        return "stops after this update"

    def _override(self, run: ObservedRun, name: str, value: float | None) -> str:
        """Overrides a schedule, or restores it."""
        learner, original = run.learner, self._schedules[name]
        if value is None:
            self.overrides.pop(name, None)
        else:
            self.overrides[name] = float(value)
        if name == "lr":
            learner.learning_rate = original if value is None else Schedule(float(value))
        else:
            learner.entropy = original if value is None else Anneal(float(value), float(value))
        factor = ", times what --adaptive makes of it" if run.config.adaptive else ""
        text = "follows its schedule" if value is None else f"is {value:g} from now on"
        return text + factor

    # --- videos ---------------------------------------------------------------------------------
    def _start_video(self, run: ObservedRun, command: Command) -> None:
        """Training continues; the answer follows when the video is ready. Rank 0 makes it."""
        if not run.ranks.leads:
            return
        if self._maker.making is not None:
            raise CommandError("a video is being made already")
        path = run.folder.path / VIDEOS / f"update_{run.global_update:07d}.mp4"
        self._video = self._maker.start(run, path, ()), command

    def _look_at_video(
        self, run: ObservedRun, video: Video, command: Command, progress: Progress | None = None
    ) -> None:
        made = video.look()
        if made is None:
            return
        self._video = None
        result = "done" if made.good else "failed"
        message = f"{VIDEOS}/{video.path.name}" if made.good else made.text
        self._answer(run, command, result, message)
        if progress is not None:
            progress.say(f"[control] video {result}: {message}")

    # --- what others read -----------------------------------------------------------------------
    def _answer(self, run: ObservedRun, command: Command, result: str, message: str) -> None:
        where = {"update": run.global_update, "global_step": run.global_step}
        if run.ranks.leads:
            control.answer(run.folder.path, command, result, message, **where)

    def _say_state(self, run: ObservedRun, doing: str = "", **more: Any) -> None:
        self._written = time.monotonic()
        if not run.ranks.leads:
            return
        state = {
            "doing": doing or ("paused" if self.paused else "running"),
            "paused": self.paused,
            "update": run.global_update,
            "global_step": run.global_step,
            "overrides": self.overrides,
            "pid": os.getpid(),
            "timestamp": time.time(),
            **more,
        }
        # Only viewers need it: a failure, on a full disk for example, must not end the run.
        with contextlib.suppress(OSError):
            control.write_state(run.folder.path, state)


def _save(run: ObservedRun) -> str:
    return f"saved {run.save().path.name}"


def _evaluate(run: ObservedRun, progress: Progress) -> str:
    run.evaluate(progress)
    best = sum(outcome.cleared for outcome in run.outcomes if outcome.policy == "argmax")
    return f"argmax clears {best} of {len(run.outcomes) // 2}"
