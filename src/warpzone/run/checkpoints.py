"""The checkpoints in one folder: written whole or not at all, found, verified, thinned out."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from warpzone.config import TrainConfig
from warpzone.rom.paths import flush
from warpzone.run.files import require_space, sha256, write_atomically, write_text
from warpzone.run.opening import names_in
from warpzone.run.safe import plain_name, read_header, read_state, read_weights
from warpzone.run.sidecar import (
    LATEST,
    NAME,
    SIDECAR_SUFFIX,
    STATE_SUFFIX,
    WEIGHTS_SUFFIX,
    CheckpointError,
    FileEntry,
    Reason,
    Sidecar,
    decode,
    first_stage,
    now,
    read_sidecar,
)

# PyTorch is loaded when tensors are: whoever looks for a run need not wait for it.
if TYPE_CHECKING:
    from torch import Tensor

#: Name of the copy of the side-car inside the weights, from which a lost one is rebuilt.
INSIDE = "checkpoint"
SUFFIXES = (SIDECAR_SUFFIX, STATE_SUFFIX, WEIGHTS_SUFFIX)
#: Side-cars, headers and what torch adds around tensors.
AROUND = 1 << 20


@dataclass(frozen=True)
class Snapshot:
    """The complete state of a run at one update."""

    config: TrainConfig
    global_step: int
    global_update: int
    reason: Reason
    weights: Mapping[str, Tensor]
    #: Everything else: tensors, numbers and text in lists and dictionaries.
    state: dict[str, Any]
    best: dict[str, int]

    @property
    def bytes(self) -> int:
        """Approximate size on disk, in bytes."""
        return _bytes(dict(self.weights)) + _bytes(self.state) + AROUND


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on disk."""

    folder: Path
    sidecar: Sidecar

    @property
    def path(self) -> Path:
        """Path of its side-car, which identifies the checkpoint."""
        return self.folder / (self.sidecar.stem + SIDECAR_SUFFIX)

    def verify(self) -> None:
        """Raises CheckpointError unless every file matches its size and SHA-256."""
        try:
            self._verify()
        except OSError as error:
            raise CheckpointError(f"it cannot be read: {error.strerror or error}") from error

    def _verify(self) -> None:
        for entry in (self.sidecar.weights, self.sidecar.state):
            path = self.folder / entry.name
            if not path.is_file():
                raise CheckpointError(f"{entry.name} is missing")
            if path.stat().st_size != entry.bytes:
                raise CheckpointError(
                    f"{entry.name} has {path.stat().st_size:,} bytes instead of {entry.bytes:,}"
                )
            if entry.sha256 and sha256(path) != entry.sha256:
                raise CheckpointError(f"{entry.name} was changed: its hash does not match")
        shapes, _ = read_header(self.folder / self.sidecar.weights.name)
        if {plain_name(name): shape for name, shape in shapes.items()} != self.sidecar.shapes:
            raise CheckpointError("its side-car and its weights have different shapes")

    def read_weights(self, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The weights, for a network with tensors like `expected`."""
        return read_weights(self.folder / self.sidecar.weights.name, expected)

    def read_state(self) -> dict[str, Any]:
        """Everything else."""
        return read_state(self.folder / self.sidecar.state.name)


class Checkpoints:
    """Writes and finds the checkpoints of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, snapshot: Snapshot, spare: int | None = None) -> Checkpoint:
        """Writes state, weights, side-car, and the side-car of the latest checkpoint, in this
        order. Each file is complete or absent, whenever the process dies. `spare`: bytes that
        must stay free on the disk, `files.SPARE` by default."""
        if not self.folder.is_dir():
            # Not the folders above it: a run that was taken away meanwhile is not made again.
            self.folder.mkdir(exist_ok=True)
            # A flushed file is lost if the folder's own name is not flushed.
            flush(self.folder.parent)
        require_space(self.folder, snapshot.bytes, spare)
        world, stage = first_stage(snapshot.config)
        weights = {plain_name(name): value for name, value in snapshot.weights.items()}
        sidecar = Sidecar(
            algo=snapshot.config.algo,
            world=world,
            stage=stage,
            global_step=snapshot.global_step,
            global_update=snapshot.global_update,
            reason=snapshot.reason,
            timestamp=now(),
            config=dataclasses.asdict(snapshot.config),
            shapes={name: list(value.shape) for name, value in weights.items()},
            weights=FileEntry("", 0, ""),
            state=FileEntry("", 0, ""),
            best=snapshot.best,
        )
        stem = sidecar.stem
        # A checkpoint of the same update is invalidated before its files are replaced one by one.
        (self.folder / (stem + SIDECAR_SUFFIX)).unlink(missing_ok=True)
        state = self._write_state(stem + STATE_SUFFIX, snapshot.state)
        blank = FileEntry(stem + WEIGHTS_SUFFIX, 0, "")
        sidecar = dataclasses.replace(sidecar, state=state, weights=blank)
        inside = {INSIDE: sidecar.to_json(), "meta": json.dumps(meta(sidecar))}
        from safetensors.torch import save

        content = save({name: _plain(value) for name, value in weights.items()}, metadata=inside)
        entry = self._write_weights(blank.name, content)
        sidecar = dataclasses.replace(sidecar, weights=entry)
        return self.commit(sidecar)

    def commit(self, sidecar: Sidecar) -> Checkpoint:
        """Writes the side-car of existing files, and makes them the latest checkpoint."""
        checkpoint = self.write_sidecar(sidecar)
        write_text(self.folder / sidecar.latest, sidecar.to_json("latest"))
        return checkpoint

    def write_sidecar(self, sidecar: Sidecar) -> Checkpoint:
        """Writes the side-car of existing files, which makes them a checkpoint."""
        checkpoint = Checkpoint(self.folder, sidecar)
        write_text(checkpoint.path, sidecar.to_json())
        return checkpoint

    def stems(self) -> list[str]:
        """Names of all checkpoints, complete or not, newest first."""
        found = set()
        for name in self._names():
            for suffix in SUFFIXES:
                stem = name.removesuffix(suffix)
                if name.endswith(suffix) and NAME.fullmatch(stem):
                    found.add(stem)
        return sorted(found, key=lambda stem: (update_of(stem), stem), reverse=True)

    def open(self, stem: str) -> Checkpoint:
        """A checkpoint by its name. A lost side-car is read from the weights, or from the
        side-car of the latest checkpoint."""
        try:
            return Checkpoint(self.folder, self._named(self.folder / (stem + SIDECAR_SUFFIX), stem))
        except CheckpointError as error:
            reason = error
        for path in self.latest():
            try:
                return Checkpoint(self.folder, self._named(path, stem))
            except CheckpointError:
                continue
        try:
            return Checkpoint(self.folder, self.rebuild(stem))
        except CheckpointError:
            raise reason from None

    def latest(self) -> list[Path]:
        """Side-cars of the latest checkpoint; one, unless several runs share the folder."""
        names = [name for name in self._names() if name.endswith(SIDECAR_SUFFIX)]
        paths = [self.folder / name for name in names]
        return sorted(path for path in paths if LATEST.fullmatch(path.stem))

    def is_latest(self, sidecar: Sidecar) -> bool:
        """Whether it has its side-car, and the latest side-car names it."""
        try:
            named = read_sidecar(self.folder / sidecar.latest)
        except CheckpointError:
            return False
        return named == sidecar and (self.folder / (sidecar.stem + SIDECAR_SUFFIX)).is_file()

    def rebuild(self, stem: str) -> Sidecar:
        """The side-car stored inside the weights."""
        path = self.folder / (stem + WEIGHTS_SUFFIX)
        if not path.is_file():
            raise CheckpointError(f"{path.name} is missing")
        try:
            shapes, notes = read_header(path)
            if INSIDE not in notes:
                raise CheckpointError(f"{path.name} does not name its checkpoint")
            sidecar = decode(notes[INSIDE])
            entry = FileEntry(path.name, path.stat().st_size, sha256(path))
        except OSError as error:
            raise CheckpointError(f"{path.name} cannot be read: {error.strerror}") from error
        if sidecar.stem != stem:
            raise CheckpointError(f"{path.name} says that it is {sidecar.stem}")
        return dataclasses.replace(sidecar, weights=entry, shapes=dict(shapes))

    def prune(
        self, *, last: int, every: int, best: int, newest: int, dry_run: bool = False
    ) -> list[str]:
        """Removes checkpoints but for the `last` newest, those of every `every` updates, the one
        of update `best`, and what a latest side-car names. Checkpoints beyond update `newest`
        are left alone. Returns the names of the removed ones."""
        named = {stem for path in self.latest() if (stem := _stem_named(path))}
        past = [stem for stem in self.stems() if update_of(stem) <= newest]
        gone = []
        for stem in past[last:]:
            update = update_of(stem)
            if stem in named or update == best or (every and update % every == 0):
                continue
            if not dry_run:
                self.remove(stem)
            gone.append(stem)
        return gone

    def remove(self, stem: str) -> None:
        """Removes the side-car first: without it the other files are not a checkpoint."""
        for suffix in SUFFIXES:
            (self.folder / (stem + suffix)).unlink(missing_ok=True)

    def _names(self) -> list[str]:
        """What is in the folder; OSError if it is a run's and a link."""
        return names_in(self.folder) if self.folder.is_dir() else []

    def _named(self, path: Path, stem: str) -> Sidecar:
        sidecar = read_sidecar(path)
        if sidecar.stem != stem or sidecar.weights.name != stem + WEIGHTS_SUFFIX:
            raise CheckpointError(f"{path.name} is the side-car of {sidecar.stem}")
        return sidecar

    def _write_state(self, name: str, state: dict[str, Any]) -> FileEntry:
        import torch

        sink: list[_Sink] = []

        def fill(path: Path) -> None:
            with path.open("wb") as file:
                sink[:] = [_Sink(file)]
                torch.save(state, cast(BinaryIO, sink[0]))
                sink[0].finish()

        write_atomically(self.folder / name, fill)
        return FileEntry(name, sink[0].bytes, sink[0].digest.hexdigest())

    def _write_weights(self, name: str, content: bytes) -> FileEntry:
        write_atomically(self.folder / name, lambda path: _write(path, content))
        return FileEntry(name, len(content), hashlib.sha256(content).hexdigest())


