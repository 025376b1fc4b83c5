"""A video of the agent every so many steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpzone.env.stages import parse_stages, stage_name
from warpzone.eval.cases import DELAYS
from warpzone.eval.overlay import parse_parts
from warpzone.train.observer import Observer
from warpzone.train.stopping import say
from warpzone.train.studio import FOLDER, Film, Made, Studio

if TYPE_CHECKING:
    from warpzone.train.loop import Run
    from warpzone.train.progress import Progress

#: Steps without new ground that end a video; nobody wants to watch more of it.
STUCK_AFTER = 100
SCALE = 2


class Filmed(Observer):
    """Has one episode of the newest weights written down while training goes on. Stages and start
    delays take turns, so that videos are not all of the same one. A video that comes due while
    another one is being made is left out."""

    def __init__(self, interval: int, overlay: str, studio: Studio | None = None) -> None:
        parse_parts(overlay)
        self._interval = interval
        self._overlay = overlay
        self._studio = studio if studio is not None else Studio()
        self._film: Film | None = None
        self._next = interval
        self._count = 0

    def started(self, run: Run) -> None:
        # A run that goes on has its older videos.
        self._count = run.global_step // self._interval
        self._next = (self._count + 1) * self._interval

    def between(self, run: Run, progress: Progress) -> None:
        if self._film is not None and (made := self._film.look()) is not None:
            progress.say(_sentence(self._film, made))
            self._film = None
        if run.global_step < self._next:
            return
        self._next = (run.global_step // self._interval + 1) * self._interval
        name = f"step_{run.global_step:010d}.mp4"
        making = self._studio.making
        if making is not None:
            progress.say(f"[video] {name} is left out: {making.name} is still being made")
            return
        try:
            path = run.folder.path / FOLDER / name
            self._film = self._studio.start(run, path, self._words(run))
        except OSError as error:
            progress.say(f"[video][warn] no {name}: {error}")

    def ended(self, run: Run, reason: str) -> None:
        if self._film is not None:
            say(_sentence(self._film, self._film.end(run, reason)))
            self._film = None

    def _words(self, run: Run) -> list[str]:
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


def _sentence(film: Film, made: Made) -> str:
    name = film.path.name
    return f"[video] {name}: {made.text}" if made.good else f"[video][warn] no {name}: {made.text}"
