"""One parameter of a search space: a field of the configuration, and the values it may take."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warpzone.config import ConfigError, TrainConfig
from warpzone.config.bounds import Field, annotated

if TYPE_CHECKING:
    from optuna.trial import Trial

#: Fields that the search itself sets, or that would give trials different budgets.
OWN = {
    *("run_name", "runs_dir", "resume", "resume_relax_match", "checkpoint_root", "auto_mem"),
    *("dashboard", "dashboard_host", "dashboard_port", "max_steps", "max_time"),
    *("max_cost_gpu_hours", "stop_at", "stop_at_clears", "eval_interval", "devices", "nodes"),
}
#: A whole number may be larger than any float.
LARGEST = sys.float_info.max
KEYS = ("low", "high", "log", "step", "choices", "when", "otherwise")
FIELDS: dict[str, Field] = {field.name: field for field in annotated(TrainConfig)}


@dataclass(frozen=True)
class Parameter:
    """Either a range or a list of choices, used where its condition holds."""

    name: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    step: float | None = None
    choices: tuple[Any, ...] = ()
    #: Other parameters and the values they must have for this one to be searched.
    when: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    #: The value where the condition does not hold; None leaves the base configuration's.
    otherwise: Any = None

    @property
    def whole(self) -> bool:
        """Whether its values are whole numbers."""
        return FIELDS[self.name].kind is int

    @property
    def ends(self) -> tuple[Any, ...]:
        """The values that are tried out when a space is read: both ends, or every choice."""
        return self.choices or (self.low, self.high)

    def holds(self, drawn: Mapping[str, Any]) -> bool:
        """Whether its condition holds; a parameter that is itself not drawn has no value."""
        return all(name in drawn and drawn[name] in values for name, values in self.when)

    def suggest(self, trial: Trial) -> Any:
        """A value that the sampler of the sweep chooses."""
        if self.choices:
            return trial.suggest_categorical(self.name, self.choices)
        if self.whole:
            step = int(self.step or 1)
            low, high = int(self.low), int(self.high)
            return trial.suggest_int(self.name, low, high, step=step, log=self.log)
        return trial.suggest_float(
            self.name, self.low, self.high, step=self.step or None, log=self.log
        )

    def fit(self, value: Any) -> Any:
        """The allowed value that is nearest to a number; choices are left alone."""
        if self.choices:
            return value
        value = min(max(value, self.low), self.high)
        if self.step:
            value = self.low + round((value - self.low) / self.step) * self.step
            value = value if value <= self.high else value - self.step
        return round(value) if self.whole else float(value)


def parse_parameter(name: str, table: Any) -> Parameter:
    """A table of the file; ConfigError if it makes no sense."""
    where = f"space.{name}"
    require_field(name, where)
    if not isinstance(table, dict):
        raise ConfigError(f"{where} must be a table with low and high, or with choices")
    for key in table:
        if key not in KEYS:
            raise ConfigError(f"{where} has {key!r}; known are {', '.join(KEYS)}")
    if ("choices" in table) == ("low" in table or "high" in table):
        raise ConfigError(f"{where} needs either low and high, or choices")
    common: dict[str, Any] = {
        "when": _condition(where, table.get("when", {})),
        "otherwise": table.get("otherwise"),
    }
    if common["otherwise"] is not None:
        _require_value(name, common["otherwise"], where)
        if not common["when"]:
            raise ConfigError(f"{where}: otherwise needs when, a condition")
    if "choices" in table:
        return Parameter(name, choices=_choices(name, table, where), **common)
    return Parameter(name, **_range(name, table, where), **common)


def require_field(name: str, where: str) -> None:
    """ConfigError if there is no such field, or if the search sets it."""
    if name not in FIELDS:
        from difflib import get_close_matches

        near = get_close_matches(name, FIELDS, n=1)
        hint = f", did you mean {near[0]}?" if near else ""
        raise ConfigError(f"{where}: {name} is no field of the configuration{hint}")
    if where.startswith("space") and name in OWN:
        raise ConfigError(
            f"{where}: {name} must be the same for all, or is set by the search; it cannot be "
            "searched"
        )


def _choices(name: str, table: dict[str, Any], where: str) -> tuple[Any, ...]:
    values = table["choices"]
    for key in ("log", "step"):
        if key in table:
            raise ConfigError(f"{where}: {key} is about ranges, not about choices")
    if not isinstance(values, list) or len(values) < 2:
        raise ConfigError(f"{where}: choices must be a list of two values or more")
    for value in values:
        _require_value(name, value, where)
    if len({(type(value), value) for value in values}) < len(values):
        raise ConfigError(f"{where}: a choice is given twice")
    return tuple(values)


def _range(name: str, table: dict[str, Any], where: str) -> dict[str, Any]:
    if FIELDS[name].kind not in (int, float) and not _takes_numbers(name):
        raise ConfigError(f"{where}: {name} is no number; give choices")
    for key in ("low", "high"):
        if not _is_number(table.get(key)):
            raise ConfigError(f"{where}: {key} must be a number")
        _require_value(name, table[key], f"{where}: {key} leaves the field's range")
    low, high = table["low"], table["high"]
    if not low < high:
        raise ConfigError(f"{where}: low must be below high, and is {low} with {high}")
    log, step = table.get("log", False), table.get("step")
    if not isinstance(log, bool):
        raise ConfigError(f"{where}: log must be true or false")
    if log and low <= 0:
        raise ConfigError(f"{where}: a logarithmic range must be above 0, and low is {low}")
    if step is not None and (not _is_number(step) or not 0 < step <= high - low):
        raise ConfigError(f"{where}: step must be above 0 and at most high - low")
    if step is not None and (log or (FIELDS[name].kind is int and step != int(step))):
        reason = "a logarithmic range has no step" if log else "step must be a whole number"
        raise ConfigError(f"{where}: {reason}")
    return {"low": low, "high": high, "log": log, "step": step}


def _condition(where: str, table: Any) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    if not isinstance(table, dict):
        raise ConfigError(f"{where}: when must be a table, such as {{ algo = 'ppo' }}")
    return tuple(
        (name, tuple(values) if isinstance(values, list) else (values,))
        for name, values in table.items()
    )


def _require_value(name: str, value: Any, where: str) -> None:
    if problem := FIELDS[name].problem(value):
        raise ConfigError(f"{where}: {problem}")


def _takes_numbers(name: str) -> bool:
    """Whether a field that may be left out is a number where it is given."""
    return not FIELDS[name].problem(1) and FIELDS[name].kind is not bool


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST
