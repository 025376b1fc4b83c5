"""Looks for episodes that reach the flag where the agent fails.

The agent plays alone first. Where it does not reach the flag, trials begin at places on its path,
mostly shortly before its end, do something else for a moment (a detour), and leave the rest to the
agent. So only what the agent does not know has to be found, and most of what is found is what the
agent does anyway: Go-Explore (Ecoffet et al. 2021) with the policy in it. Of several episodes that
reach the flag the one that is nearest to what the agent does is the lesson.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing

import numpy as np
import torch
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.collect.garbage import uncollected
from warpzone.collect.search import place_keys
from warpzone.config import TrainConfig
from warpzone.env.infos import COLUMN
from warpzone.env.stages import LONGEST_DELAY
from warpzone.eval.cases import Case
from warpzone.eval.eval_lanes import EvalLanes, Landing
from warpzone.eval.evaluate import STEP_LIMIT, STUCK_AFTER
from warpzone.model.agent import Agent
from warpzone.model.cpu import has_bfloat16
from warpzone.teach.lessons import Step, cost, make_lesson
from warpzone.teach.places import Key, Known, Path, Place
from warpzone.teach.retelling import retell
from warpzone.teach.searching import search_way
from warpzone.teach.table import Decisions, Table
from warpzone.teach.tasks import PATIENCE, Attempt, Findings, Start, Task
from warpzone.teach.trials import Trials
from warpzone.teach.turns import Turns

#: Lanes that play at a time.
LANES = 128
#: Steps between two places that are kept of a path.
EVERY = 2
#: A trial is over when it has come to no new place for so many steps, and its path is one to try
#: from if it came to so many.
STALE = 120
NEWS = 3
#: An attempt that came to no new place in so many last steps is taken to stand still.
STANDING = 60
#: A task is over when so many episodes have reached the flag, more where all of them are dear to
#: teach.
MOST_FOUND = 3
MOST_FOUND_DEAR = 12
DEAR = 200.0


class Explorer:
    """Plays starts of any stages with one agent."""

    def __init__(
        self,
        agent: Agent,
        config: TrainConfig,
        rom: bytes,
        native: _engine.NativeProgram | None,
        *,
        seed: int,
        known: dict[int, Known] | None = None,
        start_power: str = "small",
        patience: int = PATIENCE,
        each_step: Callable[[], None] = lambda: None,
    ) -> None:
        """known: what was found before, by stage; what is found is added. start_power: what Mario
        begins single stages as. patience: how many times as many steps pioneers get. each_step:
        called often; an exception ends the exploration."""
        self._agent = agent
        self._config, self._rom, self._native = config, rom, native
        self._known = {} if known is None else known
        self._start_power, self._patience = start_power, patience
        self._random = np.random.default_rng(seed)
        trials = Trials(agent.spec.actions, self._known, self._random)
        self._turns = Turns(self._known, trials)
        self._each_step = each_step
        #: Trials need not be decided as evaluations are; what they find is looked at again.
        self._rough = has_bfloat16()
        self._steps = 0
        self._tasks: list[Task] = []

    @torch.no_grad()
    def explore(self, starts: Sequence[Start], trial_steps: int, search_steps: int = 0) -> Findings:
        """A lesson for each start for which one is found. No trial of a start begins after
        `trial_steps` steps. Where nothing is known of a stage, a few of its starts, the pioneers,
        get many times as many, and the others wait for what they find. Where half of them or more
        are left without one, a few of those are pioneers too. Where still nothing is known, a
        search without the network may take `search_steps`. What is left then gets as many steps
        again, and begins with what is known by then."""
        self._begin(starts)
        with ExitStack() as ends:
            lanes = self._lanes([starts[0]] * LANES)
            ends.enter_context(closing(lanes))
            shape = lanes.first_frames.shape[1:]
            table = ends.enter_context(Table(self._agent, LANES, *shape, rough=self._rough))
            self._play(lanes, table, trial_steps)
            self._turns.send_pioneers(self._tried)
            self._play(lanes, table, trial_steps)
            searched = self._search(self._tried, search_steps) if search_steps else 0
            self._turns.begin_again(self._tried)
            self._play(lanes, table, trial_steps)
            if self._rough:
                self._steps += retell(self._tasks, lanes, table, self._each_step)
        alone = [(task.start, task.cleared_alone) for task in self._tasks]
        return Findings(
            [task.lesson for task in self._tasks if task.lesson is not None],
            [(start, cleared) for start, cleared in alone if cleared is not None],
            [task.start for task in self._tried if task.lesson is None],
            self._steps,
            searched,
        )

    def progress(self) -> str:
        """How far it is, for people who wait."""
        alone = sum(task.cleared_alone is not None for task in self._tasks)
        failed = [task for task in self._tried if task.cleared_alone is False]
        found = sum(task.lesson is not None for task in failed)
        return (
            f"{alone} of {len(self._tasks)} starts played alone, lessons for {found} of the "
            f"{len(failed)} failed; {self._steps:,} steps"
        )

    @property
    def _tried(self) -> list[Task]:
        """Tasks by now; those of a game become more while it is played."""
        return [task for task in self._tasks if task.start.tried]

    def _lanes(self, starts: Sequence[Start]) -> EvalLanes:
        """Lanes that take each other's saved states."""
        return EvalLanes(
            self._config,
            self._rom,
            self._native,
            [Case(start.stage, "argmax", start.start_delay) for start in starts],
            delays=(0, LONGEST_DELAY),
            time_limit=STEP_LIMIT,
            stagnation_limit=STUCK_AFTER,
            start_power=self._start_power,
        )

    def _begin(self, starts: Sequence[Start]) -> None:
        """Tasks for these starts."""
        with closing(self._lanes(starts)) as lanes:
            keys = place_keys(lanes.first_info)
            for lane, start in enumerate(starts):
                first = lanes.first_frames[lane].copy()
                lives = int(lanes.first_info[lane, COLUMN["life"]])
                state, stack = lanes.vector.save(lane), self._agent.spec.stack
                self._add(start, Place.door(keys[lane], state, first, stack, lives))

    def _add(self, start: Start, door: Place, leads_on: bool = True) -> None:
        task = Task(start, door, leads_on, self._patience)
        self._known.setdefault(start.stage, Known())
        self._tasks.append(task)
        self._turns.waiting.append(task)

    def _search(self, tasks: Sequence[Task], most_steps: int) -> int:
        """Looks for a way through each stage of which none is known, without the network; the steps
        taken. Where the agent knows one, another from the door on would only confuse it."""
        taken = 0
        for stage in dict.fromkeys(task.start.stage for task in tasks):
            if self._known[stage].ways(0):
                continue
            start = next(task.start for task in tasks if task.start.stage == stage)
            seed = int(self._random.integers(2**31))
            game = (self._config, self._rom, self._native)
            actions, steps = search_way(*game, start, self._agent.spec.actions, seed, most_steps)
            taken += steps
            if actions is not None:
                self._known[stage].add_way(start.start_delay, actions)
        return taken

    def _play(self, lanes: EvalLanes, table: Table, trial_steps: int) -> None:
        """Plays until nothing is left to do."""
        with uncollected():
            self._play_on(lanes, table, trial_steps)

    def _play_on(self, lanes: EvalLanes, table: Table, trial_steps: int) -> None:
        attempts: dict[int, Attempt] = {}
        while True:
            for lane in range(LANES):
                if lane not in attempts and (order := self._turns.next(trial_steps)):
                    lanes.vector.load(lane, order.place.state)
                    table.sit(lane, order.place)
                    attempts[lane] = Attempt(order, order.place.frames, order.place.lives)
            if not attempts:
                break
            self._each_step()
            for lane in self._step(lanes, table, attempts):
                del attempts[lane]
        self._turns.end()

    def _step(self, lanes: EvalLanes, table: Table, attempts: dict[int, Attempt]) -> list[int]:
        """One step of all lanes that are at play; those whose attempt is over."""
        playing = np.array(sorted(attempts), np.int64)
        trials = np.array([not attempts[lane].order.alone for lane in playing.tolist()])
        decisions = table.decide(playing, trials & self._rough)
        actions = self._choose(decisions, [attempts[lane] for lane in playing.tolist()])
        landing = lanes.step(actions, playing)
        table.land(playing, landing.frames, torch.from_numpy(actions))
        self._steps += len(playing)
        keys = place_keys(landing.info)
        idle = []
        for row, lane in enumerate(playing.tolist()):
            attempt = attempts[lane]
            # A copy: a row of an array would keep all of it.
            attempt.frames = (*attempt.frames[1:], landing.frames[row].copy())
            task = attempt.order.task
            # What the agent does alone is no trial.
            task.steps += not attempt.order.alone
            if task.over:
                idle.append(lane)
                continue
            info = landing.info[row]
            reached = self._judge(attempt, landing, row)
            attempt.lives = int(info[COLUMN["life"]])
            if reached is not None:
                if reached:
                    self._cleared(attempt)
                else:
                    self._failed(attempt)
                ended = landing.terminated[row] or landing.truncated[row]
                after = None if ended else _here(lanes, table, attempt, lane, keys[row])
                self._go_on(attempt, reached, after, info)
                idle.append(lane)
                continue
            if info[COLUMN["player_state"]] == _engine.PlayerState.IN_CONTROL:
                self._look(lanes, table, attempt, lane, keys[row])
            attempt.stale += 1
            tired = not attempt.order.alone and not attempt.on_detour and attempt.stale > STALE
            if tired:
                self._failed(attempt)
                idle.append(lane)
        return idle

    def _judge(self, attempt: Attempt, landing: Landing, row: int) -> bool | None:
        """Whether a lane has reached its goal; None: it is under way."""
        if not landing.terminated[row] and not landing.truncated[row]:
            return None
        return bool(landing.terminated[row] and landing.info[row, COLUMN["flag_get"]])

    def _go_on(
        self, attempt: Attempt, reached: bool, place: Place | None, info: NDArray[np.int32]
    ) -> None:
        """What comes behind an attempt that is over. place: where its lane is, if it can go on;
        info: what is known about it."""

    def _choose(self, decisions: Decisions, attempts: Sequence[Attempt]) -> NDArray[np.int64]:
        """The action of each attempt, which it notes."""
        scores = decisions.logits.numpy().astype(np.float64)
        likeliest = scores.argmax(-1)
        encoded, values = decisions.encoded.numpy(), decisions.values.tolist()
        logits = decisions.logits.half().numpy()
        chosen: NDArray[np.int64] = likeliest.copy()
        for row, attempt in enumerate(attempts):
            order, number = attempt.order, len(attempt.steps)
            if number < len(order.forced):
                chosen[row] = order.forced[number]
            elif attempt.on_detour:
                # The largest of logits with Gumbel noise is a draw from their distribution.
                noise = self._random.gumbel(size=scores.shape[1])
                chosen[row] = (scores[row] / order.temperature + noise).argmax()
            # Copies: a row would keep those of all lanes.
            attempt.steps.append(
                Step(
                    encoded[row].copy(),
                    int(chosen[row]),
                    # What the agent draws when it is alone is chance, and nothing to learn.
                    not order.alone and bool(chosen[row] != likeliest[row]),
                    logits[row].copy(),
                    values[row],
                )
            )
        return chosen

    def _look(self, lanes: EvalLanes, table: Table, attempt: Attempt, lane: int, key: Key) -> None:
        """Notes where a lane is."""
        order = attempt.order
        if key not in order.task.seen:
            order.task.seen.add(key)
            attempt.news += 1
            attempt.stale = 0
        if len(attempt.steps) % EVERY == 0:
            here = _here(lanes, table, attempt, lane, key)
            here.come_from(order.place, attempt.steps, attempt.detours)
            attempt.places.append(here)

    def _failed(self, attempt: Attempt) -> None:
        order = attempt.order
        if order.alone:
            order.task.cleared_alone = False
            order.task.over = not order.task.start.tried
        if order.task.closed or order.task.over:
            return
        if attempt.places and (order.alone or attempt.news >= NEWS):
            # Where it stood still there is nothing to try from: a lesson that stands for a while
            # and then goes would teach both for what looks the same.
            stood = attempt.stale if attempt.stale > STANDING else 0
            end = attempt.depth - stood
            places = [*order.place.chain(), *attempt.places]
            places = [place for place in places if place.depth <= end]
            order.task.paths.add(Path(places, end, attempt.detours))
        elif order.alone:
            # Nothing to try from but the door.
            order.task.paths.add(Path([order.place], attempt.depth, 0))

    def _cleared(self, attempt: Attempt) -> None:
        order, task = attempt.order, attempt.order.task
        task.found += 1
        if order.alone:
            task.cleared_alone = True
        elif task.found == 1:
            task.steps_to_first = task.steps
        lesson = make_lesson(
            task.start.stage,
            task.start.start_delay,
            order.place.path(attempt.steps),
            task.door.memory,
            task.door.previous_action,
        )
        if (price := cost(lesson)) < task.cost:
            task.lesson, task.cost = lesson, price
            # What the agent does alone from one start delay may lead others to the flag, too.
            known = self._known[task.start.stage]
            known.add(task.start.start_delay, order.place, attempt.steps, attempt.places)
        most = MOST_FOUND_DEAR if task.cost > DEAR else MOST_FOUND
        task.over = order.alone or task.found >= most


def _here(lanes: EvalLanes, table: Table, attempt: Attempt, lane: int, key: Key) -> Place:
    return attempt.here(key, lanes.vector.save(lane), table.memory_of(lane))
