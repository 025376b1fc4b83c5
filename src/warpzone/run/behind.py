"""`python -m warpzone.run.behind MODULE …`: runs a module at low priority, and ends it when the
parent process, which holds the other end of its stdin, ends."""

from __future__ import annotations

import os
import runpy
import sys
import threading

#: Lowest useful priority: about a tenth of a contended core; a video is ready in minutes.
NICE = 10


def _end_with_parent() -> None:
    # Not sys.stdin: its lock would be held when the interpreter ends.
    while os.read(0, 4096):
        pass
    os._exit(1)


if __name__ == "__main__":
    os.nice(NICE)
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
