"""Evaluations of a run: when they are due, what they found, and which weights were best."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from warpzone._engine import NativeProgram
from warpzone.collect.ranks import ALONE, Ranks
from warpzone.config import TrainConfig
from warpzone.eval.evaluate import Outcome, clears, evaluate, evaluate_cases, training_cases
from warpzone.model.agent import Agent
from warpzone.observers.progress import Progress
from warpzone.run.folder import RunFolder
from warpzone.run.names import BEST, EVALS, WEIGHTS
from warpzone.run.reader import read_rows
from warpzone.train.budget import Budget


class Evaluator:
    """Evaluates agents and records the outcomes."""

    def __init__(
        self,
        config: TrainConfig,
        budget: Budget,
        folder: RunFolder,
        rom: bytes,
        native: NativeProgram | None,
        *,
        each_step: Callable[[], None],
        ranks: Ranks = ALONE,
    ) -> None:
        """each_step: called often while episodes are played; an exception ends the evaluation."""
        self._config = config
        self._budget = budget
        self._folder = folder
        self._game = rom, native
        self._each_step = each_step
        self._ranks = ranks
        #: Of the last evaluation, and the step it was made at.
        self.outcomes: list[Outcome] = []
        self.evaluated_at = -1
        #: The step at which the next one is due.
        self.next_eval = config.eval_interval
        #: The most start delays cleared by argmax, and the update whose weights did.
        self.best_clears = -1
        self.best_update = -1

    @property
    def up_to_date(self) -> bool:
        """Whether the current weights have been evaluated."""
        return bool(self.outcomes) and self.evaluated_at == self._budget.global_step

    @property
    def satisfied(self) -> bool:
        """Whether as many start delays were cleared as the run is to reach."""
        enough = self._config.clears_to_stop
        return enough > 0 and self.best_clears >= enough

    def due(self, step: int) -> bool:
        """Whether an evaluation is due when so many steps are done."""
        return self._config.eval_interval > 0 and step >= self.next_eval

    def plan(self) -> None:
        """After a resume: another interval than before begins with the next multiple of it."""
        if every := self._config.eval_interval:
            upcoming = self._upcoming()
            if not 0 < self.next_eval <= upcoming or self.next_eval % every:
                self.next_eval = upcoming

    def evaluate(
        self, agent: Agent, progress: Progress, tell: Callable[[list[Outcome]], None]
    ) -> None:
        """Plays all episodes, keeps the weights, and the best ones beside them. `tell` is called
        with the outcomes, unless an earlier session of the run has made this evaluation."""
        step = self._budget.global_step
        known = self._ranks.told(lambda: self._recall(step))
        self.outcomes = known or self._play(agent)
        self.evaluated_at = step
        if self.due(step):
            self.next_eval = self._upcoming()
        count, seconds = clears(self.outcomes), self._budget.seconds
        progress.say(
            f"[eval] step {step:,}, {seconds:.0f} s: argmax clears {count} and "
            f"sampled {clears(self.outcomes, 'sampled')} of {len(self.outcomes) // 2}"
        )
        meta = {"global_step": step, "clears": count, "seconds": seconds}
        self._folder.save_weights(WEIGHTS, agent, meta)
        if not known:
            rows = [{**meta, **dataclasses.asdict(outcome)} for outcome in self.outcomes]
            self._folder.append(EVALS, rows)
            tell(self.outcomes)
        if count > self.best_clears:
            self.best_clears, self.best_update = count, self._budget.global_update
            self._folder.save_weights(BEST, agent, meta)

    def _play(self, agent: Agent) -> list[Outcome]:
        """Every rank plays some of the episodes, and gets the outcomes of all."""
        ranks = self._ranks
        if ranks.size == 1:
            return evaluate(agent, self._config, *self._game, each_step=self._each_step)
        cases = training_cases(self._config)
        own = cases[ranks.rank :: ranks.size]
        played = evaluate_cases(agent, self._config, *self._game, own, each_step=self._each_step)
        parts = ranks.gather(played)
        return [parts[case % ranks.size][case // ranks.size] for case in range(len(cases))]

    def _upcoming(self) -> int:
        every = self._config.eval_interval
        return (self._budget.global_step // every + 1) * every

    def _recall(self, step: int) -> list[Outcome]:
        """The evaluation that an earlier session of the run made at the step it was resumed at:
        it may have been written after the checkpoint."""
        if step != self._budget.resumed_at:
            return []
        names = {field.name for field in dataclasses.fields(Outcome)}
        found = read_rows(self._folder.path, EVALS)
        rows = [row for row in found if row.get("global_step") == step]
        if not all(names <= row.keys() for row in rows):
            return []
        return [Outcome(**{name: row[name] for name in names}) for row in rows]
