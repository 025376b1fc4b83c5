"""The folder of a run for the fuzzer: every file that somebody reads, most of them damaged."""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import os
from pathlib import Path
from typing import Any

from mutate import Mutator

from warpzone.config import TrainConfig
from warpzone.run import names

CONFIG = json.loads(TrainConfig().to_json())
METRIC: dict[str, Any] = {
    "update": 3,
    "global_step": 96,
    "seconds": 1.5,
    "timestamp": 1.7e9,
    "entropy": 1.2,
}
METRIC |= {"env_steps_per_sec": 5e3, "clear_rate": 0.5, "time_learn": 0.4, "time_engine": None}
END: dict[str, Any] = {
    "lane": 1,
    "stage": 0,
    "start_delay": 3,
    "episode_return": 2.5,
    "steps": 40,
    "x": 300,
    "y": 90,
}
END |= {"furthest_x": 320, "reason": "death", "global_step": 96, "area_type": 1, "area_index": 2}
EVAL: dict[str, Any] = {
    **END,
    "stage": "1-1",
    "policy": "argmax",
    "cleared": True,
    "seconds": 2.0,
    "time_left": 300,
}
BEAT: dict[str, Any] = {"timestamp": 1.7e9, "phase": "learn", "update": 3, "global_step": 96}
ANSWER: dict[str, Any] = {
    "id": "0" * 32,
    "who": "me",
    "when": 1.0,
    "what": "lr",
    "value": 1e-4,
    "result": "done",
}
ALERT: dict[str, Any] = {"timestamp": 1.7e9, "kind": "nan", "text": "two steps", "update": 3}
MADE: dict[str, Any] = {"kind": "ready", "text": "env 1/2 ready in 0.5 s", "env": 1, "of": 2}
MADE |= {"seconds": 0.5, "timestamp": 1.7e9, "pid": 7, "global_step": 0}
STATE: dict[str, Any] = {"doing": "paused", "paused": True, "reason": "", "overrides": {"lr": 1e-4}}
ROWS = {names.METRICS: METRIC, names.EPISODES: END, names.EVALS: EVAL}
ROWS |= {names.HEARTBEAT: BEAT, names.ANSWERS: ANSWER, names.ALERTS: ALERT, names.ENV_EVENTS: MADE}
VERSIONS: dict[str, Any] = {"sessions": [{"python": "3.12"}]}
EVALUATION: dict[str, Any] = {"episodes": [EVAL, EVAL]}
ARCHIVE: dict[str, Any] = {"moments": [[0, 1, 2, 300, 90, 4, 2, 1], [31, 1, 0, 40, 80, 0, 0, 0]]}
HEADER: dict[str, Any] = {"shape": [1, 2, 2, 2], "lanes": [{"lane": 0}], "actions": [[1, 2]]}
HEADER |= {"number": 1}


def put(path: str, content: bytes) -> None:
    """A file with this content; many times as quick as `Path.write_bytes`."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(handle, content)
    finally:
        os.close(handle)


def make_run(mutator: Mutator, folder: Path, stem: str, sidecar: Any) -> Path:
    """A run with one checkpoint, of which there is the side-car alone."""
    run = folder / "run"
    place = str(run)
    for below in ("", names.CONTROL, names.LOGS, names.CHECKPOINTS, names.WALL):
        # Folders of the last input may be there, without files.
        with contextlib.suppress(FileExistsError):
            os.mkdir(f"{place}/{below}")
    put(f"{place}/{names.CONFIG}", _half(mutator, CONFIG))
    for name, row in ROWS.items():
        put(f"{place}/{name}", mutator.lines([row]))
    # With a time of its own the same number would be another input every second.
    packed = gzip.compress(mutator.lines([METRIC]), 1, mtime=1)
    put(f"{place}/metrics-0001.jsonl.gz", mutator.content([packed]))
    put(f"{place}/{names.CONTROL}/{names.STATE}", mutator.text(STATE))
    put(f"{place}/{names.CONTROL}/{'0' * 32}.json", mutator.text(ANSWER))
    put(f"{place}/{names.LOGS}/{names.LOG}", mutator.content([b"[train] one\n[eval] two\n"]))
    put(f"{place}/{names.CHECKPOINTS}/{stem}.json", mutator.text(sidecar))
    put(f"{place}/{names.VERSIONS}", _half(mutator, VERSIONS))
    put(f"{place}/{names.EVALUATION}", _half(mutator, EVALUATION))
    put(f"{place}/{names.ARCHIVE}", _half(mutator, ARCHIVE))
    put(f"{place}/{names.WALL}/{names.WALL_PICTURES}", mutator.text(HEADER) + b"\n" + bytes(8))
    # A million lines take as long as dozens of other inputs.
    if mutator.random.random() < 0.002:
        line = mutator.random.choice((b"{", b"{}", b'{"a":', mutator.text(METRIC)[:20]))
        put(f"{place}/metrics-0002.jsonl.gz", _many(line))
    return run


def _half(mutator: Mutator, good: Any) -> bytes:
    """A document that is damaged half of the time: one that is no object keeps many readers from
    the rest of the run."""
    if mutator.random.random() < 0.5:
        return mutator.text(good)
    return json.dumps(good).encode()


@functools.lru_cache(8)
def _many(line: bytes) -> bytes:
    """A million times the same line."""
    return gzip.compress(1_000_000 * (line + b"\n"), 1, mtime=1)
