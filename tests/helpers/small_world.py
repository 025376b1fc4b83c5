"""A world in which the examples of the pages are over at once: evaluations look at one start delay,
and stall soon."""

import sys
from pathlib import Path
from typing import Any

import pytest
from examples import files_in
from tiny_runs import tiny

from warpzone.env import outside
from warpzone.eval import evaluate as protocol
from warpzone.train import api


def shrink(patch: pytest.MonkeyPatch, stuck_after: int = 20) -> None:
    """Evaluations of one start delay, which end where a few steps bring no new ground."""
    whole = protocol.evaluate

    def evaluate(*args: Any, **fields: Any) -> Any:
        return whole(*args, **{**fields, "delays": (0,)})

    patch.setattr("warpzone.train.evaluator.evaluate", evaluate)
    patch.setattr("warpzone.teach.course.evaluate", evaluate)
    patch.setattr("warpzone.eval.loaded.evaluate", evaluate)
    patch.setattr("warpzone.eval.loaded.DELAYS", (0,))
    patch.setattr(protocol, "STUCK_AFTER", stuck_after)


def own_modules() -> list[str]:
    return [name.removesuffix(".py") for name in files_in("plug-ins.md")]


def enter(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """A folder with the plug-ins of the guide; what is agreed to and loaded is forgotten after."""
    for name, text in files_in("plug-ins.md").items():
        (folder / name).write_text(text)
    patch.chdir(folder)
    patch.setattr(outside, "agreed_folder", lambda: folder / "agreed")
    patch.setattr(outside, "_agreed", set[str]())
    patch.setattr(outside, "_loaded", {})
    for name in own_modules():
        patch.delitem(sys.modules, name, raising=False)


def trained(folder: Path, name: str) -> Path:
    """The folder of a run that did everything once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "STUCK_AFTER", 20)
        return api.train(tiny(runs_dir=str(folder), run_name=name), quiet=True).folder
