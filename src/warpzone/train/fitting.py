"""Sizes that fit into the memory of all ranks.

One process goes down the ladder when its memory runs out. Ranks cannot: the others are in the midst
of an exchange with the one that failed, which cannot be taken back. So they try before the run
begins: each makes a few updates of its own lanes, without the others, and all go down together as
long as one of them fails.
"""

from __future__ import annotations

import gc
from contextlib import ExitStack
from typing import TypeVar

import torch

from warpzone import rom
from warpzone.collect.collector import Collector
from warpzone.collect.lanes import make_groups
from warpzone.collect.ranks import Ranks
from warpzone.config import ConfigError, TrainConfig
from warpzone.learn.learner import Learner
from warpzone.rom import native
from warpzone.run.journal import say
from warpzone.train.device import choose_device, prepare_device
from warpzone.train.joining import load_random_state, random_state
from warpzone.train.ladder import MEMORY_ERRORS, describe, out_of_memory, rungs, shortage
from warpzone.train.policies import Policies

T = TypeVar("T")

#: Updates of a trial: the second has everything that the first one has left.
UPDATES = 2


class Trial(Ranks):
    """A rank that tries by itself: it has its lanes and its share of minibatches, and all that is
    exchanged is its own."""

    grouped = True

    def __init__(self, ranks: Ranks) -> None:
        self.rank, self.size, self.local_size = ranks.rank, ranks.size, ranks.local_size

    def gather(self, value: T) -> list[T]:
        """Its own, for each rank: what is taken apart by lanes must have all of them."""
        return [value] * self.size


def fitted_to_memory(config: TrainConfig, ranks: Ranks) -> TrainConfig:
    """The first sizes on the ladder that fit on every rank; MemoryError if none do."""
    lacking = _gathered(lacks(config, ranks), ranks)
    for what, smaller in rungs(config):
        if not lacking:
            break
        if ranks.leads:
            text = f"{lacking[0]} on {len(lacking)} of {ranks.size} ranks; smaller {what}"
            say(f"[train][warn] {text}: {describe(config, smaller)}")
        config = smaller
        try:
            lacking = _gathered(lacks(config, ranks), ranks)
        except ConfigError as error:
            # The same on every rank: this rung cannot be dealt to them, and the next one may.
            lacking = [str(error)] * ranks.size
    if lacking:
        raise MemoryError(lacking[0])
    return config


def _gathered(lacking: str, ranks: Ranks) -> list[str]:
    return [text for text in ranks.gather(lacking) if text]


def lacks(config: TrainConfig, ranks: Ranks) -> str:
    """What this rank's memory lacks for some updates, in words; empty if they fit."""
    drawn = random_state(ranks)
    lacking = ""
    try:
        _try(config, Trial(ranks))
    except MEMORY_ERRORS as error:
        if not out_of_memory(error):
            raise
        lacking = f"memory ran out ({shortage(error)})"
    load_random_state(drawn, ranks)
    # What the trial had must be free before the run allocates its own.
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return lacking


def _try(config: TrainConfig, trial: Trial) -> None:
    device = choose_device(config)
    prepare_device(device)
    image = rom.find(config.rom)
    policies = Policies(config, device)
    with ExitStack() as stack:
        groups = make_groups(config, image, native.load(image), device, trial)
        stack.callback(groups.close)
        collector = Collector(config, policies.acting, groups, device, trial)
        learner = Learner(config, policies.agent, device, trial)
        for update in range(UPDATES):
            policies.hand_over()
            collector.prepare(update * config.steps_per_update)
            learner.update(collector.collect(), 0.0)
