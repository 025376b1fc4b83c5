"""The configuration of a training run: one frozen, flat dataclass made of sections. The command
line is derived from it, presets are files with some of its fields, and nonsense is refused with the
reason."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpzone.config import (
    adaptive,
    algorithm,
    backend,
    curriculum,
    dashboard,
    health,
    network,
    play,
    plugins,
    replay,
    reward,
    scale,
    starts,
)
from warpzone.config.bounds import Refusal, out_of_bounds
from warpzone.config.contradictions import contradictions
from warpzone.config.derived import Derived, folded
from warpzone.env.actions import action_table
from warpzone.env.script import UNREAD, kept_script, known_script, script_names, unread
from warpzone.env.stages import parse_stages
from warpzone.rom.paths import read_plain

#: Bytes of a preset, which has some hundred.
MOST_BYTES = 1 << 20
PRESETS = Path(__file__).parent.parent / "presets"


class ConfigError(ValueError):
    """A configuration that cannot work; one sentence that says why."""


def _refuse(refusals: Iterable[Refusal]) -> None:
    """Raises the first refusal that holds."""
    for refused, message in refusals:
        if refused:
            raise ConfigError(message)


@dataclass(frozen=True)
class TrainConfig(Derived):
    """What to train, on what, and how; refuses what cannot work."""

    def __post_init__(self) -> None:
        _refuse(out_of_bounds(self))
        try:
            for name, value in folded(self).items():
                object.__setattr__(self, name, value)
            parse_stages(self.stages)
            action_table(self.actions)
            if self.scripted_sequence:
                script = kept_script(self.scripted_sequence)
                object.__setattr__(self, "scripted_sequence", script)
        except ValueError as error:
            raise ConfigError(str(error)) from error
        _refuse(_rules(self))

    def to_json(self) -> str:
        """The whole configuration."""
        return json.dumps(dataclasses.asdict(self), indent=2)

    def replace(self, **changes: Any) -> TrainConfig:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)


def _rules(config: TrainConfig) -> Iterator[Refusal]:
    """The rules of each section, then those across sections."""
    yield from play.refusals(config)
    yield from reward.refusals(config)
    yield from network.refusals(config)
    yield from algorithm.refusals(config)
    yield from replay.refusals(config)
    yield from plugins.refusals(config)
    yield from dashboard.refusals(config)
    yield from adaptive.refusals(config)
    yield from health.refusals(config)
    yield from starts.refusals(config)
    yield from curriculum.refusals(config)
    yield from backend.refusals(config)
    yield from scale.refusals(config)
    yield from contradictions(config)


def preset_names() -> list[str]:
    """Presets that ship with the package."""
    return sorted(path.stem for path in PRESETS.glob("*.toml"))


def read_toml(path: Path, name: str) -> dict[str, Any]:
    """The values of a file that may come from anybody; ConfigError, which calls the file `name`, if
    it is no TOML, OSError if it cannot be read."""
    try:
        return tomllib.loads(read_plain(path, MOST_BYTES).decode())
    except RecursionError as error:
        raise ConfigError(f"{name} cannot be read: it is nested too deeply") from error
    except ValueError as error:
        # Invalid TOML, invalid text, or a number with thousands of digits.
        raise ConfigError(f"{name} cannot be read: {error}") from error


def load_preset(name: str) -> TrainConfig:
    """A preset by name, or a TOML file by its path."""
    path = Path(name) if name.endswith(".toml") else PRESETS / f"{name}.toml"
    if not path.is_file():
        raise ConfigError(f"there is no preset {name!r}; presets are {', '.join(preset_names())}")
    values = read_toml(path, f"preset {name}")
    try:
        return from_dict(values)
    except ConfigError as error:
        raise ConfigError(f"preset {name} cannot be used: {error}") from error


def from_saved(values: dict[str, Any]) -> TrainConfig:
    """A configuration as a run has written it, maybe one of an earlier version: fields that it does
    not have get the value that means what the run did. The name of a file with a script, which
    earlier versions kept, is marked as unread."""
    sequence = values.get("scripted_sequence")
    if _names_file(sequence):
        values = {**values, "scripted_sequence": f"{UNREAD}{sequence}"}
    scripted = sequence or values.get("scripted_forward_frames")
    return from_dict({"scripted_share": 1.0, **values} if scripted else values)


def from_dict(values: dict[str, Any]) -> TrainConfig:
    """A configuration from saved or preset fields; unknown ones are refused. They may come from
    anybody: no file that they name is looked at."""
    if not isinstance(values, dict):
        raise ConfigError(f"a configuration is a table of settings, not {type(values).__name__}")
    known = TrainConfig.__dataclass_fields__
    for name in values:
        if name not in known:
            raise ConfigError(f"unknown configuration field {name!r}")
    sequence = values.get("scripted_sequence")
    if _names_file(sequence):
        raise ConfigError(
            f"the script {sequence!r} is none of the package's, and a file is read only if "
            "--scripted-sequence names it"
        )
    if isinstance(sequence, str) and sequence and not unread(sequence):
        try:
            known_script(sequence)
        except ValueError as error:
            raise ConfigError(str(error)) from error
    return TrainConfig(**values)


def _names_file(sequence: object) -> bool:
    """Whether a script is neither written out nor one of the package's."""
    if not isinstance(sequence, str) or not sequence or ":" in sequence:
        return False
    return sequence not in script_names()
