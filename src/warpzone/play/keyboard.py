"""The keyboard of a terminal as a controller.

A terminal reports presses, not releases: a direction stays held until another key changes it, a
face button for a few frames after each press (key repeat keeps it down).
"""

import os
import select
import sys
from types import TracebackType

from warpzone.env.actions import BUTTONS

#: Frames a press lasts; key repeat comes about every two frames once it has begun.
HOLD_FRAMES = 12

_ARROWS = {"\x1b[A": "UP", "\x1b[B": "DOWN", "\x1b[C": "RIGHT", "\x1b[D": "LEFT"}
_LETTERS = {
    "w": "UP",
    "s": "DOWN",
    "d": "RIGHT",
    "a": "LEFT",
    "x": "A",
    "k": "A",
    "z": "B",
    "j": "B",
    "\r": "START",
    "\n": "START",
    "\t": "SELECT",
}
_DIRECTIONS = {"UP", "DOWN", "LEFT", "RIGHT"}

HELP = "arrows or WASD move, space stops, X or K jumps, Z or J runs on and off, Enter, Q ends"


class KeyState:
    """Turns key presses into the button mask of each frame."""

    def __init__(self) -> None:
        self.quit = False
        self._direction = ""
        self._running = False
        self._pressed: dict[str, int] = {}

    def press(self, text: str) -> None:
        """Reads bytes from the terminal."""
        while text:
            length = 3 if text[:3] in _ARROWS else 1
            self._key(text[:length])
            text = text[length:]

    def frame(self) -> int:
        """The mask for one frame."""
        mask = BUTTONS[self._direction] if self._direction else 0
        mask |= BUTTONS["B"] if self._running else 0
        for name in list(self._pressed):
            mask |= BUTTONS[name]
            self._pressed[name] -= 1
            if self._pressed[name] == 0:
                del self._pressed[name]
        return mask

    def _key(self, key: str) -> None:
        name = _ARROWS.get(key) or _LETTERS.get(key.lower())
        if key.lower() == "q" or key in ("\x03", "\x1b"):
            self.quit = True
        elif key == " ":
            self._direction = ""
        elif name in _DIRECTIONS:
            self._direction = str(name)
        elif name == "B":
            self._running = not self._running
        elif name is not None:
            self._pressed[name] = HOLD_FRAMES


class TerminalKeys:
    """Reads keys without waiting for them; restores the terminal on the way out."""

    def __init__(self) -> None:
        if not sys.stdin.isatty():
            raise ValueError("--keyboard needs a terminal (or --window)")
        self.state = KeyState()

    def __enter__(self) -> "TerminalKeys":
        import termios
        import tty

        self._saved = termios.tcgetattr(sys.stdin)
        tty.setcbreak(sys.stdin)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        import termios

        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._saved)

    def buttons(self) -> int:
        """The mask for the next frame."""
        while select.select([sys.stdin], [], [], 0)[0]:
            text = os.read(sys.stdin.fileno(), 64).decode(errors="ignore")
            if not text:
                self.state.quit = True
                break
            self.state.press(text)
        return self.state.frame()

    @property
    def closed(self) -> bool:
        """Whether the player wants to stop."""
        return self.state.quit
