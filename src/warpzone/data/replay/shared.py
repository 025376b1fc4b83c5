"""The ring of segments of several ranks. Each stores those of its own lanes, and knows which
segments are in the slots of the whole ring; so all draw the same slots."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpzone.data.replay.storage import SegmentSpec, SegmentStorage, require_same_ring
from warpzone.data.types import Rollout

#: Rollouts for which a rank has room beside those that are in the ring: what was loaded was dealt
#: otherwise than what is pushed.
SPARE = 2


class Part(NamedTuple):
    """Which lanes of a run a rank has."""

    rank: int
    ranks: int
    #: Of all ranks.
    lanes: int

    @property
    def share(self) -> int:
        """Lanes of a rank."""
        return self.lanes // self.ranks


class SharedStorage:
    """What `SegmentStorage` does, with the segments of the other ranks elsewhere."""

    def __init__(
        self, spec: SegmentSpec, capacity: int, device: torch.device | str, part: Part
    ) -> None:
        """capacity: of the whole ring."""
        self.spec = spec
        self.capacity = capacity
        self.device = torch.device(device)
        self._part = part
        self.size = 0
        self.written = 0
        room = (-(-capacity // part.lanes) + SPARE) * part.share
        self._own = SegmentStorage(spec, room, device)
        #: By slot of the ring: which segment it holds, and where that is here; -1: it is not.
        self._serials, self._places = (
            torch.full((capacity,), -1, dtype=torch.int64, device=self.device) for _ in range(2)
        )

    @property
    def own_bytes(self) -> int:
        """What this rank's segments take."""
        return self._own.capacity * self.spec.bytes

    def push(self, rollout: Rollout) -> Tensor:
        """Stores the segments of this rank's lanes, one each, while the other ranks do the same;
        the slots of all. Of more segments than fit, the last ones stay."""
        part = self._part
        if rollout.length != self.spec.length or rollout.lanes != part.share:
            raise ValueError(
                f"a rank stores {part.share} segments of {self.spec.length} steps at once, not "
                f"{rollout.lanes} of {rollout.length}"
            )
        places = torch.full((part.lanes,), -1, dtype=torch.int64, device=self.device)
        places[part.rank * part.share :][: part.share] = self._own.push(rollout)
        serials = torch.arange(self.written, self.written + part.lanes, device=self.device)
        slots = self._note(serials, places)
        self.written += part.lanes
        self.size = min(self.capacity, self.size + part.lanes)
        return slots

    def _note(self, serials: Tensor, places: Tensor) -> Tensor:
        kept = slice(-self.capacity, None)
        slots = serials[kept] % self.capacity
        self._serials[slots] = serials[kept]
        self._places[slots] = places[kept]
        return slots

    def gather(self, slots: Tensor) -> Rollout:
        """Those of the segments in the given slots that this rank has, in their order."""
        places = self._places[slots.to(self.device)]
        return self._own.gather(places[places >= 0])

    def is_own(self, slots: Tensor) -> Tensor:
        """bool: whether this rank has the segments in these slots."""
        return self._places[slots.to(self.device)] >= 0

    def serials(self, slots: Tensor) -> Tensor:
        """Which segments the slots hold now."""
        return self._serials[slots.to(self.device)]

    def fits(self, arrays: dict[str, Tensor]) -> bool:
        """Whether saved arrays are of such segments."""
        return self._own.fits(arrays)

    def state_dict(self) -> dict[str, Any]:
        """This rank's segments and their slots; `joined` makes one state of those of all ranks."""
        slots = torch.nonzero(self._places[: self.size] >= 0).squeeze(1)
        arrays = self._own.read(self._places[slots])
        return {
            "capacity": self.capacity,
            "written": self.written,
            "serials": self._serials[: self.size].to("cpu", copy=True),
            "slots": slots.cpu(),
            "arrays": arrays,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores the state of a whole ring, from whatever number of ranks, and keeps its part."""
        serials = state["serials"]
        require_same_ring(self, state)
        # Dealt by age, which is by lane if as many lanes were pushed as there are now.
        order = serials.argsort()
        owners = serials[order] % self._part.lanes // self._part.share
        mine = torch.nonzero(owners == self._part.rank).squeeze(1)
        places = torch.full_like(owners, -1)
        self._own.fill({name: part[order[mine]] for name, part in state["arrays"].items()})
        places[mine] = torch.arange(len(mine))
        self._serials.fill_(-1)
        self._places.fill_(-1)
        self._note(serials[order].to(self.device), places.to(self.device))
        self.size = int(serials.shape[0])
        self.written = int(state["written"])


def joined(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The states of all ranks as one process would save the ring."""
    first = parts[0]
    size = len(first["serials"])
    arrays = {}
    for name, own in first["arrays"].items():
        whole = torch.empty((size, *own.shape[1:]), dtype=own.dtype)
        for part in parts:
            whole[part["slots"]] = part["arrays"][name]
        arrays[name] = whole
    return {name: first[name] for name in ("capacity", "written", "serials")} | {"arrays": arrays}
