"""Agents with a name: those that come with the package, and those pulled from a hub. Each is three
files: weights, a description (the settings it acts with, how it was trained, what was measured) and
the same as a card for people. `scripts/make_agent.py` makes those of the package, and others are
fetched by `share/pulling.py`. Nothing here needs PyTorch."""

from __future__ import annotations

import difflib
from dataclasses import fields
from pathlib import Path, PurePath
from typing import Any

from warpzone.config import ConfigError, TrainConfig, from_dict
from warpzone.config.reward import RewardConfig
from warpzone.rom.paths import data_dir
from warpzone.run.matching import NETWORK
from warpzone.run.names import CARD_SUFFIX, DESCRIPTION_SUFFIX, WEIGHTS_SUFFIX
from warpzone.run.opening import read_file, read_json, read_object
from warpzone.run.reader import LATEST, is_run, named_run, runs_in

AGENTS = Path(__file__).parent.parent / "agents"
#: Before a name: the shipped agent, whatever else has that name.
PREFIX = "shipped:"
#: The same for agents that were pulled.
PULLED = "pulled:"
#: The field of a description that says what it is, and the number of its format.
KIND, FORMAT = "warpzone_agent", 1
#: The settings that make a network and what it sees.
SEEING = (*NETWORK, "frame_skip", "mask_status_bar", "crop_status_bar", "max_last_two")
#: The settings of a description: those, and what an evaluation plays and counts as return. All
#: others are about training.
ACTING = (
    *SEEING,
    *("stages", "rom"),
    *(field.name for field in fields(RewardConfig)),
)
#: Bytes of a card.
MOST_CARD = 1 << 20
#: Names that a sentence lists.
MOST_NAMES = 8


def shipped_names() -> list[str]:
    """The agents that come with the package."""
    return _names(AGENTS)


def pulled_folder() -> Path:
    """Where agents from a hub are kept; it need not be there."""
    return data_dir() / "agents"


def pulled_names() -> list[str]:
    """The agents that were pulled from a hub."""
    return _names(pulled_folder())


def agent_names() -> list[str]:
    """All agents with a name, those of the package first."""
    shipped = shipped_names()
    return [*shipped, *(name for name in pulled_names() if name not in shipped)]


def _names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob(f"*{WEIGHTS_SUFFIX}"))


def shipped_weights(name: str) -> Path:
    """The weights of an agent that is there; ConfigError if none has this name."""
    if name.startswith(PULLED):
        name = name.removeprefix(PULLED)
    elif name in shipped_names():
        return AGENTS / f"{name}{WEIGHTS_SUFFIX}"
    if name in pulled_names():
        return pulled_folder() / f"{name}{WEIGHTS_SUFFIX}"
    raise ConfigError(f"no agent {name!r} is shipped{_suggestion(name, agent_names())}")


def is_shipped(weights: Path) -> bool:
    """Whether a file of weights is one of the package's own."""
    return weights.parent == AGENTS


def has_name(weights: Path) -> bool:
    """Whether a file of weights is that of a shipped or pulled agent."""
    return weights.parent in (AGENTS, pulled_folder())


def read_description(name: str) -> dict[str, Any]:
    """All that is written down about an agent with a name; OSError if that cannot be read."""
    file = shipped_weights(name).with_suffix(DESCRIPTION_SUFFIX)
    try:
        values = read_object(file.parent, file.name)
    except ValueError as error:
        raise OSError(f"{file} cannot be read: {error}") from error
    if KIND not in values:
        raise OSError(f"{file} does not describe an agent")
    return values


def read_card(name: str) -> str:
    """The card of an agent with a name, as Markdown."""
    file = shipped_weights(name).with_suffix(CARD_SUFFIX)
    return read_file(file.parent, file.name, MOST_CARD).decode()


def description_beside(weights: Path) -> dict[str, Any]:
    """What is said about a file of weights by a description beside it; empty without one."""
    file = weights.with_suffix(DESCRIPTION_SUFFIX)
    values = read_json(file.parent, file.name) if file.is_file() else {}
    return values if KIND in values else {}


def described_config(description: dict[str, Any], weights: Path) -> TrainConfig:
    """The settings that an agent acts with."""
    file = weights.with_suffix(DESCRIPTION_SUFFIX)
    if description[KIND] != FORMAT:
        raise ConfigError(f"{file} was written by another version of warpzone")
    try:
        return from_dict(description["config"])
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{file} cannot be used: {error}") from error


# --- what a word of the command line means --------------------------------------------------------
def named_agent(word: str | Path, runs: Path) -> Path:
    """Where the agent is that a word names: something that exists, `latest`, a run below `runs`, or
    a shipped or pulled agent, in this order."""
    text = str(word)
    if text.startswith(PREFIX):
        name = text.removeprefix(PREFIX)
        if name not in shipped_names():
            raise ConfigError(f"no agent {name!r} is shipped{_suggestion(name, shipped_names())}")
        return _whole(name)
    if text.startswith(PULLED):
        name = text.removeprefix(PULLED)
        if name not in pulled_names():
            raise ConfigError(f"no agent {name!r} was pulled{_suggestion(name, pulled_names())}")
        return _whole(text)
    path = named_run(word, runs)
    if text == LATEST or not _is_name(text):
        return path
    known_here = text in agent_names()
    if _there(path):
        if known_here and path.is_dir() and not is_run(path) and not list(path.glob("*.json")):
            kind = "shipped" if text in shipped_names() else "pulled"
            raise ConfigError(
                f"{text} is a folder here, and no run; the agent that is {kind} is {kind}:{text}"
            )
        return path
    if known_here:
        return _whole(text)
    known = sorted(run.name for run in runs_in(runs) if run != runs)
    raise ConfigError(
        f"there is no file, run in {runs} or shipped agent {text!r}"
        + _suggestion(text, [*agent_names(), *known])
    )


def _whole(name: str) -> Path:
    """The weights of a shipped agent; OSError where nothing says what network they are of."""
    read_description(name)
    return shipped_weights(name)


def _is_name(text: str) -> bool:
    return PurePath(text).name == text and text not in ("", ".", "..")


def _there(path: Path) -> bool:
    """Whether a file or folder has this name; a checkpoint is named by what its files share."""
    return path.exists() or path.with_name(path.name + WEIGHTS_SUFFIX).exists()


def _suggestion(text: str, known: list[str]) -> str:
    """How the sentence about an unknown name ends: what it may have been, or what there is."""
    close = difflib.get_close_matches(text, known, n=3)
    if close:
        return f"; did you mean {' or '.join(close)}?"
    if not known:
        return ""
    more = ", …" if len(known) > MOST_NAMES else ""
    return f"; there is {', '.join(known[:MOST_NAMES])}{more}"
