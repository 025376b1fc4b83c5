"""What ranks have together: the folder, which the first one opens, and a checkpoint."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from warpzone.collect.packing import pack, unpack
from warpzone.collect.ranks import Ranks
from warpzone.config import TrainConfig
from warpzone.run.elsewhere import Elsewhere
from warpzone.run.folder import RunFolder
from warpzone.run.resume import Start

#: Of the collector's state: what it has of each lane, and sums by lane.
LANES = ("lanes", "actors", "history", "age", "infos")
SUMS = ("returns", "steps")


def open_folder(start: Start, config: TrainConfig, ranks: Ranks) -> RunFolder:
    """The run's folder: rank 0 opens and locks it, the others learn its name."""
    opened: list[RunFolder] = []

    def work() -> str:
        opened.append(start.open_folder(config))
        return str(opened[0].path)

    path = ranks.told(work)
    return opened[0] if opened else Elsewhere(Path(path))


def joined(collector: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The state of rank 0's collector with the lanes of all ranks, in the order of the run. It is
    what one process with all lanes would save."""
    whole = dict(collector)
    episodes = {name: [value for one in parts for value in one["episodes"][name]] for name in SUMS}
    whole["episodes"] = {**collector["episodes"], **episodes}
    if not all("lanes" in part for part in parts):
        # A rank whose lanes cannot be saved: all start again.
        return {name: value for name, value in whole.items() if name not in LANES}
    whole["lanes"] = pack([lane for part in parts for lane in unpack(part["lanes"])])
    names = parts[0]["actors"]
    whole["actors"] = {name: torch.cat([part["actors"][name] for part in parts]) for name in names}
    whole["history"] = torch.cat([part["history"] for part in parts], 1)
    for name in ("age", "infos"):
        if name in whole:
            whole[name] = torch.cat([part[name] for part in parts])
    return whole


def own_lanes(collector: Mapping[str, Any]) -> dict[str, Any]:
    """What `joined` needs of a rank."""
    kept = {name: collector[name] for name in LANES if name in collector}
    return {**kept, "episodes": {name: collector["episodes"][name] for name in SUMS}}


def random_state(ranks: Ranks) -> dict[str, Any]:
    """The global RNG state of this process. Other generators are saved with their owners."""
    kind, keys, place, has_gauss, cached = np.random.get_state(legacy=True)
    version, numbers, gauss = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "cuda": _cuda_state(ranks),
        "numpy": [str(kind), _tensor(keys), place, has_gauss, cached],
        "python": [version, list(numbers), gauss],
    }


def _cuda_state(ranks: Ranks) -> list[torch.Tensor]:
    """Of all GPUs; of a rank's own if there are others, which have GPUs of their own."""
    if not torch.cuda.is_available():
        return []
    return [torch.cuda.get_rng_state()] if ranks.grouped else torch.cuda.get_rng_state_all()


def load_random_state(state: Mapping[str, Any], ranks: Ranks) -> None:
    """Restores the global RNG state. A GPU that was not present before keeps its own."""
    torch.set_rng_state(state["torch"])
    if torch.cuda.is_available():
        if ranks.grouped and len(state["cuda"]) == 1:
            torch.cuda.set_rng_state(state["cuda"][0])
        elif not ranks.grouped and len(state["cuda"]) == torch.cuda.device_count():
            torch.cuda.set_rng_state_all(state["cuda"])
    kind, keys, place, has_gauss, cached = state["numpy"]
    np.random.set_state((kind, keys.numpy().astype(np.uint32), place, has_gauss, cached))
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))


def _tensor(words: Any) -> torch.Tensor:
    return torch.from_numpy(np.asarray(words, np.int64))
