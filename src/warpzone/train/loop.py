"""The main path of a run: collect, learn, write down, look."""

from __future__ import annotations

import copy
import dataclasses
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from warpzone import rom
from warpzone.collect.collector import Collected, Collector
from warpzone.collect.episodes import Episode
from warpzone.collect.lanes import make_groups
from warpzone.collect.streams import generator, stream_seed
from warpzone.config import ConfigError, TrainConfig
from warpzone.env.actions import action_table
from warpzone.eval.evaluate import Outcome, clears, evaluate
from warpzone.health.pulse import Pulse
from warpzone.learn.learner import Learner
from warpzone.model.agent import Agent
from warpzone.model.compiling import check_compiler
from warpzone.model.spec import model_spec
from warpzone.observers.observer import Observer
from warpzone.observers.progress import Progress
from warpzone.rom import native
from warpzone.run.checkpoints import Checkpoint
from warpzone.run.names import BEST, EPISODES, EVALS, METRICS, WEIGHTS
from warpzone.run.resume import Start
from warpzone.run.sidecar import Reason
from warpzone.train.rows import Seconds, make_row, refuse_endless
from warpzone.train.saving import Saver, recall
from warpzone.train.stopping import Interrupted, Stop

#: Seconds between two lines about the replay.
REPLAY_LINE_EVERY = 10.0
#: Python's turn when two threads want it: the collector must not wait for the learner's launches.
SWITCH_SECONDS = 5e-5


@dataclass(frozen=True)
class Result:
    """How a run ended."""

    folder: Path
    steps: int
    seconds: float
    best_clears: int
    outcomes: list[Outcome]


