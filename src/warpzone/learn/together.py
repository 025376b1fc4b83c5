"""An optimiser step that several ranks make together.

Each rank takes its share of every minibatch, as if it were a piece of accumulated gradients: means
and moments are over the whole optimiser step, so the gradients of all ranks add up to those that
one process would have. Two exchanges, both outside of what is recorded as a CUDA graph: counts and
moments before the passes, gradients after them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from warpzone.algo.algorithm import Batch, Whole
from warpzone.algo.losses import Moments, kept
from warpzone.collect.ranks import Ranks
from warpzone.config import ConfigError, TrainConfig
from warpzone.learn.augment import Change
from warpzone.learn.batches import Batches
from warpzone.learn.bucket import Bucket
from warpzone.learn.shares import Replayed, Share, Shares

if TYPE_CHECKING:
    from warpzone.learn.learner import Learner

#: Minibatches by optimiser step.
Pieces = Sequence[Sequence[Tensor]]
#: Steps that the policy chose, and the sums of their advantages and of their squares.
COUNTS = 3
#: KL divergence, and losses that were not finite.
NUMBERS = 2


class Together:
    """What the optimiser steps of a rank have in common with those of the others."""

    def __init__(self, config: TrainConfig, ranks: Ranks, learner: Learner, *, even: bool) -> None:
        """even: all shares have the same size, which recorded steps need."""
        self.config = config
        self.ranks = ranks
        self.learner = learner
        self.shares = Shares(config, ranks, even=even)
        parts = config.minibatch
        if config.whole_lanes:
            parts = max(1, parts // config.rollout_steps)
        if even and parts % ranks.size:
            what = "lanes" if config.whole_lanes else "steps"
            raise ConfigError(
                f"minibatches of {parts} {what} do not divide among {ranks.size} ranks, which CUDA "
                "graphs need; change --minibatch or add --no-cuda-graphs"
            )
        #: Parts of an order in one minibatch, and of all ranks in one optimiser step.
        self.piece = self.shares.piece(parts)
        self.parts = parts * config.grad_accum
        self.bucket = Bucket(learner.updater.parameters, NUMBERS)
        self.counts = torch.zeros(COUNTS, dtype=torch.float64, device=learner.device)
        size = self.piece * config.grad_accum
        #: Where recorded steps find their minibatches.
        self.index = torch.zeros(size, dtype=torch.int64, device=learner.device)

    def tensors(self) -> list[Tensor]:
        """What a step changes besides weights and statistics."""
        return [self.counts, self.bucket.flat]

    def step(self, batches: Batches, length: int) -> SharedStep:
        """The optimiser steps of a rollout whose parts are of so many steps."""
        return SharedStep(self, batches, length, self.shares, self.learner.sums)

    def replay(
        self, batches: Batches, length: int, own: Tensor, pieces: Pieces, sums: Tensor
    ) -> list[Tensor]:
        """Optimiser steps from replayed lanes. batches: this rank's of them; own: which these are;
        pieces: minibatches of all of them, by optimiser step. Returns this rank's value errors."""
        step = SharedStep(self, batches, length, Replayed(own), sums)
        ranks = self.ranks
        for minibatches in pieces:
            step.take_replayed(minibatches)
            step.survey()
            ranks.sum(self.counts)
            step.differentiate()
            ranks.sum(self.bucket.flat)
            step.apply()
        return step.errors


