"""A video of the agent every so many steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpzone.env.stages import parse_stages, stage_name
from warpzone.eval.cases import DELAYS
from warpzone.eval.overlay import parse_parts
from warpzone.observers.observer import ObservedRun, Observer
from warpzone.observers.video_maker import Made, Video, VideoMaker
from warpzone.run.journal import say
from warpzone.run.names import VIDEOS

if TYPE_CHECKING:
    from warpzone.observers.progress import Progress

#: Steps without new ground that end a video.
STUCK_AFTER = 100
SCALE = 2


class VideoObserver(Observer):
    """Records one episode of the newest weights while training continues. Stages and start
    delays alternate. A video that is due while another one is being made is skipped."""

    def __init__(self, interval: int, overlay: str, maker: VideoMaker | None = None) -> None:
        parse_parts(overlay)
        self._interval = interval
        self._overlay = overlay
        self._maker = maker if maker is not None else VideoMaker()
        self._video: Video | None = None
        self._next = interval
        self._count = 0

    def started(self, run: ObservedRun) -> None:
        # A resumed run has older videos.
        self._count = run.global_step // self._interval
        self._next = (self._count + 1) * self._interval

    def between(self, run: ObservedRun, progress: Progress) -> None:
        if self._video is not None and (made := self._video.look()) is not None:
            progress.say(_sentence(self._video, made))
            self._video = None
        if run.global_step < self._next:
            return
        self._next = (run.global_step // self._interval + 1) * self._interval
        name = f"step_{run.global_step:010d}.mp4"
        making = self._maker.making
        if making is not None:
            progress.say(f"[video] {name} is skipped: {making.name} is still being made")
            return
        try:
            path = run.folder.path / VIDEOS / name
            self._video = self._maker.start(run, path, self._words(run))
        except OSError as error:
            progress.say(f"[video][warn] no {name}: {error}")

    def ended(self, run: ObservedRun, reason: str) -> None:
        if self._video is not None:
            say(_sentence(self._video, self._video.end(run, reason)))
            self._video = None

    def _words(self, run: ObservedRun) -> list[str]:
        """The flags of the next video."""
        stages = parse_stages(run.config.stages) or (0,)
        turn = self._count
        self._count += 1
        flags = {
            "stage": stage_name(stages[turn % len(stages)]),
            "delay": DELAYS[turn // len(stages) % len(DELAYS)],
            "overlay": self._overlay,
            "scale": SCALE,
            "slow": 1,
            "stuck-after": STUCK_AFTER,
        }
        return [str(word) for name, value in flags.items() for word in (f"--{name}", value)]


def _sentence(video: Video, made: Made) -> str:
    name = video.path.name
    return f"[video] {name}: {made.text}" if made.good else f"[video][warn] no {name}: {made.text}"