class _Sink:
    """A file that counts and hashes what is written. torch.save's writer does not survive a
    write that fails, so a failure is kept, and raised when the writer is done. It is kept
    without its traceback, which refers to the writer and would form a reference cycle."""

    def __init__(self, file: BinaryIO) -> None:
        self.digest = hashlib.sha256()
        self.bytes = 0
        self._file = file
        self._error: OSError | None = None

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        if self._error is None:
            try:
                self._file.write(data)
            except OSError as error:
                self._error = error.with_traceback(None)
            self.digest.update(data)
            self.bytes += size
        return size

    def flush(self) -> None:
        if self._error is None:
            try:
                self._file.flush()
            except OSError as error:
                self._error = error.with_traceback(None)

    def finish(self) -> None:
        self.flush()
        if self._error is not None:
            raise self._error


def meta(sidecar: Sidecar) -> dict[str, Any]:
    """Metadata that every weights file contains."""
    return {"global_step": sidecar.global_step, "global_update": sidecar.global_update}


def update_of(stem: str) -> int:
    """The update in a checkpoint's name."""
    found = NAME.fullmatch(stem)
    return int(found[1]) if found else -1


def _stem_named(path: Path) -> str | None:
    try:
        return read_sidecar(path).stem
    except CheckpointError:
        return None


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _plain(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().contiguous()


def _bytes(value: Any) -> int:
    from torch import Tensor

    if isinstance(value, Tensor):
        return value.numel() * value.element_size()
    parts: Iterable[Any] = ()
    if isinstance(value, dict):
        parts = value.values()
    elif isinstance(value, list | tuple):
        parts = value
    return sum(map(_bytes, parts))
