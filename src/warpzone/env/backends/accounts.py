"""Rewards, progress and ends for many lanes at once: the engine's episode accounting in NumPy.

It says frame by frame what `engine/game/episode.cpp` says, and a test holds both to the same
numbers. There is no loop over lanes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.env.backends import signals
from warpzone.env.backends.interface import WHOLE_GAME, Bools, Bytes, Floats, Ints
from warpzone.env.infos import COLUMN
from warpzone.env.options import Options

#: Mario runs at 3 pixels per frame at most; platforms and springs add a little.
FASTEST_MOVE = 16
REMEMBERED_AREAS = 8
#: A maze's loop can set Mario back past the start of its map, where x wraps around: such an x is no
#: ground.
WRAPPED_X = 0x8000


class Ground:
    """How far Mario has been in each map of the stage he is in. A map is remembered when he leaves
    it, so neither a maze's loop nor a pipe that leads back makes old ground new."""

    def __init__(self, lanes: int) -> None:
        self.area: Ints = np.zeros((lanes, REMEMBERED_AREAS), np.int32)
        self.furthest: Ints = np.zeros((lanes, REMEMBERED_AREAS), np.int32)
        self.count: Ints = np.zeros(lanes, np.int32)
        self.current: Ints = np.zeros(lanes, np.int32)
        self.world: Ints = np.zeros(lanes, np.int32)
        self.stage: Ints = np.zeros(lanes, np.int32)
        self._rows = np.arange(lanes)

    def furthest_x(self) -> Ints:
        """In the map each lane is in."""
        reached: Ints = self.furthest[self._rows, self.current]
        return reached

    def forget(self, where: Bools) -> None:
        """An episode begins in these lanes."""
        self.count[where] = 0

    def enter(self, ram: Bytes, where: Bools) -> Bools:
        """Makes the maps Mario is in the current ones; says where one is new in its stage."""
        world, stage, key = _place(ram)
        moved = where & ((self.world != world) | (self.stage != stage))
        self.world[moved], self.stage[moved] = world[moved], stage[moved]
        self.count[moved] = 0
        seen = (self.area == key[:, None]) & (np.arange(REMEMBERED_AREAS) < self.count[:, None])
        known = where & seen.any(axis=1)
        self.current[known] = seen.argmax(axis=1)[known]
        fresh: Bools = where & ~known
        # No stage has this many maps; should one, the last place is shared.
        self.count[fresh] = np.minimum(self.count[fresh] + 1, REMEMBERED_AREAS)
        self.current[fresh] = self.count[fresh] - 1
        rows = self._rows[fresh]
        self.area[rows, self.current[fresh]] = key[fresh]
        self.furthest[rows, self.current[fresh]] = _ground_x(ram)[fresh]
        return fresh

    def elsewhere(self, ram: Bytes) -> Bools:
        """Where Mario is not in the map that is the current one."""
        world, stage, key = _place(ram)
        here = (self.count != 0) & (self.world == world) & (self.stage == stage)
        away: Bools = ~(here & (self.area[self._rows, self.current] == key))
        return away

    def advance(self, x: Ints, where: Bools) -> Ints:
        """Pixels of new ground in each lane."""
        gained = np.where(where, np.maximum(x - self.furthest_x(), 0), 0).astype(np.int32)
        self.furthest[self._rows, self.current] += gained
        return gained


