"""The main path of a run: collect, learn, write down, look."""

from __future__ import annotations

import copy
import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from warpzone import native, rom
from warpzone.config import ConfigError, TrainConfig
from warpzone.data.types import Rollout
from warpzone.env.actions import action_table
from warpzone.eval.evaluate import Outcome, clears, evaluate
from warpzone.model.agent import Agent
from warpzone.run.folder import BEST, EPISODES, METRICS, WEIGHTS, RunFolder, model_spec
from warpzone.train.collector import Collector
from warpzone.train.compiling import check_compiler
from warpzone.train.episodes import Episode
from warpzone.train.lanes import make_groups
from warpzone.train.learner import Learner
from warpzone.train.observer import Observer
from warpzone.train.progress import Progress
from warpzone.train.seeds import generator, stream_seed

#: Longer than this on a CPU is a mistake more often than a plan.
CPU_HOURS = 12.0
#: Seconds between two lines about the replay.
REPLAY_LINE_EVERY = 10.0


@dataclass(frozen=True)
class Result:
    """How a run ended."""

    folder: Path
    steps: int
    seconds: float
    best_clears: int
    outcomes: list[Outcome]


class Collected(NamedTuple):
    """A rollout and all that its collection has to say, so that another one can be under way."""

    rollout: Rollout
    #: Updates that the policy which played it had seen.
    version: int
    owners: dict[str, float]
    episodes: list[Episode]
    summary: dict[str, float]


