"""What a sweep leaves in its folder for those who look at it: `sweep.json`, which needs neither the
storage nor Optuna to be read."""

from __future__ import annotations

import json
import math
import shlex
import warnings
from pathlib import Path
from typing import Any

import optuna
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import FrozenTrial, TrialState

from warpzone.config import ConfigError, TrainConfig, load_preset
from warpzone.config.bounds import flag
from warpzone.run.files import write_text
from warpzone.run.names import SWEEP
from warpzone.search.budget import GPU_SECONDS, REASON, RUN, STEPS, SURPLUS
from warpzone.search.parameter import Parameter
from warpzone.search.space import Space

FORMAT = 1
#: Completed trials below which importance says nothing.
FEW = 4


def write_record(space: Space, study: optuna.Study, folder: Path) -> None:
    """Writes the sweep as it is now; the last writer is the one who saw most."""
    trials = [t for t in study.get_trials(deepcopy=False) if not t.user_attrs.get(SURPLUS)]
    best = best_trial(study)
    record = {
        "format": FORMAT,
        "name": space.name,
        "objective": space.objective.describe(),
        "direction": space.objective.direction,
        "sampler": space.sampler,
        "pruner": space.pruner,
        "max_steps": space.base.max_steps,
        "parameters": [_parameter(parameter) for parameter in space.parameters],
        "trials": [_trial(trial) for trial in trials],
        "best": None if best is None else best.number,
        "command": "" if best is None else command(space, best.params),
        "importance": importance(study),
    }
    write_text(folder / SWEEP, json.dumps(record, indent=1) + "\n")


def best_trial(study: optuna.Study) -> FrozenTrial | None:
    """The completed trial with the best value; the first of equal ones."""
    done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    sign = 1 if study.direction == optuna.study.StudyDirection.MINIMIZE else -1
    values = [(sign * t.value, t.number, t) for t in done if t.value is not None]
    return min(values)[2] if values else None


def importance(study: optuna.Study) -> dict[str, float]:
    """How much each parameter decides whether a trial is among the good ones (PED-ANOVA); empty
    while too few trials are complete. Parameters with a condition have none."""
    done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if len(done) < FEW or len({trial.value for trial in done}) < 2:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())
    return {name: float(share) for name, share in found.items() if math.isfinite(share)}


def command(space: Space, drawn: dict[str, Any]) -> str:
    """The command that trains with these settings, outside the sweep."""
    try:
        config = space.config(drawn)
    except ConfigError:
        return ""
    words = ["warpzone", "train", "--preset", space.preset]
    words += changed_flags(load_preset(space.preset), config)
    return shlex.join(words)


def changed_flags(preset: TrainConfig, config: TrainConfig) -> list[str]:
    """The flags that make one configuration of another."""
    words: list[str] = []
    for name in config.__dataclass_fields__:
        value = getattr(config, name)
        if value == getattr(preset, name):
            continue
        if isinstance(value, bool):
            words.append(flag(name) if value else flag(f"no_{name}"))
        elif value is None:
            words += [flag(name), "None"]
        else:
            words += [flag(name), str(value)]
    return words


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "low": None if parameter.choices else parameter.low,
        "high": None if parameter.choices else parameter.high,
        "log": parameter.log,
        "choices": list(parameter.choices),
    }


def _trial(trial: FrozenTrial) -> dict[str, Any]:
    seconds = trial.duration.total_seconds() if trial.duration else None
    value = trial.value if trial.state == TrialState.COMPLETE else None
    return {
        "number": trial.number,
        "state": trial.state.name.lower(),
        "value": value,
        "params": trial.params,
        "curve": sorted(trial.intermediate_values.items()),
        "run": trial.user_attrs.get(RUN, ""),
        "reason": trial.user_attrs.get(REASON, ""),
        "steps": trial.user_attrs.get(STEPS, 0),
        "gpu_seconds": trial.user_attrs.get(GPU_SECONDS, 0.0),
        "seconds": seconds,
    }
