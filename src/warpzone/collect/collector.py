"""Lanes and agent in, rollouts out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpzone.collect.actor import Actor
from warpzone.collect.cuts import Cuts
from warpzone.collect.episodes import Ended, Episode, EpisodeLog, in_order
from warpzone.collect.guide import Guide, Tally
from warpzone.collect.lanes import LaneGroup, Lanes, lane_seeds
from warpzone.collect.own_reward import OwnReward
from warpzone.collect.packing import pack, unpack
from warpzone.collect.ranks import ALONE, Ranks
from warpzone.collect.store import Store
from warpzone.collect.streams import generator
from warpzone.collect.turn import Turn
from warpzone.config import TrainConfig
from warpzone.data.types import Rollout
from warpzone.env.actions import action_table
from warpzone.env.infos import COLUMN
from warpzone.health.pulse import Pulse
from warpzone.model.agent import Agent
from warpzone.model.cpu import acting_threads, computing_with
from warpzone.run.timing import Clock

#: Of a reason why games start again: the archive does not fit either.
ARCHIVE_EMPTY = "; the archive starts empty"


class Collected(NamedTuple):
    """A rollout with everything about its collection, so that the next one can be in progress."""

    rollout: Rollout
    #: Updates that the policy which played it had seen.
    version: int
    owners: dict[str, float]
    episodes: list[Episode]
    summary: dict[str, float]


class News(NamedTuple):
    """What the other ranks must know of a rank's rollout, so that all explore as one."""

    ended: list[Ended]
    tally: Tally
    #: Steps each lane is into its episode.
    ages: NDArray[np.int64]
    #: What the lanes did in the first steps, [stack, B]; empty if there is no archive.
    actions: NDArray[np.int64]
    #: Share of forced steps.
    forced: float


