"""The default preset: chosen by stages and machine."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from warpzone.config import TrainConfig
from warpzone.env.stages import NUM_STAGES, parse_stages

#: For one stage and for several, each for a GPU and for the CPU; the first existing one is used.
ONE = {True: ("fast-1-1",), False: ("quick",)}
SEVERAL = {True: ("all", "all-cpu", "fast-1-1"), False: ("all-cpu", "quick")}


class Choice(NamedTuple):
    """A preset, and the reason in words."""

    name: str
    why: str


def choose_preset(stages: str, *, cuda: bool, known: Collection[str]) -> Choice:
    """The preset for a set of stages. `cuda`: whether the network runs on a GPU. `known`: the
    presets there are."""
    count = len(set(parse_stages(stages)))
    played = "the whole game" if count == 0 else "one stage" if count == 1 else f"{count} stages"
    names = (ONE if count == 1 else SEVERAL)[cuda]
    name = next((name for name in names if name in known), names[-1])
    return Choice(name, f"{played}, and the network runs on {'a GPU' if cuda else 'the CPU'}")


def fitted(preset: TrainConfig, stages: str) -> TrainConfig:
    """The chosen preset, without what these stages cannot have: the whole game has none to choose
    among, and goes on after a wrong turn."""
    if parse_stages(stages):
        return preset
    return preset.replace(curriculum="none", end_on_setback=False)


def made_for_others(preset: TrainConfig, config: TrainConfig) -> str:
    """Says that a preset was made for other stages than those that are played; empty if it was made
    for them."""
    made, played = _played(preset.stages), _played(config.stages)
    if played <= made:
        return ""
    return (
        f"was made for {preset.stages} and is used for {config.stages}: look at --size, --actions, "
        "--stagnation-limit and --max-steps"
    )


def _played(stages: str) -> set[int]:
    """The stages of a set; the whole game is more than all of them."""
    return set(parse_stages(stages)) or set(range(-1, NUM_STAGES))
