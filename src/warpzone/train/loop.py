"""The main path of a run: collect, learn, record, observe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from warpzone import rom
from warpzone.collect.collector import Collected, Collector
from warpzone.collect.lanes import make_groups
from warpzone.collect.ranks import ALONE, Ranks
from warpzone.collect.streams import stream_seed
from warpzone.config import ConfigError, TrainConfig
from warpzone.env.stages import parse_stages
from warpzone.eval.evaluate import Outcome
from warpzone.health.pulse import Pulse
from warpzone.learn.learner import Learner, LearningError
from warpzone.model.agent import Agent
from warpzone.model.compiling import check_compiler
from warpzone.observers.observer import Observer
from warpzone.observers.progress import Progress
from warpzone.rom import native
from warpzone.run.checkpoints import Checkpoint
from warpzone.run.journal import say
from warpzone.run.recorded_ways import known_ways
from warpzone.run.resume import Start
from warpzone.run.sidecar import Reason
from warpzone.train.budget import Budget, EndlessError
from warpzone.train.device import choose_device, prepare_device
from warpzone.train.drivers import Driver, Overlapped, Serial
from warpzone.train.evaluator import Evaluator
from warpzone.train.initial import load_initial
from warpzone.train.joining import open_folder
from warpzone.train.policies import Policies
from warpzone.train.recorder import Recorder
from warpzone.train.saving import Saver
from warpzone.train.stopping import Interrupted, Stop


@dataclass(frozen=True)
class Result:
    """How a run ended."""

    folder: Path
    steps: int
    seconds: float
    best_clears: int
    outcomes: list[Outcome]


#: Makes a run's collector. A run of its own plays its lanes in its own process.
Collecting = Callable[["Run"], Collector]


def collect_here(run: Run) -> Collector:
    """The collector of a run that plays its lanes itself."""
    if run.config.actors:
        raise ConfigError("actors are started by the command `warpzone train --actors` alone")
    groups = make_groups(run.config, run.rom, run.native, run.device, run.ranks)
    with ExitStack() as failing:
        failing.callback(groups.close)
        made = Collector(run.config, run.policies.acting, groups, run.device, run.ranks.beside())
        failing.pop_all()
    return made


class Run:
    """One training run: its parts, and the order in which they work."""

    def __init__(
        self,
        config: TrainConfig,
        observers: Sequence[Observer] = (),
        *,
        start: Start | None = None,
        interrupt: Stop | None = None,
        ranks: Ranks = ALONE,
        collecting: Collecting = collect_here,
    ) -> None:
        """start: what it resumes from; interrupt: set by signals, ends the run after the current
        update; ranks: the processes that it is made of; collecting: makes what collects."""
        self.config = config
        self.ranks = ranks
        self.observers = tuple(observers)
        self.interrupt = interrupt if interrupt is not None else Stop()
        self.device = choose_device(config)
        self.budget = Budget(config, on_gpu=self.device.type == "cuda", ranks=ranks)
        check_compiler(config, self.device)
        prepare_device(self.device)
        self.rom = rom.find(config.rom)
        self.native = native.load(self.rom)
        self.policies = Policies(config, self.device)
        start = start if start is not None else Start()
        #: The agent whose weights it starts with; empty without --init.
        self.begun_with = self._initial() if not start.checkpoint else {}
        self.learner = Learner(config, self.policies.agent, self.device, ranks)
        #: Phase and progress, for observers.
        self.pulse = self.learner.pulse = Pulse()
        #: Reason of a requested end; empty if none was requested.
        self._stop_because = ""
        #: Set by an observer that needs `between`; then the next update collects nothing ahead.
        self.rest_wanted = False
        #: Whether lanes and weights are those between two updates.
        self.between = True
        # Opened parts are closed if a later one fails.
        with ExitStack() as undo:
            self.collector = collecting(self)
            undo.callback(self.collector.close)
            if config.ways and not start.checkpoint:
                self._practise(config)
            self.collector.pulse = self.pulse
            self.folder = open_folder(start, config, ranks)
            undo.callback(self.folder.close)
            self.recorder = Recorder(
                config, self.budget, self.folder, self.learner.replaying, ranks
            )
            self.evaluator = Evaluator(
                *(config, self.budget, self.folder, self.rom, self.native),
                each_step=self._alive,
                ranks=ranks,
            )
            self.saver = Saver(self)
            #: Parts of the checkpoint that could not be restored.
            self.notes = self.saver.begin(start)
            undo.pop_all()
        self.driver: Driver = Overlapped(self) if config.overlap_collect else Serial(self)
        self.budget.begin()

    def _practise(self, config: TrainConfig) -> None:
        """The ways of `--ways`."""
        stages, actions = parse_stages(config.stages), self.policies.agent.spec.actions
        recorded = self.ranks.told(lambda: known_ways(config, stages, actions))
        count = self.collector.guide.ways.begin_with(recorded)
        name = Path(config.ways).name
        if recorded:
            say(f"[train] practises {count} of the {len(recorded)} ways of {name}")
        else:
            say(f"[train] practises no ways: {name} has none for this game and these stages")

    def _initial(self) -> dict[str, Any]:
        """Weights to start with, the same on every rank; says which they are. On GPUs every rank
        samples by its own generator, so the ranks must not draw the same."""
        agent, ranks = self.policies.agent, self.ranks
        begun_with = ranks.told(lambda: load_initial(agent, self.config))
        if ranks.size > 1:
            agent.load_state_dict(
                ranks.told(lambda: {name: part.cpu() for name, part in agent.state_dict().items()})
            )
        if ranks.rank and self.device.type == "cuda":
            torch.cuda.manual_seed(stream_seed(self.config.seed, "actions") + ranks.rank)
        return begun_with

    # --- the path -------------------------------------------------------------------------------
    def train(self, progress: Progress) -> Result:
        """Runs to the end of the budget, evaluates, and returns the result. Writes a last
        checkpoint, however the run ends."""
        reason: Reason = "exception"
        refused = False
        try:
            for observer in self.observers:
                observer.started(self)
            self.learn(progress)
            self._end_if_interrupted()
            if not self.evaluator.up_to_date:
                self.evaluate(progress)
            reason = "normal"
        except (KeyboardInterrupt, Interrupted):
            reason = "interrupt"
            raise
        except LearningError as error:
            for observer in self.observers:
                observer.failed(self, error)
            raise
        except EndlessError:
            refused = self.folder.before is not None
            raise
        finally:
            self._end(reason, refused)
        return Result(
            self.folder.path,
            self.global_step,
            self.budget.seconds,
            self.evaluator.best_clears,
            self.outcomes,
        )

    def learn(self, progress: Progress) -> None:
        """Collects and learns to the end of the budget."""
        resumed = self.global_step == self.budget.resumed_at
        if resumed and self.evaluator.due(self.global_step):
            self.evaluate(progress)
        self.driver.drive(progress)

    def update(self, collect: Callable[[], Collected], progress: Progress) -> None:
        """One update: a rollout, learned from, recorded and observed."""
        times = self.recorder.begin()
        self.between = False
        collected = collect()
        times.mark()
        self.learner.adaptive.observe(collected.summary)
        behind = collected.version < self.global_update
        losses = self.learner.update(collected.rollout, self.budget.progress, behind=behind)
        times.mark()
        self.budget.count_update()
        self.between = not self.driver.ahead
        row = self.recorder.row(losses, collected, times)
        for observer in self.observers:
            observer.updated(self, row, collected)
        self.recorder.write(row, collected, progress, times)
        self.budget.refuse_endless(row["env_steps_per_sec"])
        self._look(progress)
        for observer in self.observers:
            observer.between(self, progress)

    def _look(self, progress: Progress) -> None:
        """After an update: evaluates and writes a checkpoint when it is time."""
        self.budget.charge()
        due = self.evaluator.due(self.global_step)
        if due:
            self.evaluate(progress)
        if not self.driver.ahead and (due or self.saver.due(self.global_update)):
            self.save()

    def done(self, ahead: int = 0) -> bool:
        """Whether the run is over, or will be after `ahead` more updates; for all ranks if for
        one."""
        asked = self.stopping or bool(self.interrupt)
        over = asked or self.evaluator.satisfied or self.budget.spent(ahead)
        return bool(self.ranks.most(over))

    def _end_if_interrupted(self) -> None:
        if signum := self.ranks.most(self.interrupt.signum):
            raise Interrupted(signum)

    def evaluate(self, progress: Progress) -> None:
        """Evaluates the agent now."""
        self.pulse.enter("eval")
        self.evaluator.evaluate(self.evaluated_agent(), progress, self._tell_outcomes)

    def _tell_outcomes(self, outcomes: list[Outcome]) -> None:
        for observer in self.observers:
            observer.evaluated(self, outcomes)

    def _alive(self) -> None:
        """While an evaluation is under way: it makes progress, and may be interrupted, unless
        other ranks wait for its outcomes."""
        self.pulse.beat()
        if self.ranks.size == 1:
            self.interrupt.check()

    def save(self, reason: Reason = "normal") -> Checkpoint:
        """Writes a checkpoint of the run as it is between two updates. Waits for a rollout in
        progress, which is not part of the checkpoint."""
        self.driver.rest()
        return self.saver.save(reason)

    # --- the end --------------------------------------------------------------------------------
    def stop(self, because: str) -> None:
        """Ends the run after the current update."""
        self._stop_because = because

    @property
    def stopping(self) -> bool:
        """Whether an early end was requested."""
        return bool(self._stop_because)

    def _end(self, reason: Reason, refused: bool) -> None:
        with ExitStack() as stack:
            if refused:
                # A refused start leaves no run that the next --resume would find.
                stack.callback(self.folder.discard)
            # Every observer is called, even if another one fails; only then may another process
            # write here.
            stack.callback(self.close)
            for observer in reversed(self.observers):
                stack.callback(observer.ended, self, reason)
            stack.callback(self.collector.close)
            if not refused:
                self.saver.save_last(reason)

    def close(self) -> None:
        """Ends the engine's threads and releases the folder. Closing twice is allowed."""
        self.collector.close()
        self.folder.close()

    # --- what others ask of the parts -----------------------------------------------------------
    @property
    def global_step(self) -> int:
        return self.budget.global_step

    @property
    def global_update(self) -> int:
        return self.budget.global_update

    @property
    def started(self) -> float:
        """The clock at which the run would have begun without pauses."""
        return self.budget.started

    @started.setter
    def started(self, clock: float) -> None:
        self.budget.started = clock

    @property
    def agent(self) -> Agent:
        """The one that learns."""
        return self.policies.agent

    @property
    def outcomes(self) -> list[Outcome]:
        """Of the last evaluation."""
        return self.evaluator.outcomes

    def evaluated_agent(self) -> Agent:
        """The agent with the weights that evaluations look at."""
        return self.policies.evaluated(self.learner.ema)
