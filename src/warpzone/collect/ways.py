"""Practice along ways that a search or a course has found, from their ends backwards.

A stage that no episode clears from its start gives the policy nothing to repeat. A search finds one
way through it; episodes then begin at places along that way. A course of `warpzone teach` has found
ways from many start delays, which `--ways` has practised side by side. Places near the flag clear
first; most practice goes where about half of the attempts get as far as those from a little ahead,
and that place moves towards the start (after Salimans and Chen 2018). An episode first repeats what
led to its place: the policy imitates these steps (`--imitation`) as long as it fails alone from
where they begin. Without that, practice stops at a fork where every attempt takes the wrong turn.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.collect.curriculum import Curriculum
from warpzone.collect.episodes import Episode
from warpzone.collect.lanes import LaneGroup, lane_options
from warpzone.collect.practice import STRIDE, Practice, Spot, cell_of, compare, shown_from, spread
from warpzone.collect.ranks import ALONE, Ranks
from warpzone.collect.search import LANES, Way, find_way
from warpzone.config import TrainConfig
from warpzone.env import machinery
from warpzone.env.actions import action_table
from warpzone.env.infos import COLUMN
from warpzone.env.options import Options
from warpzone.env.stages import stage_name
from warpzone.run.recorded_ways import RecordedWay

#: The numbers of these places in the engine begin here; the archive's own are lower.
FIRST_PLACE = 1 << 22
#: Episodes from a stage's start, none of which cleared it, before a search; and the clear rate from
#: which on a way is no longer needed.
EPISODES = 400
LEARNED = 0.5
#: Recorded ways of a stage that are practised, and lanes and tries to find their start delays.
MOST_WAYS = 40
TRIED, MOST_TRIES = 256, 100
#: Share of the episodes of a stage with a way that begin inside it while none clears from the
#: start, where nothing can be learned yet; and how many times as often on the way as elsewhere.
SHARE = 0.8
TIMES = 3.0


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
        #: By the number of their first place.
        self.practices: dict[int, Practice] = {}
        self.searched_steps = 0
        #: Searches for each stage, and the episodes it had at the last one.
        self._searches: dict[int, tuple[int, int]] = {}
        self._next = FIRST_PLACE
        self._given: set[int] = set()
        #: By number from FIRST_PLACE on: whether the policy imitates what leads to the place.
        self._taught = np.zeros(0, np.bool_)

    @property
    def stages(self) -> list[int]:
        """Those with a way, in their order."""
        return sorted({practice.way.stage for practice in self.practices.values()})

    def learn(self, ended: Iterable[Episode]) -> None:
        """Counts the episodes that began on a way."""
        firsts = sorted(self.practices)
        for episode in ended:
            index = bisect_right(firsts, episode.restart)
            if not index:
                continue
            practice = self.practices[firsts[index - 1]]
            there = episode.restart < practice.first + len(practice.places)
            if there and practice.way.stage == episode.stage:
                practice.count(episode.restart, episode.reason == "flag")

    def look(self, curriculum: Curriculum, chances: NDArray[np.float64]) -> None:
        """Searches for a way through one stage that needs it, and drops those that are no longer
        needed. chances: of the actions that a search tries."""
        rates, episodes = curriculum.clear_rate, curriculum.episodes
        for first, practice in list(self.practices.items()):
            if rates[practice.way.stage] >= LEARNED:
                del self.practices[first]
        if not self.config.search_steps:
            return
        for stage in curriculum.stages:
            count, before = self._searches.get(stage, (0, 0))
            due = episodes[stage] >= max(EPISODES, 2 * before)
            if due and rates[stage] < 1.0 / curriculum.config.curriculum_window:
                if stage in self.stages:
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
        if way is not None:
            self._add(way)

    def begin_with(self, recorded: Sequence[RecordedWay]) -> int:
        """Practises these ways from now on; of a stage at most MOST_WAYS, far from each other. How
        many of them are ways in the lanes of this run, which may start with other delays, as
        another Mario, or end at a set-back."""
        seeds = self._door_seeds() if recorded else {}
        by_stage: dict[int, list[RecordedWay]] = {}
        for one in recorded:
            if one.start_delay in seeds:
                by_stage.setdefault(one.stage, []).append(one)
        for ways in by_stage.values():
            ways.sort(key=lambda one: one.start_delay)
            practised = 0
            for index in spread(len(ways)):
                one = ways[index]
                practised += self._add(Way(one.stage, seeds[one.start_delay], one.actions))
                if practised == MOST_WAYS:
                    break
        return len(self.practices)

    def _add(self, way: Way) -> bool:
        """Whether the way leads to the flag in lanes like those of the run."""
        if places := self._places(way):
            none = np.zeros(len(places)), np.zeros(len(places))
            self.practices[self._next] = Practice(way, self._next, places, *none)
            self._next += len(places)
        return bool(places)

    def _door_seeds(self) -> dict[int, int]:
        """For each start delay a seed with which a lane of this run begins after it, as small Mario
        at the door; what is drawn for a stage does not depend on which one it is."""
        options = self._door("1-1")
        vector = options.make_vector(
            self._rom, TRIED, autoreset=_engine.Autoreset.SAME_STEP, native=self._native
        )
        obs = np.zeros((TRIED, *vector.obs_shape), np.uint8)
        info = np.zeros((TRIED, len(_engine.INFO_FIELDS)), np.int32)
        found: dict[int, int] = {}
        try:
            for first in range(0, TRIED * MOST_TRIES, TRIED):
                vector.seed(list(range(first, first + TRIED)))
                vector.reset(None, obs, info)
                small = np.flatnonzero(info[:, COLUMN["power"]] == 0)
                for lane in small.tolist():
                    found.setdefault(int(info[lane, COLUMN["start_delay"]]), first + lane)
                if len(found) == self.config.start_delay + 1:
                    break
        finally:
            vector.close()
        return found

    def _door(self, stage: str) -> Options:
        """Lanes like those of the run that begin at the door of one stage."""
        return replace(lane_options(self.config), stages=stage, start_halfway=0.0)

    def _places(self, way: Way) -> list[Spot]:
        """Plays the way in a lane like those of the run; empty if it does not end at the flag."""
        vector = self._door(stage_name(way.stage)).make_vector(
            self._rom, 1, autoreset=_engine.Autoreset.SAME_STEP, native=self._native
        )
        obs = np.zeros((1, *vector.obs_shape), np.uint8)
        info = np.zeros((1, len(_engine.INFO_FIELDS)), np.int32)
        last = np.zeros_like(obs), np.zeros_like(info)
        reward, ends = np.zeros(1, np.float32), np.zeros((2, 1), np.bool_)
        table, skip = action_table(self.config.actions).masks, self.config.frame_skip
        saved: list[bytes] = []
        cells: list[tuple[int, ...]] = []
        try:
            vector.seed([way.seed])
            vector.reset(None, obs, info)
            for step, action in enumerate(way.actions):
                if step % STRIDE == 0:
                    saved.append(vector.save(0))
                    cells.append(cell_of(info[0]))
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
            masks = b"".join(mask * skip for mask in buttons)
            places.append(Spot(saved[begin // STRIDE], masks, cells[end // STRIDE]))
        return places

    def shares(self, room: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of each stage's episodes that begin inside it. room: how much of each is still
        to be learned."""
        shares = self.config.archive_share * room
        for stage in self.stages:
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
        compare(self.practices)
        wanted: dict[int, tuple[bytes, bytes, float]] = {}
        for stage in self.stages:
            practices = [one for one in self.practices.values() if one.way.stage == stage]
            weights = np.concatenate([one.weights(rates[stage]) for one in practices])
            weights *= TIMES * (beside.get(stage, 0.0) or 1.0) / weights.sum()
            places = [
                (one.first + index, spot)
                for one in practices
                for index, spot in enumerate(one.places)
            ]
            for (number, spot), weight in zip(places, weights.tolist(), strict=True):
                wanted[number] = spot.state, spot.buttons, weight
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
        for first, practice in self.practices.items():
            begin, end = first - FIRST_PLACE, first - FIRST_PLACE + len(practice.places)
            self._taught[begin:end] = practice.taught(rates[practice.way.stage])

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
        reached = [practice.reached for practice in self.practices.values()]
        return {
            "ways": float(len(mastered)),
            "ways_mastered": float(np.mean(mastered)) if mastered else 0.0,
            "ways_reached": float(np.mean(reached)) if reached else 0.0,
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
                self.practices[first] = Practice(way, first, places, attempts, clears)
        self._searches = {stage: (count, at) for stage, count, at in state["searches"]}
        self._next, self.searched_steps = state["next"]
