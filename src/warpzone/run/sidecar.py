"""The side-car of a checkpoint: a small JSON file that describes the large files beside it. It
is written last, so that a checkpoint exists once its side-car does."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import json
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from warpzone.config import ConfigError, TrainConfig, from_saved
from warpzone.env.stages import parse_stages, stage_name
from warpzone.run.opening import read_file

VERSION = 2
#: Version 1 has no hash of its own.
READ = (1, VERSION)
#: The field with the hash of all others.
OWN_HASH = "sidecar_sha256"
WEIGHTS_SUFFIX = ".safetensors"
STATE_SUFFIX = ".state.pt"
SIDECAR_SUFFIX = ".json"
#: Far larger than any side-car.
MOST_BYTES = 1 << 20
REASONS = ("normal", "interrupt", "exception")
ALGO = re.compile(r"[a-z0-9]{1,40}")
NAME = re.compile(r"[a-z0-9]+_world\d+_stage\d+_(\d{7,12})")
LATEST = re.compile(r"[a-z0-9]+_world\d+_stage\d+_latest")
_HASH = re.compile(r"[0-9a-f]{64}")
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}")

Reason = Literal["normal", "interrupt", "exception"]


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; one sentence that says why."""


@dataclass(frozen=True)
class FileEntry:
    """One of a checkpoint's files; its hash is empty where unknown."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Sidecar:
    """Description of a checkpoint."""

    algo: str
    world: int
    stage: int
    global_step: int
    global_update: int
    reason: Reason
    timestamp: str
    config: dict[str, Any]
    #: Of the weights.
    shapes: dict[str, list[int]]
    weights: FileEntry
    state: FileEntry
    #: Scores and the update of the best evaluation so far.
    best: dict[str, int] = field(default_factory=dict)
    #: Fields that this version does not know are kept.
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        """The name that its files share."""
        return f"{prefix(self.algo, self.world, self.stage)}_{self.global_update:07d}"

    @property
    def latest(self) -> str:
        """The name of the side-car of the latest checkpoint."""
        return f"{prefix(self.algo, self.world, self.stage)}_latest{SIDECAR_SUFFIX}"

    def train_config(self) -> TrainConfig:
        """The configuration of the run that wrote it."""
        try:
            return from_saved(self.config)
        except (ConfigError, TypeError) as error:
            raise CheckpointError(f"its configuration cannot be used: {error}") from error

    def with_reason(self, reason: Reason) -> Sidecar:
        """The same checkpoint, kept for another reason."""
        return dataclasses.replace(self, reason=reason)

    def to_json(self, kind: str = "checkpoint") -> str:
        """The text of the file; `kind` is `checkpoint` or `latest`."""
        files = {name: vars(getattr(self, name)) for name in ("weights", "state")}
        values = {
            "version": VERSION,
            "timestamp": self.timestamp,
            "algo": self.algo,
            "world": self.world,
            "stage": self.stage,
            "save_state": {
                "global_step": self.global_step,
                "global_update": self.global_update,
                "type": kind,
                "reason": self.reason,
            },
            "best": self.best,
            "files": files,
            "shapes": self.shapes,
            "config": self.config,
            **self.more,
        }
        return encode(values)


def encode(values: dict[str, Any]) -> str:
    """The text of a side-car with these fields, with its own hash as the last one."""
    fields = {name: value for name, value in values.items() if name != OWN_HASH}
    return json.dumps({**fields, OWN_HASH: own_hash(fields)}, indent=1) + "\n"


def own_hash(values: dict[str, Any]) -> str:
    """The hash of all fields but itself; their order and the spaces between them do not count."""
    # Encoded twice, so that the hash is the same before writing and after reading.
    return _hash_of_read(json.loads(json.dumps(values)))


def _hash_of_read(values: dict[str, Any]) -> str:
    """The same of fields that were just read, which are what a file can hold."""
    fields = {name: value for name, value in values.items() if name != OWN_HASH}
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def prefix(algo: str, world: int, stage: int) -> str:
    """What all names of a run's checkpoints begin with."""
    return f"{algo}_world{world}_stage{stage}"


def first_stage(config: TrainConfig) -> tuple[int, int]:
    """World and stage that checkpoints are named after; a whole game begins with 1-1."""
    name = stage_name((parse_stages(config.stages) or (0,))[0])
    world, _, stage = name.partition("-")
    return int(world), int(stage)


