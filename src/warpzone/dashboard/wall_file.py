"""The newest pictures of a run's lanes, ready to be sent."""

from __future__ import annotations

import contextlib
import os
import zlib
from math import prod
from pathlib import Path

from warpzone.dashboard.messages import packed
from warpzone.run.files import open_plain, own_folder
from warpzone.run.names import WALL, WALL_PICTURES, WALL_SCREENS, WALL_WANTED
from warpzone.run.opening import MOST_JSON, parse_json, read_file

MOST_BYTES = 64 << 20


class WallFile:
    """`wall/latest.bin` of one run."""

    def __init__(self, run: Path) -> None:
        self.run = run
        #: Goes up with every new file.
        self.version = 0
        self.message = b""
        self._seen = (0, 0.0)

    def want(self, *, screens: bool = False) -> None:
        """Touches the request files, so that the run writes pictures; `screens`: as the game shows
        them."""
        # A run whose folder is gone or not writable has no wall.
        with contextlib.suppress(OSError):
            own_folder(self.run / WALL)
            for name in (WALL_WANTED, *([WALL_SCREENS] if screens else [])):
                handle = open_plain(self.run / WALL / name, os.O_WRONLY)
                try:
                    os.utime(handle)
                finally:
                    os.close(handle)

    def read(self) -> None:
        """Reads a new file if there is one."""
        name = Path(WALL) / WALL_PICTURES
        try:
            seen = (self.run / name).stat()
            if (seen.st_ino, seen.st_mtime) == self._seen or seen.st_size > MOST_BYTES:
                return
            data = read_file(self.run, name, MOST_BYTES)
            text, _, pixels = data.partition(b"\n")
            header = parse_json(text[:MOST_JSON])
            shape = header["shape"]
            right = len(shape) == 4 and all(isinstance(side, int) and side > 0 for side in shape)
            if not right or prod(shape) * (3 if header.get("colors") == 3 else 1) != len(pixels):
                return
        except (OSError, ValueError, KeyError, TypeError):
            return
        self._seen = seen.st_ino, seen.st_mtime
        self.version += 1
        # Level 1: pictures of the game shrink to a tenth even so, and this machine also trains.
        self.message = packed({**header, "type": "wall"}, zlib.compress(pixels, 1))
