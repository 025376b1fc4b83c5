"""Rollouts in, a better agent out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from warpzone.algo.ema import Ema
from warpzone.algo.losses import (
    PolicyLoss,
    entropy_of,
    log_prob_of,
    masked_mean,
    normalised,
    policy_gradient_loss,
    ppo_loss,
    value_loss,
)
from warpzone.algo.optim import Updater, make_optimizer, set_learning_rate
from warpzone.algo.returns import Returns, Steps, gae, vtrace
from warpzone.algo.schedules import Anneal, Schedule
from warpzone.collect.actor import autocast
from warpzone.config import TrainConfig
from warpzone.data.stacking import stack_frames, stack_sequence
from warpzone.data.types import Rollout
from warpzone.health.pulse import Pulse
from warpzone.learn.adaptive import Adaptive
from warpzone.learn.augment import Augmentation
from warpzone.learn.graphs import Kept, OptimiserSteps
from warpzone.learn.orders import Orders
from warpzone.learn.replaying import Replaying
from warpzone.model.agent import Agent
from warpzone.model.compiling import compiled
from warpzone.model.cpu import keep_freed_memory

MAX_SKIPPED_IN_A_ROW = 5
#: Where the loss scale of float16 begins.
FIRST_SCALE = 8192.0
STATISTICS = (
    "loss_total",
    "loss_policy",
    "loss_value",
    "entropy",
    "approx_kl",
    "clip_fraction",
    "minibatches",
)
#: Of replayed minibatches; zero in updates that replay nothing.
REPLAY_STATISTICS = ("loss_policy", "loss_value", "approx_kl")


class LearningError(RuntimeError):
    """Learning cannot go on; one sentence that says why."""


class Learner:
    """Updates one agent from rollouts, once or several times each."""

    def __init__(self, config: TrainConfig, agent: Agent, device: torch.device) -> None:
        self.config = config
        self.agent = agent
        self.device = device
        if device.type == "cpu":
            keep_freed_memory()
        self.optimizer = make_optimizer(
            agent, learning_rate=config.lr, weight_decay=config.weight_decay
        )
        self._graphs = config.cuda_graphs and device.type == "cuda"
        self._whole_lanes = config.algo == "vtrace" or config.memory != "none"
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
            config.lr, config.lr * config.lr_final, "cosine", warmup=config.warmup
        )
        self.entropy = Anneal(config.entropy, config.entropy_final)
        self.adaptive = Adaptive(config)
        self.augmentation = Augmentation(config, device)
        self.pulse = Pulse()
        self.replaying = Replaying(config, agent, device) if config.per else None
        self._act = compiled(agent.act, config)
        self._forward = compiled(agent.forward, config)
        self._entropy_bonus = torch.zeros((), device=device)
        self._stop = torch.zeros((), dtype=torch.bool, device=device)
        self._kl = torch.zeros((), device=device)
        self._sums = torch.zeros(len(STATISTICS), device=device)
        self._replayed_sums = torch.zeros_like(self._sums)
        self._orders = Orders(config.seed, device)
        #: Waits without turning in circles: the core is the engine's if it plays meanwhile.
        self._waiting: torch.cuda.Event | None = None
        if device.type == "cuda":
            self._waiting = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
        #: What steps read of a rollout, but for its frames.
        self._rows = Kept()
        #: The minibatches of one optimiser step, one after the other: steps, or whole lanes.
        self._piece = config.minibatch
        if self._whole_lanes:
            self._piece = max(1, config.minibatch // config.rollout_steps)
        self._index = torch.zeros(self._piece * config.grad_accum, dtype=torch.int64, device=device)
        counters = [self._sums, self._stop, self._kl]
        self._steps = OptimiserSteps(self.updater, counters, enabled=self._graphs)

    # --- one update -----------------------------------------------------------------------------
    def update(self, rollout: Rollout, progress: float) -> dict[str, float]:
        """Learns from a rollout; `progress` is the share of the run that is done."""
        self.pulse.enter("learn")
        rate = self.learning_rate(progress) * self.adaptive.lr_scale
        bonus = self.entropy(progress) * self.adaptive.entropy_scale
        set_learning_rate(self.optimizer, rate)
        self._entropy_bonus.fill_(bonus)
        self._stop.zero_()
        self._sums.zero_()
        self._replayed_sums.zero_()
        if self._whole_lanes:
            self._learn_lanes(rollout)
        else:
            self._learn_steps(rollout)
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
            raise LearningError(
                f"the loss or its gradient was not finite {report.skipped_in_a_row} times in a "
                "row; lower --lr or --clip-grad"
            )
        row = _means(self._sums)
        if self.replaying is not None:
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
        """Everything the next update depends on but for the weights and the replay."""
        return {
            "updater": self.updater.state_dict(),
            "order": self._orders.random.get_state(),
            "adaptive": self.adaptive.state_dict(),
            "augmentation": self.augmentation.state_dict(),
            "ema": self.ema.state_dict() if self.ema is not None else None,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes up a saved state; the weights come first. Averages that were not saved begin with
        the weights."""
        self.updater.load_state_dict(state["updater"])
        self._orders.random.set_state(state["order"])
        self.adaptive.load_state_dict(state["adaptive"])
        self.augmentation.load_state_dict(state.get("augmentation", {}))
        if self.ema is not None:
            self.ema = Ema(self.agent, self.config.ema)
            if state["ema"] is not None:
                self.ema.load_state_dict(state["ema"])

    # --- single steps in random order: networks without memory ----------------------------------
    def _learn_steps(self, rollout: Rollout) -> None:
        returns = gae(_steps(rollout), gamma=self.config.gamma, lam=self.config.gae_lambda)
        self._rows.put(
            {
                "age": rollout.age,
                "actions": rollout.actions.flatten(),
                "previous": rollout.previous_actions[:-1].flatten(),
                "log_prob": rollout.log_prob.flatten(),
                "advantages": returns.advantages.flatten(),
                "targets": returns.targets.flatten(),
                "free": ~rollout.forced.flatten(),
            }
        )

        def step() -> None:
            for index in torch.split(self._index, self._piece):
                self._minibatch(rollout.frames, index)
            self._step()

        self._pass_over(rollout, rollout.length * rollout.lanes, step)

    def _pass_over(self, rollout: Rollout, total: int, step: Callable[[], None]) -> None:
        """Optimiser steps over all `total` parts of a rollout, in a new order each time."""
        for epoch in range(self.config.epochs):
            order = self._orders.draw(epoch, total)
            for index in torch.split(order, len(self._index)):
                self._index.copy_(index)
                self._steps.run(rollout.frames, step)
            if self._stopped():
                break

    def _stopped(self) -> bool:
        """Whether the target KL was reached. Where asking would make the host wait for the device,
        the rest of the passes runs, and is vetoed there."""
        return self.device.type == "cpu" and bool(self._stop)

    def _minibatch(self, frames: Tensor, index: Tensor) -> None:
        config, rows = self.config, self._rows
        lanes = config.num_envs
        steps, lane = index // lanes, index % lanes
        obs = self.augmentation.steps(stack_frames(frames, rows["age"], steps, lane))
        starts = rows["age"][steps, lane] == 0
        with autocast(config, self.device):
            output = self._act(obs, rows["previous"][index], (), starts)
        logits, values = output.logits.float(), output.value.float()
        free = rows["free"][index]
        advantages = rows["advantages"][index]
        if config.normalize_advantages:
            advantages = normalised(advantages, free)
        log_prob = log_prob_of(logits, rows["actions"][index])
        old = rows["log_prob"][index]
        if config.algo == "ppo":
            policy = ppo_loss(log_prob, old, advantages, clip=config.clip, mask=free)
        else:
            policy = policy_gradient_loss(log_prob, old, advantages, mask=free)
        loss_value = value_loss(values, rows["targets"][index])
        entropy = masked_mean(entropy_of(logits), free)
        self._backward(policy, loss_value, entropy, config.grad_accum)

    # --- whole lanes: networks with memory, and V-trace -----------------------------------------
    def _learn_lanes(self, rollout: Rollout) -> None:
        config = self.config
        rollout = self._held(rollout) if self._graphs else rollout
        returns: Returns | None = None
        if config.algo != "vtrace":
            returns = gae(_steps(rollout), gamma=config.gamma, lam=config.gae_lambda)
            if self._graphs:
                self._rows.put(returns._asdict())
                returns = Returns(*(self._rows[name] for name in Returns._fields))

        def step() -> None:
            for lanes in torch.split(self._index, self._piece):
                part = rollout.select(lanes)
                if returns is None:
                    self._vtrace_lanes(part, config.grad_accum)
                else:
                    chosen = Returns(*(values[:, lanes] for values in returns))
                    self._gae_lanes(part, chosen, config.grad_accum)
            self._step()

        self._pass_over(rollout, rollout.lanes, step)

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

    def _pieces(self, lanes: Tensor) -> list[tuple[Tensor, ...]]:
        """Replayed lanes in minibatches, and these in optimiser steps."""
        minibatches = torch.split(lanes, self._piece)
        starts = range(0, len(minibatches), self.config.grad_accum)
        return [minibatches[start : start + self.config.grad_accum] for start in starts]

    def _sequence(self, part: Rollout) -> tuple[Tensor, Tensor]:
        """Logits and values of every observation, the one after the last step included."""
        obs = self.augmentation.sequences(stack_sequence(part.frames, part.age))
        with autocast(self.config, self.device):
            output = self._forward(obs, part.previous_actions, part.state, part.starts)
        return output.logits.float(), output.value.float()

    def _gae_lanes(self, part: Rollout, returns: Returns, pieces: int) -> None:
        logits, values = self._sequence(part)
        logits, values = logits[:-1], values[:-1]
        free = ~part.forced
        advantages = returns.advantages
        if self.config.normalize_advantages:
            advantages = normalised(advantages, free)
        log_prob = log_prob_of(logits, part.actions)
        if self.config.algo == "ppo":
            policy = ppo_loss(log_prob, part.log_prob, advantages, clip=self.config.clip, mask=free)
        else:
            policy = policy_gradient_loss(log_prob, part.log_prob, advantages, mask=free)
        entropy = masked_mean(entropy_of(logits), free)
        self._backward(policy, value_loss(values, returns.targets), entropy, pieces)

    def _vtrace_lanes(self, part: Rollout, pieces: float, weights: Tensor | None = None) -> Tensor:
        """weights: one for each lane, of replayed ones. Returns the value errors, [T, B]."""
        config = self.config
        logits, values = self._sequence(part)
        logits, last = logits[:-1], values[-1]
        values = values[:-1]
        log_prob = log_prob_of(logits, part.actions)
        steps = _steps(part)._replace(values=values.detach(), last_value=last.detach())
        returns = vtrace(
            steps,
            log_prob.detach() - part.log_prob,
            gamma=config.gamma,
            lam=config.gae_lambda,
            rho_bar=config.rho_clip,
            c_bar=config.c_clip,
        )
        free = ~part.forced
        advantages = returns.advantages
        if config.normalize_advantages:
            advantages = normalised(advantages, free)
        policy = policy_gradient_loss(
            log_prob, part.log_prob, advantages, mask=free, weights=weights
        )
        entropy = masked_mean(entropy_of(logits), free, weights)
        loss_value = value_loss(values, returns.targets, weights=weights)
        sums = self._sums if weights is None else self._replayed_sums
        self._backward(policy, loss_value, entropy, pieces, sums)
        return returns.targets - values.detach()

    def _replay(self, replaying: Replaying, rollout: Rollout, progress: float) -> None:
        """Stores the rollout, and learns from stored segments when their turn has come."""
        batch = replaying.exchange(rollout, progress)
        if batch is None:
            return
        errors = []
        for pieces in self._pieces(torch.arange(batch.rollout.lanes, device=self.device)):
            total = sum(len(chosen) for chosen in pieces)
            for chosen in pieces:
                part = replaying.warmed_up(batch.rollout.select(chosen))
                weights = batch.weights[chosen]
                # The last piece may be a smaller one, and counts for as much less.
                errors.append(self._vtrace_lanes(part, total / len(chosen), weights))
            self._step()
        replaying.learned(batch, torch.cat(errors, 1))

    # --- the optimiser step ---------------------------------------------------------------------
    def _backward(
        self,
        policy: PolicyLoss,
        loss_value: Tensor,
        entropy: Tensor,
        pieces: float,
        sums: Tensor | None = None,
    ) -> None:
        """Adds the gradient of a minibatch that is one of `pieces` parts of an optimiser step."""
        config = self.config
        loss = policy.loss + config.value_coef * loss_value - self._entropy_bonus * entropy
        self.updater.backward(loss / pieces)
        with torch.no_grad():
            self._kl += policy.approx_kl / pieces
            parts = (loss, policy.loss, loss_value, entropy, policy.approx_kl, policy.clip_fraction)
            sums = self._sums if sums is None else sums
            sums += torch.stack([*parts, torch.ones_like(loss)])

    def _step(self) -> None:
        """One step with the gradients gathered, unless the policy has moved far enough."""
        veto = None
        if self.config.target_kl > 0:
            self._stop |= self._kl > self.config.target_kl
            veto = self._stop
        self.updater.step(veto)
        self.pulse.beat()
        self._kl.zero_()


def _means(sums: Tensor) -> dict[str, float]:
    values = sums.tolist()
    count = max(values[-1], 1.0)
    return {name: value / count for name, value in zip(STATISTICS[:-1], values, strict=False)}


def _steps(rollout: Rollout) -> Steps:
    return Steps(
        rewards=rollout.rewards,
        values=rollout.values,
        last_value=rollout.last_value,
        final_value=rollout.final_value,
        terminated=rollout.terminated,
        truncated=rollout.truncated,
    )