class Run:
    """One training run."""

    def __init__(
        self,
        config: TrainConfig,
        observers: Sequence[Observer] = (),
        *,
        start: Start | None = None,
        interrupt: Stop | None = None,
    ) -> None:
        """start: what it goes on from; interrupt: set by signals, ends the run in good order."""
        self.config = config
        self.observers = tuple(observers)
        self.interrupt = interrupt if interrupt is not None else Stop()
        self.started = time.perf_counter()
        self.device = choose_device(config)
        check_compiler(config, self.device)
        torch.manual_seed(stream_seed(config.seed, "weights"))
        if self.device.type == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = True
            torch.backends.cudnn.allow_tf32 = True
        self.rom = rom.find(config.rom)
        self.native = native.load(self.rom)
        self.agent = Agent(model_spec(config, len(action_table(config.actions).masks)))
        self.agent.to(self.device)
        #: Who plays: a copy if the other one learns at the same time.
        self.acting = copy.deepcopy(self.agent) if config.overlap_collect else self.agent
        self.learner = Learner(config, self.agent, self.device)
        #: What the run is doing, for those who watch it.
        self.pulse = self.learner.pulse = Pulse()
        self.global_step = 0
        self.global_update = 0
        self.best_clears = -1
        self.best_update = -1
        self.gpu_seconds = 0.0
        self.outcomes: list[Outcome] = []
        self.noise = generator(config.seed, "noise")
        self.evaluated_at = -1
        self.next_eval = config.eval_interval
        self._log_seconds = 0.0
        self._replay_line = -REPLAY_LINE_EVERY
        self._stop_because = ""
        #: The rollout that is being collected for the update after the one at hand.
        self._coming: Future[Collected] | None = None
        #: Set by an observer that needs `between`; then the next update collects nothing ahead.
        self.rest_wanted = False
        #: Whether lanes and weights are those between two updates.
        self.between = True
        start = start if start is not None else Start()
        # What is open is closed again if the rest cannot be made.
        with ExitStack() as undo:
            groups = make_groups(config, self.rom, self.native, self.device)
            undo.callback(groups.close)
            self.collector = Collector(config, self.acting, groups, self.device)
            self.collector.pulse = self.pulse
            self.folder = start.open_folder(config)
            undo.callback(self.folder.close)
            self.saver = Saver(self)
            #: What could not be taken up of the checkpoint that the run goes on from.
            self.notes = self.saver.begin(start)
            undo.pop_all()
        self._looked = time.perf_counter()
        self._began_at = self.global_update

    def close(self) -> None:
        """Ends the engine's threads and lets go of the folder. Closing twice does no harm."""
        self.collector.close()
        self.folder.close()

    @property
    def seconds(self) -> float:
        """Since the run was created."""
        return time.perf_counter() - self.started

    def train(self, progress: Progress) -> Result:
        """Runs to the end of the budget, evaluates, and says what came of it. However it ends, a
        checkpoint says so."""
        reason: Reason = "exception"
        try:
            for observer in self.observers:
                observer.started(self)
            self.learn(progress)
            self.interrupt.check()
            if not self.outcomes or self.evaluated_at != self.global_step:
                self.evaluate(progress)
            reason = "normal"
        except (KeyboardInterrupt, Interrupted):
            reason = "interrupt"
            raise
        finally:
            with ExitStack() as stack:
                # Everybody hears of the end, whatever happens to the one before; only then may
                # another process write here.
                stack.callback(self.close)
                for observer in reversed(self.observers):
                    stack.callback(observer.ended, self, reason)
                stack.callback(self.collector.close)
                self.saver.save_last(reason)
        return Result(
            self.folder.path, self.global_step, self.seconds, self.best_clears, self.outcomes
        )

    def stop(self, because: str) -> None:
        """Ends the run in good order after the update at hand."""
        self._stop_because = because

    @property
    def stopping(self) -> bool:
        """Whether somebody asked for the end."""
        return bool(self._stop_because)

    def save(self, reason: Reason = "normal") -> Checkpoint:
        """Writes a checkpoint of the run as it is between two updates. A rollout that is under way
        is waited for: a run that goes on from here does without it."""
        if self._coming is not None:
            self._coming.exception()  # Whoever takes the rollout hears of it.
        return self.saver.save(reason)

    def learn(self, progress: Progress) -> None:
        """Collects and learns to the end of the budget."""
        if self.global_step == self.saver.resumed_at and self._evaluation_due(self.global_step):
            self.evaluate(progress)
        if self.config.overlap_collect:
            self._overlapped(progress)
        else:
            while not self._done():
                self._update(self._played, progress)

    def _played(self) -> Collected:
        """A rollout of the newest policy."""
        collected = self._collect(self._hand_over())
        self._take_noise()
        return collected

    def _overlapped(self, progress: Progress) -> None:
        """The next rollout is collected while the last one is learned from: the policy that plays
        is one update behind. Graphs are recorded before that begins, because recording allows no
        other work on the device; the learner has one for each of the collector's two stores."""
        sys.setswitchinterval(SWITCH_SECONDS)
        recording = 2 if self.device.type == "cuda" and self.config.cuda_graphs else 0
        with ThreadPoolExecutor(1, thread_name_prefix="collector") as thread:

            def take() -> Collected:
                if self._coming is None:
                    collected = self._played()
                else:
                    collected, self._coming = self._coming.result(), None
                    self._take_noise()
                # Nothing is under way when a checkpoint is written, so that nothing is missing.
                recorded = self.global_update - self._began_at >= recording
                if recorded and not self._done(ahead=1) | self._pausing():
                    self._coming = thread.submit(self._collect, self._hand_over())
                return collected

            while self._coming is not None or not self._done():
                self._update(take, progress)

    def _pausing(self) -> bool:
        """Whether the update at hand is followed by an evaluation or a checkpoint, or by what an
        observer wants to do while nothing is under way."""
        coming = self.global_step + self.config.steps_per_update
        due = self._evaluation_due(coming) or self.saver.due(self.global_update + 1)
        return due or self.rest_wanted

    def _evaluation_due(self, step: int) -> bool:
        return self.config.eval_interval > 0 and step >= self.next_eval

    def _collect(self, version: int) -> Collected:
        collector = self.collector
        try:
            rollout = collector.collect()
        except (ValueError, OSError) as error:
            # Elsewhere these are bad input or a full disk, and one sentence is enough.
            raise RuntimeError(f"collecting failed: {error}") from error
        episodes = collector.episodes.take()
        summary = {**collector.episodes.summary(), **collector.guide.metrics()}
        return Collected(rollout, version, collector.clock.take(), episodes, summary)

    @torch.no_grad()
    def _hand_over(self) -> int:
        """Before a rollout: the policy that plays gets the newest weights, and new noise."""
        if self.acting is not self.agent:
            pairs = zip(self.acting.parameters(), self.agent.parameters(), strict=True)
            for played, learned in pairs:
                played.copy_(learned)
        self.acting.resample_noise(self.noise)
        self.collector.prepare(self.global_step)
        if self.config.overlap_collect and self.device.type == "cuda":
            # The collector works on a stream of its own, and must find all of this done.
            torch.cuda.synchronize()
        return self.global_update

    @torch.no_grad()
    def _take_noise(self) -> None:
        """After a rollout: it is learned from with the noise it was played with."""
        if self.acting is not self.agent:
            for learned, played in zip(self.agent.buffers(), self.acting.buffers(), strict=True):
                learned.copy_(played)

    def _update(self, collect: Callable[[], Collected], progress: Progress) -> None:
        began = time.perf_counter()
        self.between = False
        collected = collect()
        waited = time.perf_counter()
        self.learner.adaptive.observe(collected.summary)
        done = self.global_step / self.config.max_steps
        losses = self.learner.update(collected.rollout, done)
        learned = time.perf_counter()
        lag = self.global_update - collected.version
        self.global_step += self.config.steps_per_update
        self.global_update += 1
        self.between = self._coming is None
        seconds = Seconds(began, waited, learned, self._log_seconds)
        row = make_row(self, losses, collected, seconds, lag)
        for observer in self.observers:
            observer.updated(self, row, collected)
        self._write(row, collected.episodes)
        progress.update(row)
        self._say_replay(progress)
        self._log_seconds = time.perf_counter() - learned
        refuse_endless(self, row)
        self._look(progress)
        for observer in self.observers:
            observer.between(self, progress)

    def _write(self, row: dict[str, Any], ended: list[Episode]) -> None:
        if self.global_update % self.config.log_interval == 0:
            self.folder.append(METRICS, [row])
        rows = [dataclasses.asdict(episode) for episode in ended]
        for episode in rows:
            episode["global_step"] = self.global_step
        self.folder.append(EPISODES, rows)

    def _say_replay(self, progress: Progress) -> None:
        replaying = self.learner.replaying
        if replaying is not None and self.seconds - self._replay_line > REPLAY_LINE_EVERY:
            self._replay_line = self.seconds
            progress.say(replaying.stat_line())

    def _look(self, progress: Progress) -> None:
        """After an update: evaluates and writes a checkpoint when it is time."""
        now = time.perf_counter()
        if self.device.type == "cuda":
            self.gpu_seconds += now - self._looked
        self._looked = now
        due = self._evaluation_due(self.global_step)
        if due:
            self.evaluate(progress)
        if self._coming is None and (due or self.saver.due(self.global_update)):
            self.save()

    def evaluate(self, progress: Progress) -> None:
        self.pulse.enter("eval")
        agent = self.evaluated_agent()
        # The evaluation of a checkpoint may have been written down after it.
        known = recall(self.folder, self.global_step, self.saver.resumed_at)
        self.outcomes = known or evaluate(
            agent, self.config, self.rom, self.native, each_step=self._alive
        )
        self.evaluated_at = self.global_step
        if self._evaluation_due(self.global_step):
            every = self.config.eval_interval
            self.next_eval = (self.global_step // every + 1) * every
        count = clears(self.outcomes)
        progress.say(
            f"[eval] step {self.global_step:,}, {self.seconds:.0f} s: argmax clears {count} and "
            f"sampled {clears(self.outcomes, 'sampled')} of {len(self.outcomes) // 2}"
        )
        meta = {"global_step": self.global_step, "clears": count, "seconds": self.seconds}
        self.folder.save_weights(WEIGHTS, agent, meta)
        if not known:
            rows = [{**meta, **dataclasses.asdict(outcome)} for outcome in self.outcomes]
            self.folder.append(EVALS, rows)
            for observer in self.observers:
                observer.evaluated(self, self.outcomes)
        if count > self.best_clears:
            self.best_clears, self.best_update = count, self.global_update
            self.folder.save_weights(BEST, agent, meta)

    def _alive(self) -> None:
        """While an evaluation goes on: the run gets on, and may be interrupted."""
        self.pulse.beat()
        self.interrupt.check()

    def evaluated_agent(self) -> Agent:
        """The averaged weights if there are any, and no noise."""
        if self.learner.ema is None and not self.config.noisy:
            return self.agent
        agent = copy.deepcopy(self.agent)
        if self.learner.ema is not None:
            self.learner.ema.copy_to(agent)
        agent.zero_noise()
        return agent

    def _done(self, ahead: int = 0) -> bool:
        """Whether the run is over, or will be after `ahead` more updates."""
        config = self.config
        if self._stop_because or self.interrupt:
            return True
        if config.max_cost_gpu_hours and self.gpu_seconds > config.max_cost_gpu_hours * 3600:
            return True
        if config.max_time and self.seconds > config.max_time * 60:
            return True
        if config.stop_at_clears and self.best_clears >= config.stop_at_clears:
            return True
        return self.global_step + (1 + ahead) * config.steps_per_update > config.max_steps


def choose_device(config: TrainConfig) -> torch.device:
    """CUDA if there is any, unless told otherwise."""
    available = torch.cuda.is_available()
    if config.device == "cuda" and not available:
        raise ConfigError("--device cuda: PyTorch sees no CUDA device here; use --device cpu")
    return torch.device("cuda" if available and config.device != "cpu" else "cpu")
