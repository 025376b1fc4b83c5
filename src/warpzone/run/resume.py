"""Chooses the checkpoint to resume from, and reports why others were skipped."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from warpzone.config import ConfigError, TrainConfig
from warpzone.env.script import unread
from warpzone.run.checkpoints import SUFFIXES, Checkpoint, Checkpoints
from warpzone.run.folder import RunFolder, load_config
from warpzone.run.matching import compare
from warpzone.run.names import CHECKPOINTS, CONFIG
from warpzone.run.reader import Say, folders, latest_run, named_run
from warpzone.run.sidecar import NAME, SIDECAR_SUFFIX, CheckpointError, read_sidecar


def _nothing(_text: str) -> None:
    """Skipped checkpoints are reported once, when the choice matters."""


@dataclass(frozen=True)
class Start:
    """Where a run starts: without a checkpoint from the beginning, without a folder in a new
    one."""

    checkpoint: Checkpoint | None = None
    #: The folder of the run to resume.
    folder: Path | None = None

    def open_folder(self, config: TrainConfig) -> RunFolder:
        """The run's folder, locked for this process."""
        return RunFolder.create(config) if self.folder is None else RunFolder.reopen(self.folder)


def find_start(config: TrainConfig, say: Say, without: Collection[Path] = ()) -> Start:
    """Looks where `config.resume` says, and reports what was skipped and chosen. Side-cars in
    `without` were tried before. ConfigError if the script is one that was not read."""
    if problem := unread(config.scripted_sequence):
        raise ConfigError(problem)
    if config.resume == "never":
        return Start()
    own = Path(config.runs_dir) / config.run_name if config.run_name else None
    if config.resume == "auto":
        if own is not None and (own / CONFIG).is_file():
            return _go_on(own, config, say, without, must=False)
        found = _search(config, say, without)
        return Start() if found is None else _placed(found, config, own)
    if config.resume == "latest":
        folder = own or latest_run(root_of(config))
        if folder is None or not (folder / CONFIG).is_file():
            raise ConfigError(f"--resume latest: there is no run {folder or root_of(config)}")
        return _go_on(folder, config, say, without, must=True)
    return _from_path(_asked(config), own, config, say, without)


def saved_config(config: TrainConfig) -> TrainConfig | None:
    """The configuration of the run that `config.resume` means, if it means one; the places in it
    are those given here."""
    own = Path(config.runs_dir) / config.run_name if config.run_name else None
    if config.resume in ("auto", "latest"):
        folder = own if own is not None or config.resume == "auto" else latest_run(root_of(config))
        if folder is None or not (folder / CONFIG).is_file():
            return None
        return load_config(folder).replace(runs_dir=str(folder.parent), run_name=folder.name)
    path = _asked(config)
    if (path / CONFIG).is_file():
        saved = load_config(path)
    else:
        found = best_of(path, None, _nothing) if path.is_dir() else named(path)
        if found is None:
            return None
        saved = found.sidecar.train_config()
    return saved.replace(runs_dir=config.runs_dir, run_name=config.run_name)


def _asked(config: TrainConfig) -> Path:
    """What `config.resume` names: a path, or a run in the folder of runs."""
    return named_run(config.resume, Path(config.runs_dir))


def root_of(config: TrainConfig) -> Path:
    """Other runs are searched below this folder."""
    return Path(config.checkpoint_root or config.runs_dir)


def best_of(
    folder: Path, config: TrainConfig | None, say: Say, without: Collection[Path] = ()
) -> Checkpoint | None:
    """The newest valid and matching checkpoint of a folder."""
    checkpoints = Checkpoints(folder)
    for stem in checkpoints.stems():
        if folder / (stem + SIDECAR_SUFFIX) in without:
            continue
        try:
            return usable(checkpoints.open(stem), config)
        except CheckpointError as error:
            say(f"[train][warn] skipped {folder / stem}: {error}")
    return None


def usable(checkpoint: Checkpoint, config: TrainConfig | None) -> Checkpoint:
    """The checkpoint, if its files are intact and its configuration matches."""
    saved = checkpoint.sidecar.train_config()
    if config is not None:
        refusal = compare(config, saved).refusal(config.resume_relax_match)
        if refusal:
            raise CheckpointError(refusal)
    checkpoint.verify()
    return checkpoint


