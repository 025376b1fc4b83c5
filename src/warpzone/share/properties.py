"""What a stranger has to know to play with an exported network, as text by name."""

from __future__ import annotations

import json
from pathlib import Path

import warpzone
from warpzone.env.actions import action_table
from warpzone.eval.weights import Found
from warpzone.run.files import sha256
from warpzone.run.names import CHECKPOINTS
from warpzone.run.shipped import SEEING, has_name
from warpzone.share.playing import NEW, Playing


def agent_name(found: Found) -> str:
    """A short name: a shipped or pulled agent's own, else that of the run's folder."""
    if has_name(found.path):
        return found.path.stem
    folder = found.path.absolute().parent
    return folder.parent.name if folder.name == CHECKPOINTS else folder.name


def properties(found: Found, playing: Playing) -> dict[str, str]:
    """The settings that it must be played with, and which weights these are."""
    config, table = found.config, action_table(found.config.actions)
    spec = found.agent.spec
    values = {
        "warpzone_version": warpzone.__version__,
        "agent": agent_name(found),
        "weights_sha256": sha256(found.path),
        "global_step": found.global_step,
        "stages": config.stages,
        # A file of the user's is only its name here: where it lies is nobody's business.
        "rom": Path(config.rom).name if config.rom else "eu",
        "observation": config.observation,
        "picture": f"{spec.width}x{spec.height * spec.colors}",
        "frame_stack": config.frame_stack,
        "frame_skip": config.frame_skip,
        "actions": config.actions,
        "action_names": list(table.names),
        "action_masks": list(table.masks),
        "inputs": list(playing.inputs),
        "outputs": list(playing.outputs),
        "config": {name: getattr(config, name) for name in SEEING},
    }
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in values.items()
    }


def how_to_play(playing: Playing) -> str:
    """The same as sentences, for whoever opens the file."""
    parts = [
        "One decision of an agent of warpzone for any number of lanes. obs: uint8 pictures as "
        "warpzone's environments show them with the settings of the property config, oldest frame "
        "first. logits: one for each action; the largest is the agent's choice. value: the return "
        "that it expects."
    ]
    if playing.sees_previous:
        parts.append("previous_action: the action of the step before, 0 in the first step.")
    if playing.sees_starts:
        parts.append("starts: true for lanes in which an episode begins with these pictures.")
    for name in playing.state:
        parts.append(f"{name}: what {NEW}{name} was in the step before, zeros in the first step.")
    return " ".join(parts)