class SharedStep:
    """One optimiser step after the other. `survey`, `differentiate` and `apply` follow each other,
    with an exchange after each of the first two."""

    def __init__(
        self,
        together: Together,
        batches: Batches,
        length: int,
        shares: Shares | Replayed,
        sums: Tensor,
    ) -> None:
        """length: steps of a part; sums: of the statistics."""
        self._together = together
        self._learner = together.learner
        self._batches = batches
        self._length = length
        self._steps = together.parts * length
        self._dealt = shares
        self._sums = sums
        #: This rank's value errors of replayed lanes, minibatch by minibatch.
        self.errors: list[Tensor] = []
        self._shares: list[Share] = []
        self._changes: list[Change | None] = []
        #: What the survey has already passed through the network, if it need not be done again.
        self._passed: list[Batch] = []

    def take(self, index: Tensor) -> None:
        """The minibatches of the next optimiser step, as parts of an order."""
        together = self._together
        if together.shares.even:
            index = together.index.copy_(index)
        self._deal(torch.split(index, together.piece))

    def take_replayed(self, minibatches: Sequence[Tensor]) -> None:
        """The same of replayed lanes; the last minibatch may be a smaller one."""
        self._steps = sum(len(one) for one in minibatches) * self._length
        self._deal(minibatches)

    def _deal(self, minibatches: Sequence[Tensor]) -> None:
        self._minibatches = minibatches
        self._shares = [self._dealt.of(minibatch) for minibatch in minibatches]
        self._learner.network.augmentation.prepare([len(one) for one in minibatches])

    def survey(self) -> None:
        """Counts what this rank has of the optimiser step, and draws what it is augmented with."""
        augmentation = self._learner.network.augmentation
        augmentation.rewind()
        drawn = [augmentation.draw(len(minibatch)) for minibatch in self._minibatches]
        pairs = zip(self._shares, drawn, strict=True)
        self._changes = [share.of(change) for share, change in pairs]
        self._passed = []
        counts = self._together.counts.zero_()
        for share, change in zip(self._shares, self._changes, strict=True):
            if len(share.parts):
                self._count(share, change, counts)

    def _count(self, share: Share, change: Change | None, counts: Tensor) -> None:
        learner, batches = self._learner, self._batches
        free = batches.free(share.parts).flatten()
        counts[0] += free.sum()
        if not learner.config.normalize_advantages:
            return
        returns = batches.returns(share.parts)
        if returns is None:
            # Advantages depend on the network that learns. A single minibatch passes through it
            # once; several do so twice, because all of them would not fit into memory.
            again = len(self._shares) > 1 or self._dealt.even
            with torch.set_grad_enabled(not again):
                batch = batches.batch(share.parts, change)
            self._passed = [] if again else [batch]
            returns = learner.algorithm.returns(batch)
        advantages = kept(returns.advantages.flatten(), free).double()
        counts[1] += advantages.sum()
        counts[2] += advantages.square().sum()

    def differentiate(self) -> None:
        """Adds up the gradients of this rank's share."""
        learner, whole = self._learner, self._whole()
        for share, change in zip(self._shares, self._changes, strict=True):
            if not len(share.parts):
                continue
            batch = self._passed.pop() if self._passed else self._batches.batch(share.parts, change)
            losses = learner.algorithm.loss(batch._replace(whole=whole), learner.entropy_bonus)
            learner.updater.backward(losses.total)
            with torch.no_grad():
                learner.kl += losses.approx_kl
                self._sums[:-1] += torch.stack([*losses[:-1]]).detach()
            if isinstance(self._dealt, Replayed):
                self.errors.append(losses.errors)
        self._together.bucket.take([learner.kl, learner.updater.bad_loss])

    def _whole(self) -> Whole:
        counts = self._together.counts
        free = counts[0].clamp(min=1)
        over = None
        if self._learner.config.normalize_advantages:
            mean = counts[1] / free
            variance = (counts[2] / free - mean.square()).clamp(min=0)
            over = Moments(mean.float(), variance.float())
        return Whole(steps=self._steps, free=free.float(), moments=over)

    @torch.no_grad()
    def apply(self) -> None:
        """The optimiser step, with the gradients of all ranks."""
        learner, bucket = self._learner, self._together.bucket
        bucket.give()
        learner.kl.copy_(bucket.numbers[0])
        learner.updater.bad_loss.copy_(bucket.numbers[1] > 0)
        self._sums[-1] += 1
        learner.step()
