"""A ring of rollout segments: frames once as uint8, numbers beside them, memory at the start."""

import os
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from warpzone.data.types import Rollout, State

#: Numbers beyond this are infinite in FP16; they are stored as the largest that is not.
FP16_MAX = 65504.0
#: Stored in FP16: nothing is computed from their differences. Log-probabilities and logits stay
#: exact, because importance ratios are.
HALVED = ("values", "final_value", "rewards")


def fp16_scalars_default() -> bool:
    """FP16 unless the environment says MARIO_PER_FP16_SCALARS=0."""
    return os.environ.get("MARIO_PER_FP16_SCALARS", "1") != "0"


@dataclass(frozen=True)
class SegmentSpec:
    """What a segment is made of."""

    #: Steps.
    length: int
    #: Frames in an observation.
    stack: int
    #: Height and width of a frame.
    picture: tuple[int, int]
    #: Number of actions.
    actions: int
    #: Shape and type of each part of a lane's memory state.
    state: tuple[tuple[tuple[int, ...], torch.dtype], ...] = ()
    #: Whether rewards and values take two bytes instead of four.
    fp16_scalars: bool = field(default_factory=fp16_scalars_default)

    def __post_init__(self) -> None:
        if self.length < 1:
            raise ValueError(f"a segment has at least one step, not {self.length}")

    def layout(self) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
        """Shape and type of every array of one segment."""
        scalar = torch.float16 if self.fp16_scalars else torch.float32
        action = torch.uint8 if self.actions <= 256 else torch.int64
        steps = (self.length,)
        arrays: dict[str, tuple[tuple[int, ...], torch.dtype]] = {
            "frames": ((self.length + self.stack, *self.picture), torch.uint8),
            "age": ((self.length + 1,), torch.int32),
            "actions": (steps, action),
            "previous_actions": ((self.length + 1,), action),
            "logits": ((self.length, self.actions), torch.float32),
            "log_prob": (steps, torch.float32),
            "values": (steps, scalar),
            "last_value": ((), torch.float32),
            "final_value": (steps, scalar),
            "rewards": (steps, scalar),
            "terminated": (steps, torch.bool),
            "truncated": (steps, torch.bool),
            "forced": (steps, torch.bool),
        }
        return arrays | {f"state{index}": part for index, part in enumerate(self.state)}

    @property
    def bytes(self) -> int:
        """What one segment takes."""
        total = 0
        for shape, dtype in self.layout().values():
            total += torch.Size(shape).numel() * dtype.itemsize
        return total

    def capacity(self, memory_bytes: int) -> int:
        """How many segments fit; ValueError if none does."""
        count = memory_bytes // self.bytes
        if count < 1:
            height, width = self.picture
            raise ValueError(
                f"a replay memory of {memory_bytes / 2**20:.2f} MiB cannot hold one segment: "
                f"{self.length} steps of {height}x{width} frames need {self.bytes / 2**20:.2f} MiB"
            )
        return count


def state_layout(state: State) -> tuple[tuple[tuple[int, ...], torch.dtype], ...]:
    """Shape and type of one lane's part of a state, for `SegmentSpec.state`."""
    return tuple((tuple(part.shape[1:]), part.dtype) for part in state)


class Ring(Protocol):
    """A ring of segments, here or dealt to ranks."""

    capacity: int

    def fits(self, arrays: dict[str, Tensor]) -> bool:
        """Whether saved arrays are of such segments."""


