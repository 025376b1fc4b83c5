"""Draws docs/media/all-stages.webp: the shipped agent `all` at play in every stage at once.

    python scripts/make_mosaic.py [--name all] [--out FILE]

Each tile is an episode that the agent's description counts: the shortest start delay from which
argmax clears, or no delay in a stage that it never clears. A green border is a flag; a gray picture
is an episode that ended without one.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from warpzone import rom
from warpzone.env.stages import parse_stages
from warpzone.eval import video_frames
from warpzone.eval.cases import Case
from warpzone.eval.performance import Performance
from warpzone.eval.weights import find_agent
from warpzone.media.pictures import replacing
from warpzone.rom import native
from warpzone.run.shipped import read_description

OUT = Path(__file__).parents[1] / "docs" / "media" / "all-stages.webp"
COLUMNS = 8
#: Frames between two pictures, milliseconds that each is shown: about five times as fast as played.
EVERY, SHOWN = 32, 100
#: Of the size of the screen.
SHRINK = 3


def mosaic_cases(description: dict[str, object]) -> list[Case]:
    """One episode of each stage, in the order of the game."""
    measured = description["measured"]
    assert isinstance(measured, list)
    own = next(one for one in measured if one["rom"] == "eu" and one["delays"] == "0..30")
    cleared: dict[str, str] = own["clears"]["argmax"]
    return [
        Case(parse_stages(stage)[0], "argmax", max(0, delays.find("1")))
        for stage, delays in cleared.items()
    ]


def pictures(frames: Iterator[NDArray[np.uint8]]) -> Iterator[Image.Image]:
    """Every so many frames, and the last one."""
    left = None
    for index, frame in enumerate(frames):
        left = None if index % EVERY == 0 else frame
        if index % EVERY == 0:
            yield _small(frame)
    if left is not None:
        yield _small(left)


def _small(frame: NDArray[np.uint8]) -> Image.Image:
    picture = Image.fromarray(frame)
    size = picture.width // SHRINK, picture.height // SHRINK
    return picture.resize(size, Image.Resampling.BOX)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--name", default="all", help="a shipped agent (all)")
    parser.add_argument("--out", type=Path, default=OUT, help="the .webp to write")
    parser.add_argument("--dry-run", action="store_true", help="only say which episodes it shows")
    args = parser.parse_args(arguments)
    cases = mosaic_cases(read_description(args.name))
    if args.dry_run:
        print(f"{len(cases)} episodes of {args.name}, to {args.out}")
        return 0
    found = find_agent(args.name)
    image = rom.find(None)
    performance = Performance(found.agent, found.config, image, native.load(image), cases)
    wall = video_frames.wall(performance.frames(), COLUMNS, 1)
    first, *rest = pictures(wall)
    with replacing(args.out) as temporary:
        first.save(
            temporary,
            format="WEBP",
            save_all=True,
            append_images=rest,
            duration=[SHOWN] * len(rest) + [40 * SHOWN],
            loop=0,
            quality=35,
            method=4,
        )
    flags = sum(shot.end == "flag" for shot in performance.last)
    print(f"{args.out}: {flags} flags of {len(cases)}, {args.out.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
