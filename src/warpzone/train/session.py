"""Runs a configuration to its end: finds the checkpoint to resume, and retries with less memory."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import torch

from warpzone.collect.ranks import ALONE, Ranks
from warpzone.config import TrainConfig
from warpzone.observers.observer import Observer
from warpzone.run.journal import say
from warpzone.run.resume import Start, find_start, saved_config
from warpzone.run.sidecar import CheckpointError
from warpzone.train.fitting import fitted_to_memory
from warpzone.train.ladder import MEMORY_ERRORS, describe, out_of_memory, rungs, shortage
from warpzone.train.loop import Collecting, Result, Run, collect_here
from warpzone.train.stopping import Stop

Watch = Callable[[TrainConfig], Sequence[Observer]]


def begin(
    config: TrainConfig,
    watch: Watch,
    stop: Stop,
    ranks: Ranks = ALONE,
    collecting: Collecting = collect_here,
) -> Run:
    """A run, from the checkpoint that `config.resume` asks for. A checkpoint that fails to load
    is skipped like one that is invalid."""
    passed: set[Path] = set()
    while True:
        start = ranks.told(lambda: find_start(config, say, passed))
        try:
            run = Run(
                _in_place(config, start),
                watch(config),
                start=start,
                interrupt=stop,
                ranks=ranks,
                collecting=collecting,
            )
        except CheckpointError as error:
            if start.checkpoint is None:
                raise
            say(f"[train][warn] skipped {start.checkpoint.path}: {error}")
            passed.add(start.checkpoint.path)
            continue
        for note in run.notes:
            say(f"[train][warn] {note}")
        return run


def train(
    config: TrainConfig,
    watch: Watch,
    stop: Stop,
    learn: Callable[[Run], Result],
    ranks: Ranks = ALONE,
    collecting: Collecting = collect_here,
) -> Result:
    """Runs to the end; with `auto_mem`, with reduced sizes if memory runs out. Several ranks find
    these sizes before they begin."""
    together = ranks.size > 1
    if config.auto_mem and config.resume != "never" and not config.resume_relax_match:
        config = ranks.told(partial(_as_left, config))
    if config.auto_mem and together:
        config = fitted_to_memory(config, ranks)
    ladder = rungs(config)
    while True:
        run: Run | None = None
        try:
            run = begin(config, watch, stop, ranks, collecting)
            return learn(run)
        except MEMORY_ERRORS as error:
            if together or not (config.auto_mem and out_of_memory(error)):
                raise
            config = _next_rung(config, ladder, run, error)
        # The failed run's tensors must be freed before the next one allocates its own.
        run = None
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _as_left(config: TrainConfig) -> TrainConfig:
    """The same command, repeated, resumes with the sizes that fitted before."""
    saved = saved_config(config)
    for _, smaller in rungs(config):
        if saved is not None and not describe(smaller, saved):
            say(f"[train] resuming with reduced sizes: {describe(config, smaller)}")
            return smaller
    return config


def _next_rung(
    config: TrainConfig,
    ladder: Iterator[tuple[str, TrainConfig]],
    run: Run | None,
    error: Exception,
) -> TrainConfig:
    what, smaller = next(ladder, ("", config))
    if not what:
        raise error
    text = f"memory ran out ({shortage(error)}); smaller {what}"
    say(f"[train][warn] {text}: {describe(config, smaller)}")
    if run is None:
        return smaller
    # In the same folder, from the checkpoint that the failure left, whatever --resume said.
    folder = run.folder.path
    return smaller.replace(
        resume="auto",
        resume_relax_match=True,
        run_name=folder.name,
        runs_dir=str(folder.parent),
    )


def _in_place(config: TrainConfig, start: Start) -> TrainConfig:
    """A run resumed in its folder has the folder's name."""
    if start.folder is None:
        return config
    return config.replace(run_name=start.folder.name, runs_dir=str(start.folder.parent))
