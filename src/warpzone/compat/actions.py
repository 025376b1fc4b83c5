"""The action lists of gym-super-mario-bros, for `JoypadSpace`."""

from warpzone.env.actions import ACTION_SETS


def _lists(name: str) -> list[list[str]]:
    """Buttons as that package writes them: directions in small letters."""
    return [
        [button if button in ("A", "B", "NOOP") else button.lower() for button in entry.split("+")]
        for entry in ACTION_SETS[name]
    ]


RIGHT_ONLY = _lists("right")
SIMPLE_MOVEMENT = _lists("simple")
COMPLEX_MOVEMENT = _lists("complex")
