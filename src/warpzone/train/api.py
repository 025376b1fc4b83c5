"""Training from Python: `warpzone.train`."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from warpzone.config import ConfigError, TrainConfig, load_preset, preset_names
from warpzone.config.choice import choose_preset, fitted
from warpzone.config.outside import KINDS, agree, plugins_of
from warpzone.eval.evaluate import Outcome, clears
from warpzone.eval.loaded import LoadedAgent, load_agent
from warpzone.observers.make import make_observers
from warpzone.observers.observer import Observer
from warpzone.run.resume import saved_config
from warpzone.train.device import choose_device
from warpzone.train.estimate import refuse_impossible
from warpzone.train.loop import Result, Run
from warpzone.train.session import train as train_session
from warpzone.train.stopping import Quiet, Stop

#: Fields that say which run goes on.
WHERE = ("resume", "run_name", "runs_dir")


@dataclass(frozen=True)
class Trained:
    """A run that has ended."""

    #: What it was trained with.
    config: TrainConfig
    #: Steps, seconds and evaluation.
    result: Result

    @property
    def folder(self) -> Path:
        """The run's folder: weights, metrics, episodes, evaluations, checkpoints."""
        return self.result.folder

    @property
    def steps(self) -> int:
        """Steps of the whole run, all lanes together."""
        return self.result.steps

    @property
    def outcomes(self) -> list[Outcome]:
        """The last evaluation, episode by episode."""
        return self.result.outcomes

    @property
    def best_clears(self) -> int:
        """Start delays that the best weights of the run clear with argmax."""
        return self.result.best_clears

    @cached_property
    def agent(self) -> LoadedAgent:
        """The agent with the best weights, on the CPU."""
        return load_agent(self.folder)

    def __str__(self) -> str:
        total = sum(outcome.policy == "argmax" for outcome in self.outcomes)
        return (
            f"{self.folder}: {self.steps:,} steps in {self.result.seconds:.0f} s; the best weights "
            f"clear {self.best_clears} of {total} start delays with argmax, the last ones "
            f"{clears(self.outcomes)}"
        )


def train(
    config: TrainConfig | None = None,
    *,
    preset: str = "",
    observers: Sequence[Observer] = (),
    quiet: bool = False,
    **fields: Any,
) -> Trained:
    """Trains an agent as `warpzone train` does, and returns when it is done. Ctrl+C saves the run
    and raises KeyboardInterrupt; `train(resume="latest")` goes on with it.

    config: the whole configuration; or preset: the name of a preset, or a TOML file. With neither,
    a resumed run's own configuration, else the preset that fits stages and machine.
    observers: objects that see every update, beside those of the configuration.
    quiet: without the display on standard error.
    fields: changes to the configuration, by the names of the flags: `stages="1-2"`,
    `max_steps=1_000_000`.

    ConfigError (a ValueError) for what cannot work, OSError for what cannot be written.
    """
    if config is not None and preset:
        raise ConfigError("train() takes a configuration or a preset, not both")
    base = config if config is not None else _base(preset, fields)
    resolved = _changed(base, fields)
    if any(plugins_of(resolved)):
        # What a program names it agrees to; what a preset or a saved run names it may not know.
        kinds = KINDS if config is not None else [kind for kind in KINDS if kind in fields]
        resolved = agree(resolved, kinds, pinned="plugins_sha256" in fields)
    device = choose_device(resolved)
    if not resolved.auto_mem:
        refuse_impossible(resolved, device)

    def watch(of: TrainConfig) -> list[Observer]:
        return [*observers, *make_observers(of)]

    trained: list[TrainConfig] = []

    def learn(run: Run) -> Result:
        trained[:] = [run.config]
        with Quiet(run.config, f"warpzone · {run.folder.path}", shown=not quiet) as progress:
            return run.train(progress)

    result = train_session(resolved, watch, Stop(), learn)
    return Trained(trained[0].replace(run_name=result.folder.name), result)


def _base(preset: str, fields: dict[str, Any]) -> TrainConfig:
    """What the fields change."""
    if preset:
        return load_preset(preset)
    where = {name: fields[name] for name in WHERE if name in fields}
    if where.get("resume", "never") != "never":
        saved = saved_config(TrainConfig().replace(**where))
        if saved is not None:
            return saved
    stages = str(fields.get("stages", TrainConfig.stages))
    device = fields.get("device", TrainConfig.device)
    cuda = torch.cuda.is_available() if device == "auto" else device == "cuda"
    choice = choose_preset(stages, cuda=cuda, known=preset_names())
    return fitted(load_preset(choice.name), stages)


def _changed(base: TrainConfig, fields: dict[str, Any]) -> TrainConfig:
    known = [field.name for field in dataclasses.fields(TrainConfig)]
    for name in fields:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            meant = f"; did you mean {close[0]}?" if close else ""
            raise ConfigError(f"unknown configuration field {name!r}{meant}")
    return base.replace(**fields)
