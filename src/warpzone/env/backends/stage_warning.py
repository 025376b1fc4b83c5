"""What to say when a back-end can only start at 1-1 and something else was asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from warpzone.env.backends.interface import BackendError

SUPPRESS = "MARIO_SUPPRESS_FC_STAGE_WARN"
STRICT = "MARIO_FC_STRICT_STAGE"
_warned: set[str] = set()


def only_first_stage(backend: str, stages: Sequence[Sequence[int]]) -> None:
    """Warns once for each back-end; an error with `MARIO_FC_STRICT_STAGE=1`, and nothing with
    `MARIO_SUPPRESS_FC_STAGE_WARN=1`."""
    if all(set(lane) <= {0} for lane in stages):
        return
    sentence = (
        f"{backend} can only start where it starts by itself (its factory has no `stage` "
        "argument), so the stages asked for are not played"
    )
    if _on(STRICT):
        raise BackendError(f"{sentence}; {STRICT} makes this an error")
    if not _on(SUPPRESS) and backend not in _warned:
        _warned.add(backend)
        print(f"[env][warn] {sentence}; {SUPPRESS}=1 silences this", file=sys.stderr, flush=True)


def _on(name: str) -> bool:
    return os.environ.get(name, "").strip().lower() in ("1", "true", "yes", "on")
