"""One whole update, as the papers write it: sums over single steps, one lane at a time.

Schulman et al. 2017 (PPO), Mnih et al. 2016 (A2C), Espeholt et al. 2018 (V-trace), Schaul et al.
2016 and Kapturowski et al. 2019 (prioritised replay with burn-in), Hilton et al. 2022 (a surrogate
measured from another policy than the one that played), Loshchilov and Hutter 2019 (AdamW). Nothing
here is batched, accumulated, recorded or fused; returns are those of `reference_returns`. The
network is the one under test, asked for one lane at a time: its layers have oracles of their own.
Random numbers come from the streams of the learner under test: a permutation for each pass, two
shifts and a brightness for each picture, one number for each draw.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import reference_replay
import reference_returns
import torch
from numpy.typing import NDArray
from reference_losses import AdamW, Losses, Sample, learning_rate, losses
from reference_pictures import Change, observation
from torch import Tensor

from warpzone.collect.streams import stream_seed
from warpzone.config import TrainConfig
from warpzone.data.types import Rollout
from warpzone.model.agent import Agent

Floats = NDArray[np.float64]
#: Of a segment's priority: the largest error, and what is left for their mean.
ETA = 0.9


@dataclass
class Segment:
    """What one lane did in one rollout, and how likely it is drawn."""

    rollout: Rollout
    weight: float


class ReferenceLearner:
    """Beside a `Learner` that was made with the same weights: `update` as it does."""

    def __init__(self, config: TrainConfig, agent: Agent, state: Mapping[str, Any]) -> None:
        """agent: copied; state: `Learner.state_dict()`, for its random streams."""
        self.config = config
        self.agent = copy.deepcopy(agent)
        self.average = {name: part.clone() for name, part in self.agent.state_dict().items()}
        self.updates = 0
        self.adam = AdamW(self.agent, config.weight_decay)
        self.order = torch.Generator()
        self.order.set_state(state["order"])
        self.shifts = torch.Generator()
        self.shifts.set_state(state["augmentation"]["random"])
        self.draws = torch.Generator().manual_seed(stream_seed(config.seed, "replay"))
        self.segments: list[Segment] = []
        self.largest = 1.0
        self.rate = self.bonus = self.norm = 0.0
        #: Losses of the optimiser steps of the last update, fresh and replayed.
        self.seen: list[Losses] = []
        self.replayed: list[Losses] = []

    # --- one update -----------------------------------------------------------------------------
    def update(self, rollout: Rollout, progress: float, *, behind: bool = False) -> None:
        """behind: the rollout is of older weights than those at the beginning of the update."""
        config = self.config
        proximal = self._proximal(rollout) if behind and config.algo == "appo" else None
        self.rate = learning_rate(config, progress)
        self.bonus = (1 - progress) * config.entropy + progress * config.entropy_final
        self.seen, self.replayed = [], []
        whole_lanes = config.algo in ("vtrace", "appo") or config.memory != "none"
        parts = rollout.lanes if whole_lanes else rollout.length * rollout.lanes
        size = config.minibatch // rollout.length if whole_lanes else config.minibatch
        advantages, targets = self._gae(rollout)
        for _ in range(config.epochs):
            order: list[int] = torch.randperm(parts, generator=self.order).tolist()
            stopped = False
            for start in range(0, parts, size * config.grad_accum):
                samples: list[Sample] = []
                chosen = order[start : start + size * config.grad_accum]
                for first in range(0, len(chosen), size):
                    piece = chosen[first : first + size]
                    if not whole_lanes:
                        samples += self._steps(rollout, piece, advantages, targets)
                    elif config.algo in ("vtrace", "appo"):
                        samples += self._vtrace(rollout, piece, [1.0] * len(piece), proximal)[0]
                    else:
                        samples += self._lanes(rollout, piece, advantages, targets)
                found = losses(samples, config, self.bonus)
                self.seen.append(found)
                stopped |= 0 < config.target_kl < found.kl
                self._step(found.total, veto=stopped)
            if stopped:
                break
        if config.per:
            self._replay(rollout, progress)
        self._follow()

    def _step(self, loss: Tensor, *, veto: bool = False) -> None:
        """One optimiser step, with the whole gradient clipped to its largest norm."""
        self.agent.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        # Where every step is forced the policy's head has no part in the sum: its gradient is zero.
        gradients = {
            name: torch.zeros_like(weight).double() if weight.grad is None else weight.grad.double()
            for name, weight in self.agent.named_parameters()
        }
        self.norm = math.sqrt(sum(float((part**2).sum()) for part in gradients.values()))
        factor = min(1.0, self.config.clip_grad / (self.norm + 1e-6))
        if not veto:
            clipped = {name: factor * gradient for name, gradient in gradients.items()}
            self.adam.step(clipped, self.rate)

    def _follow(self) -> None:
        """The average of the weights: shorter while there were few updates."""
        decay = min(self.config.ema, (1 + self.updates) / (10 + self.updates))
        self.updates += 1
        averaged = dict(self.agent.named_parameters())
        for name, now in self.agent.state_dict().items():
            kept = decay if name in averaged else 0.0
            self.average[name] = kept * self.average[name] + (1 - kept) * now

    # --- what is learned from -------------------------------------------------------------------
    def _gae(self, rollout: Rollout) -> tuple[Floats, Floats]:
        """Advantages and targets, [T, B], with the values of the network that played."""
        columns = [
            reference_returns.gae(lane_of(rollout, lane), self.config.gamma, self.config.gae_lambda)
            for lane in range(rollout.lanes)
        ]
        advantages = np.stack(columns, 1)
        return advantages, advantages + rollout.values.double().numpy()

    def _steps(
        self,
        rollout: Rollout,
        piece: list[int],
        advantages: Floats,
        targets: Floats,
    ) -> list[Sample]:
        """Single steps, each seen on its own."""
        places = [divmod(index, rollout.lanes) for index in piece]
        changes = self._changes(len(piece))
        samples = []
        for (t, lane), change in zip(places, changes, strict=True):
            obs = torch.from_numpy(change(observation(rollout, t, lane)))
            before = rollout.previous_actions[t, lane]
            output = self.agent.act(obs[None], before[None], (), rollout.starts[t, lane][None])
            samples.append(
                sample_of(rollout, t, lane, output.logits[0], output.value[0], advantages, targets)
            )
        return samples

    def _lanes(
        self,
        rollout: Rollout,
        piece: list[int],
        advantages: Floats,
        targets: Floats,
    ) -> list[Sample]:
        """Whole lanes, through the memory."""
        samples = []
        for lane, change in zip(piece, self._changes(len(piece)), strict=True):
            logits, values = self._walk(rollout, lane, change)
            samples += [
                sample_of(rollout, t, lane, logits[t], values[t], advantages, targets)
                for t in range(rollout.length)
            ]
        return samples

    @torch.no_grad()
    def _proximal(self, rollout: Rollout) -> Floats:
        """log pi(a|x) of the present weights, [T, B], of pictures as they are."""
        columns = []
        for lane in range(rollout.lanes):
            seen = [observation(rollout, t, lane) for t in range(rollout.length)]
            logits = self._network(rollout, lane, torch.from_numpy(np.stack(seen)))[0]
            pi, chosen = logits.double().log_softmax(-1), rollout.actions[:, lane].tolist()
            columns.append([float(pi[t, action]) for t, action in enumerate(chosen)])
        return np.array(columns).T

    def _vtrace(
        self,
        rollout: Rollout,
        piece: list[int],
        weights: list[float],
        proximal: Floats | None = None,
    ) -> tuple[list[Sample], list[float]]:
        """Whole lanes with the values of the present network; the samples, and the priorities that
        their errors make."""
        config = self.config
        samples, priorities = [], []
        changes = self._changes(len(piece))
        for lane, weight, change in zip(piece, weights, changes, strict=True):
            logits, values = self._walk(rollout, lane, change)
            now = values.detach().double().numpy()
            there = lane_of(rollout, lane)
            steps = reference_returns.Lane(
                there.rewards,
                now[:-1],
                float(now[-1]),
                there.final_value,
                there.terminated,
                there.truncated,
            )
            pi = logits.detach().double().log_softmax(-1)
            chosen = rollout.actions[:, lane].tolist()
            log_pi = np.array([float(pi[t, action]) for t, action in enumerate(chosen)])
            log_rho = log_pi - rollout.log_prob[:, lane].double().numpy()
            targets, advantages = reference_returns.vtrace(
                steps, log_rho, config.gamma, config.gae_lambda, config.rho_clip, config.c_clip
            )
            if config.algo == "appo":
                # min(rho A, clip(rho) A): the ratio is in the surrogate, not in the advantage.
                advantages = advantages / np.minimum(config.rho_clip, np.exp(log_rho))
            for t in range(rollout.length):
                made = sample_of(
                    rollout, t, lane, logits[t], values[t], advantages[:, None], targets[:, None], 0
                )
                made.weight = weight
                made.proximal = None if proximal is None else float(proximal[t, lane])
                samples.append(made)
            errors = np.abs(targets - now[:-1])
            priorities.append(float(ETA * errors.max() + (1 - ETA) * errors.mean()))
        return samples, priorities

    def _walk(self, rollout: Rollout, lane: int, change: Change) -> tuple[Tensor, Tensor]:
        """Logits and values of a lane, the observation after its last step included."""
        seen = [change(observation(rollout, t, lane)) for t in range(rollout.length + 1)]
        return self._network(rollout, lane, torch.from_numpy(np.stack(seen)))[:2]

    def _network(
        self, rollout: Rollout, lane: int, obs: Tensor
    ) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        rows = slice(0, len(obs))
        state = tuple(part[lane : lane + 1] for part in rollout.state)
        output = self.agent(
            obs[:, None],
            rollout.previous_actions[rows, lane : lane + 1],
            state,
            rollout.starts[rows, lane : lane + 1],
        )
        return output.logits[:, 0], output.value[:, 0], output.state

    def _changes(self, count: int) -> Iterator[Change]:
        """What augmentation does to each of `count` pictures or lanes that are learned together."""
        config = self.config
        draws = [[0.5] * count] * 3
        if config.augment_shift:
            draws[:2] = [torch.rand(count, generator=self.shifts).tolist() for _ in range(2)]
        if config.augment_brightness:
            draws[2] = torch.rand(count, generator=self.shifts).tolist()
        for down, right, bright in zip(*draws, strict=True):
            reach = 2 * config.augment_shift + 1
            yield Change(
                int(np.float32(down) * reach) - config.augment_shift,
                int(np.float32(right) * reach) - config.augment_shift,
                np.float32(1 + config.augment_brightness * (2 * bright - 1)),
                3 if config.color else 1,
            )

    # --- replay ---------------------------------------------------------------------------------
    def _replay(self, rollout: Rollout, progress: float) -> None:
        """Stores every lane; every N-th time, once there are enough, learns from drawn ones."""
        config = self.config
        for lane in range(rollout.lanes):
            kept = rollout.select(torch.tensor([lane]))
            halved = {
                name: getattr(kept, name).half().float()
                for name in ("values", "final_value", "rewards")
            }
            # What a search showed is imitated when it is played, and not again.
            shown = torch.zeros_like(kept.shown)
            self.segments.append(Segment(kept._replace(**halved, shown=shown), self.largest))
        pushes = self.updates + 1
        if pushes % config.per_sample_interval or len(self.segments) < config.per_segments:
            return
        count, weights = config.per_segments, [part.weight for part in self.segments]
        beta = (1 - progress) * config.per_beta + progress * config.per_beta_final
        drawn = torch.rand(count, generator=self.draws, dtype=torch.float64).tolist()
        total = sum(weights)
        found = [
            reference_replay.find(weights, (i + part) * total / count)
            for i, part in enumerate(drawn)
        ]
        importance = [(len(weights) * weights[i] / total) ** -beta for i in found]
        importance = [weight / max(importance) for weight in importance]
        priorities: list[float] = []
        size = max(1, config.minibatch // config.rollout_steps)
        for start in range(0, count, size * config.grad_accum):
            samples: list[Sample] = []
            end = min(count, start + size * config.grad_accum)
            for first in range(start, end, size):
                piece = range(first, min(first + size, end))
                parts = [self._burnt_in(self.segments[found[i]].rollout) for i in piece]
                changed = self._side_by_side(parts, [importance[i] for i in piece])
                samples += changed[0]
                priorities += changed[1]
            self.replayed.append(losses(samples, config, self.bonus))
            self._step(self.replayed[-1].total)
        told: dict[int, float] = {}
        for index, priority in zip(found, priorities, strict=True):
            weight = (priority + 1e-3) ** config.per_alpha
            told[index] = max(weight, told.get(index, 0.0))
        for index, weight in told.items():
            self.segments[index].weight = weight
        self.largest = max(self.largest, *told.values())

    def _side_by_side(
        self, parts: list[Rollout], weights: list[float]
    ) -> tuple[list[Sample], list[float]]:
        columns = {
            name: torch.cat(
                [getattr(part, name) for part in parts], 0 if name == "last_value" else 1
            )
            for name in Rollout._fields
            if name != "state"
        }
        states = zip(*(part.state for part in parts), strict=True)
        whole = Rollout(**columns, state=tuple(torch.cat(group) for group in states))
        return self._vtrace(whole, list(range(len(parts))), weights)

    @torch.no_grad()
    def _burnt_in(self, segment: Rollout) -> Rollout:
        """The rest of a segment, with the memory that the present network has after its first
        steps."""
        steps = self.config.per_burn_in
        state = segment.state
        if steps and state:
            seen = np.stack([observation(segment, t, 0) for t in range(steps)])
            state = self._network(segment, 0, torch.from_numpy(seen))[2]
        rest = {
            name: value if name == "last_value" else value[steps:]
            for name, value in segment._asdict().items()
            if name != "state"
        }
        return Rollout(**rest, state=state)


def lane_of(rollout: Rollout, lane: int) -> reference_returns.Lane:
    """One lane as plain numbers, with the values of the network that played."""
    return reference_returns.Lane(
        rewards=rollout.rewards[:, lane].double().numpy(),
        values=rollout.values[:, lane].double().numpy(),
        last_value=float(rollout.last_value[lane]),
        final_value=rollout.final_value[:, lane].double().numpy(),
        terminated=rollout.terminated[:, lane].numpy(),
        truncated=rollout.truncated[:, lane].numpy(),
    )


def sample_of(
    rollout: Rollout,
    t: int,
    lane: int,
    logits: Tensor,
    value: Tensor,
    advantages: Floats,
    targets: Floats,
    column: int | None = None,
) -> Sample:
    """Step t of a lane; `column` is the lane's column in advantages and targets."""
    column = lane if column is None else column
    return Sample(
        logits=logits,
        value=value,
        action=int(rollout.actions[t, lane]),
        mu=float(rollout.log_prob[t, lane]),
        advantage=float(advantages[t, column]),
        target=float(targets[t, column]),
        free=not bool(rollout.forced[t, lane]),
        shown=bool(rollout.shown[t, lane]),
    )
