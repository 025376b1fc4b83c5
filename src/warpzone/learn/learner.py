"""Rollouts in, a better agent out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from warpzone.algo.algorithm import Whole
from warpzone.algo.ema import Ema
from warpzone.algo.losses import moments
from warpzone.algo.optim import Updater, make_optimizer, set_learning_rate
from warpzone.algo.returns import Returns
from warpzone.algo.schedules import Anneal, Schedule
from warpzone.algo.table import ALGORITHMS
from warpzone.collect.ranks import ALONE, Ranks
from warpzone.config import TrainConfig
from warpzone.data.types import Rollout
from warpzone.health.pulse import Pulse
from warpzone.learn.adaptive import Adaptive
from warpzone.learn.augment import Change
from warpzone.learn.batches import Batches, LaneBatches, Network, StepBatches
from warpzone.learn.graphs import Kept, OptimiserSteps
from warpzone.learn.orders import Orders
from warpzone.learn.replaying import Replaying
from warpzone.learn.together import Together
from warpzone.model.agent import Agent
from warpzone.model.cpu import keep_freed_memory

MAX_SKIPPED_IN_A_ROW = 5
#: Initial loss scale of float16.
FIRST_SCALE = 8192.0
STATISTICS = (
    "loss_total",
    "loss_policy",
    "loss_value",
    "loss_imitation",
    "entropy",
    "approx_kl",
    "clip_fraction",
    "optimiser_steps",
)
#: Of replayed lanes; zero in updates that replay nothing.
REPLAY_STATISTICS = ("loss_policy", "loss_value", "approx_kl")


class LearningError(RuntimeError):
    """Learning cannot continue; one sentence says why."""


class NotFiniteError(LearningError):
    """Optimiser steps are left out one after another. The update that notices has no row."""


class Learner:
    """Updates one agent from rollouts, once or several times each."""

    def __init__(
        self,
        config: TrainConfig,
        agent: Agent,
        device: torch.device,
        ranks: Ranks = ALONE,
    ) -> None:
        self.config = config
        self._ranks = ranks
        self.algorithm = ALGORITHMS[config.algo](config)
        self.agent = agent
        self.device = device
        if device.type == "cpu":
            keep_freed_memory()
        self.optimizer = make_optimizer(
            agent, learning_rate=config.lr, weight_decay=config.weight_decay
        )
        self._graphs = config.graphs and device.type == "cuda"
        if self._graphs:
            for group in self.optimizer.param_groups:
                group["lr"] = torch.tensor(config.lr, device=device)
                group["capturable"] = True
        half = config.amp and config.amp_dtype == "float16" and device.type == "cuda"
        self.updater = Updater(
            self.optimizer, max_norm=config.clip_grad, loss_scale=FIRST_SCALE if half else None
        )
        self.ema = Ema(agent, config.ema) if config.ema else None
        self.learning_rate = Schedule(
            config.lr,
            config.lr * config.lr_final,
            "cosine",
            warmup=config.warmup,
            stride=config.steps_per_update / config.max_steps,
        )
        self.entropy = Anneal(config.entropy, config.entropy_final)
        self.adaptive = Adaptive(config)
        self.network = Network(config, agent, device)
        self.pulse = Pulse()
        self.replaying = Replaying(config, agent, device, ranks) if config.per else None
        self.entropy_bonus = torch.zeros((), device=device)
        self._stop = torch.zeros((), dtype=torch.bool, device=device)
        self.kl = torch.zeros((), device=device)
        self.sums = torch.zeros(len(STATISTICS), device=device)
        self._replayed_sums = torch.zeros_like(self.sums)
        self._orders = Orders(config.seed, device)
        #: Blocking event, no busy-wait: the core stays free for the engine.
        self._waiting: torch.cuda.Event | None = None
        if device.type == "cuda":
            self._waiting = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
        #: What recorded steps read of a rollout, but for its frames.
        self._rows = Kept()
        #: The minibatches of one optimiser step, one after the other: steps, or whole lanes.
        self._piece = config.minibatch
        if config.whole_lanes:
            self._piece = max(1, config.minibatch // config.rollout_steps)
        self._index = torch.zeros(self._piece * config.grad_accum, dtype=torch.int64, device=device)
        #: Optimiser steps with other ranks; None without them.
        self._together = Together(config, ranks, self, even=self._graphs) if ranks.grouped else None
        counters = [self.sums, self._stop, self.kl]
        counters += self._together.tensors() if self._together is not None else []
        self._steps = OptimiserSteps(self.updater, counters, enabled=self._graphs)

    # --- one update -----------------------------------------------------------------------------
    def update(
        self, rollout: Rollout, progress: float, *, behind: bool = False
    ) -> dict[str, float]:
        """Learns from a rollout; `progress` is the share of the run that is done. behind: older
        weights than the present ones played it."""
        self.pulse.enter("learn")
        rate = self.learning_rate(progress) * self.adaptive.lr_scale
        bonus = self.entropy(progress) * self.adaptive.entropy_scale
        set_learning_rate(self.optimizer, rate)
        self.entropy_bonus.fill_(bonus)
        self._stop.zero_()
        self.sums.zero_()
        self._replayed_sums.zero_()
        self._learn(rollout, behind)
        if self.replaying is not None:
            self._replay(self.replaying, rollout, progress)
        if self.ema is not None:
            self.ema.update(self.agent)
        return self._report(rate, bonus)

    def _report(self, rate: float, bonus: float) -> dict[str, float]:
        if self._waiting is not None:
            self._waiting.record()
            self._waiting.synchronize()
        report = self.updater.report()
        if report.skipped_in_a_row >= MAX_SKIPPED_IN_A_ROW:
            raise NotFiniteError(
                f"the loss or its gradient was not finite {report.skipped_in_a_row} times in a "
                "row; lower --lr or --clip-grad"
            )
        # The losses of minibatches are sums over ranks; their number is the same on each.
        self._ranks.sum(self.sums[:-1])
        row = _means(self.sums)
        if self.replaying is not None:
            if self._ranks.size > 1:
                self._ranks.sum(self._replayed_sums[:-1])
            replayed = _means(self._replayed_sums)
            row |= {f"replay_{name}": replayed[name] for name in REPLAY_STATISTICS}
            row |= self.replaying.metrics()
        return row | {
            "grad_norm": report.grad_norm,
            "updates_skipped": float(report.skipped),
            "updates_vetoed": float(report.vetoed),
            "learning_rate": rate,
            "entropy_bonus": bonus,
            **self.adaptive.metrics(),
        }

    # --- what a checkpoint holds ----------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """The complete state, without weights and replay."""
        return {
            "updater": self.updater.state_dict(),
            "order": self._orders.random.get_state(),
            "adaptive": self.adaptive.state_dict(),
            "augmentation": self.network.augmentation.state_dict(),
            "ema": self.ema.state_dict() if self.ema is not None else None,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a saved state; the weights must be loaded before. Averages that were not
        saved start from the weights."""
        self.updater.load_state_dict(state["updater"])
        self._orders.random.set_state(state["order"])
        self.adaptive.load_state_dict(state["adaptive"])
        self.network.augmentation.load_state_dict(state.get("augmentation", {}))
        if self.ema is not None:
            self.ema = Ema(self.agent, self.config.ema)
            if state["ema"] is not None:
                self.ema.load_state_dict(state["ema"])

    # --- passes over a rollout ------------------------------------------------------------------
    def _learn(self, rollout: Rollout, behind: bool) -> None:
        rollout = self._held(rollout) if self._graphs else rollout
        returns = self.algorithm.prepare(rollout)
        if returns is not None and self._graphs:
            self._rows.put(returns._asdict())
            returns = Returns(*(self._rows[name] for name in Returns._fields))
        # Recorded steps with it are others than those without it.
        name, batches = "", self._batches(rollout, returns)
        if behind and self.algorithm.anchored:
            name, batches = "anchored", self._anchored(rollout, batches)
        if self._together is not None:
            self._learn_together(self._together, rollout, batches, name)
            return

        def step() -> None:
            self._optimise(batches, torch.split(self._index, self._piece), self.sums)

        self._pass_over(rollout, batches.total, step, name)

    def _batches(self, rollout: Rollout, returns: Returns | None) -> Batches:
        kind = LaneBatches if self.config.whole_lanes else StepBatches
        return kind(self.network, rollout, returns)

    @torch.no_grad()
    def _anchored(self, rollout: Rollout, batches: Batches) -> Batches:
        """The same batches, that know how likely the present weights make what was played. Nothing
        is augmented for that: the policy that played saw the pictures as they are."""
        lanes = torch.arange(rollout.lanes, device=self.device)
        parts = [batches.batch(index).log_prob for index in torch.split(lanes, self._piece)]
        proximal = torch.cat(parts, 1)
        if self._graphs:
            self._rows.put({"proximal": proximal})
            proximal = self._rows["proximal"]
        return LaneBatches(self.network, rollout, batches.returns(lanes), proximal=proximal)

    def _learn_together(
        self, together: Together, rollout: Rollout, batches: Batches, name: str
    ) -> None:
        """The same with other ranks, which each have a share of every minibatch."""
        step = together.step(batches, rollout.length if self.config.whole_lanes else 1)
        for order in self._passes(together.shares.total(batches.total)):
            for index in torch.split(order, together.piece * self.config.grad_accum):
                step.take(index)
                self._steps.run(rollout.frames, step.survey, f"survey{name}")
                self._ranks.sum(together.counts)
                self._steps.run(rollout.frames, step.differentiate, f"differentiate{name}")
                self._ranks.sum(together.bucket.flat)
                self._steps.run(rollout.frames, step.apply, "apply")

    def _pass_over(self, rollout: Rollout, total: int, step: Callable[[], None], name: str) -> None:
        """Optimiser steps over all `total` parts of a rollout, in a new order each time."""
        for order in self._passes(total):
            for index in torch.split(order, len(self._index)):
                self._index.copy_(index)
                self._augment(torch.split(self._index, self._piece))
                self._steps.run(rollout.frames, step, name)

    def _passes(self, total: int) -> Iterator[Tensor]:
        """The orders of passes over `total` parts, until the policy has moved far enough."""
        for epoch in range(self.config.epochs):
            yield self._orders.draw(epoch, total)
            if self._stopped():
                break

    def _stopped(self) -> bool:
        """Whether the target KL was reached. Where the host would have to wait for the device,
        the remaining passes run and are vetoed on the device."""
        return self.device.type == "cpu" and bool(self._stop)

    def _held(self, rollout: Rollout) -> Rollout:
        """The rollout with all but its frames where graphs expect it."""
        values = {
            name: value
            for name, value in rollout._asdict().items()
            if isinstance(value, Tensor) and name != "frames"
        }
        state = {f"state{index}": part for index, part in enumerate(rollout.state)}
        self._rows.put(values | state)
        held = {name: self._rows[name] for name in values}
        return rollout._replace(**held, state=tuple(self._rows[name] for name in state))

    # --- replay ---------------------------------------------------------------------------------
    def _replay(self, replaying: Replaying, rollout: Rollout, progress: float) -> None:
        """Stores the rollout, and learns from stored segments when a sample is due."""
        batch = replaying.exchange(rollout, progress)
        if batch is None:
            return
        own = replaying.own(batch)
        batches = LaneBatches(
            self.network,
            batch.rollout,
            None,
            weights=batch.weights if own is None else batch.weights[own],
            burn_in=self.config.per_burn_in,
            warmed_up=replaying.warmed_up,
        )
        steps = self._pieces(torch.arange(len(batch.slots), device=self.device))
        sums, errors = self._replayed_sums, list[Tensor]()
        if self._together is not None and own is not None:
            length = self.config.rollout_steps - self.config.per_burn_in
            errors = self._together.replay(batches, length, own, steps, sums)
        else:
            for pieces in steps:
                self._augment(pieces)
                errors += self._optimise(batches, pieces, sums)
        replaying.learned(batch, replaying.errors(batch, errors))

    def _pieces(self, lanes: Tensor) -> list[tuple[Tensor, ...]]:
        """Replayed lanes in minibatches, and these in optimiser steps."""
        minibatches = torch.split(lanes, self._piece)
        starts = range(0, len(minibatches), self.config.grad_accum)
        return [minibatches[start : start + self.config.grad_accum] for start in starts]

    def _augment(self, pieces: Sequence[Tensor]) -> None:
        self.network.augmentation.prepare([len(index) for index in pieces])

    # --- the optimiser step ---------------------------------------------------------------------
    def _optimise(self, batches: Batches, pieces: Sequence[Tensor], sums: Tensor) -> list[Tensor]:
        """One optimiser step from minibatches, whose gradients add up. Returns their value
        errors."""
        self.network.augmentation.rewind()
        changes = [self.network.augmentation.draw(len(index)) for index in pieces]
        whole = self._whole(batches, pieces, changes) if len(pieces) > 1 else None
        errors = []
        for index, change in zip(pieces, changes, strict=True):
            batch = batches.batch(index, change)._replace(whole=whole)
            losses = self.algorithm.loss(batch, self.entropy_bonus)
            self.updater.backward(losses.total)
            with torch.no_grad():
                self.kl += losses.approx_kl
                sums[:-1] += torch.stack([*losses[:-1]]).detach()
            errors.append(losses.errors)
        sums[-1] += 1
        self.step()
        return errors

    @torch.no_grad()
    def _whole(
        self, batches: Batches, pieces: Sequence[Tensor], changes: Sequence[Change | None]
    ) -> Whole:
        """What the pieces of an optimiser step have in common. Where advantages depend on the
        network that learns and are to be normalised, every piece runs through it once before."""
        free = torch.cat([batches.free(index).flatten() for index in pieces])
        over = None
        if self.config.normalize_advantages:
            found = []
            for index, change in zip(pieces, changes, strict=True):
                returns = batches.returns(index)
                if returns is None:
                    returns = self.algorithm.returns(batches.batch(index, change))
                found.append(returns.advantages.flatten())
            over = moments(torch.cat(found), free)
        return Whole(steps=free.numel(), free=free.sum().clamp(min=1), moments=over)

    def step(self) -> None:
        """One step with the gradients gathered, unless the policy has moved far enough."""
        veto = None
        if self.config.target_kl > 0:
            self._stop |= self.kl > self.config.target_kl
            veto = self._stop
        self.updater.step(veto)
        self.pulse.beat()
        self.kl.zero_()


def _means(sums: Tensor) -> dict[str, float]:
    values = sums.tolist()
    count = max(values[-1], 1.0)
    return {name: value / count for name, value in zip(STATISTICS[:-1], values, strict=False)}
