"""Changes lanes between two rollouts: rewards, stage weights, restart points and scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpzone.collect.archive import Archive
from warpzone.collect.curriculum import Curriculum
from warpzone.collect.episodes import Episode
from warpzone.collect.lanes import LaneGroup, Lanes, reward_schedule
from warpzone.collect.ranks import ALONE, Ranks
from warpzone.collect.starts import Starts
from warpzone.collect.ways import Ways
from warpzone.config import TrainConfig
from warpzone.env.rewards import SHAPING_FIELDS, RewardWeights

STEPS = SHAPING_FIELDS.index("env_shaping_steps")
FAILURES = "env_shaping_parse_fail"


class Tally(NamedTuple):
    """Counters of a rank's lanes: what rewards were made of, and failures handled."""

    shaping: dict[str, float]
    failures: dict[str, float]


class Guide:
    """All settings of lanes that change during a run. They depend only on the global step, the
    episodes played and the checkpointed state, so that they are the same on every rank."""

    def __init__(self, config: TrainConfig, groups: Lanes, ranks: Ranks = ALONE) -> None:
        self.config = config
        self.groups: Sequence[LaneGroup] = groups
        self._counters = groups.counters
        self._handled: dict[str, float] = {}
        self.schedule = reward_schedule(config)
        self.starts = Starts(config, groups.rom, groups.native)
        self.curriculum = Curriculum(config)
        self.archive = Archive(config, ranks)
        self.ways = Ways(config, groups.rom, groups.native, ranks)
        self._weights: RewardWeights = self.schedule.weights
        self._global_step = 0
        self._failures = 0.0
        #: Share of forced steps in the last rollout; the policy does not learn from them.
        self.forced_share = 0.0
        self._row: dict[str, float] = {}
        for group in groups:
            group.vector.set_restart_share(config.archive_share)

    @property
    def forces(self) -> bool:
        """Whether the run may contain forced steps."""
        return bool(self.starts.script or self.starts.pushes or self.config.archive_share)

    def before(self, global_step: int) -> None:
        """Before the rollout that starts after so many steps of the run."""
        self._global_step = global_step
        weights = self.schedule.at(global_step)
        if weights != self._weights:
            self._weights = weights
            for group in self.groups:
                group.vector.set_reward_weights(weights.to_engine())
        self.starts.before(self.groups, global_step)
        if self.curriculum.active:
            chances = self.curriculum.weights().tolist()
            for group in self.groups:
                group.vector.set_stage_weights(chances)
        if self.config.archive_share:
            shares = self.ways.shares(self.curriculum.room()).tolist()
            for group in self.groups:
                group.vector.set_restart_shares(shares)
        self.archive.apply(self.groups)
        if self.config.archive_explore:
            self.archive.explore(self.groups, global_step)
        if self.config.practises_ways:
            self.ways.apply(self.groups, self.archive.weights(), self.curriculum.clear_rate)

    def tally(self) -> Tally:
        """The counters of this rank's lanes since the last call."""
        sums = np.sum([group.vector.take_shaping() for group in self.groups], axis=0).tolist()
        return Tally(dict(zip(SHAPING_FIELDS, sums, strict=True)), self._counters())

    def after(
        self,
        tallies: Sequence[Tally],
        ended: Sequence[Episode],
        ages: NDArray[np.int64],
        actions: NDArray[np.int64],
    ) -> None:
        """After the rollout, with what all ranks counted; `Archive.look` says what the arrays
        are."""
        self._row = _added([tally.shaping for tally in tallies])
        self._handled = _added([tally.failures for tally in tallies])
        self._failures += self._row[FAILURES]
        updates = self._updates
        self.starts.after(self.groups, updates, self._row["env_distance_delta_sum"])
        if self.curriculum.active or self.config.archive_share:
            self.curriculum.learn(ended)
        if self.config.archive_share:
            self.archive.learn(ended)
            self.archive.look(self.groups, ages, actions, ended)
        if self.config.practises_ways:
            self.ways.learn(ended)
            self.ways.look(self.curriculum, self.archive.pressed)

    @property
    def _updates(self) -> int:
        return self._global_step // self.config.steps_per_update + 1

    def metrics(self) -> dict[str, float]:
        """Numbers of the last rollout."""
        row = {name: value for name, value in self._row.items() if name != SHAPING_FIELDS[STEPS]}
        row[FAILURES] = self._failures
        row["forced_share"] = self.forced_share
        row["env_shaping_last_scale"] = self._weights.scale
        row |= self._handled
        row |= self.starts.metrics(self._updates)
        if self.curriculum.active:
            row |= self.curriculum.metrics()
        if self.config.archive_share:
            row |= self.archive.metrics()
        if self.config.practises_ways:
            row |= self.ways.metrics()
        return row

    def state_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and tensors."""
        return {
            "starts": self.starts.state_dict(),
            "curriculum": self.curriculum.state_dict(),
            "archive": self.archive.state_dict(),
            "ways": self.ways.state_dict(),
            "failures": self._failures,
        }

    def load_state_dict(self, state: Mapping[str, Any], *, anew: bool = False) -> bool:
        """Restores `state_dict`; `anew`: the games are not the saved ones. Returns False if the
        moments of the archive belong to another ROM or other options: then it is empty."""
        self.starts.load_state_dict(state["starts"])
        self.curriculum.load_state_dict(state["curriculum"])
        self._failures = float(state["failures"])
        if not self.config.archive_share:
            return True
        self.archive.load_state_dict(state["archive"], anew=anew)
        if self.config.practises_ways and "ways" in state:
            self.ways.load_state_dict(state["ways"])
        try:
            self.archive.apply(self.groups)
        except ValueError:
            self.archive.clear()
            return False
        return True


def _added(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The sums of counters, name by name."""
    return {name: sum(part[name] for part in parts) for name in parts[0]}