class Collector:
    """Drives the groups in turn: the engine plays one while the network decides for another."""

    def __init__(
        self,
        config: TrainConfig,
        agent: Agent,
        groups: Lanes,
        device: torch.device,
        ranks: Ranks = ALONE,
    ) -> None:
        """`groups` are closed with the collector, and are this rank's. ranks: those of the thread
        that collects."""
        self.config = config
        self.agent = agent
        self.groups = groups
        self.device = device
        self._ranks = ranks
        #: This rank's lanes, by their numbers in the run.
        self.lanes = ranks.lanes(config.num_envs)
        count = self.lanes.stop - self.lanes.start
        self.episodes = EpisodeLog(
            count,
            time_limit=config.episode_timeout_steps,
            setbacks=config.end_on_setback,
            window=config.episode_window,
        )
        self.guide = Guide(config, groups, ranks)
        self._own_reward = OwnReward(config, groups) if config.own_reward else None
        #: What else there is to say about a state that was loaded.
        self.notes: list[str] = []
        self.clock = Clock()
        self.pulse = Pulse()
        self.actors = [Actor(config, agent, group.count, device) for group in groups]
        self._stores = [
            Store(config, agent.spec.actions, device, count)
            for _ in range(2 if config.overlap_collect else 1)
        ]
        self._turns = [
            [Turn(config, group, actor, store) for group, actor in self._pairs()]
            for store in self._stores
        ]
        self._cuts = Cuts(config, agent, groups[0].count, device)
        self._next = 0
        #: Its own stream: decisions do not queue behind the learner's work.
        self._stream: torch.cuda.Stream | None = None
        if config.overlap_collect and device.type == "cuda":
            self._stream = torch.cuda.Stream(device, priority=-1)  # type: ignore[no-untyped-call]
        #: Threads for decisions on the CPU; a concurrent learner shares the setting.
        self.threads = 0
        if device.type == "cpu" and not config.overlap_collect:
            self.threads = acting_threads(agent, groups[0].count)
        self._sampling = generator(config.seed, "actions")
        self._age = np.zeros(count, np.int64)
        #: Button mask -> action; 0 for masks that are no action.
        self._action_of = np.zeros(256, np.int64)
        for action, mask in reversed(list(enumerate(action_table(config.actions).masks))):
            self._action_of[mask] = action
        self._history = torch.zeros_like(self._stores[0].frames[: config.frame_stack - 1])
        for group, actor in self._pairs():
            actor.frame.copy_(group.frames)

    def _pairs(self) -> list[tuple[LaneGroup, Actor]]:
        return list(zip(self.groups, self.actors, strict=True))

    @property
    def ages(self) -> NDArray[np.int64]:
        """Steps each of this rank's lanes is into its episode."""
        return self._age

    def prepare(self, global_step: int) -> None:
        """Before a rollout that starts after so many steps of the run."""
        self.guide.before(global_step)

    def play(self, version: int) -> Collected:
        """A rollout and all that belongs to it; `version` is the policy's."""
        try:
            rollout = self.collect()
        except (ValueError, OSError) as error:
            # Elsewhere these types mean bad input or a full disk, and are printed as one sentence.
            raise RuntimeError(f"collecting failed: {error}") from error
        episodes = self.episodes.take()
        summary = {**self.episodes.summary(), **self.guide.metrics()}
        return Collected(rollout, version, self.clock.take(), episodes, summary)

    def collect(self) -> Rollout:
        """Plays `rollout_steps` steps in every lane. The tensors returned are written again by the
        next call but one if collection overlaps with learning, else by the next."""
        if self._stream is None:
            with computing_with(self.threads):
                return self._collect()
        with torch.cuda.stream(self._stream):
            rollout = self._collect()
        self._stream.synchronize()
        return rollout

    def _collect(self) -> Rollout:
        config = self.config
        self.pulse.enter("collect")
        store, turns = self._stores[self._next], self._turns[self._next]
        self._next = (self._next + 1) % len(self._stores)
        store.frames[: config.frame_stack - 1] = self._history
        store.final_value.zero_()
        state = [tuple(part.clone() for part in actor.memory) for actor in self.actors]
        uniform = self._draw()
        for step in range(config.rollout_steps + 1):
            for turn in turns:
                if step > 0:
                    self._receive(turn, step - 1)
                if uniform is not None and step < config.rollout_steps:
                    turn.actor.uniform.copy_(uniform[step, turn.group.lanes])
                self._take(turn, step)
            self.pulse.step()
        self._history = store.frames[-config.frame_stack : -1].clone()
        with self.clock.time("other"):
            self._tell_guide(store)
        return self._rollout(store, state)

    def _tell_guide(self, store: Store) -> None:
        """Results of the rollout, those of other ranks among them: episodes that ended, and where
        the lanes are."""
        first = store.actions[: self.config.frame_stack] if self.config.archive_share else None
        news = self._ranks.gather(
            News(
                ended=self.episodes.ended(),
                tally=self.guide.tally(),
                ages=self._age,
                actions=np.zeros((0, 0), np.int64) if first is None else first.cpu().numpy(),
                forced=float(store.forced.numpy().mean()) if self.guide.forces else 0.0,
            )
        )
        ended = in_order(part.ended for part in news)
        self.episodes.count(ended)
        self.guide.forced_share = sum(part.forced for part in news) / len(news)
        ages = np.concatenate([part.ages for part in news])
        actions = np.concatenate([part.actions for part in news], 1)
        self.guide.after([part.tally for part in news], ended, ages, actions)

    def _draw(self) -> Tensor | None:
        """[T, B, A]: what the CPU samples actions with. Drawn for all lanes of the run at once, so
        that a lane's numbers do not depend on its group or rank. The network's outputs can still
        differ in the last bits between groupings, because the order of sums depends on the batch
        size."""
        if self.device.type == "cuda":
            return None
        shape = (self.config.rollout_steps, self.config.num_envs, self.agent.spec.actions)
        return torch.rand(shape, generator=self._sampling)[:, self.lanes]

    def _receive(self, turn: Turn, step: int) -> None:
        """Waits for step `step`, and prepares the input of the next decision."""
        group = turn.group
        with self.clock.time("engine"):
            group.finish()
        with self.clock.time("other"):
            if self._own_reward is not None:
                self._own_reward.apply(group)
            np.logical_or(group.terminated, group.truncated, out=turn.ended)
            if self.guide.forces:
                self._mark_forced(turn, step)
            self._cuts.note(step, group, turn.actor)

    def _take(self, turn: Turn, step: int) -> None:
        """Observes and decides step `step`. While the device decides, the host accounts for the
        previous step."""
        last = step == self.config.rollout_steps
        with self.clock.time("inference"):
            if last:
                turn.end()
            else:
                turn.take(step)
        with self.clock.time("other"):
            if step > 0:
                self._account(turn, step - 1)
            turn.age[step] = self._age[turn.group.lanes]
        if last:
            return
        with self.clock.time("inference"):
            chosen = turn.chosen()
        turn.group.start(chosen)

    def _account(self, turn: Turn, step: int) -> None:
        """Stores the results of step `step`."""
        group = turn.group
        ended = self.episodes.add(group, step)
        turn.rewards[step] = group.rewards
        turn.terminated[step] = group.terminated
        turn.truncated[step] = group.truncated
        ages = self._age[group.lanes]
        ages += 1
        ages[ended] = 0

    def _mark_forced(self, turn: Turn, step: int) -> None:
        """Where a script pressed the buttons, its action replaces the policy's choice. Where an
        episode ended, `info` is that of the next one."""
        store, group, ended = turn.store, turn.group, turn.ended
        columns = [COLUMN["forced"], COLUMN["buttons"], COLUMN["restart"]]
        rows = group.info[:, columns]
        if ended.any():
            rows[ended] = group.final_info[ended][:, columns]
        forced, buttons, restart = rows[:, 0] != 0, rows[:, 1], rows[:, 2]
        store.forced[step, group.lanes] = torch.from_numpy(forced)
        shown = forced & self.guide.ways.teaches(restart)
        store.shown[step, group.lanes] = torch.from_numpy(shown)
        if not forced.any():
            return
        lanes = torch.from_numpy(np.flatnonzero(forced)).to(self.device)
        actions = torch.from_numpy(self._action_of[buttons[forced]]).to(self.device)
        turn.actor.action[lanes] = actions
        store.actions[step, group.lanes.start + lanes] = actions
        store.log_prob[step, group.lanes.start + lanes] = 0.0

    def _rollout(self, store: Store, state: list[tuple[Tensor, ...]]) -> Rollout:
        with self.clock.time("copy"):
            host = (store.rewards, store.terminated, store.truncated, store.forced, store.shown)
            rewards, terminated, truncated, forced, shown, age = (
                part.to(self.device, non_blocking=True) for part in (*host, store.age)
            )
        with self.clock.time("inference"):
            self._cuts.settle(store, age)
        with self.clock.time("copy"):
            return Rollout(
                frames=store.frames,
                age=age,
                actions=store.actions,
                previous_actions=store.previous,
                logits=store.logits,
                log_prob=store.log_prob,
                values=store.values,
                last_value=store.last_value,
                final_value=store.final_value,
                rewards=rewards,
                terminated=terminated,
                truncated=truncated & ~terminated,
                forced=forced,
                shown=shown,
                state=tuple(torch.cat(parts) for parts in zip(*state, strict=True)),
            )

    def state_dict(self, *, lanes: bool = True) -> dict[str, Any]:
        """Everything the next rollout depends on but for the weights; `lanes`: with the games,
        which can be saved between two rollouts only."""
        state = {
            "sampling": self._sampling.get_state(),
            "episodes": self.episodes.state_dict(),
            "guide": self.guide.state_dict(),
        }
        return {**state, **self._lanes()} if lanes else state

    def _lanes(self) -> dict[str, Any]:
        """In the order of the run, independent of groups."""
        kept = [actor.kept() for actor in self.actors]
        return {
            "lanes": pack([state for group in self.groups for state in group.save()]),
            "actors": {name: torch.cat([part[name] for part in kept]).cpu() for name in kept[0]},
            "history": self._history.cpu().clone(),
            "age": torch.from_numpy(self._age.copy()),
            **({"infos": self._own_reward.state_dict()} if self._own_reward is not None else {}),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> str:
        """Restores a saved state. Returns why all games start again, if they do."""
        self._sampling.set_state(state["sampling"])
        count, reason = self.lanes.stop - self.lanes.start, "they were not saved"
        if "lanes" in state:
            try:
                self._load_lanes(state)
                reason = ""
            except (ValueError, RuntimeError) as error:
                reason = str(error)
        sums = {"returns": [0.0] * count, "steps": [0] * count}
        if reason:
            self._restart()
        else:
            sums = {name: state["episodes"][name][self.lanes] for name in sums}
            self.guide.starts.unplayed = False
        self.episodes.load_state_dict({**state["episodes"], **sums})
        if "guide" in state:
            fits = self.guide.load_state_dict(state["guide"], anew=bool(reason))
            reason += "" if fits else ARCHIVE_EMPTY
        return reason

    @torch.no_grad()
    def _load_lanes(self, state: Mapping[str, Any]) -> None:
        """This rank's lanes. Of more lanes than there are, the first ones."""
        lanes, count = unpack(state["lanes"]), self.config.num_envs
        if len(lanes) < count:
            raise ValueError(f"there are {len(lanes)} saved lanes, and {count} are needed")
        own = lanes[self.lanes]
        actors = {name: part[self.lanes] for name, part in state["actors"].items()}
        for group, actor in self._pairs():
            for name, part in actor.kept().items():
                fitting(actors[name][group.lanes], part)
        self._history = fitting(state["history"][:, self.lanes], self._history).to(
            self.device, copy=True
        )
        for group, actor in self._pairs():
            group.load(own[group.lanes])
            for name, part in actor.kept().items():
                part.copy_(actors[name][group.lanes])
            group.frames.copy_(actor.frame)
            actor.starts.copy_(actor.fresh)
        self._age[:] = state["age"][self.lanes].numpy()
        if self._own_reward is not None and "infos" in state:
            self._own_reward.load_state_dict(state["infos"][self.lanes])

    def _restart(self) -> None:
        """Restarts every game, and drops the restored state of lanes."""
        for group, actor in self._pairs():
            numbers = slice(group.first, group.first + group.count)
            group.reset(lane_seeds(self.config.seed, numbers))
            actor.frame.copy_(group.frames)
            actor.fresh.fill_(True)
            actor.starts.fill_(True)
        self._age[:] = 0
        if self._own_reward is not None:
            self._own_reward.restart()

    def close(self) -> None:
        """Stops the engine and its threads."""
        self.groups.close()


def fitting(saved: Tensor, here: Tensor) -> Tensor:
    """The saved tensor, if its shape matches `here`."""
    if saved.shape != here.shape or saved.dtype != here.dtype:
        raise ValueError(
            f"the saved observations have the shape {list(saved.shape)}, not {list(here.shape)}"
        )
    return saved
