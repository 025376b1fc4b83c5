"""A course: rounds of exploring, fitting and evaluating; its folder is one like a run's."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import torch

from warpzone import _engine
from warpzone.config import TrainConfig
from warpzone.env.stages import LONGEST_DELAY, stage_name
from warpzone.eval.cases import Outcome, clears
from warpzone.eval.evaluate import evaluate
from warpzone.eval.whole_game import play_games
from warpzone.model.agent import Agent
from warpzone.run.folder import RunFolder
from warpzone.run.names import BEST, EVALS, WEIGHTS
from warpzone.teach.explorer import Explorer
from warpzone.teach.fitting import Fitter
from warpzone.teach.games import GameExplorer
from warpzone.teach.lessons import Lesson
from warpzone.teach.places import Known
from warpzone.teach.tasks import PATIENCE, Findings, Start
from warpzone.teach.ways import write_ways

#: How many times as many start delays a stage gets in the first round, and where the agent fails:
#: the more it fails, up to these.
FIRST_TIMES = 8.0
MOST_TIMES = 4.0
TIMES = 20.0
#: How much of what is known of a stage's failures is from the round before.
REMEMBERED = 0.6
#: How much more often lessons of stages are taken that the agent fails, and lessons of the last
#: two rounds.
FAILING_WEIGHT = 4.0
NEW_WEIGHT = 2.0
#: Lessons without anything to learn that are kept; the oldest go.
MOST_KEPT = 5_500


#: Seconds after which an exploration says how far it is.
SILENCE = 60.0
#: Random numbers for games are others than those for stages.
GAMES = 1
Kind = TypeVar("Kind", bound=Explorer)
#: What makes an agent the best one: the episodes it clears, or the stages in a row of its games.
Judge = Literal["stages", "games"]


class NothingFoundError(OSError):
    """There is nothing to teach."""

    def __init__(self) -> None:
        super().__init__(
            "no trial reached the flag; give them more --trial-steps, or a search more "
            "--search-steps"
        )


@dataclass(frozen=True)
class Plan:
    """What a course does."""

    stages: tuple[int, ...]
    #: Those of them in which what the agent clears is kept and nothing more is tried.
    keep: tuple[int, ...] = ()
    rounds: int = 10
    #: Start delays for each stage and round; more where the agent fails, and in the first round.
    episodes: int = 16
    #: What Mario begins them as; evaluations begin as small Mario.
    start_power: str = "small"
    #: Steps of trials for each of them that the agent fails, and of a search for a stage where
    #: they are for nothing.
    trial_steps: int = 6_000
    #: How many times as many the first starts get of a stage of which nothing is known.
    patience: int = PATIENCE
    search_steps: int = 10_000_000
    #: Whole games of a round, and which evaluation says which agent is the best.
    games: int = 0
    judge: Judge = "stages"
    #: Optimiser steps of a round.
    fit_steps: int = 300
    lr: float = 1e-4
    #: How much a shown step counts beside one that is to stay as it is.
    shown_weight: float = 0.5
    #: What the policy's logits are multiplied by before the course.
    sharpen: float = 1.0
    seed: int = 0


class Course:
    """Teaches one agent. After each round its folder has the agent's weights."""

    def __init__(
        self,
        plan: Plan,
        agent: Agent,
        config: TrainConfig,
        rom: bytes,
        native: _engine.NativeProgram | None,
        folder: RunFolder,
        *,
        say: Callable[[str], None] = print,
        known: dict[int, Known] | None = None,
        each_step: Callable[[], None] = lambda: None,
    ) -> None:
        """known: what is known of stages before the course begins."""
        self.plan = plan
        self.agent = agent
        #: What is told of the best agent, and how it was judged.
        self.best = ""
        self._best_score = -1.0
        #: Steps of this course; as in `train --init`, those of the agent before are not counted.
        self.global_step = 0
        self._config, self._game = config, (rom, native)
        self._folder = folder
        self._say, self._each_step = say, each_step
        self._began = self._told = time.perf_counter()
        self._known = {} if known is None else known
        #: Lessons and the rounds they are from: without anything to learn, and with.
        self._kept: deque[tuple[int, Lesson]] = deque(maxlen=MOST_KEPT)
        self._shown: list[tuple[int, Lesson]] = []
        #: The share of each stage's episodes that the agent fails.
        self._failing: dict[int, float] = {}

    def run(self) -> None:
        """All rounds."""
        sharpen(self.agent, self.plan.sharpen)
        fitter = Fitter(
            self.agent,
            learning_rate=self.plan.lr,
            shown_weight=self.plan.shown_weight,
            seed=self.plan.seed,
        )
        with fitter.averaged():
            self._failing = failures(self.plan.stages, self._evaluate(0))
        for number in range(1, self.plan.rounds + 1):
            with fitter.averaged():
                self._explore(number)
                if self.plan.games:
                    self._explore_games(number)
            if not self._kept and not self._shown:
                raise NothingFoundError
            self._fit(number, fitter)
            with fitter.averaged():
                self._evaluate(number)

    def _explore(self, number: int) -> None:
        random = np.random.default_rng([self.plan.seed, number])
        explorer = self._explorer(Explorer, random)
        starts = self._starts(number, random)
        found = explorer.explore(starts, self.plan.trial_steps, self.plan.search_steps)
        if self.plan.start_power == "small":
            # Ways are those of small Mario; a bigger one does not fit through everywhere.
            write_ways(self._folder, found.lessons)
        self._keep(number, found)
        for stage in self.plan.stages:
            alone = [cleared for start, cleared in found.alone if start.stage == stage]
            if alone:
                failed = 1.0 - sum(alone) / len(alone)
                before = self._failing[stage]
                self._failing[stage] = REMEMBERED * before + (1.0 - REMEMBERED) * failed
        self._tell_found(number, found)

    def _explore_games(self, number: int) -> None:
        random = np.random.default_rng([self.plan.seed, number, GAMES])
        explorer = self._explorer(GameExplorer, random)
        starts = self._games(number, random)
        found = explorer.explore(starts, self.plan.trial_steps)
        self._keep(number, found)
        self._tell_found(number, found)
        self._tell(f"round {number}: with trials {explorer.won} of {len(starts)} games are won")

    def _games(self, number: int, random: np.random.Generator) -> list[Start]:
        """Start delays far from each other: near ones play the very same game. After the first
        round the agent draws its actions in half of them."""
        delays = LONGEST_DELAY + 1
        apart = np.arange(self.plan.games) * delays / self.plan.games
        order = np.unique((apart + random.integers(delays)).astype(np.int64) % delays).tolist()
        return [
            Start(0, delay, number > 1 and bool(index % 2)) for index, delay in enumerate(order)
        ]

    def _explorer(self, kind: type[Kind], random: np.random.Generator) -> Kind:
        def step() -> None:
            self._each_step()
            if time.perf_counter() - self._told > SILENCE:
                self._tell(f"exploring: {made.progress()}")

        made = kind(
            self.agent,
            self._config,
            *self._game,
            seed=int(random.integers(2**31)),
            known=self._known,
            start_power=self.plan.start_power,
            patience=self.plan.patience,
            each_step=step,
        )
        return made

    def _keep(self, number: int, found: Findings) -> None:
        self.global_step += found.steps + found.searched_steps
        for lesson in found.lessons:
            (self._kept if lesson.alone else self._shown).append((number, lesson))

    def _starts(self, number: int, random: np.random.Generator) -> list[Start]:
        """Episodes of a round: first many, so that there is something to keep of everything; then
        fewer, in half of which the agent draws its actions."""
        starts: list[Start] = []
        for stage in self.plan.stages:
            order = random.permutation(LONGEST_DELAY + 1).tolist()
            first = number == 1
            times = FIRST_TIMES if first else min(MOST_TIMES, 1.0 + TIMES * self._failing[stage])
            count = min(round(self.plan.episodes * times), len(order))
            starts += [
                Start(stage, delay, not first and bool(index % 2), stage not in self.plan.keep)
                for index, delay in enumerate(order[:count])
            ]
        return starts

    def _tell_found(self, number: int, found: Findings) -> None:
        shown = sum(not lesson.alone for lesson in found.lessons)
        left = Counter(stage_name(start.stage) for start in found.left)
        names = ", ".join(f"{count} of {name}" for name, count in left.items())
        searched = f", searched {found.searched_steps:,}" if found.searched_steps else ""
        self._tell(
            f"round {number}: alone the flag from {sum(cleared for _, cleared in found.alone)} of "
            f"{len(found.alone)} starts; lessons for {shown} others, none for "
            f"{names or 'none'}; {found.steps:,} steps{searched}"
        )

    def _fit(self, number: int, fitter: Fitter) -> None:
        lessons = [*self._kept, *self._shown]
        steps = sum(lesson.length for _, lesson in lessons)
        found = fitter.fit(
            [lesson for _, lesson in lessons],
            [self._weight(number, made, lesson) for made, lesson in lessons],
            self.plan.fit_steps,
            each_step=self._each_step,
        )
        self._tell(
            f"round {number}: {len(lessons)} lessons of {steps:,} steps, {len(self._shown)} with "
            f"something to learn; {found.agreed:.0%} of shown actions lead, drift "
            f"{found.drift:.4f}"
        )

    def _weight(self, number: int, made: int, lesson: Lesson) -> float:
        """How often a lesson is taken, beside others."""
        failing = self._failing.get(lesson.stage, 0.0)
        weight = (1.0 + FAILING_WEIGHT * failing) * (NEW_WEIGHT if made >= number - 1 else 1.0)
        if not lesson.alone or lesson.stage in self.plan.keep:
            return weight
        # What is done in a stage that is mostly failed may be what has to change.
        return weight * (1.0 - failing)

    def _evaluate(self, number: int) -> Sequence[Outcome]:
        """Plays the stages with argmax, games too if they are taught, and keeps the weights."""
        stages = ",".join(map(stage_name, self.plan.stages))
        outcomes = evaluate(
            self.agent,
            self._config,
            *self._game,
            stages=stages,
            policies=("argmax",),
            each_step=self._each_step,
        )
        count = clears(outcomes)
        seconds = time.perf_counter() - self._began
        meta = {"global_step": self.global_step, "clears": count, "seconds": round(seconds, 1)}
        rows = [{**meta, **dataclasses.asdict(outcome)} for outcome in outcomes]
        self._folder.append(EVALS, rows)
        told, score = f"argmax clears {count} of {len(outcomes)}", float(count)
        if self.plan.games:
            games = play_games(self.agent, self._config, *self._game, policies=("argmax",))
            in_a_row = sum(game.stages_cleared for game in games) / len(games)
            won = sum(game.won for game in games)
            meta |= {"stages_in_a_row": round(in_a_row, 3), "games_won": won}
            told += (
                f"; in games {in_a_row:.2f} stages in a row, {won} of {len(games)} games are won"
            )
            score = in_a_row if self.plan.judge == "games" else score
        self._tell(f"round {number}: {told}", "eval")
        self._folder.save_weights(WEIGHTS, self.agent, meta)
        if score > self._best_score:
            self._best_score, self.best = score, told
            self._folder.save_weights(BEST, self.agent, meta)
        return outcomes

    def _tell(self, text: str, who: str = "teach") -> None:
        self._told = time.perf_counter()
        self._say(f"[{who}] {time.perf_counter() - self._began:.0f} s, {text}")


@torch.no_grad()
def sharpen(agent: Agent, factor: float) -> None:
    """Multiplies the policy's logits: its likeliest actions stay, and are drawn more often."""
    for parameter in agent.heads.policy.parameters():
        parameter.mul_(factor)


def failures(stages: Sequence[int], outcomes: Sequence[Outcome]) -> dict[int, float]:
    """The share of the episodes of each stage that did not reach the flag."""
    ended: dict[str, list[bool]] = {stage_name(stage): [] for stage in stages}
    for outcome in outcomes:
        ended[outcome.stage].append(outcome.cleared)
    return {
        stage: 1.0 - sum(ended[stage_name(stage)]) / len(ended[stage_name(stage)])
        for stage in stages
    }
