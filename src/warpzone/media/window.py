"""A window that shows screens and reads the keyboard (needs pygame and a display)."""

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: pygame's key names for each button.
KEYS = {
    "right": "RIGHT",
    "left": "LEFT",
    "up": "UP",
    "down": "DOWN",
    "x": "A",
    "z": "B",
    "return": "START",
    "right shift": "SELECT",
}


class WindowError(OSError):
    """No window can be opened; the message says why."""


class Window:
    """Shows one picture after the other at a given pace."""

    def __init__(
        self, title: str, scale: int = 3, *, masks: Mapping[str, int] | None = None
    ) -> None:
        """masks: the bit of each button, if keys are to be read."""
        self._pygame = _pygame()
        self._title = title
        self._scale = scale
        self._masks = masks if masks is not None else {}
        self._surface: Any = None
        self._clock = self._pygame.time.Clock()
        self.closed = False

    def show(self, image: NDArray[np.uint8], fps: int) -> None:
        """Shows a picture and waits until its time is over."""
        pygame = self._pygame
        height, width = image.shape[:2]
        scale = max(1, min(self._scale, 1024 // max(height, width)))
        if self._surface is None:
            pygame.display.init()
            pygame.display.set_caption(self._title)
            self._surface = pygame.display.set_mode((width * scale, height * scale))
        picture = pygame.surfarray.make_surface(image.swapaxes(0, 1))
        self._surface.blit(pygame.transform.scale(picture, self._surface.get_size()), (0, 0))
        pygame.display.flip()
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                self.closed = True
        self._clock.tick(fps)

    def buttons(self) -> int:
        """The mask of the buttons held down now; Escape closes."""
        pygame = self._pygame
        if self._surface is None:
            return 0
        held = pygame.key.get_pressed()
        if held[pygame.K_ESCAPE]:
            self.closed = True
        mask = 0
        for key, button in KEYS.items():
            if held[pygame.key.key_code(key)]:
                mask |= self._masks[button]
        return mask

    def close(self) -> None:
        """Closes the window."""
        if self._surface is not None:
            self._pygame.display.quit()
            self._surface = None
        self.closed = True


#: Variables of which one says where SDL draws; its dummy driver needs no display.
_PLACES = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")


def is_possible() -> bool:
    """Whether a window can be opened here, as far as that is known without opening one."""
    return _has_place() and ("pygame" in sys.modules or find_spec("pygame") is not None)


def _has_place() -> bool:
    return not sys.platform.startswith("linux") or any(map(os.environ.get, _PLACES))


def _pygame() -> Any:
    if not _has_place():
        raise WindowError(
            "a window needs a display: neither DISPLAY nor WAYLAND_DISPLAY is set "
            "(SDL_VIDEODRIVER=dummy draws without one)"
        )
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        return import_module("pygame")
    except ImportError as error:
        raise WindowError("a window needs pygame: pip install pygame") from error