def _go_on(
    run: Path, config: TrainConfig, say: Say, without: Collection[Path], *, must: bool
) -> Start:
    """In the run's own folder. There a settings mismatch is an error, not a reason to start
    again and overwrite the run."""
    folder = run / CHECKPOINTS
    found = best_of(folder, None, say, without)
    if found is None:
        # Without a side-car no checkpoint was ever completed: the run died while writing the first.
        if must or any(path.suffix == SIDECAR_SUFFIX for path in folder.glob("*")):
            raise ConfigError(f"the run {run} has no checkpoint that can be used")
        say(f"[train] {run} has no checkpoint yet: it starts again")
        return Start(None, run)
    refusal = compare(config, found.sidecar.train_config()).refusal(config.resume_relax_match)
    if refusal:
        raise ConfigError(_refused(found, refusal))
    return Start(_chosen(found, say), run)


def _from_path(
    path: Path, own: Path | None, config: TrainConfig, say: Say, without: Collection[Path]
) -> Start:
    """From a run's folder, its folder of checkpoints, or one of the files of a checkpoint."""
    if path.is_dir():
        folder = path / CHECKPOINTS if (path / CHECKPOINTS).is_dir() else path
        found = best_of(folder, None, say, without)
        if found is None:
            raise ConfigError(f"--resume {path}: there is no checkpoint that can be used")
    else:
        found = named(path)
        if found.path in without:
            raise ConfigError(f"--resume {path}: it cannot be used")
    refusal = compare(config, found.sidecar.train_config()).refusal(config.resume_relax_match)
    if refusal:
        raise ConfigError(_refused(found, refusal))
    start = _placed(found, config, own)
    newest = Checkpoints(found.folder).stems()[0]
    if start.folder is not None and newest != found.sidecar.stem and not path.is_dir():
        raise ConfigError(
            f"--resume {path}: its run has continued to {newest}; give a --run-name to resume from "
            "here in a new folder"
        )
    _chosen(found, say)
    return start


def named(path: Path) -> Checkpoint:
    """The checkpoint that a file, or a path without the ending, belongs to; verified."""
    name = path.name
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    checkpoints = Checkpoints(path.parent)
    try:
        if name.endswith("_latest"):
            name = read_sidecar(path.parent / (name + ".json")).stem
        if not NAME.fullmatch(name):
            raise CheckpointError("it is neither a checkpoint nor a folder of checkpoints")
        return usable(checkpoints.open(name), None)
    except CheckpointError as error:
        raise ConfigError(f"--resume {path}: {error}") from error


def _placed(found: Checkpoint, config: TrainConfig, own: Path | None) -> Start:
    """In a new folder if the run has a name of its own; otherwise in the folder of the
    checkpoint."""
    run = found.folder.parent
    at_home = found.folder.name == CHECKPOINTS and (run / CONFIG).is_file()
    if own is None:
        return Start(found, run if at_home else None)
    if at_home and own.exists() and own.samefile(run):
        return Start(found, run)
    if (own / CONFIG).is_file():
        raise ConfigError(f"the run {own} exists already; choose another --run-name")
    return Start(found, None)


def _search(config: TrainConfig, say: Say, without: Collection[Path]) -> Checkpoint | None:
    """Below the checkpoint root, newest folders first, up to the first matching checkpoint."""
    root = root_of(config)
    for folder in folders(root, say):
        try:
            stems = Checkpoints(folder).stems()
        except OSError as error:
            say(f"[train][warn] skipped {folder}: {error.strerror}")
            continue
        if not stems:
            continue
        found = best_of(folder, config, say, without)
        if found is None:
            continue
        if found.sidecar.global_step + config.steps_per_update > config.max_steps:
            say(f"[train] skipped {found.path}: its run has ended")
            continue
        return _chosen(found, say)
    say(f"[train] no checkpoint below {root} fits: a new run starts")
    return None


def _chosen(found: Checkpoint, say: Say) -> Checkpoint:
    sidecar = found.sidecar
    say(
        f"[train] resuming from {found.path}: update {sidecar.global_update:,}, step "
        f"{sidecar.global_step:,}, written {sidecar.timestamp} ({sidecar.reason})"
    )
    return found


def _refused(found: Checkpoint, refusal: str) -> str:
    relax = "" if "network" in refusal else "; --resume-relax-match resumes all the same"
    return f"cannot resume from {found.path}: {refusal}{relax}"
