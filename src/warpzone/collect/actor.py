"""Acts for one group of lanes: newest frames in, actions out, everything between on the device."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise

import torch
from torch import Tensor

from warpzone.collect.garbage import uncollected
from warpzone.config import TrainConfig
from warpzone.config.optimisation import OptimisationConfig
from warpzone.data.stacking import wide
from warpzone.data.types import State
from warpzone.model.agent import Agent
from warpzone.model.compiling import compiled
from warpzone.model.heads import sample_action

WARM_UP = 3
#: Stream priority of decisions, for which the engine waits.
FIRST = -1


def autocast(config: OptimisationConfig, device: torch.device) -> AbstractContextManager[None]:
    """Half precision on CUDA if wanted. The weight cache is off: it would outlive a recorded
    graph."""
    if device.type != "cuda" or not config.amp:
        return nullcontext()
    return torch.autocast("cuda", getattr(torch, config.amp_dtype), cache_enabled=False)


class Actor:
    """The network's view of a group of lanes. All tensors keep their place in memory, so that the
    whole decision can be recorded once as a CUDA graph and replayed."""

    def __init__(self, config: TrainConfig, agent: Agent, lanes: int, device: torch.device) -> None:
        self._config = config
        self._agent = agent
        self._device = device
        self._act = compiled(agent.act, config)
        size = (lanes, *config.picture)
        actions = agent.spec.actions
        self.frame = torch.zeros(size, dtype=torch.uint8, device=device)
        self.fresh = torch.ones(lanes, dtype=torch.bool, device=device)
        #: `fresh` as the host knows it.
        self.starts = torch.ones(lanes, dtype=torch.bool, pin_memory=device.type == "cuda")
        self.stack = torch.zeros(
            (lanes, config.frame_stack, *config.picture), dtype=torch.uint8, device=device
        )
        self.action = torch.zeros(lanes, dtype=torch.int64, device=device)
        self.previous = torch.zeros_like(self.action)
        self.logits = torch.zeros((lanes, actions), device=device)
        self.log_prob = torch.zeros(lanes, device=device)
        self.value = torch.zeros(lanes, device=device)
        #: Uniform numbers that the next decision samples with; drawn by the caller on the CPU,
        #: inside the decision on CUDA, where a graph must advance the device's own generator.
        self.uniform = torch.zeros((lanes, actions), device=device)
        #: Memory before the current decision; `_next` is the memory after it.
        self.state: State = agent.initial_state(lanes, device=device)
        self._next: State = tuple(part.clone() for part in self.state)
        self._replay: Callable[[], None] | None = None

    @property
    def memory(self) -> State:
        """The memory that the next decision starts from."""
        return self._next

    def tensors(self) -> list[Tensor]:
        """Everything that a decision changes."""
        kept = [self.stack, self.action, self.previous, self.logits, self.log_prob, self.value]
        return [*kept, *self.state, *self._next]

    def kept(self) -> dict[str, Tensor]:
        """What the next decision depends on, by lane."""
        memory = {f"memory{index}": part for index, part in enumerate(self._next)}
        plain = {"frame": self.frame, "fresh": self.fresh, "stack": self.stack}
        return plain | {"action": self.action} | memory

    @torch.no_grad()
    def observe(self) -> None:
        """Takes `frame` (and `fresh`: lanes whose episode starts with it) as the newest one."""
        if self._device.type == "cpu":
            self._shift()
        else:
            self.stack.copy_(self._shifted())
        self.previous.copy_(self.action)
        for before, after in zip(self.state, self._next, strict=True):
            before.copy_(after)

    def _shifted(self) -> Tensor:
        """The stack with `frame` as its newest, without a synchronisation with the device."""
        stack, newest = wide(self.stack), wide(self.frame)[:, None]
        shifted = torch.cat((stack[:, 1:], newest), 1)
        stack = torch.where(self.fresh[:, None, None], newest, shifted)
        return stack.view(torch.uint8).view_as(self.stack)

    def _shift(self) -> None:
        """The same in place. On a CPU the fresh lanes are looked up: mostly none."""
        for older, newer in pairwise((*self.stack.unbind(1), self.frame)):
            older.copy_(newer)
        if self.fresh.any():
            self.stack[self.fresh] = self.frame[self.fresh][:, None]

    @torch.no_grad()
    def choose(self) -> None:
        """`decide`, without a graph."""
        self.observe()
        with autocast(self._config, self._device):
            logits, value, after = self._act(self.stack, self.previous, self.state, self.fresh)
        logits = logits.float()
        if self._device.type == "cuda":
            self.uniform.uniform_()
        action, log_prob = sample_action(logits, self.uniform)
        self.logits.copy_(logits)
        self.action.copy_(action)
        self.log_prob.copy_(log_prob)
        self.value.copy_(value.float())
        for kept, new in zip(self._next, after, strict=True):
            kept.copy_(new)

    def decide(self) -> None:
        """Observes and chooses; the results are in `action`, `logits`, `log_prob` and `value`.
        `memory` is then what the next decision will start from."""
        if self._device.type != "cuda" or not self._config.graphs:
            self.choose()
            return
        if self._replay is None:
            self._replay = record(self.choose, self.tensors(), priority=FIRST, draws=True)
        self._replay()

    @torch.no_grad()
    def peek(self) -> Tensor:
        """The value of the observation in `frame`, without taking it."""
        with autocast(self._config, self._device):
            _, value, _ = self._agent.act(self._shifted(), self.action, self._next, self.fresh)
        return value.float()


def record(
    function: Callable[[], None], tensors: list[Tensor], *, priority: int = 0, draws: bool = False
) -> Callable[[], None]:
    """A CUDA graph of `function`. Warming up and recording must leave `tensors` as they were, and
    the device's generator if `function` draws from it: a resumed run records anew, and would draw
    other numbers than one that was not interrupted. A graph keeps the priority it was recorded
    with, whatever stream it is replayed on."""
    saved = [tensor.clone() for tensor in tensors]
    drawn = torch.cuda.get_rng_state() if draws else None
    stream = torch.cuda.Stream(priority=priority)  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            function()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    # A graph of an earlier run in this process may be garbage: freeing it ends the recording.
    gc.collect()
    with uncollected(), torch.cuda.graph(graph, stream=stream):
        function()
    for tensor, value in zip(tensors, saved, strict=True):
        tensor.copy_(value)
    if drawn is not None:
        torch.cuda.set_rng_state(drawn)
    return graph.replay
