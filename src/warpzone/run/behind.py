"""`python -m warpzone.run.behind MODULE …`: a module as a process that stands back behind others
on the machine, and ends with whoever started it and holds the other end of its stdin."""

from __future__ import annotations

import os
import runpy
import sys
import threading

#: A tenth of a core that others want too: a video is ready in minutes, and nobody notices.
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