class Run:
    """One training run."""

    def __init__(self, config: TrainConfig, observers: Sequence[Observer] = ()) -> None:
        self.config = config
        self.observers = tuple(observers)
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
        groups = make_groups(config, self.rom, self.native, pinned=self.device.type == "cuda")
        try:
            self.collector = Collector(config, self.acting, groups, self.device)
            self.folder = RunFolder.create(config)
        except BaseException:
            groups.close()
            raise
        self.global_step = 0
        self.global_update = 0
        self.best_clears = -1
        self.outcomes: list[Outcome] = []
        self._noise = generator(config.seed, "noise")
        self._log_seconds = 0.0
        self._replay_line = -REPLAY_LINE_EVERY
        self._evaluated_at = -1
        self._stop_because = ""
        self._next_eval = config.eval_interval

    @property
    def seconds(self) -> float:
        """Since the run was created."""
        return time.perf_counter() - self.started

    def train(self, progress: Progress) -> Result:
        """Runs to the end of the budget, evaluates, and says what came of it."""
        reason = "exception"
        try:
            for observer in self.observers:
                observer.started(self)
            self.learn(progress)
            if not self.outcomes or self._evaluated_at != self.global_step:
                self._evaluate(progress)
            reason = "normal"
        except KeyboardInterrupt:
            reason = "interrupt"
            raise
        finally:
            self.collector.close()
            for observer in self.observers:
                observer.ended(self, reason)
        return Result(
            self.folder.path, self.global_step, self.seconds, self.best_clears, self.outcomes
        )

    def stop(self, because: str) -> None:
        """Ends the run in good order after the update at hand."""
        self._stop_because = because

    def learn(self, progress: Progress) -> None:
        """Collects and learns to the end of the budget."""
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
        recording = 2 if self.device.type == "cuda" and self.config.cuda_graphs else 0
        with ThreadPoolExecutor(1, thread_name_prefix="collector") as thread:
            coming: Future[Collected] | None = None

            def take() -> Collected:
                nonlocal coming
                if coming is None:
                    collected = self._played()
                else:
                    collected, coming = coming.result(), None
                    self._take_noise()
                if self.global_update >= recording and not self._done(ahead=1):
                    coming = thread.submit(self._collect, self._hand_over())
                return collected

            while not self._done():
                self._update(take, progress)
            if coming is not None:
                coming.result()

    def _collect(self, version: int) -> Collected:
        collector = self.collector
        rollout = collector.collect()
        episodes, summary = collector.episodes.take(), collector.episodes.summary()
        return Collected(rollout, version, collector.clock.take(), episodes, summary)

    @torch.no_grad()
    def _hand_over(self) -> int:
        """Before a rollout: the policy that plays gets the newest weights, and new noise."""
        if self.acting is not self.agent:
            pairs = zip(self.acting.parameters(), self.agent.parameters(), strict=True)
            for played, learned in pairs:
                played.copy_(learned)
        self.acting.resample_noise(self._noise)
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
        collected = collect()
        waited = time.perf_counter()
        done = self.global_step / self.config.max_steps
        losses = self.learner.update(collected.rollout, done)
        learned = time.perf_counter()
        lag = self.global_update - collected.version
        self.global_step += self.config.steps_per_update
        self.global_update += 1
        owners = self._owners(collected, began, waited, learned)
        row = self._row(losses, collected, owners, learned - began, lag)
        for observer in self.observers:
            observer.updated(self, row, collected)
        self._write(row, collected.episodes)
        progress.update(row)
        self._say_replay(progress)
        self._log_seconds = time.perf_counter() - learned
        self._guard_speed(row)
        if self.config.eval_interval and self.global_step >= self._next_eval:
            self._next_eval += self.config.eval_interval
            self._evaluate(progress)

    def _owners(
        self, collected: Collected, began: float, waited: float, learned: float
    ) -> dict[str, float]:
        """Whose the seconds were; writing down the update before counts into this one. Where
        collecting overlaps with learning, only the wait for it is the update's own."""
        owners = {**collected.owners, "learn": learned - waited, "log": self._log_seconds}
        collecting = sum(collected.owners.values())
        if self.config.overlap_collect:
            owners["wait"] = waited - began
        else:
            owners["other"] = owners.get("other", 0.0) + max(0.0, waited - began - collecting)
        return owners

    def _row(
        self,
        losses: dict[str, float],
        collected: Collected,
        owners: dict[str, float],
        elapsed: float,
        lag: int,
    ) -> dict[str, Any]:
        config = self.config
        elapsed += self._log_seconds
        rate = config.steps_per_update / elapsed
        left = max(0, config.max_steps - self.global_step)
        return {
            "timestamp": time.time(),
            "update": self.global_update,
            "global_step": self.global_step,
            "seconds": self.seconds,
            "env_steps_per_sec": rate,
            "env_frames_per_sec": rate * config.frame_skip,
            "updates_per_sec": 1.0 / elapsed,
            "eta": left / rate,
            "policy_lag": lag,
            **losses,
            **collected.summary,
            **{f"time_{owner}": value for owner, value in sorted(owners.items())},
        }

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

    def _evaluate(self, progress: Progress) -> None:
        self._evaluated_at = self.global_step
        agent = self._evaluated_agent()
        self.outcomes = evaluate(agent, self.config, self.rom, self.native)
        count = clears(self.outcomes)
        progress.say(
            f"[eval] step {self.global_step:,}, {self.seconds:.0f} s: argmax clears {count} and "
            f"sampled {clears(self.outcomes, 'sampled')} of {len(self.outcomes) // 2}"
        )
        meta = {"global_step": self.global_step, "clears": count, "seconds": self.seconds}
        self.folder.save_weights(WEIGHTS, agent, meta)
        rows = [{**meta, **dataclasses.asdict(outcome)} for outcome in self.outcomes]
        self.folder.append("evals.jsonl", rows)
        for observer in self.observers:
            observer.evaluated(self, self.outcomes)
        if count > self.best_clears:
            self.best_clears = count
            self.folder.save_weights(BEST, agent, meta)

    def _evaluated_agent(self) -> Agent:
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
        if self._stop_because:
            return True
        if config.max_time and self.seconds > config.max_time * 60:
            return True
        if config.stop_at_clears and self.best_clears >= config.stop_at_clears:
            return True
        return self.global_step + (1 + ahead) * config.steps_per_update > config.max_steps

    def _guard_speed(self, row: dict[str, Any]) -> None:
        if self.global_update != 2 or self.device.type == "cuda":
            return
        hours = row["eta"] / 3600
        if hours > CPU_HOURS and os.environ.get("MARIO_ALLOW_CPU_AUTO") != "1":
            raise ConfigError(
                f"at {row['env_steps_per_sec']:.0f} steps/s this run would take {hours:.0f} hours "
                "on the CPU; lower --max-steps, choose a smaller network, or set "
                "MARIO_ALLOW_CPU_AUTO=1 to go on"
            )


def choose_device(config: TrainConfig) -> torch.device:
    """CUDA if there is any, unless told otherwise."""
    available = torch.cuda.is_available()
    if config.device == "cuda" and not available:
        raise ConfigError("--device cuda: PyTorch sees no CUDA device here; use --device cpu")
    return torch.device("cuda" if available and config.device != "cpu" else "cpu")
