"""The interface of observers, and their view of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch

    from warpzone.collect.collector import Collected, Collector
    from warpzone.collect.ranks import Ranks
    from warpzone.config import TrainConfig
    from warpzone.eval.evaluate import Outcome
    from warpzone.health.pulse import Pulse
    from warpzone.learn.learner import Learner, LearningError
    from warpzone.model.agent import Agent
    from warpzone.observers.progress import Progress
    from warpzone.run.checkpoints import Checkpoint
    from warpzone.run.folder import RunFolder


class Flag(Protocol):
    """A flag, such as `threading.Event`."""

    def __bool__(self) -> bool: ...


class ObservedRun(Protocol):
    """A run as its observers see it; `train.loop.Run` is one."""

    #: The clock at which the run would have begun without pauses; an observer that pauses the run
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
    def ranks(self) -> Ranks:
        """The processes that the run is made of; this one is among them."""

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
        """Whether an early end was requested."""

    def stop(self, because: str) -> None:
        """Ends the run after the current update."""

    def save(self) -> Checkpoint:
        """Writes a checkpoint."""

    def evaluate(self, progress: Progress) -> None:
        """Evaluates the agent now."""

    def evaluated_agent(self) -> Agent:
        """The agent with the weights that evaluations look at."""


class Observer:
    """Called by the loop, in the thread that learns. The methods here do nothing; override what
    is needed. An exception ends the run."""

    #: The name of its state in a checkpoint; the name of the class if empty.
    saved_as = ""

    def started(self, run: ObservedRun) -> None:
        """The run has its folder and is about to collect."""

    def updated(self, run: ObservedRun, row: dict[str, Any], collected: Collected) -> None:
        """An update is done. `row` holds its metrics; added keys are written as well."""

    def between(self, run: ObservedRun, progress: Progress) -> None:
        """The update is written and the next one has not begun. Time spent here counts for
        neither."""

    def evaluated(self, run: ObservedRun, outcomes: list[Outcome]) -> None:
        """The agent was evaluated."""

    def state_dict(self) -> dict[str, Any]:
        """Its state for a checkpoint: tensors, numbers and text in lists and dictionaries."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores `state_dict`, before `started`; empty where nothing was saved."""

    def failed(self, run: ObservedRun, error: LearningError) -> None:
        """Learning cannot continue; `ended` follows."""

    def ended(self, run: ObservedRun, reason: str) -> None:
        """The run has ended: `normal`, `interrupt` or `exception`. Called exactly once."""

    @classmethod
    def key(cls) -> str:
        """The name of its state in a checkpoint."""
        return cls.saved_as or cls.__name__
