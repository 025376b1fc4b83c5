"""Reads, saves and restores single lanes."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from warpzone.env.stages import parse_stages

if TYPE_CHECKING:
    from warpzone import _engine
    from warpzone.env.infos import InfoBuilder
    from warpzone.env.layout import Layout
    from warpzone.media.window import Window

Bytes = NDArray[np.uint8]


class LaneAccess:
    """The methods of `MarioVectorEnv` for single lanes."""

    num_envs: int
    metadata: dict[str, Any]
    _infos: "InfoBuilder"
    _layout: "Layout"
    _window: "Window | None" = None

    def _live(self) -> "_engine.Vector":
        raise AssertionError("given by the environment")

    def _ready(self) -> "_engine.Vector":
        raise AssertionError("given by the environment")

    def _keep(self, key: Hashable, method: str, *arguments: Any, **options: Any) -> None:
        raise AssertionError("given by the environment")

    def ram(self, lane: int) -> Bytes:
        """A copy of the lane's 2 KiB of RAM."""
        copy: Bytes = self._ready().ram([self._lane(lane)])[0]
        return copy

    def rams(self, lanes: Sequence[int] | None = None) -> Bytes:
        """Copies of the RAM of several lanes, all when None: `[lanes, 2048]`."""
        chosen = range(self.num_envs) if lanes is None else lanes
        return self._ready().ram([self._lane(lane) for lane in chosen])

    def ram_view(self, lane: int) -> Bytes:
        """The lane's RAM itself, read-only: it changes with every step."""
        return self._ready().ram_view(self._lane(lane))

    def screen(self, lane: int) -> Bytes:
        """The lane's last frame at full resolution: 240 x 256 x 3, RGB."""
        return self._ready().screen(self._lane(lane))

    def observation(self, lane: int) -> Bytes:
        """The lane's current observation, for instance after `load` or `clone`."""
        engine = self._ready()
        obs = np.empty(engine.obs_shape, np.uint8)
        engine.observe(self._lane(lane), obs)
        shown: Bytes = self._layout(obs[np.newaxis])[0]
        return shown

    def info(self, lane: int) -> dict[str, Any]:
        """The lane's current info."""
        return self._infos.single(self._ready().info(self._lane(lane)))

    def save(self, lane: int) -> bytes:
        """The lane as bytes: machine, observation history, random stream, episode."""
        return self._ready().save(self._lane(lane))

    def load(self, lane: int, state: bytes) -> None:
        """Puts a saved lane back, into any lane of an environment with the same options."""
        if not isinstance(state, bytes):
            raise TypeError(f"a saved lane is bytes, not {type(state).__name__}")
        self._ready().load(self._lane(lane), state)

    def clone(self, source: int, target: int) -> None:
        """Makes `target` a twin of `source`."""
        self._ready().clone(self._lane(source), self._lane(target))

    def set_stages(self, lane: int, stages: str | Sequence[str]) -> None:
        """What the lane draws from at its next reset."""
        self._live().set_stages(self._lane(lane), parse_stages(stages))
        self._keep(("stages", int(lane)), "set_stages", int(lane), stages)

    def _lane(self, lane: int) -> int:
        if not isinstance(lane, int | np.integer) or isinstance(lane, bool):
            raise TypeError(f"a lane is a whole number, not {lane!r}")
        if not 0 <= lane < self.num_envs:
            raise IndexError(f"lane {lane} is outside 0..{self.num_envs - 1}")
        return int(lane)

    def _show(self, screens: Sequence[Bytes]) -> None:
        from warpzone.media.pictures import mosaic
        from warpzone.media.window import Window

        if self._window is None:
            self._window = Window("warpzone")
        self._window.show(mosaic(screens), fps=self.metadata["render_fps"])

    def _close_window(self) -> None:
        if self._window is not None:
            self._window.close()
            self._window = None