class Accounts:
    """Everything the episodes of some lanes remember besides the machines."""

    def __init__(self, options: Options, lanes: int) -> None:
        self._kind = options.reward
        self._end_on_life = options.end == "life"
        self._time_limit = options.time_limit
        self._stagnation_limit = options.stagnation_limit
        self.set_weights(options.weights.to_engine())
        self.ground = Ground(lanes)
        self.x_last: Ints = np.zeros(lanes, np.int32)
        self.time_last: Ints = np.zeros(lanes, np.int32)
        self.steps: Ints = np.zeros(lanes, np.int32)
        self.stagnant: Ints = np.zeros(lanes, np.int32)
        self.start_stage: Ints = np.full(lanes, WHOLE_GAME, np.int32)
        self.start_delay: Ints = np.zeros(lanes, np.int32)
        self.score_last: Ints = np.zeros(lanes, np.int32)
        #: New ground since the episode began.
        self.ground_covered: Ints = np.zeros(lanes, np.int32)
        self.was_dying: Bools = np.zeros(lanes, np.bool_)
        self.had_flag: Bools = np.zeros(lanes, np.bool_)
        #: Sums since they were last taken (distance, raw, scaled, unread, steps) and the last
        #: step's distance, raw and scaled.
        self._sums = np.zeros((lanes, 5))
        self._last: Floats = np.zeros((lanes, 3), np.float32)
        self.begin_step()

    def set_weights(self, weights: _engine.RewardWeights) -> None:
        """The engine's reward weights, for the steps from now on."""
        self._weights = weights

    def take_shaping(self) -> list[float]:
        """The engine's eight numbers on shaping over all lanes; starts counting anew."""
        taken = [*self._sums.sum(axis=0), *self._last.astype(np.float64).sum(axis=0)]
        self._sums[:] = 0
        return [float(value) for value in taken]

    def begin(self, ram: Bytes, where: Bools) -> None:
        """Episodes begin now in these lanes; stage and delay are the caller's to set."""
        self.x_last[where] = signals.x_position(ram)[where]
        self.time_last[where] = signals.game_time(ram)[where]
        self.steps[where] = self.stagnant[where] = 0
        self.score_last[where] = np.maximum(_score(ram), 0)[where]
        self.ground_covered[where] = 0
        self.was_dying[where] = self.had_flag[where] = False
        self.ground.forget(where)
        self.ground.enter(ram, where)

    def begin_step(self) -> None:
        """Sets what the frames of a step add up to back to nothing."""
        lanes = len(self.steps)
        self.gym_reward: NDArray[np.float64] = np.zeros(lanes)
        self.pixels: Ints = np.zeros(lanes, np.int32)
        self.points: Ints = np.zeros(lanes, np.int32)
        self.score_unread: Bools = np.zeros(lanes, np.bool_)
        self.new_ground: Bools = np.zeros(lanes, np.bool_)
        self.flag: Bools = np.zeros(lanes, np.bool_)
        self.death: Bools = np.zeros(lanes, np.bool_)
        self.done: Bools = np.zeros(lanes, np.bool_)

    def frame(self, ram: Bytes, where: Bools) -> Bools:
        """Accounts for one frame of some lanes, before scenes are skipped. Returns who is done."""
        dying, flag = signals.is_dying(ram), signals.flag_get(ram)
        self._gym_frame(ram, where, dying)
        self._explore(ram, where & signals.in_control(ram))
        self.death |= where & dying & ~self.was_dying
        self.flag |= where & flag & ~self.had_flag
        self.was_dying = np.where(where, dying, self.was_dying)
        self.had_flag = np.where(where, flag, self.had_flag)
        lost = signals.is_game_over(ram)
        if self._end_on_life:
            lost |= dying
        won = np.where(self.start_stage == WHOLE_GAME, signals.is_game_won(ram), flag)
        done: Bools = where & (lost | won)
        self.done |= done
        return done

    def score(self, ram: Bytes, where: Bools) -> None:
        """Credits the points of a step in lanes whose last frame this was. While a stage loads, the
        score's digits are none; a new game starts from nothing, and that is no loss."""
        score = _score(ram)
        read = where & (score >= 0)
        self.score_unread |= where & (score < 0)
        self.points[read] = np.maximum(score - self.score_last, 0)[read]
        self.score_last[read] = score[read]

    def finish_step(self) -> tuple[Floats, Bools]:
        """The step's rewards and who is truncated; also advances the counters."""
        self.steps += 1
        self.stagnant = np.where(self.new_ground, 0, self.stagnant + 1).astype(np.int32)
        truncated = np.zeros(len(self.steps), np.bool_)
        if self._time_limit:
            truncated |= self.steps >= self._time_limit
        if self._stagnation_limit:
            truncated |= self.stagnant >= self._stagnation_limit
        return self._rewards(), truncated & ~self.done

    def write_counters(self, info: Ints) -> None:
        """The info columns that come from the episode."""
        info[:, COLUMN["furthest_x"]] = self.ground.furthest_x()
        info[:, COLUMN["steps"]] = self.steps
        info[:, COLUMN["start_delay"]] = self.start_delay
        info[:, COLUMN["start_stage"]] = self.start_stage

    def _rewards(self) -> Floats:
        before = self.ground_covered.copy()
        self.ground_covered += self.pixels
        if self._kind == "gym":
            self._count(np.zeros(len(before), np.float32))
            return self.gym_reward.astype(np.float32)
        w = self._weights
        pixel, step, flag, death = map(np.float32, (w.pixel, w.step, w.flag, w.death))
        clip, score, scale = map(np.float32, (w.clip, w.score, w.scale))
        milestone, interval = np.float32(w.milestone), w.milestone_interval
        zero = np.float32(0)
        shaping: Floats = pixel * self.pixels.astype(np.float32)
        shaping = shaping + score * self.points.astype(np.float32)
        self._count(shaping)
        reward: Floats = shaping + step
        if self._kind == "shaped":
            reward = reward + self.gym_reward.astype(np.float32)
        reward = reward * scale + np.where(self.flag, flag, zero)
        reward = reward + np.where(self.death, death, zero)
        if interval >= 1:
            passed = self.ground_covered // interval - before // interval
            reward = reward + milestone * passed.astype(np.float32)
        return np.clip(reward, -clip, clip) if clip > 0 else reward

    def _count(self, shaping: Floats) -> None:
        self._last[:, 0] = self.pixels
        self._last[:, 1] = shaping
        self._last[:, 2] = shaping * np.float32(self._weights.scale)
        self._sums[:, :3] += self._last
        self._sums[:, 3] += self.score_unread
        self._sums[:, 4] += 1

    def _gym_frame(self, ram: Bytes, where: Bools, dying: Bools) -> None:
        """One frame of gym-super-mario-bros 7.4.0's reward, clipped as nes-py clips it."""
        x, time = signals.x_position(ram), signals.game_time(ram)
        dx, dt = x - self.x_last, time - self.time_last
        self.x_last = np.where(where, x, self.x_last)
        self.time_last = np.where(where, time, self.time_last)
        # A larger move is not walking but a new place; a rising clock is a new stage.
        reward = np.where(np.abs(dx) > 5, 0, dx) + np.minimum(dt, 0) + np.where(dying, -25, 0)
        self.gym_reward += np.where(where, np.clip(reward, -15, 15), 0)

    def _explore(self, ram: Bytes, where: Bools) -> None:
        """Credits new ground; pays nothing for jumps (pipes, warps)."""
        fresh = self.ground.enter(ram, where & self.ground.elsewhere(ram))
        gained = self.ground.advance(_ground_x(ram), where & ~fresh)
        self.new_ground |= fresh | (gained > 0)
        self.pixels += np.where(gained <= FASTEST_MOVE, gained, 0).astype(np.int32)


def _score(ram: Bytes) -> Ints:
    """The points in the status bar, -1 where its digits are none."""
    unread = (ram[:, signals.SCORE : signals.SCORE + 6] > 9).any(axis=1)
    return np.where(unread, -1, signals.digits(ram, signals.SCORE, 6)).astype(np.int32)


def _ground_x(ram: Bytes) -> Ints:
    x = signals.x_position(ram)
    return np.where(x < WRAPPED_X, x, 0).astype(np.int32)


def _place(ram: Bytes) -> tuple[Ints, Ints, Ints]:
    """World, stage and the key of the map."""
    key = ram[:, signals.AREA_TYPE].astype(np.int32) << 8 | ram[:, signals.AREA_INDEX]
    return ram[:, signals.WORLD].astype(np.int32), ram[:, signals.STAGE].astype(np.int32), key
