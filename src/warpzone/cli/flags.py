"""The flags of training: derived from the configuration by tyro, refused with one sentence."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

from warpzone.config import ConfigError, TrainConfig, load_preset, preset_names
from warpzone.config.run import name_problem

DEFAULT_PRESET = "quick"


def resolve(words: Sequence[str], *, prog: str, about: str) -> TrainConfig:
    """The configuration that a preset and flags describe. `--help` prints the flags and ends the
    program."""
    rest = list(words)
    preset = take(rest, "--preset")
    run_name = os.environ.get("RUN_NAME", "")
    base = _resumed_config(rest, run_name) if preset is None else None
    if base is None:
        base = preset_config(preset or DEFAULT_PRESET)
    auto_mem = os.environ.get("AUTO_MEM") == "1" or base.auto_mem
    base = base.replace(run_name=run_name or base.run_name, auto_mem=auto_mem)
    flags = _parse(rest, base, prog, about)
    if flags.stages != base.stages and (flags.world or flags.stage or flags.whole_game):
        raise ConfigError("--stages excludes --world, --stage and --whole-game; give one of them")
    config = TrainConfig(**dataclasses.asdict(flags))
    check(config)
    return config


def _resumed_config(words: Sequence[str], run_name: str) -> TrainConfig | None:
    """A run that goes on has its own configuration, so that its flags need not be given again."""
    from warpzone.run.resume import saved_config

    given = {name: take(list(words), f"--{name}") for name in ("resume", "run-name", "runs-dir")}
    if given["resume"] in (None, "never"):
        return None
    defaults = {"resume": given["resume"], "run_name": given["run-name"] or run_name}
    if given["runs-dir"]:
        defaults["runs_dir"] = given["runs-dir"]
    return saved_config(TrainConfig().replace(**defaults))


def preset_config(name: str) -> TrainConfig:
    """A preset whose values have the right types."""
    try:
        config = load_preset(name)
        check(config)
    except (TypeError, OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"preset {name} cannot be used: {error}") from error
    return config


def check(config: TrainConfig) -> None:
    """Refuses what the dataclass itself cannot see: options that the engine or the network does not
    know."""
    if problem := name_problem(config.run_name):
        raise ConfigError(problem)
    from warpzone.collect.lanes import lane_options
    from warpzone.env.actions import action_table
    from warpzone.env.stages import lane_stages
    from warpzone.model.spec import model_spec

    try:
        # One lane is enough: what lanes play does not depend on how many there are.
        options = lane_options(config)
        lane_stages(options.stages, 1)
        options.lane_config()
        model_spec(config, len(action_table(config.actions).masks))
    except (TypeError, ValueError) as error:
        raise ConfigError(str(error)) from error


def take(words: list[str], flag: str) -> str | None:
    """Removes `flag VALUE` or `flag=VALUE`."""
    for index, word in enumerate(words):
        if word == flag:
            if index + 1 >= len(words):
                raise ConfigError(f"{flag} needs a value")
            value = words[index + 1]
            del words[index : index + 2]
            return value
        if word.startswith(flag + "="):
            del words[index]
            return word.partition("=")[2]
    return None


def take_switch(words: list[str], flag: str) -> bool:
    """Removes a flag without a value; whether it was there."""
    found = flag in words
    if found:
        words.remove(flag)
    return found


def as_file(config: TrainConfig, path: Path) -> str:
    """JSON as in a run's folder, or TOML that `--preset` reads again."""
    if path.suffix != ".toml":
        return config.to_json() + "\n"
    values = dataclasses.asdict(config)
    # A string of JSON is one of TOML, and so are its numbers and booleans.
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items() if value is not None]
    return "\n".join(lines) + "\n"


# --- tyro --------------------------------------------------------------------------------------
@dataclasses.dataclass(frozen=True)
class _Flags(TrainConfig):
    """The same fields without their rules, which are applied once all flags are known."""

    def __post_init__(self) -> None:
        pass


def _parse(words: list[str], base: TrainConfig, prog: str, about: str) -> _Flags:
    import tyro

    described = f"{about} --preset NAME chooses the defaults shown below "
    described += f"({', '.join(preset_names())}, or a TOML file)."
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(
                _Flags,
                default=_Flags(**dataclasses.asdict(base)),
                args=words,
                prog=prog,
                description=described,
            )
    except SystemExit as stop:
        if not stop.code:
            raise
        raise ConfigError(_sentence(said.getvalue(), prog)) from stop


def _sentence(box: str, prog: str) -> str:
    """What tyro says below the title of its frame, up to the next rule, as one sentence."""
    lines: list[str] = []
    for line in box.splitlines()[1:]:
        text = line.strip("│| ")
        if text.strip("─-═╰╯╭╮+ "):
            lines.append(text)
        elif lines:
            break
    text = " ".join(lines).rstrip(".")
    if found := re.search(r"^Unrecognized options: (.*)", text):
        unknown = found[1].split(", ")[0]
        kind = "flag" if unknown.startswith("-") else "word"
        return f"unknown {kind} {unknown}; `{prog} --help` shows what there is"
    if found := re.search(r"(--[\w-]+): invalid literal for int\(\).*: (.*)$", text):
        return f"{found[1]} must be a whole number, not {found[2]}"
    if found := re.search(r"(--[\w-]+): could not convert string to float: (.*)$", text):
        return f"{found[1]} must be a number, not {found[2]}"
    if found := re.search(r"invalid choice (.*) for argument '(--[\w-]+)'.*\((.*)\)", text):
        return f"{found[2]} must be one of {found[3].replace(chr(39), '')}, not {found[1]}"
    if found := re.search(r"^Missing value for argument '(--[\w-]+)'", text):
        return f"{found[1]} needs a value"
    return text[:1].lower() + text[1:]
