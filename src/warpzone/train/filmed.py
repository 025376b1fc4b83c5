"""A video of the agent every so many steps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from warpzone.env.actions import action_table
from warpzone.env.stages import parse_stages
from warpzone.eval.cases import DELAYS, Case
from warpzone.eval.film import single
from warpzone.eval.overlay import Panel, parse_parts
from warpzone.eval.performance import Performance
from warpzone.train.observer import Observer
from warpzone.video import VideoError, write_video

if TYPE_CHECKING:
    from warpzone.train.loop import Run
    from warpzone.train.progress import Progress

FOLDER = "videos"
#: Steps without new ground that end a video; nobody wants to watch more of it.
STUCK_AFTER = 100
SCALE = 2


class Filmed(Observer):
    """Plays one episode of the newest weights between two updates and writes it down. Stages and
    start delays take turns, so that videos are not all of the same one."""

    def __init__(self, interval: int, overlay: str) -> None:
        self._interval = interval
        self._parts = parse_parts(overlay)
        self._next = interval
        self._count = 0

    def started(self, run: Run) -> None:
        # A run that goes on has its older videos.
        self._count = run.global_step // self._interval
        self._next = (self._count + 1) * self._interval

    def between(self, run: Run, progress: Progress) -> None:
        if run.global_step < self._next:
            return
        self._next = (run.global_step // self._interval + 1) * self._interval
        path = run.folder.path / FOLDER / f"step_{run.global_step:010d}.mp4"
        try:
            progress.say(f"[video] {self._film(run, path)}")
        except VideoError as error:
            progress.say(f"[video][warn] no video: {error}")

    def _film(self, run: Run, path: Path) -> str:
        config = run.config
        stages = parse_stages(config.stages) or (0,)
        turn = self._count
        self._count += 1
        delay = DELAYS[turn // len(stages) % len(DELAYS)]
        case = Case(stages[turn % len(stages)], "argmax", delay)
        performance = Performance(
            run._evaluated_agent(), config, run.rom, run.native, [case], stuck_after=STUCK_AFTER
        )
        panel = Panel(action_table(config.actions).names, self._parts, SCALE)
        path.parent.mkdir(exist_ok=True)
        write_video(path, single(performance.frames(), panel), scale=1)
        (shot,) = performance.last
        end = "the flag" if shot.end == "flag" else f"x={shot.x}"
        return f"{path.name}: {shot.stage} from start delay {delay} to {end}"
