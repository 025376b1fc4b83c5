"""Rollouts in, a better agent out."""

from __future__ import annotations

from collections.abc import Callable

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
from warpzone.config import TrainConfig
from warpzone.data.stacking import stack_frames, stack_sequence
from warpzone.data.types import Rollout
from warpzone.model.agent import Agent
from warpzone.train.actor import autocast, record
from warpzone.train.compiling import compiled
from warpzone.train.replaying import Replaying
from warpzone.train.seeds import generator

MAX_SKIPPED_IN_A_ROW = 5
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
        self.optimizer = make_optimizer(
            agent, learning_rate=config.lr, weight_decay=config.weight_decay
        )
        self._graphs = config.cuda_graphs and device.type == "cuda"
        if self._graphs:
            for group in self.optimizer.param_groups:
                group["lr"] = torch.tensor(config.lr, device=device)
                group["capturable"] = True
        self.updater = Updater(self.optimizer, max_norm=config.clip_grad)
        self.ema = Ema(agent, config.ema) if config.ema else None
        self.learning_rate = Schedule(
            config.lr, config.lr * config.lr_final, "cosine", warmup=config.warmup
        )
        self.entropy = Anneal(config.entropy, config.entropy_final)
        self.replaying = Replaying(config, agent, device) if config.per else None
        self._act = compiled(agent.act, config)
        self._forward = compiled(agent.forward, config)
        self._entropy_bonus = torch.zeros((), device=device)
        self._stop = torch.zeros((), dtype=torch.bool, device=device)
        self._kl = torch.zeros((), device=device)
        self._sums = torch.zeros(len(STATISTICS), device=device)
        self._replayed_sums = torch.zeros_like(self._sums)
        self._order = generator(config.seed, "order")
        self._rows: dict[str, Tensor] = {}
        #: The minibatches of one optimiser step, one after the other.
        self._index = torch.zeros(
            config.minibatch * config.grad_accum, dtype=torch.int64, device=device
        )
        self._recorded: dict[int, Callable[[], None]] = {}

    # --- one update -----------------------------------------------------------------------------
    def update(self, rollout: Rollout, progress: float) -> dict[str, float]:
        """Learns from a rollout; `progress` is the share of the run that is done."""
        rate, bonus = self.learning_rate(progress), self.entropy(progress)
        set_learning_rate(self.optimizer, rate)
        self._entropy_bonus.fill_(bonus)
        self._stop.zero_()
        self._sums.zero_()
        self._replayed_sums.zero_()
        if self.config.algo == "vtrace" or self.config.memory != "none":
            self._learn_lanes(rollout)
        else:
            self._learn_steps(rollout)
        if self.replaying is not None:
            self._replay(self.replaying, rollout, progress)
        if self.ema is not None:
            self.ema.update(self.agent)
        return self._report(rate, bonus)

    def _report(self, rate: float, bonus: float) -> dict[str, float]:
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
        }

    # --- single steps in random order: networks without memory ----------------------------------
    def _learn_steps(self, rollout: Rollout) -> None:
        config = self.config
        self._prepare(rollout)
        total = rollout.length * rollout.lanes
        for _ in range(config.epochs):
            order = torch.randperm(total, generator=self._order).to(self.device)
            for index in torch.split(order, len(self._index)):
                self._index.copy_(index)
                self._run(rollout)
            if self._stopped():
                break

    def _stopped(self) -> bool:
        """Whether the target KL was reached. Where asking would make the host wait for the device,
        the rest of the passes runs, and is vetoed there."""
        return self.device.type == "cpu" and bool(self._stop)

    def _prepare(self, rollout: Rollout) -> None:
        """Flat rows of what a minibatch needs, always in the same memory."""
        returns = gae(_steps(rollout), gamma=self.config.gamma, lam=self.config.gae_lambda)
        rows = {
            "age": rollout.age,
            "actions": rollout.actions.flatten(),
            "previous": rollout.previous_actions[:-1].flatten(),
            "log_prob": rollout.log_prob.flatten(),
            "advantages": returns.advantages.flatten(),
            "targets": returns.targets.flatten(),
            "free": ~rollout.forced.flatten(),
        }
        for name, value in rows.items():
            if name in self._rows:
                self._rows[name].copy_(value)
            else:
                self._rows[name] = value.clone()

    def _run(self, rollout: Rollout) -> None:
        def update() -> None:
            for index in torch.split(self._index, self.config.minibatch):
                self._minibatch(rollout.frames, index)
            self._step()

        if not self._graphs:
            update()
            return
        place = rollout.frames.data_ptr()
        if place not in self._recorded:
            self._recorded[place] = self._record(update)
        self._recorded[place]()

    def _record(self, function: Callable[[], None]) -> Callable[[], None]:
        """Recording runs updates for real; everything they change is put back. The optimiser makes
        its state with its first update, so that one comes before."""
        counters = [self._sums, self._stop, self._kl]
        if not self.optimizer.state:
            changed = [*self.updater.tensors(), *counters]
            before = [tensor.clone() for tensor in changed]
            function()
            for tensor, value in zip(changed, before, strict=True):
                tensor.copy_(value)
            for state in self.optimizer.state.values():
                for part in state.values():
                    part.zero_()
        return record(function, [*self.updater.tensors(), *counters])

    def _minibatch(self, frames: Tensor, index: Tensor) -> None:
        config, rows = self.config, self._rows
        lanes = config.num_envs
        steps, lane = index // lanes, index % lanes
        obs = stack_frames(frames, rows["age"], steps, lane)
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
        returns = None
        if config.algo != "vtrace":
            returns = gae(_steps(rollout), gamma=config.gamma, lam=config.gae_lambda)
        for _ in range(config.epochs):
            order = torch.randperm(rollout.lanes, generator=self._order).to(self.device)
            for pieces in self._pieces(order):
                for lanes in pieces:
                    part = rollout.select(lanes)
                    if returns is None:
                        self._vtrace_lanes(part, len(pieces))
                    else:
                        chosen = Returns(*(values[:, lanes] for values in returns))
                        self._gae_lanes(part, chosen, len(pieces))
                self._step()
            if self._stopped():
                break

    def _pieces(self, lanes: Tensor) -> list[tuple[Tensor, ...]]:
        """Lanes in minibatches, and these in optimiser steps."""
        config = self.config
        minibatches = torch.split(lanes, max(1, config.minibatch // config.rollout_steps))
        starts = range(0, len(minibatches), config.grad_accum)
        return [minibatches[start : start + config.grad_accum] for start in starts]

    def _sequence(self, part: Rollout) -> tuple[Tensor, Tensor]:
        """Logits and values of every observation, the one after the last step included."""
        obs = stack_sequence(part.frames, part.age)
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

    def _vtrace_lanes(self, part: Rollout, pieces: int, weights: Tensor | None = None) -> Tensor:
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
            for chosen in pieces:
                part = replaying.warmed_up(batch.rollout.select(chosen))
                weights = batch.weights[chosen]
                errors.append(self._vtrace_lanes(part, len(pieces), weights))
            self._step()
        replaying.learned(batch, torch.cat(errors, 1))

    # --- the optimiser step ---------------------------------------------------------------------
    def _backward(
        self,
        policy: PolicyLoss,
        loss_value: Tensor,
        entropy: Tensor,
        pieces: int,
        sums: Tensor | None = None,
    ) -> None:
        """Adds the gradient of one of the `pieces` minibatches of an optimiser step."""
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
