"""Finds the weights of an agent and the configuration of their network."""

from __future__ import annotations

from pathlib import Path

from warpzone.config import ConfigError, TrainConfig
from warpzone.run.checkpoints import INSIDE, SUFFIXES, Checkpoints
from warpzone.run.folder import load_config
from warpzone.run.names import BEST, CHECKPOINTS, CONFIG, WEIGHTS
from warpzone.run.safe import read_header
from warpzone.run.shipped import described_config, description_beside
from warpzone.run.sidecar import (
    SIDECAR_SUFFIX,
    WEIGHTS_SUFFIX,
    CheckpointError,
    decode,
    read_sidecar,
)


def find_weights(path: Path) -> tuple[Path, TrainConfig]:
    """The weights of a run, or of the checkpoint that a file belongs to."""
    if path.is_dir():
        return _of_run(path)
    stem = path.name
    for suffix in SUFFIXES:
        stem = stem.removesuffix(suffix)
    try:
        if stem.endswith("_latest"):
            stem = read_sidecar(path.parent / (stem + SIDECAR_SUFFIX)).stem
        file = path.parent / (stem + WEIGHTS_SUFFIX)
        if not file.is_file():
            raise ConfigError(f"there are no weights {file}")
        return file, _config_of(file)
    except CheckpointError as error:
        raise ConfigError(f"{path} cannot be used: {error}") from error


def _of_run(path: Path) -> tuple[Path, TrainConfig]:
    for known in (BEST, WEIGHTS):
        if (path / known).is_file():
            return path / known, load_config(path)
    folder = path / CHECKPOINTS if (path / CHECKPOINTS).is_dir() else path
    checkpoints = Checkpoints(folder)
    for stem in checkpoints.stems():
        try:
            sidecar = checkpoints.open(stem).sidecar
        except CheckpointError:
            continue
        return folder / sidecar.weights.name, sidecar.train_config()
    if not (path / CONFIG).is_file():
        raise ConfigError(f"{path} is not a run: it has no {CONFIG}")
    raise ConfigError(f"{path} has no weights yet")


def _config_of(file: Path) -> TrainConfig:
    """From a description or side-car, from the notes in the weights, or from the run's folder
    above."""
    if description := description_beside(file):
        return described_config(description, file)
    sidecar = file.with_name(file.name.removesuffix(WEIGHTS_SUFFIX) + SIDECAR_SUFFIX)
    if sidecar.is_file():
        return read_sidecar(sidecar).train_config()
    _, notes = read_header(file)
    if INSIDE in notes:
        return decode(notes[INSIDE]).train_config()
    for folder in (file.parent, file.parent.parent):
        if (folder / CONFIG).is_file():
            return load_config(folder)
    raise CheckpointError("its network is unknown: it has no side-car")
