"""Words of the command line as a configuration, by tyro; what it says against them becomes one
sentence."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import re

from warpzone.cli.durations import demand, plain, units
from warpzone.cli.suggest import unknown
from warpzone.config import ConfigError, TrainConfig, preset_names
from warpzone.config.bounds import annotated, flag

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
#: Flags that are no fields of the configuration.
OTHERS = {"--preset", "--dry-run", "--config-out", "--notify", "--ray", "--help"}


@dataclasses.dataclass(frozen=True)
class Flags(TrainConfig):
    """The same fields without their rules, which are applied once all flags are known."""

    def __post_init__(self) -> None:
        pass


def parse(words: list[str], base: Flags, prog: str, about: str) -> Flags:
    """What the words change; ConfigError with one sentence for those that are wrong. `--help`
    prints the flags and ends the program."""
    import tyro

    described = f"{about} --preset NAME takes other ones ({', '.join(preset_names())}, or a TOML "
    described += "file); without it one is chosen that fits stages and machine."
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(
                Flags,
                default=base,
                args=plain(words),
                prog=prog,
                description=described,
            )
    except SystemExit as stop:
        if not stop.code:
            raise
        raise ConfigError(sentence(said.getvalue(), prog)) from stop


def sentence(box: str, prog: str) -> str:
    """The text of tyro's error box, without frame and title, as one sentence."""
    lines: list[str] = []
    # On a terminal the box has colours.
    for line in COLOURS.sub("", box).splitlines()[1:]:
        text = line.strip("│| ")
        if text.strip("─-═╰╯╭╮+ "):
            lines.append(text)
        elif lines:
            break
    text = " ".join(lines).rstrip(".")
    if found := re.search(r"^Unrecognized options: (.*)", text):
        known = {flag(field.name) for field in annotated(TrainConfig)} | OTHERS
        text = unknown(re.split(r",? ", found[1])[0], known)
        return f"{text}{'' if text.endswith('?') else ';'} `{prog} --help` shows what there is"
    if found := re.search(r"(--[\w-]+): invalid literal for int\(\).*: (.*)$", text):
        return f"{found[1]} must be a whole number, not {found[2]}"
    if found := re.search(r"(--[\w-]+): could not convert string to float: (.*)$", text):
        unit = units().get(found[1])
        return f"{found[1]} {demand(unit) if unit else 'must be a number'}, not {found[2]}"
    if found := re.search(r"invalid choice (.*) for argument '(--[\w-]+)'.*\((.*)\)", text):
        return f"{found[2]} must be one of {found[3].replace(chr(39), '')}, not {found[1]}"
    if found := re.search(r"^Missing value for argument '(--[\w-]+)'", text):
        return f"{found[1]} needs a value"
    return text[:1].lower() + text[1:]
