"""The picture of all stages: which episodes it shows, and which of their frames."""

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

SCRIPT = Path(__file__).parents[3] / "scripts" / "make_mosaic.py"
NAMES: dict[str, Any] = runpy.run_path(str(SCRIPT))


def test_one_episode_of_each_stage_from_the_first_delay_that_clears() -> None:
    clears = {"1-1": "1" * 31, "1-2": "001" + "0" * 28, "8-4": "0" * 31}
    own = {"rom": "eu", "delays": "0..30", "clears": {"argmax": clears}}
    other = {"rom": "world", "delays": "0..30", "clears": {"argmax": {"1-1": "0" * 31}}}
    cases = NAMES["mosaic_cases"]({"measured": [other, own]})
    assert [(case.stage, case.start_delay) for case in cases] == [(0, 0), (1, 2), (31, 0)]
    assert {case.policy for case in cases} == {"argmax"}


def test_the_last_frame_is_always_shown() -> None:
    every = NAMES["EVERY"]

    def shown(count: int) -> list[int]:
        frames = (np.full((30, 60, 3), number, np.uint8) for number in range(count))
        return [picture.getpixel((0, 0))[0] for picture in NAMES["pictures"](frames)]

    assert shown(2 * every + 1) == [0, every, 2 * every]
    assert shown(2 * every + 5) == [0, every, 2 * every, 2 * every + 4]


def test_it_says_what_it_would_draw() -> None:
    words = [sys.executable, str(SCRIPT), "--dry-run", "--out", "x.webp"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert said == "32 episodes of all, to x.webp\n"
