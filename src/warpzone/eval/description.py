"""The description of an agent (`NAME.json` beside its weights, `config.json` on a hub): settings it
acts with, how it was trained, and what was measured. Its card (`eval/card.py`) is made of it."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from warpzone.config import TrainConfig, load_preset, preset_names
from warpzone.config.budget import BudgetConfig
from warpzone.eval import card
from warpzone.run.matching import FREE
from warpzone.run.shipped import ACTING, FORMAT, KIND

#: Of what may change at any time, what belongs into the command all the same.
BUDGET = {"eval_interval", *(field.name for field in dataclasses.fields(BudgetConfig))}
UNKNOWN = "not recorded"
#: Characters of a command that is taken from a run's folder.
MOST_COMMAND = 500


def training_command(values: Mapping[str, Any], preset: str) -> str:
    """The command that a run's configuration comes from, without places and machines."""
    usual = dataclasses.asdict(load_preset(preset))
    # What the code of the run did not know yet was as by default.
    defaults = dataclasses.asdict(TrainConfig())
    values = {**defaults, **values}
    words = ["warpzone", "train", "--preset", preset]
    for name, value in values.items():
        # A field that only the code of the run knew is part of how it was trained.
        if value is None or value == usual.get(name) or name in FREE - BUDGET:
            continue
        flag = name.replace("_", "-")
        if name == "ways":
            # Where somebody kept them is nobody's business.
            value = PurePath(value).name
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words += [f"--{flag}", shlex.quote(str(value))]
    return " ".join(words)


def shortest_command(values: Mapping[str, Any]) -> str:
    """The same, told against the preset that leaves least to say."""
    return min((training_command(values, preset) for preset in preset_names()), key=len)


def taught_command(session: Mapping[str, Any]) -> str | None:
    """The `warpzone teach` that a start of a run recorded; None if it trained, or if the words are
    none of that command."""
    command = session.get("taught")
    if not isinstance(command, str) or not command.startswith("warpzone teach "):
        return None
    return command if len(command) < MOST_COMMAND and command.isprintable() else None


def network_words(config: Mapping[str, Any]) -> str:
    """A network in a few words."""
    encoder = config["encoder"] if config["observation"] == "pixels" else config["observation"]
    parts = [f"{encoder} encoder of width {config['encoder_width']:g}"]
    if config["memory"] != "none":
        parts.append(f"{config['memory']} of {config['hidden_size']}")
    if config["previous_action"]:
        parts.append("previous action")
    size, stack = config["size"], config["frame_stack"]
    return f"{', '.join(parts)}; {stack} x {size}x{size}, {config['actions']} actions"


def describe(
    name: str,
    values: Mapping[str, Any],
    file: Mapping[str, Any],
    training: Mapping[str, Any],
    documents: Sequence[Mapping[str, Any]],
    *,
    notes: Sequence[str] = (),
    measured_on: str = "",
) -> dict[str, Any]:
    """All that is written down about an agent.

    values: the configuration of its run. file: sha256, bytes, parameters and precision of its
    weights. documents: what `warpzone eval --json` wrote about these weights.
    """
    usual = dataclasses.asdict(TrainConfig())
    config = {field: values.get(field, usual[field]) for field in ACTING}
    played = [document for document in documents if "episodes" in document]
    about: dict[str, Any] = {
        KIND: FORMAT,
        "name": name,
        **file,
        "network": network_words(config),
        "config": config,
        "training": dict(training),
        "notes": list(notes),
        "measured_on": measured_on,
        "measured": card.measured(played),
        "games": card.games([document for document in documents if "games" in document]),
        "sample": [],
    }
    if about["measured"] and "argmax" in about["measured"][0]["clears"]:
        first = about["measured"][0]
        rows = [
            row
            for document in played
            if (document.get("rom") or "eu", document["delays"]) == (first["rom"], first["delays"])
            for row in document["episodes"]
        ]
        about["sample"] = card.sample(rows, first["clears"]["argmax"])
    return about


def as_text(about: Mapping[str, Any]) -> str:
    """A description as a file; places where episodes fail stay on a line."""
    text = json.dumps(about, indent=1)
    return re.sub(r"\[\s+(\d+),\s+(\d+),\s+(\d+)\s+\]", r"[\1, \2, \3]", text) + "\n"
