"""Whether a run that was killed is the run that was not: files, states and weights."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import torch

from warpzone.eval.weights import find_agent
from warpzone.run.checkpoints import Checkpoint, Checkpoints
from warpzone.train.saving import Saver, state_of

#: What a checkpoint holds about clocks, and about who observed the run.
CLOCKS = ("seconds", "observers")
#: Clocks among the counters.
COUNTED_CLOCKS = ("gpu_seconds",)
#: Where unkilled runs differ, a killed one may differ from them by so many times as much.
FACTOR = 3.0


def whole_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of a file; only the last line may be torn, and only until the next start."""
    if not path.is_file():
        return []
    lines = path.read_text().split("\n")
    return [json.loads(line) for line in lines[:-1]]


def same(first: Any, second: Any) -> bool:
    """Whether two parts of a checkpoint are one, bit for bit."""
    if type(first) is not type(second):
        return False
    if isinstance(first, torch.Tensor):
        alike = first.dtype == second.dtype and first.shape == second.shape
        return alike and bool(first.numpy().tobytes() == second.numpy().tobytes())
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        pairs = zip(first, second, strict=False)
        return len(first) == len(second) and all(same(a, b) for a, b in pairs)
    return bool(first == second)


def differing(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """The parts of two states that are not the same, clocks left out."""

    def timeless(state: dict[str, Any]) -> dict[str, Any]:
        kept = {name: part for name, part in state.items() if name not in CLOCKS}
        counters = state["counters"].items()
        return kept | {"counters": {k: v for k, v in counters if k not in COUNTED_CLOCKS}}

    one, two = timeless(first), timeless(second)
    names = sorted(one.keys() | two.keys())
    return [n for n in names if n not in one or n not in two or not same(one[n], two[n])]


def check_restores(report: Path) -> None:
    """In a process that will train: once it has restored a checkpoint, writes down which parts of
    the run are not, bit for bit, what the checkpoint holds."""
    restore = Saver.restore

    def restored(self: Saver, checkpoint: Checkpoint, *, at_home: bool) -> list[str]:
        notes = restore(self, checkpoint, at_home=at_home)
        run = self._run
        buffer = io.BytesIO()  # As a checkpoint holds it, wherever its tensors are.
        torch.save(state_of(run, lanes=True), buffer)
        buffer.seek(0)
        now = torch.load(buffer, map_location="cpu", weights_only=True)
        held = checkpoint.read_state()
        for state in (now, held):
            for group in state["learner"]["updater"]["optimizer"]["param_groups"]:
                del group["lr"]  # Every update computes it from the configuration.
        parts = differing(now, held)
        weights = {name: part.cpu() for name, part in run.agent.state_dict().items()}
        if not same(dict(checkpoint.read_weights(weights)), weights):
            parts.append("weights")
        row = {"update": run.global_update, "differing": parts, "notes": notes}
        handle = os.open(report, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        os.write(handle, (json.dumps(row) + "\n").encode())  # One call: never half a line.
        os.close(handle)
        return notes

    Saver.restore = restored  # type: ignore[method-assign]


def contents(state: dict[str, Any]) -> dict[str, int]:
    """How much of what makes a run stateful there was to lose."""
    guide, replay = state["collector"]["guide"], state["replay"]
    return {
        "moments_in_the_archive": len(guide["archive"]["numbers"]),
        "starts_from_the_archive": sum(moment[2] for moment in guide["archive"]["numbers"]),
        "stages_of_the_curriculum": len(guide["curriculum"]["episodes"]),
        "segments_in_the_replay": len(replay["storage"]["serials"]) if replay else 0,
        "samples_of_the_replay": replay["samples"] if replay else 0,
    }


def compare(killed: Path, untouched: Path) -> dict[str, Any]:
    """The last checkpoints bit for bit, and what was written down of episodes."""
    stems = [Checkpoints(folder / "checkpoints").stems()[0] for folder in (killed, untouched)]
    agents = [
        find_agent(folder / "checkpoints" / stem).agent.state_dict()
        for folder, stem in zip((killed, untouched), stems, strict=True)
    ]
    states = [
        Checkpoints(folder / "checkpoints").open(stem).read_state()
        for folder, stem in zip((killed, untouched), stems, strict=True)
    ]
    parts = differing(*states)
    names = ("global_step", "lane", "episode_return", "steps", "furthest_x")
    episodes = [
        [[row[name] for name in names] for row in whole_rows(folder / "episodes.jsonl")]
        for folder in (killed, untouched)
    ]
    alike = (a == b for a, b in zip(*episodes, strict=False))
    return {
        "same_update": stems[0] == stems[1],
        "same_weights": all(torch.equal(agents[0][name], agents[1][name]) for name in agents[0]),
        "same_state": not parts,
        "same_episodes": episodes[0] == episodes[1] and bool(episodes[0]),
        "parts_of_the_state": sorted(states[0].keys() - set(CLOCKS)),
        "differing_parts": parts,
        "largest_difference_of_weights": max(
            float((agents[0][name].double() - agents[1][name].double()).abs().max())
            for name in agents[0]
        ),
        "episodes": len(episodes[0]),
        "episodes_until_they_differ": next(
            (number for number, equal in enumerate(alike) if not equal), min(map(len, episodes))
        ),
        "at_the_end": contents(states[0]),
    }


def identical(found: dict[str, Any]) -> bool:
    """Whether `compare` found no difference at all."""
    return all(value for name, value in found.items() if name.startswith("same_"))


def judge_beside(killed: dict[str, Any], unkilled: dict[str, Any]) -> bool:
    """Whether a killed run is as close to an unkilled one as two unkilled ones are to each other:
    bit for bit if those are the same, else within `FACTOR` of what their weights differ by."""
    if identical(unkilled):
        return identical(killed)
    name = "largest_difference_of_weights"
    return bool(killed["same_update"]) and killed[name] <= FACTOR * unkilled[name]
