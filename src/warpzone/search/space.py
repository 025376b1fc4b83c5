"""A search as its file describes it: the base configuration, the parameters, what is to be made
best, and how trials are drawn and pruned."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpzone.config import ConfigError, TrainConfig, load_preset, read_toml
from warpzone.config.run import name_problem
from warpzone.run.matching import FREE
from warpzone.search.objective import OBJECTIVES, Objective
from warpzone.search.parameter import Parameter, parse_parameter, require_field

SAMPLERS = ("tpe", "cmaes", "qmc", "random")
PRUNERS = ("none", "median", "hyperband")
#: The keys of the file and what they are by default.
DEFAULTS: dict[str, Any] = {
    "name": "",
    "preset": "quick",
    "objective": "clears",
    "clears": 0,
    "sampler": "tpe",
    "pruner": "median",
    "startup_trials": 10,
    "warmup_steps": 0,
    "reduction_factor": 3,
    "seed": 1,
}
#: What `[fixed]` may not set.
SET_BY_SEARCH = (
    *("run_name", "runs_dir", "resume", "resume_relax_match", "checkpoint_root", "dashboard"),
    *("stop_at", "stop_at_clears", "auto_mem", "devices", "nodes"),
)


@dataclass(frozen=True)
class Space:
    """What is searched, and how."""

    name: str
    preset: str
    base: TrainConfig
    parameters: tuple[Parameter, ...]
    objective: Objective
    sampler: str
    pruner: str
    startup_trials: int
    warmup_steps: int
    reduction_factor: int
    seed: int

    def config(self, drawn: Mapping[str, Any]) -> TrainConfig:
        """The configuration of a trial; ConfigError if the values contradict each other."""
        others = {
            parameter.name: parameter.otherwise
            for parameter in self.parameters
            if parameter.name not in drawn and parameter.otherwise is not None
        }
        return self.base.replace(**others, **drawn)

    def identity(self) -> dict[str, Any]:
        """What makes two spaces one: all that decides what a value of the objective means."""
        base = {k: v for k, v in dataclasses.asdict(self.base).items() if k not in FREE}
        budget = {"max_steps": self.base.max_steps, "eval_interval": self.base.eval_interval}
        return {
            "base": base | budget,
            "objective": dataclasses.asdict(self.objective),
            "parameters": {p.name: _plain(dataclasses.asdict(p)) for p in self.parameters},
        }


def differences(there: Any, here: dict[str, Any]) -> list[str]:
    """What differs between the identity of a space that was kept as JSON and another one."""
    if not isinstance(there, dict):
        return ["all settings"]
    found = []
    for part, settings in here.items():
        other = there.get(part)
        if not isinstance(other, dict):
            return ["all settings"]
        # A field that was added after the search began has its default there.
        names = settings.keys() & other.keys() if part == "base" else settings.keys() | other.keys()
        found += [name for name in sorted(names) if settings.get(name) != other.get(name)]
    return found


def read_space(path: Path) -> Space:
    """Reads a file. ConfigError with the reason if it cannot be used, OSError if it cannot be
    read."""
    values = read_toml(path, str(path))
    try:
        return parse_space(values, path.stem)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def parse_space(values: dict[str, Any], stem: str) -> Space:
    """A space from the values of a file; `stem` names it if it has no name."""
    settings = {**DEFAULTS, **values}
    tables = {key: settings.pop(key, {}) for key in ("fixed", "space")}
    _check_settings(settings, tables)
    parameters = tuple(_ordered([parse_parameter(*row) for row in tables["space"].items()]))
    if not parameters:
        raise ConfigError("there is nothing to search: it has no [space.FIELD]")
    base = _base(settings["preset"], tables["fixed"], parameters)
    if base.ranks > 1:
        raise ConfigError(
            f"preset {settings['preset']} has {base.ranks} ranks; a trial or member is one process"
        )
    objective = Objective(settings["objective"], settings["clears"], base.max_steps)
    objective.require(base)
    if settings["pruner"] != "none" and not base.eval_interval:
        raise ConfigError("pruning looks at evaluations during a run: set fixed.eval_interval")
    space = Space(
        name=settings["name"] or stem,
        base=objective.prepared(base),
        parameters=parameters,
        objective=objective,
        **{key: settings[key] for key in DEFAULTS if key not in ("name", "objective", "clears")},
    )
    if problem := name_problem(space.name):
        raise ConfigError(problem.replace("--run-name", "name"))
    _try_ends(space)
    return space


def _check_settings(settings: dict[str, Any], tables: dict[str, Any]) -> None:
    for key, value in settings.items():
        if key not in DEFAULTS:
            known = ", ".join([*DEFAULTS, "[fixed]", "[space.FIELD]"])
            raise ConfigError(f"unknown key {key!r}; known are {known}")
        if type(value) is not type(DEFAULTS[key]):
            kind = "text" if isinstance(DEFAULTS[key], str) else "a whole number"
            raise ConfigError(f"{key} must be {kind}, not {value!r}")
        least = 2 if key == "reduction_factor" else 0
        if isinstance(value, int) and value < least:
            raise ConfigError(f"{key} must be at least {least}, and is {value}")
    for key, allowed in (
        ("sampler", SAMPLERS),
        ("pruner", PRUNERS),
        ("objective", tuple(OBJECTIVES)),
    ):
        if settings[key] not in allowed:
            raise ConfigError(f"{key} must be one of {', '.join(allowed)}, not {settings[key]!r}")
    for key, table in tables.items():
        if not isinstance(table, dict):
            raise ConfigError(f"{key} must be a table")


def _base(preset: str, fixed: dict[str, Any], parameters: Sequence[Parameter]) -> TrainConfig:
    """The preset with what is fixed; where that fits only to searched values, with the first of
    those."""
    for name in fixed:
        require_field(name, "fixed")
        if name in SET_BY_SEARCH:
            raise ConfigError(f"fixed: {name} is set by the search")
        if any(parameter.name == name for parameter in parameters):
            raise ConfigError(f"{name} is fixed and searched; give one of them")
    searched = {p.name: p.ends[0] for p in parameters if not p.when}
    try:
        start = load_preset(preset)
        try:
            return start.replace(**fixed)
        except ConfigError as error:
            try:
                return start.replace(**fixed, **searched)
            except ConfigError:
                raise error from None
    except (TypeError, OSError) as error:
        raise ConfigError(f"preset {preset} cannot be used: {error}") from error


def _ordered(parameters: list[Parameter]) -> Iterator[Parameter]:
    """Parameters after those that their conditions name."""
    known = {parameter.name: parameter for parameter in parameters}
    for parameter in parameters:
        for name, values in parameter.when:
            where = f"space.{parameter.name}: when"
            if name not in known:
                raise ConfigError(f"{where} names {name}, which is not searched")
            choices = known[name].choices
            if not choices:
                raise ConfigError(f"{where} names {name}, which has a range; it needs choices")
            if strange := [value for value in values if value not in choices]:
                raise ConfigError(f"{where}: {strange[0]!r} is no choice of {name}")
    placed: list[str] = []
    left = parameters
    while left:
        ready = [p for p in left if all(name in placed for name, _ in p.when)]
        if not ready:
            names = ", ".join(parameter.name for parameter in left)
            raise ConfigError(f"the conditions of {names} go in a circle")
        yield from ready
        placed += [parameter.name for parameter in ready]
        left = [parameter for parameter in left if parameter.name not in placed]


def _try_ends(space: Space) -> None:
    """Every end and every choice of a parameter, beside the others as they are in the base, must
    give a configuration, for the conditions under which it is searched."""
    for parameter in space.parameters:
        for value in parameter.ends:
            drawn: dict[str, Any] = {}
            _satisfy(space, parameter, drawn)
            drawn[parameter.name] = value
            for other in space.parameters:
                # Where a condition holds now, its parameter has a value too.
                if other.name not in drawn and other.when and other.holds(drawn):
                    drawn[other.name] = other.ends[0]
            try:
                space.config(drawn)
            except ConfigError as error:
                raise ConfigError(
                    f"space.{parameter.name}: {value!r} cannot be: {error}"
                ) from error


def _satisfy(space: Space, parameter: Parameter, drawn: dict[str, Any]) -> None:
    for name, values in parameter.when:
        other = next(p for p in space.parameters if p.name == name)
        _satisfy(space, other, drawn)
        drawn.setdefault(name, values[0])


def _plain(value: Any) -> Any:
    """Tuples as lists, as JSON returns them."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value
