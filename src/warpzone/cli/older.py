"""Variables and flags of earlier Mario trainers: read where there is a flag of the same meaning,
and named where there is none, so that no setting is lost without a word.
`docs/from-older-commands.md` lists them."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Any, get_args

from warpzone.config import ConfigError, TrainConfig
from warpzone.config.bounds import annotated, flag
from warpzone.env.backends.select import is_factory

PAGE = "docs/from-older-commands.md"
#: Variables that a launcher script turned into flags -> the field.
READ = {
    "ACTION_TYPE": "actions",
    "REWARD_DISTANCE_WEIGHT": "reward_distance_weight",
    "REWARD_SCALE_START": "reward_scale_start",
    "REWARD_SCALE_FINAL": "reward_scale_final",
    "REWARD_SCALE_ANNEAL_STEPS": "reward_scale_anneal_steps",
    "SCRIPTED_SEQUENCE": "scripted_sequence",
    "SCRIPTED_FORWARD_FRAMES": "scripted_forward_frames",
    "FORWARD_ACTION_ID": "forward_action_id",
    "PROBE_FORWARD": "probe_forward_actions",
    "ENABLE_RAM_X_PARSE": "enable_ram_x_parse",
    "RAM_X_HIGH": "ram_x_high_addr",
    "RAM_X_LOW": "ram_x_low_addr",
    "MARIO_PER_MAX_MEM_GB": "per_memory_gb",
}
#: Variables without a flag of exactly their meaning -> what to do instead.
NOT_READ = {
    "MARIO_ENABLE_ASYNC": "worker processes are the default of other back-ends",
    "MARIO_USE_FC_EMULATOR": "use --backend module:factory",
    "MARIO_PER_COMPRESS": "pictures are always stored as bytes",
    "MARIO_SHAPING_DEBUG": "every row of metrics.jsonl has the numbers",
    "MARIO_EPISODE_DEBUG": "episodes.jsonl has every episode",
    "MARIO_EPISODE_STEPS_DEBUG": "episodes.jsonl has every episode",
    "MARIO_EPISODE_TERMINATION_DEBUG": "episodes.jsonl has every episode",
    "MARIO_HINT_TEST_LOWER_THRESH": "it was for tests",
    "AUTO_MEM_STREAM": "output is always live",
    "MAX_RETRIES": "--auto-mem ends at its floor",
    "BOOTSTRAP": "give the flags that it stood for",
    "OVERLAP": "use --overlap-collect",
    "PER": "use --per",
    "DEVICE": "use --device",
    "DRY_RUN": "use --dry-run",
}
#: Variables whose names have a number.
NOT_READ |= {
    f"{word}_PHASE{number}": "a run is annealed, without phases"
    for word in ("SKIP", "FORCE")
    for number in (1, 2, 3)
}
SWITCHED = {"1": True, "true": True, "yes": True, "on": True} | {
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}


def from_environment(environment: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Fields that variables set, and what is to be said about variables."""
    kinds = {field.name: field.kind for field in annotated(TrainConfig)}
    fields: dict[str, Any] = {}
    notes = []
    for name, field in READ.items():
        text = environment.get(name, "")
        if text:
            fields[field] = _value(name, text, kinds[field])
            notes.append(f"the variable {name} is read as {flag(field)} {text}")
    notes += [
        f"the variable {name} is not read: {instead} ({PAGE})"
        for name, instead in NOT_READ.items()
        if environment.get(name)
    ]
    return fields, notes


def notes_about(given: TrainConfig, config: TrainConfig) -> list[str]:
    """What is to be said about flags that mean something else here, or nothing. `given`: the fields
    as they were given; `config`: what became of them."""
    notes = []
    if given.stop_at_clears:
        notes.append(
            f"--stop-at-clears {given.stop_at_clears} is --stop-at {config.stop_at:.3g} here: "
            f"{config.clears_to_stop} of {config.most_clears} start delays"
        )
    if config.enable_ram_x_parse and not is_factory(config.backend):
        notes.append(
            f"--enable-ram-x-parse changes nothing with --backend {config.backend}, where x is "
            "always read"
        )
    return notes


def _value(name: str, text: str, kind: Any) -> Any:
    if isinstance(kind, UnionType):
        kind = get_args(kind)[0]
    try:
        if kind is bool:
            return SWITCHED[text.strip().lower()]
        return kind(text)
    except (KeyError, ValueError) as error:
        wanted = {int: "a whole number", float: "a number", bool: "0 or 1"}[kind]
        raise ConfigError(f"the variable {name} must be {wanted}, not {text!r}") from error
