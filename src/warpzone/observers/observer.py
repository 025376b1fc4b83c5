"""What an observer of a run is told, and what it may see of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch

    from warpzone.collect.collector import Collected, Collector
    from warpzone.config import TrainConfig
    from warpzone.eval.evaluate import Outcome
    from warpzone.health.pulse import Pulse
    from warpzone.learn.learner import Learner
    from warpzone.model.agent import Agent
    from warpzone.observers.progress import Progress
    from warpzone.run.checkpoints import Checkpoint
    from warpzone.run.folder import RunFolder


class Flag(Protocol):
    """Something that is set or not."""

    def __bool__(self) -> bool: ...


class ObservedRun(Protocol):
    """A run as its observers see it; `train.loop.Run` is one."""

    #: The clock at which the run would have begun without pauses; an observer that holds the run up
    #: moves it.
    started: float
    #: Set by an observer that needs `between`; then the next update collects nothing ahead.
    rest_wanted: bool

    @property
    def config(self) -> TrainConfig: ...
    @property
    def folder(self) -> RunFolder: ...
    @property
    def device(self) -> torch.device: ...
    @property
    def global_step(self) -> int: ...
    @property
    def global_update(self) -> int: ...
    @property
    def learner(self) -> Learner: ...
    @property
    def collector(self) -> Collector: ...
    @property
    def pulse(self) -> Pulse: ...
    @property
    def outcomes(self) -> list[Outcome]:
        """Of the last evaluation."""

    @property
    def between(self) -> bool:
        """Whether lanes and weights are those between two updates."""

    @property
    def interrupt(self) -> Flag:
        """Whether a signal came."""

    @property
    def stopping(self) -> bool:
        """Whether somebody asked for the end."""

    def stop(self, because: str) -> None:
        """Ends the run in good order after the update at hand."""

    def save(self) -> Checkpoint:
        """Writes a checkpoint."""

    def evaluate(self, progress: Progress) -> None:
        """Evaluates the agent now."""

    def evaluated_agent(self) -> Agent:
        """The agent with the weights that evaluations look at."""


class Observer:
    """Told what happens in a run, in the thread that learns. Everything here does nothing; override
    what is of interest. What an observer raises ends the run."""

    #: The name of its state in a checkpoint; the name of the class if empty.
    saved_as = ""

    def started(self, run: ObservedRun) -> None:
        """The run has its folder and is about to collect."""

    def updated(self, run: ObservedRun, row: dict[str, Any], collected: Collected) -> None:
        """An update is done. `row` is its metrics; what is added to it is written down as well."""

    def between(self, run: ObservedRun, progress: Progress) -> None:
        """The update is written down and the next one has not begun. Time spent here counts for
        neither."""

    def evaluated(self, run: ObservedRun, outcomes: list[Outcome]) -> None:
        """The agent was evaluated."""

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps of it: tensors, numbers and text in lists and dictionaries."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from `state_dict`, before `started`; empty where nothing was saved."""

    def ended(self, run: ObservedRun, reason: str) -> None:
        """The run is over: `normal`, `interrupt` or `exception`. Called once, whatever happened."""

    @classmethod
    def key(cls) -> str:
        """The name of its state in a checkpoint."""
        return cls.saved_as or cls.__name__