def now() -> str:
    """The time as side-cars carry it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def read_sidecar(path: Path) -> Sidecar:
    """Reads and checks a side-car; CheckpointError says what is wrong with it."""
    try:
        return decode(read_file(path.parent, path.name, MOST_BYTES).decode())
    except FileNotFoundError as error:
        raise CheckpointError("it has no side-car") from error
    except UnicodeDecodeError as error:
        raise CheckpointError("its side-car is not JSON") from error
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise CheckpointError(f"its side-car is larger than {MOST_BYTES >> 20} MiB") from error
        raise CheckpointError(f"its side-car cannot be read: {error.strerror}") from error


def decode(text: str) -> Sidecar:
    """A side-car from its text."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        # ValueError: also a number with thousands of digits.
        raise CheckpointError("its side-car is not JSON") from error
    return parse(values)


def parse(values: Any) -> Sidecar:
    """A side-car from what its file says. Every field is validated."""
    fields = Fields(values)
    version = fields.number("version")
    if version not in READ:
        raise CheckpointError(f"its side-car is of version {version}, and this reads {VERSION}")
    saved, files = fields.part("save_state"), fields.part("files")
    reason = saved.text("reason")
    if reason not in REASONS:
        raise CheckpointError(f"its side-car gives the reason {reason[:20]!r}")
    algo = fields.text("algo")
    if not ALGO.fullmatch(algo):
        raise CheckpointError("its side-car names an algorithm that is not a word")
    known = ("version", "timestamp", "algo", "world", "stage", "save_state", "best", "files")
    sidecar = Sidecar(
        algo=algo,
        world=fields.number("world"),
        stage=fields.number("stage"),
        global_step=saved.number("global_step"),
        global_update=saved.number("global_update"),
        reason=cast(Reason, reason),
        timestamp=_shown(fields.text("timestamp")),
        config=fields.part("config").values,
        shapes=_shapes(fields.part("shapes").values),
        weights=_entry(files.part("weights"), WEIGHTS_SUFFIX),
        state=_entry(files.part("state"), STATE_SUFFIX),
        best={name: fields.part("best").number(name) for name in fields.part("best").values},
        more={
            name: value
            for name, value in fields.values.items()
            if name not in (*known, "shapes", "config", OWN_HASH)
        },
    )
    if version > 1:
        _check_hash(fields)
    return sidecar


def _check_hash(fields: Fields) -> None:
    """Protects against damage, not against attackers: they can write the hash as well."""
    try:
        right = fields.text(OWN_HASH) == _hash_of_read(fields.values)
    except RecursionError as error:
        raise CheckpointError("its side-car is nested too deeply") from error
    if not right:
        raise CheckpointError("its side-car was changed: its hash does not match")


class Fields:
    """Fields of a JSON object, each with the type it must have."""

    def __init__(self, values: Any) -> None:
        if not isinstance(values, dict):
            raise CheckpointError("its side-car is not an object")
        self.values: dict[str, Any] = values

    def part(self, name: str) -> Fields:
        return Fields(self._get(name, dict))

    def text(self, name: str) -> str:
        return str(self._get(name, str))

    def number(self, name: str) -> int:
        value = self._get(name, int)
        if isinstance(value, bool) or not 0 <= value < 1 << 62:
            raise CheckpointError(f"its side-car has no valid count as {name!r}")
        return int(value)

    def _get(self, name: str, kind: type) -> Any:
        value = self.values.get(name)
        if not isinstance(value, kind):
            raise CheckpointError(f"its side-car has no {name!r} of the right type")
        return value


def _shown(text: str) -> str:
    """Text for display: it may not contain terminal control characters."""
    if not text.isprintable():
        raise CheckpointError("its side-car has a malformed timestamp")
    return text


def _entry(fields: Fields, suffix: str) -> FileEntry:
    name, digest = fields.text("name"), fields.text("sha256")
    # A name, not a path: only files in the checkpoint's own folder are opened.
    if not _PLAIN.fullmatch(name) or not name.endswith(suffix):
        raise CheckpointError(f"its side-car names the file {name[:40]!r}, not a plain name")
    if digest and not _HASH.fullmatch(digest):
        raise CheckpointError("its side-car has a malformed SHA-256")
    return FileEntry(name, fields.number("bytes"), digest)


def _shapes(values: dict[str, Any]) -> dict[str, list[int]]:
    for name, shape in values.items():
        whole = isinstance(shape, list) and all(type(size) is int and size >= 0 for size in shape)
        if not whole:
            raise CheckpointError(f"its side-car has no shape for {name[:40]!r}")
    return values