class SegmentStorage:
    """Writes rollouts cut into segments over the oldest ones; reads any set of them."""

    def __init__(self, spec: SegmentSpec, capacity: int, device: torch.device | str) -> None:
        if capacity < 1:
            raise ValueError(f"a replay memory holds at least one segment, not {capacity}")
        self.spec = spec
        self.capacity = capacity
        self.device = torch.device(device)
        self.size = 0
        #: Segments ever written; the next one goes to slot `written % capacity`.
        self.written = 0
        # Empty, not zeroed: on the CPU, pages that are never written are never taken.
        self._arrays = {
            name: torch.empty((capacity, *shape), dtype=dtype, device=self.device)
            for name, (shape, dtype) in spec.layout().items()
        }
        #: Which segment a slot holds; tells a sampled segment from its successor in the slot.
        self._serials = torch.full((capacity,), -1, dtype=torch.int64, device=self.device)

    def push(self, rollout: Rollout) -> Tensor:
        """Stores every segment of the rollout, oldest first, and returns their slots. Of more
        segments than fit, the last ones stay."""
        length, lanes = self.spec.length, rollout.lanes
        pieces, rest = divmod(rollout.length, length)
        if rest or pieces == 0:
            raise ValueError(
                f"a rollout of {rollout.length} steps does not divide into segments of {length}"
            )
        if rollout.state and pieces > 1:
            raise ValueError(
                f"a rollout of {pieces} segments knows the memory before the first one only"
            )
        count = pieces * lanes
        serials = torch.arange(self.written, self.written + count, device=self.device)
        for piece in range(pieces):
            here = serials[piece * lanes : (piece + 1) * lanes]
            self._write(here, _cut(rollout, piece * length, length, rollout.state))
        self.written += count
        self.size = min(self.capacity, self.size + count)
        return serials[-self.capacity :] % self.capacity

    def _write(self, serials: Tensor, values: dict[str, Tensor]) -> None:
        # No slot twice in one copy: which of the two would stay is undefined.
        serials = serials[-self.capacity :]
        slots = serials % self.capacity
        for name, source in values.items():
            target = self._arrays[name]
            source = source[-self.capacity :].to(self.device, non_blocking=True)
            if target.dtype == torch.float16:
                source = source.clamp(-FP16_MAX, FP16_MAX)
            target.index_copy_(0, slots, source.to(target.dtype))
        self._serials.index_copy_(0, slots, serials)

    def gather(self, slots: Tensor) -> Rollout:
        """The segments in the given slots, side by side as lanes of one rollout."""
        slots = slots.to(self.device)
        values: dict[str, Any] = {}
        for name, array in self._arrays.items():
            if name.startswith("state"):
                continue
            values[name] = _time_major(array, slots) if array.ndim > 1 else array[slots]
        for name in (*HALVED, "last_value"):
            values[name] = values[name].float()
        for name in ("actions", "previous_actions", "age"):
            values[name] = values[name].long()
        # What a search showed is imitated when it is played; later, the way may be mastered.
        values["shown"] = torch.zeros_like(values["forced"])
        parts = [f"state{index}" for index in range(len(self.spec.state))]
        state = tuple(self._arrays[name].index_select(0, slots) for name in parts)
        return Rollout(**values, state=state)

    def serials(self, slots: Tensor) -> Tensor:
        """Which segments the slots hold now."""
        return self._serials[slots.to(self.device)]

    def state_dict(self) -> dict[str, Any]:
        """Only what is filled, copied to the CPU, so writing on does not change it."""
        filled = self._arrays | {"serials": self._serials}
        arrays = {name: array[: self.size].to("cpu", copy=True) for name, array in filled.items()}
        serials = arrays.pop("serials")
        where = {"capacity": self.capacity, "written": self.written}
        return where | {"serials": serials, "arrays": arrays}

    def read(self, slots: Tensor) -> dict[str, Tensor]:
        """The arrays of segments in some slots as they are stored, copied to the CPU."""
        return {name: array[slots].to("cpu", copy=True) for name, array in self._arrays.items()}

    def fill(self, arrays: dict[str, Tensor]) -> None:
        """Instead of all that is stored: segments as `read` gives them, oldest first."""
        count = len(next(iter(arrays.values())))
        for name, array in arrays.items():
            self._arrays[name][:count].copy_(array)
        self.size = self.written = count

    def fits(self, arrays: dict[str, Tensor]) -> bool:
        """Whether saved arrays are of such segments."""
        shapes = {name: tuple(array.shape[1:]) for name, array in self._arrays.items()}
        return shapes == {name: tuple(array.shape[1:]) for name, array in arrays.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        size = int(state["serials"].shape[0])
        require_same_ring(self, state)
        for name, array in state["arrays"].items():
            self._arrays[name][:size].copy_(array)
        self._serials.fill_(-1)
        self._serials[:size].copy_(state["serials"])
        self.size = size
        self.written = int(state["written"])


def require_same_ring(ring: Ring, state: dict[str, Any]) -> None:
    """ValueError if a saved ring is of other segments or another size."""
    if not ring.fits(state["arrays"]) or ring.capacity != int(state["capacity"]):
        raise ValueError(
            "the saved replay memory has other segments or another capacity "
            f"({state['capacity']}, not {ring.capacity})"
        )


def _cut(rollout: Rollout, start: int, length: int, state: State) -> dict[str, Tensor]:
    """One segment of every lane, lanes first."""
    rows = {"frames": length + rollout.stack, "age": length + 1, "previous_actions": length + 1}
    values = {
        name: value[start : start + rows.get(name, length)].transpose(0, 1)
        for name, value in zip(rollout._fields, rollout, strict=True)
        if isinstance(value, Tensor) and name not in ("last_value", "shown")
    }
    ends = start + length == rollout.length
    values["last_value"] = rollout.last_value if ends else rollout.values[start + length]
    return values | {f"state{index}": part for index, part in enumerate(state)}


def _time_major(array: Tensor, slots: Tensor) -> Tensor:
    """[capacity, R, ...] -> [R, N, ...], contiguous, in one gather."""
    rows = array.shape[1]
    index = slots[None, :] * rows + torch.arange(rows, device=array.device)[:, None]
    picked = array.flatten(0, 1).index_select(0, index.flatten())
    return picked.view(rows, slots.shape[0], *array.shape[2:])
