"""Practice along a way that a search has found, from its end backwards.

A stage that no episode clears from its start gives the policy nothing to repeat. A search finds one
way through it; episodes then begin at places along that way. Those near the flag clear first; most
practice goes where about half of the attempts do, and that place moves towards the start (after
Salimans and Chen 2018). An episode first repeats what the search did just before its place: the
policy imitates these steps (`--imitation`) as long as it fails alone from where they begin. Without
that, practice stops at a fork where every attempt takes the wrong turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.collect.curriculum import Curriculum
from warpzone.collect.episodes import Episode
from warpzone.collect.lanes import LaneGroup, lane_options
from warpzone.collect.ranks import ALONE, Ranks
from warpzone.collect.search import LANES, Way, find_way
from warpzone.config import TrainConfig
from warpzone.env import machinery
from warpzone.env.actions import action_table
from warpzone.env.infos import COLUMN
from warpzone.env.stages import stage_name

#: The numbers of these places in the engine begin here; the archive's own are lower.
FIRST_PLACE = 1 << 22
#: Steps between two places, and those before a place that are shown, in turn. Of one length, the
#: policy's memory would tell what is shown from what it plays itself by the time since the start.
STRIDE = 4
SHOWN = (4, 16, 64, 8, 32)
#: Episodes from a stage's start, none of which cleared it, before a search; and the clear rate from
#: which on a way is no longer needed.
EPISODES = 400
LEARNED = 0.5
#: Share of the episodes of a stage with a way that begin inside it while none clears from the
#: start, where nothing can be learned yet; and how many times as often on the way as elsewhere.
SHARE = 0.8
TIMES = 3.0
#: Attempts are forgotten at this rate, because the policy changes; a place also looks at the
#: attempts of so many neighbours on either side.
DECAY = 0.97
NEIGHBOURS = 2
#: What is shown is imitated while fewer attempts than this clear from where it begins.
TAUGHT = 0.2
#: Chance to be drawn that is left to a place where nothing or everything clears.
LEAST_WEIGHT = 0.02


def shown_from(index: int) -> int:
    """The step of the way at which an episode from this place begins; place number i is
    (i + 1) * STRIDE steps after the start."""
    return max(0, (index + 1) * STRIDE - SHOWN[index % len(SHOWN)])


@dataclass
class Practice:
    """The places of one way, and how attempts from there end."""

    way: Way
    first: int
    #: A lane before the place, and the buttons that lead there, which fill frame stack and memory.
    places: list[tuple[bytes, bytes]] = field(repr=False)
    attempts: NDArray[np.float64]
    clears: NDArray[np.float64]

    def count(self, number: int, cleared: bool) -> None:
        """An episode that began at a place has ended."""
        index = number - self.first
        self.attempts[index] = DECAY * self.attempts[index] + 1.0
        self.clears[index] = DECAY * self.clears[index] + cleared

    def chances(self) -> NDArray[np.float64]:
        """How likely an attempt from each place clears; one half where nobody has tried."""
        window = np.ones(2 * NEIGHBOURS + 1)
        size = len(self.attempts)
        attempts = np.convolve(self.attempts, window)[NEIGHBOURS : NEIGHBOURS + size]
        clears = np.convolve(self.clears, window)[NEIGHBOURS : NEIGHBOURS + size]
        return (clears + 1.0) / (attempts + 2.0)

    def weights(self, door: float) -> NDArray[np.float64]:
        """Places teach most where half of the attempts clear, and behind a fork: where attempts
        clear and what leads there is imitated. door: see `taught`."""
        chances = self.chances()
        fork = np.where(self.taught(door), chances, 0.0)
        return np.maximum(np.maximum(LEAST_WEIGHT, 4.0 * chances * (1.0 - chances)), fork)

    def taught(self, door: float) -> NDArray[np.bool_]:
        """Of each place, whether the policy imitates what leads there. door: the clear rate of
        episodes from the stage's start, where the first of what is shown begins. It is not that of
        the first place: the policy's memory tells episodes that were shown something from others,
        so that it may clear from every place and still take its own wrong turn from the door."""
        # Place number i is (i + 1) * STRIDE steps after the door.
        begin = np.array([shown_from(index) // STRIDE for index in range(len(self.places))])
        # Not of neighbours: a fork lies between two places.
        chances = (self.clears + 1.0) / (self.attempts + 2.0)
        taught: NDArray[np.bool_] = np.concatenate([[door], chances])[begin] < TAUGHT
        return taught

    @property
    def mastered(self) -> float:
        """The share of the way, counted from its end, from which most attempts clear."""
        poor = np.flatnonzero((self.chances() < 0.5) | (self.attempts < 1.0))
        return 1.0 - (poor[-1] + 1) / len(self.attempts) if len(poor) else 1.0


class Ways:
    """The ways of all stages that need one. All ranks have the same ones: the first searches."""

    def __init__(
        self,
        config: TrainConfig,
        rom: bytes,
        native: _engine.NativeProgram | None,
        ranks: Ranks = ALONE,
    ) -> None:
        self.config = config
        self._ranks = ranks
        self._rom, self._native = rom, native
        self.practices: dict[int, Practice] = {}
        self.searched_steps = 0
        #: Searches for each stage, and the episodes it had at the last one.
        self._searches: dict[int, tuple[int, int]] = {}
        self._next = FIRST_PLACE
        self._given: set[int] = set()
        #: By number from FIRST_PLACE on: whether the policy imitates what leads to the place.
        self._taught = np.zeros(0, np.bool_)

    def learn(self, ended: Iterable[Episode]) -> None:
        """Counts the episodes that began on a way."""
        for episode in ended:
            practice = self.practices.get(episode.stage)
            if practice and 0 <= episode.restart - practice.first < len(practice.places):
                practice.count(episode.restart, episode.reason == "flag")

    def look(self, curriculum: Curriculum, chances: NDArray[np.float64]) -> None:
        """Searches for a way through one stage that needs it, and drops those that are no longer
        needed. chances: of the actions that a search tries."""
        rates, episodes = curriculum.clear_rate, curriculum.episodes
        for stage in [one for one in self.practices if rates[one] >= LEARNED]:
            del self.practices[stage]
        for stage in curriculum.stages:
            count, before = self._searches.get(stage, (0, 0))
            due = episodes[stage] >= max(EPISODES, 2 * before)
            if due and rates[stage] < 1.0 / curriculum.config.curriculum_window:
                if stage in self.practices:
                    continue
                self._searches[stage] = count + 1, int(episodes[stage])
                self._search(stage, count, chances)
                return

    def _search(self, stage: int, count: int, chances: NDArray[np.float64]) -> None:
        words = np.random.SeedSequence([self.config.seed, stage, count])
        search = partial(
            find_way,
            lane_options(self.config),
            self._rom,
            self._native,
            stage=stage,
            seed=int(words.generate_state(1)[0]),
            chances=chances,
            most_steps=self.config.search_steps,
            num_threads=machinery.threads(self.config.num_threads or None, LANES),
        )
        way, steps = self._ranks.told_late(search)
        self.searched_steps += steps
        places = self._places(way) if way is not None else []
        if way is not None and places:
            size = len(places)
            none = np.zeros(size), np.zeros(size)
            self.practices[stage] = Practice(way, self._next, places, *none)
            self._next += size

    def _places(self, way: Way) -> list[tuple[bytes, bytes]]:
        """Plays the way in a lane like those of the run; empty if it does not end at the flag."""
        options = replace(
            lane_options(self.config), stages=[[stage_name(way.stage)]], start_halfway=0.0
        )
        vector = options.make_vector(
            self._rom, 1, autoreset=_engine.Autoreset.SAME_STEP, native=self._native
        )
        obs = np.zeros((1, *vector.obs_shape), np.uint8)
        info = np.zeros((1, len(_engine.INFO_FIELDS)), np.int32)
        last = np.zeros_like(obs), np.zeros_like(info)
        reward, ends = np.zeros(1, np.float32), np.zeros((2, 1), np.bool_)
        table, skip = action_table(self.config.actions).masks, self.config.frame_skip
        saved: list[bytes] = []
        try:
            vector.seed([way.seed])
            vector.reset(None, obs, info)
            for step, action in enumerate(way.actions):
                if step % STRIDE == 0:
                    saved.append(vector.save(0))
                chosen = np.array([action])
                vector.step(chosen, obs, reward, ends[0], ends[1], info, *last)
                if ends.any() and step + 1 < len(way.actions):
                    return []
        finally:
            vector.close()
        if not (ends[0, 0] and last[1][0, COLUMN["flag_get"]]):
            return []
        places = []
        for end in range(STRIDE, len(way.actions), STRIDE):
            begin = shown_from(end // STRIDE - 1)
            buttons = (table[one : one + 1] for one in way.actions[begin:end])
            places.append((saved[begin // STRIDE], b"".join(mask * skip for mask in buttons)))
        return places

    def shares(self, room: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of each stage's episodes that begin inside it. room: how much of each is still
        to be learned."""
        shares = self.config.archive_share * room
        for stage in self.practices:
            shares[stage] = max(self.config.archive_share, SHARE) * room[stage]
        return shares

    def apply(
        self,
        groups: Sequence[LaneGroup],
        beside: Mapping[int, float],
        rates: NDArray[np.float64],
    ) -> None:
        """Tells the engine where episodes may begin. beside: the weight that all moments of the
        archive have together in each stage. rates: of clears from the start of each stage."""
        wanted: dict[int, tuple[bytes, bytes, float]] = {}
        for stage, practice in self.practices.items():
            weights = practice.weights(rates[stage])
            weights *= TIMES * (beside.get(stage, 0.0) or 1.0) / weights.sum()
            for index, (state, masks) in enumerate(practice.places):
                wanted[practice.first + index] = state, masks, float(weights[index])
        for group in groups:
            for number in sorted(self._given - wanted.keys()):
                group.vector.remove_restart(number)
            for number, (state, masks, weight) in wanted.items():
                if number in self._given:
                    group.vector.weigh_restart(number, weight)
                else:
                    group.vector.add_restart(number, state, masks, weight)
        self._given = set(wanted)
        self._taught = np.zeros(self._next - FIRST_PLACE, np.bool_)
        for stage, practice in self.practices.items():
            begin = practice.first - FIRST_PLACE
            self._taught[begin : begin + len(practice.places)] = practice.taught(rates[stage])

    def teaches(self, restarts: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether forced steps of episodes that began at these restart points are imitated."""
        number = restarts - FIRST_PLACE
        known = (number >= 0) & (number < len(self._taught))
        found = np.zeros(len(restarts), np.bool_)
        found[known] = self._taught[number[known]]
        return found

    def metrics(self) -> dict[str, float]:
        """How many ways are practised, how much of them is mastered, and what searches cost."""
        mastered = [practice.mastered for practice in self.practices.values()]
        return {
            "ways": float(len(mastered)),
            "ways_mastered": float(np.mean(mastered)) if mastered else 0.0,
            "searched_steps": float(self.searched_steps),
        }

    def state_dict(self) -> dict[str, Any]:
        """Numbers and lists; places are found again from the ways."""
        return {
            "ways": [[p.way.stage, p.way.seed, p.way.actions] for p in self.practices.values()],
            "first": [p.first for p in self.practices.values()],
            "counts": [[p.attempts.tolist(), p.clears.tolist()] for p in self.practices.values()],
            "searches": [[stage, *counts] for stage, counts in self._searches.items()],
            "next": [self._next, self.searched_steps],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict`. A way that other options do not allow is dropped."""
        self.practices = {}
        for (stage, seed, actions), first, counts in zip(
            state["ways"], state["first"], state["counts"], strict=True
        ):
            way = Way(stage, seed, list(actions))
            places = self._places(way)
            if len(places) == len(counts[0]):
                attempts, clears = (np.array(values) for values in counts)
                self.practices[stage] = Practice(way, first, places, attempts, clears)
        self._searches = {stage: (count, at) for stage, count, at in state["searches"]}
        self._next, self.searched_steps = state["next"]
