"""The folder of a run: the only interface between training and everything that looks at it."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpzone.config import ConfigError, TrainConfig, from_saved
from warpzone.config.run import name_problem
from warpzone.rom.paths import flush
from warpzone.run.files import remove_leftovers, write_atomically, write_text
from warpzone.run.jsonl import JsonLines
from warpzone.run.lock import RunLock
from warpzone.run.names import CHECKPOINTS, CONFIG, EPISODES, EVALS, METRICS, PARQUET, WANDB
from warpzone.run.opening import read_object
from warpzone.run.reader import RunReader
from warpzone.run.rotation import drop_after

if TYPE_CHECKING:
    from torch import Tensor

    from warpzone.model.agent import Agent


class FolderGoneError(OSError):
    """The folder was taken away from a run that is being trained."""

    def __init__(self) -> None:
        super().__init__("it was removed or moved while the run was training")


class RunFolder:
    """Creates a run's folder and writes its files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: RunLock | None = None
        self.lines = JsonLines(path)
        #: What was there before the run was; None for a run that goes on.
        self.before: frozenset[str] | None = None

    @classmethod
    def create(cls, config: TrainConfig) -> RunFolder:
        """Creates a folder; it is a run once it has its configuration (`write_config`). An
        existing run of that name is never overwritten."""
        if problem := name_problem(config.run_name):
            raise ConfigError(problem)
        name = config.run_name or time.strftime("%Y%m%d-%H%M%S")
        path = Path(config.runs_dir) / name
        if (path / CONFIG).exists():
            raise ConfigError(
                f"the run {path} exists already; resume it (--resume auto) or choose another "
                "--run-name"
            )
        path.mkdir(parents=True, exist_ok=True)
        flush(path.parent)
        refuse_planted(path)
        folder = cls(path)
        folder.before = frozenset(os.listdir(path))
        folder.lock()
        return folder

    @classmethod
    def reopen(cls, path: Path) -> RunFolder:
        """The folder of a resumed run; `rewind` must follow."""
        refuse_planted(path)
        folder = cls(path)
        folder.lock()
        return folder

    def rewind(self, config: TrainConfig, global_step: int) -> None:
        """Removes everything written after the step of the checkpoint, and incomplete lines and
        files."""
        for name in (METRICS, EPISODES, EVALS):
            drop_after(self.lines, name, global_step)
        for place in (self.path, self.checkpoints, (self.path / PARQUET).parent):
            remove_leftovers(place)
        self.write_config(config)

    @property
    def checkpoints(self) -> Path:
        """Where checkpoints are."""
        return self.path / CHECKPOINTS

    def lock(self) -> None:
        """Keeps other processes from training here."""
        self._lock = RunLock(self.path)

    def close(self) -> None:
        """Releases the folder for other processes."""
        if self._lock is not None:
            self._lock.close()

    def discard(self) -> None:
        """Takes a run away that has only just begun: it is as if it had never been asked for. A run
        that goes on is left alone, and so is what somebody had put into the folder before."""
        if self.before is None:
            return
        (self.path / CONFIG).unlink(missing_ok=True)
        for name in set(os.listdir(self.path)) - self.before:
            path = self.path / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        if not self.before:
            self.path.rmdir()

    def write_config(self, config: TrainConfig) -> None:
        """The configuration; how it was resumed is not part of it."""
        kept = config.replace(resume="never", resume_relax_match=False, run_name=self.path.name)
        write_text(self.path / CONFIG, kept.to_json())

    def flush(self) -> None:
        """Waits until the rows written so far are on the disk, and the names of their files."""
        for name in (METRICS, EPISODES, EVALS):
            if (self.path / name).is_file():
                flush(self.path / name)
        flush(self.path)

    def require(self) -> None:
        """FolderGoneError if the folder is not there any more. Nothing is made in its place: what
        would be there is no run, and whoever removed it meant to."""
        if self._lock is not None and not self._lock.is_in(self.path):
            raise FolderGoneError

    def append(self, name: str, rows: list[dict[str, Any]]) -> None:
        """Adds lines to a JSONL file, each written whole, from any thread."""
        try:
            self.lines.append(name, rows)
        except FileNotFoundError as error:
            raise FolderGoneError from error

    def save_weights(self, name: str, agent: Agent, meta: dict[str, Any]) -> Path:
        """Writes the agent's weights as safetensors, with `meta` in the file's header."""
        path = self.path / name
        tensors: dict[str, Tensor] = {
            key: value.detach().cpu().contiguous() for key, value in agent.state_dict().items()
        }
        text = {"meta": json.dumps(meta)}
        from safetensors.torch import save

        content = save(tensors, metadata=text)
        write_atomically(path, lambda temporary: _write(temporary, content))
        return path


def refuse_planted(run: Path) -> None:
    """Refuses to train in a folder with links in it or anywhere below, or with pipes, sockets or
    devices, which a write would wait for: it may come from an archive of somebody's, and training
    writes to all of it. The inside of W&B's folder, which has links of its own, is left to W&B."""
    waiting = [str(run)]
    while waiting:
        folder = waiting.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink():
                    raise ConfigError(
                        f"{entry.path} is a link, and a run is not written through links; put what "
                        "it leads to in its place"
                    )
                if entry.is_dir(follow_symlinks=False):
                    if folder != str(run) or entry.name != WANDB:
                        waiting.append(entry.path)
                elif not entry.is_file(follow_symlinks=False):
                    raise ConfigError(
                        f"{entry.path} is neither a plain file nor a folder, as all of a run is; "
                        "remove it"
                    )


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def load_config(path: Path) -> TrainConfig:
    """The configuration a run was started with."""
    RunReader(path).require()
    try:
        return from_saved(read_object(path, CONFIG))
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(f"{path / CONFIG} cannot be used: {error}") from error
