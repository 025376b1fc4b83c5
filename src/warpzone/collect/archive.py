"""Moments of the agent's own play from which later episodes may start.

A moment is a saved lane and the buttons of the steps that followed it. An episode that starts there
repeats these steps first (as forced steps), which fills the frame stack and the memory with what
really happened.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpzone.collect.episodes import HALFWAY, Episode
from warpzone.collect.lanes import LaneGroup
from warpzone.collect.packing import pack, unpack
from warpzone.collect.ranks import ALONE, Ranks
from warpzone.config import TrainConfig
from warpzone.env.actions import action_table
from warpzone.env.infos import COLUMN

#: Moments saved after a rollout at most, so that a new stage does not make one update slow.
MOST_SAVED = 64
#: Attempts after which a moment that leads nowhere is forgotten. An attempt gains ground when it
#: comes so many pixels further, or lasts so many steps (x starts anew in the next map).
PATIENCE = 24
FURTHER = 256
SOON = 100
#: Attempts after which a newer moment of the same place takes over: play has changed meanwhile.
RENEWAL = 64
#: Chance to be drawn that is left to a place from which every attempt gains ground, or none.
LEAST_WEIGHT = 0.05
#: Where a map and a place in it are found in an info row. The right and the wrong ways of a maze
#: share x: the height and the game's own count of right turns tell them apart.
KEY = ("start_stage", "world", "stage", "area_type", "area_index", "loops_correct")
BAND = 48
IN_CONTROL = 8
#: Explorers of each stage, and the numbers they have in the engine.
EXPLORERS = 4
FIRST_EXPLORER = 1 << 24
#: Steps that an explorer presses random buttons, and for which it holds each.
WANDERING = (8, 64)
HOLDING = (1, 14)
#: How fast the count of what the policy presses forgets, and the share of what it never presses.
PRESSED_DECAY = 0.98
EVEN_SHARE = 0.3

Key = tuple[int, ...]


@dataclass
class Moment:
    """One moment: a place to start from."""

    number: int
    key: Key
    state: bytes
    masks: bytes
    x: int
    attempts: int = 0
    gains: int = 0
    clears: int = 0

    @property
    def hopeless(self) -> bool:
        """Whether no episode from here came any further."""
        return self.attempts >= PATIENCE and self.gains == 0

    @property
    def weight(self) -> float:
        """Places are practised as much as they teach: most where half of the attempts gain ground,
        little where all do or none does."""
        chance = (self.gains + 1.0) / (self.attempts + 2.0)
        return max(LEAST_WEIGHT, 4.0 * chance * (1.0 - chance))

    @property
    def need(self) -> float:
        """Places are explored from as much as attempts from there fail to gain ground."""
        return max(LEAST_WEIGHT, 1.0 - self.gains / max(self.attempts, 1))


@dataclass
class Candidate:
    """A candidate: its episode must survive before it becomes a moment."""

    lane: int
    age: int
    key: Key
    state: bytes
    x: int


class Lasted(NamedTuple):
    """A candidate whose episode survived, and the buttons of the steps that followed."""

    found: Candidate
    masks: bytes


class Archive:
    """One moment for each cell of each map, with the results of its episodes. All ranks have the
    same one: what their lanes found is merged."""

    def __init__(self, config: TrainConfig, ranks: Ranks = ALONE) -> None:
        self.config = config
        self._ranks = ranks
        self.moments: dict[int, Moment] = {}
        self.episodes = 0
        self.clears = 0
        self._places: dict[Key, int] = {}
        self._candidates: list[Candidate] = []
        self._next = 1
        #: Numbers of the moments that the engine has, and of those whose weight has changed.
        self._given: set[int] = set()
        self._changed: set[int] = set()
        self._masks = action_table(config.actions).masks
        self._warm_up = config.frame_stack - 1
        self._explorers: list[int] = []
        self._counts = np.full(len(self._masks), 1.0)

    # --- what lanes did -------------------------------------------------------------------------
    def learn(self, ended: Iterable[Episode]) -> None:
        """Counts the episodes that had started here."""
        for episode in ended:
            if episode.restart in (0, HALFWAY):
                continue
            self.episodes += 1
            cleared = episode.reason == "flag"
            self.clears += cleared
            moment = self.moments.get(episode.restart)
            if moment is None:
                continue
            moment.attempts += 1
            moment.clears += cleared
            further = episode.furthest_x >= moment.x + FURTHER or episode.steps > SOON
            # Ground on a wrong way is no gain: a place from which every attempt is set back goes.
            moment.gains += cleared or (further and episode.reason != "setback")
            self._changed.add(moment.number)
            if moment.hopeless:
                self._forget(moment.number)

    def look(
        self,
        groups: Sequence[LaneGroup],
        ages: NDArray[np.int64],
        actions: NDArray[np.int64],
        ended: Sequence[Episode],
    ) -> None:
        """After a rollout. ages: steps each lane of the run is into its episode; actions: what the
        lanes did in the rollout's first steps, as many as the stack has frames, [stack, B];
        groups: this rank's."""
        self.count(actions)
        self.keep(self.lasting(ages, actions, ended))
        self._candidates = _merged(self._ranks.gather(self._find(groups, ages)))

    def count(self, actions: NDArray[np.int64]) -> None:
        """Counts what was pressed."""
        seen = np.bincount(actions.ravel(), minlength=len(self._masks))
        self._counts = PRESSED_DECAY * self._counts + seen

    def lasting(
        self, ages: NDArray[np.int64], actions: NDArray[np.int64], ended: Sequence[Episode]
    ) -> list[Lasted]:
        """The candidates that become moments; `look` says what the arrays are."""
        lasted = []
        first = {episode.lane: episode for episode in reversed(ended)}
        for found in self._candidates:
            goes_on = ages[found.lane] == found.age + self.config.rollout_steps
            over = first.get(found.lane)
            cleared = over is not None and over.reason == "flag" and not goes_on
            cleared = cleared and over is not None and over.steps >= found.age + self._warm_up
            if not (goes_on or cleared):
                continue
            taken = actions[: self._warm_up, found.lane]
            masks = b"".join(self._masks[a : a + 1] * self.config.frame_skip for a in taken)
            lasted.append(Lasted(found, masks))
        return lasted

    def keep(self, lasted: Iterable[Lasted]) -> None:
        """New moments, in the place of older ones."""
        for found, masks in lasted:
            known = self._places.get(found.key)
            if known is not None:
                self._forget(known)
            self._add(Moment(self._next, found.key, found.state, masks, found.x))
            self._next += 1
        self._shrink()

    def _find(self, groups: Sequence[LaneGroup], ages: NDArray[np.int64]) -> list[Candidate]:
        found: list[Candidate] = []
        known = {
            key for key, number in self._places.items() if self.moments[number].attempts < RENEWAL
        }
        for group in groups:
            info, age = group.info, ages[group.first : group.first + group.count]
            x, furthest = info[:, COLUMN["x_pos"]], info[:, COLUMN["furthest_x"]]
            y = info[:, COLUMN["y_pos"]]
            usable = (age > self._warm_up) & (info[:, COLUMN["forced"]] == 0)
            usable &= (info[:, COLUMN["player_state"]] == IN_CONTROL) & (x == furthest)
            columns = [COLUMN[name] for name in KEY]
            for lane in np.flatnonzero(usable):
                if len(found) >= MOST_SAVED:
                    return found
                cell = int(x[lane]) // self.config.archive_cell
                height = int(y[lane]) // BAND
                key = (*(int(value) for value in info[lane, columns]), cell, height)
                if key not in known:
                    known.add(key)
                    place = group.first + int(lane)
                    state = group.vector.save(int(lane))
                    found.append(Candidate(place, int(age[lane]), key, state, int(x[lane])))
        return found

    def _add(self, moment: Moment) -> None:
        self.moments[moment.number] = moment
        self._places[moment.key] = moment.number

    def _shrink(self) -> None:
        """Forgets the moments that teach least while there are too many."""
        too_many = len(self.moments) - self.config.archive_size
        if too_many > 0:
            least = heapq.nsmallest(
                too_many, self.moments.values(), key=lambda one: (one.weight, one.number)
            )
            for moment in least:
                self._forget(moment.number)

    def _forget(self, number: int) -> None:
        del self._places[self.moments.pop(number).key]

    def clear(self) -> None:
        """Drops every moment, but keeps the counters."""
        self.clear_moments()
        self._candidates = []

    def clear_moments(self) -> None:
        """Drops every moment, and keeps what may become one."""
        self.moments, self._places = {}, {}

    # --- what lanes get -------------------------------------------------------------------------
    def apply(self, groups: Sequence[LaneGroup]) -> None:
        """Sends the changes since the last call to the engine."""
        for group in groups:
            for number in sorted(self._given - self.moments.keys()):
                group.vector.remove_restart(number)
            for number in sorted(self.moments.keys() - self._given):
                moment = self.moments[number]
                group.vector.add_restart(number, moment.state, moment.masks, moment.weight)
            for number in sorted(self._changed & self._given & self.moments.keys()):
                group.vector.weigh_restart(number, self.moments[number].weight)
        self._given = set(self.moments)
        self._changed.clear()

    def explore(self, groups: Sequence[LaneGroup], global_step: int) -> None:
        """Gives the engine new explorers instead of the last ones: moments from which random
        buttons are held for a while before the policy takes over, so that the archive also grows
        where the policy does not go. They follow from the moments and the step alone."""
        for group in groups:
            for number in self._explorers:
                group.vector.remove_restart(number)
        self._explorers = []
        share = self.config.archive_explore
        random = np.random.default_rng([self.config.seed, global_step])
        stages: dict[int, list[Moment]] = defaultdict(list)
        for moment in self.moments.values():
            stages[moment.key[0]].append(moment)
        for stage in sorted(stages):
            moments = stages[stage]
            needs = np.array([moment.need for moment in moments])
            chosen = random.choice(len(moments), EXPLORERS, p=needs / needs.sum())
            together = sum(moment.weight for moment in moments)
            weight = together * share / (1.0 - share) / EXPLORERS
            for moment in (moments[index] for index in chosen):
                number = FIRST_EXPLORER + len(self._explorers)
                self._explorers.append(number)
                masks = moment.masks + self._wander(random)
                for group in groups:
                    group.vector.add_restart(number, moment.state, masks, weight)

    @property
    def pressed(self) -> NDArray[np.float64]:
        """The chance of each action when buttons are pressed at random: as the policy presses
        them, and now and then those that it does not."""
        even = EVEN_SHARE / len(self._masks)
        chances: NDArray[np.float64] = self._counts / self._counts.sum()
        return even + (1.0 - EVEN_SHARE) * chances

    def _wander(self, random: np.random.Generator) -> bytes:
        """Random buttons, each held for a while; as often as the policy presses them."""
        steps = int(random.integers(*WANDERING))
        masks = b""
        while len(masks) < steps * self.config.frame_skip:
            action = int(random.choice(len(self._masks), p=self.pressed))
            held = int(random.integers(*HOLDING)) * self.config.frame_skip
            masks += self._masks[action : action + 1] * held
        return masks[: steps * self.config.frame_skip]

    def weights(self) -> dict[int, float]:
        """What the moments of each stage weigh together."""
        total: dict[int, float] = defaultdict(float)
        for moment in self.moments.values():
            total[moment.key[0]] += moment.weight
        return dict(total)

    def places(self) -> list[list[int]]:
        """For maps, of each moment: stage, type and index of the area, x, height above the bottom
        of the screen, attempts, those that gained ground, and those that cleared."""
        found = []
        for one in self.moments.values():
            stage, _, _, area_type, area_index, *_, height = one.key
            place = [stage, area_type, area_index, one.x, height * BAND + BAND // 2]
            found.append([*place, one.attempts, one.gains, one.clears])
        return found

    def metrics(self) -> dict[str, float]:
        """Size, and results of the episodes that started here."""
        row = {"archive_size": float(len(self.moments)), "archive_episodes": float(self.episodes)}
        row["archive_clears"] = float(self.clears)
        return row

    def state_dict(self) -> dict[str, Any]:
        """Numbers, lists and bytes as tensors."""
        moments, candidates = list(self.moments.values()), self._candidates
        return {
            "numbers": [[m.number, m.x, m.attempts, m.gains, m.clears] for m in moments],
            "keys": [list(m.key) for m in moments],
            "states": pack([m.state for m in moments]),
            "masks": pack([m.masks for m in moments]),
            "candidates": [[c.lane, c.age, c.x, *c.key] for c in candidates],
            "candidate_states": pack([c.state for c in candidates]),
            "counts": [self._next, self.episodes, self.clears],
            "pressed": self._counts.tolist(),
        }

    def load_state_dict(self, state: Mapping[str, Any], *, anew: bool = False) -> None:
        """Restores `state_dict`. Candidates need their lane, which must exist and must not have
        started `anew`."""
        lanes = 0 if anew else self.config.num_envs
        parts = (state["numbers"], state["keys"], unpack(state["states"]), unpack(state["masks"]))
        self._changed = set()
        self.moments, self._places = {}, {}
        for (number, x, *counts), key, saved, masks in zip(*parts, strict=True):
            self._add(Moment(number, tuple(key), saved, masks, x, *counts))
        self._shrink()
        saved_candidates = unpack(state["candidate_states"])
        self._candidates = [
            Candidate(lane, age, tuple(key), saved, x)
            for (lane, age, x, *key), saved in zip(
                state["candidates"], saved_candidates, strict=True
            )
            if lane < lanes
        ]
        self._next, self.episodes, self.clears = state["counts"]
        self._counts = np.array(state.get("pressed", self._counts))


def _merged(found: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """The candidates of all ranks, by lane: those that one rank with all lanes would have found.
    A rank that found as many as are saved may have found some twice, but then there are enough."""
    first: dict[Key, Candidate] = {}
    for candidate in (one for part in found for one in part):
        first.setdefault(candidate.key, candidate)
    return list(first.values())[:MOST_SAVED]
