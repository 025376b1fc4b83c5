"""Starts the ranks of a run with Lightning Fabric, and ends all of them if one is lost."""

from __future__ import annotations

import dataclasses
import logging
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import FileStore, Store
from torch.distributed.rendezvous import rendezvous

from warpzone.collect.ranks import RankLostError, Ranks
from warpzone.config import ConfigError, TrainConfig
from warpzone.dist import parting
from warpzone.dist.environment import environment_of
from warpzone.dist.folder import meeting_folder
from warpzone.dist.group import GroupRanks
from warpzone.dist.meeting import meet
from warpzone.dist.place import MEETING, Place, fitted, require_devices
from warpzone.dist.watch import Peers, Watch, found
from warpzone.train.device import choose_device

if TYPE_CHECKING:
    from lightning.fabric import Fabric

FAILED = 1
USAGE = 2
#: Seconds that a rank has to find out who is lost, and that others wait for one that knows.
FIRST_WORD = 1.0
#: Seconds in which others end by themselves after a failure that they know of.
GRACE = 2.0
#: Ranks import PyTorch and find each other in this time, on a busy machine too.
START = timedelta(minutes=5)
LOOPBACK = "lo"


def run_ranks(
    place: Place,
    config: TrainConfig,
    work: Callable[[TrainConfig, Ranks], int],
    bereaved: Callable[[str], None],
) -> int:
    """Runs `work` on every rank, and returns its exit code. Ranks other than the first print
    nothing, unless they are the first to fail. bereaved: called on rank 0 with a sentence before it
    ends because another rank is lost."""
    try:
        config = fitted(config, place)
        device = _device(config, place)
        if place.by == "fabric" and place.leads and MEETING in os.environ:
            raise ConfigError(f"{MEETING} is set: a run cannot be started from a rank of another")
    except ConfigError:
        if place.leads:
            raise
        return USAGE
    with meeting_folder(place, START) as meeting, ExitStack() as stack:
        heard = None if place.leads else stack.enter_context(parting.hushed())
        group = Group(place, config, device, meeting, bereaved)
        with ExitStack() as failing:
            failing.callback(group.end, FAILED)
            try:
                ranks = group.begin()
                restarts = ranks.most(max(place.restarts, group.restarts))
                config = fitted(config, dataclasses.replace(place, restarts=restarts))
                code = work(config, ranks)
            except RankLostError as error:
                group.lost(str(error))
            failing.pop_all()
        if code and heard is not None and not ranks.followed and group.claim():
            parting.say(f"rank {place.rank}: {heard.last}")
        return group.end(code)


def _device(config: TrainConfig, place: Place) -> torch.device:
    """What this machine has for a rank. ConfigError if that is not enough; the first rank of each
    machine says so, since rank 0 knows its own alone."""
    try:
        device = choose_device(config)
        require_devices(config, device, place)
    except ConfigError as error:
        if place.local_rank == 0 and not place.leads:
            parting.say(f"warpzone train: {error}.")
        raise
    return device


class Group:
    """The process group of a run, from the start of its ranks to their end."""

    def __init__(
        self,
        place: Place,
        config: TrainConfig,
        device: torch.device,
        meeting: Path | None,
        bereaved: Callable[[str], None],
    ) -> None:
        self._place = place
        self._config = config
        self._device = device
        self._meeting = meeting
        self._bereaved = bereaved
        self._started: list[subprocess.Popen[bytes]] = []
        self._watch: Watch | None = None
        self._peers = Peers({})
        self._store: Store | None = None
        #: How often ranks have met before. torchrun's agents count failures of their own machine
        #: alone: one that starts its ranks again because another one does counts nothing.
        self.restarts = 0

    @property
    def timeout(self) -> timedelta:
        """How long a rank waits for another."""
        return timedelta(seconds=self._config.rank_timeout)

    def begin(self) -> GroupRanks:
        """Starts the other ranks of this machine, unless somebody else did, and meets all."""
        if self._place.one_machine:
            # Gloo and NCCL would listen on the address of the machine's name.
            os.environ.setdefault("GLOO_SOCKET_IFNAME", LOOPBACK)
            os.environ.setdefault("NCCL_SOCKET_IFNAME", LOOPBACK)
        if self._device.type == "cuda":
            torch.cuda.set_device(self._place.local_rank)
        fabric = self._fabric()
        try:
            fabric.launch()
        except (RuntimeError, ValueError) as error:
            raise RankLostError(f"the ranks did not meet: {error}") from error
        launcher = fabric.strategy.launcher
        processes = getattr(launcher, "procs", [])
        # Lightning kills everything without a word when a process ends; this one says why.
        self._started, processes[:] = list(processes), []
        if self._place.by == "fabric":
            local = self._place.local_rank
            first = self._place.rank - local
            self._watch = Watch(self._started, self.lost, first=first, child=local > 0)
        ranks = GroupRanks(self._config.rank_timeout, self._place.local_size)
        if self._place.by != "fabric":
            here = (socket.gethostname(), os.getpid())
            everyone = dict(enumerate(ranks.gather(here)))
            del everyone[self._place.rank]
            local_pids = {rank: pid for rank, (host, pid) in everyone.items() if host == here[0]}
            self._peers = Peers(local_pids)
        return ranks

    def _meet(self, timeout: timedelta) -> Store:
        """Ranks of one machine meet in a private folder: the store that PyTorch has by default
        listens on every address. Those that torchrun starts meet in its own store, apart from those
        before a restart, and those of several machines at the address of the first."""
        place = self._place
        if self._meeting is not None:
            return FileStore(str(self._meeting / "store"), place.size)
        whole: Store
        whole, _, _ = next(rendezvous("env://", place.rank, place.size, timeout=timeout))
        if place.by != "torchrun":
            return whole
        store, number = meet(whole, place.rank, place.size, timeout)
        self.restarts = number - 1
        return store

    def _fabric(self) -> Fabric:
        try:
            from lightning.fabric import Fabric
            from lightning.fabric.strategies.ddp import DDPStrategy
        except ImportError as error:
            raise ConfigError(
                "several ranks need Lightning; install it with: pip install 'warpzone[scale]'"
            ) from error
        logging.getLogger("lightning.fabric").setLevel(logging.WARNING)
        group, place = self, self._place
        backend = "nccl" if self._device.type == "cuda" else "gloo"
        timeout = max(self.timeout, START)

        class Strategy(DDPStrategy):
            """Its process group is there when Lightning would make one."""

            def setup_environment(self) -> None:
                group._store = group._meet(timeout)
                dist.init_process_group(
                    backend,
                    store=group._store,
                    rank=place.rank,
                    world_size=place.size,
                    timeout=timeout,
                )
                super().setup_environment()

        environment = environment_of(place)
        if place.by == "slurm" and self._meeting is None:
            os.environ["MASTER_ADDR"] = environment.main_address
            os.environ["MASTER_PORT"] = str(environment.main_port)
        return Fabric(
            plugins=[environment],
            accelerator=self._device.type,
            devices=place.local_size,
            num_nodes=place.size // place.local_size,
            strategy=Strategy(process_group_backend=backend, timeout=timeout),
        )

    def lost(self, text: str) -> NoReturn:
        """Ends this rank, and those that it started, because another one is lost; one of all ranks
        says which. Returns never: exchanges that are under way cannot be taken back."""
        look = self._peers if self._watch is None else self._watch
        known = found(look.sentence, FIRST_WORD)
        text = known or text
        by_us = self._place.by == "fabric"
        if (by_us and not self._place.leads) or not (by_us or known):
            time.sleep(FIRST_WORD)
        if self.claim():
            parting.say(
                f"warpzone train: {text}: the run ends; its last checkpoint is whole, and --resume "
                "goes on from there."
            )
        self._kill()
        if self._place.leads:
            self._bereaved(text)
        if self._meeting is not None:
            shutil.rmtree(self._meeting, ignore_errors=True)
        os._exit(FAILED)

    def claim(self) -> bool:
        """Whether this rank is the first to say why the run ends."""
        if self._meeting is None:
            return parting.claim_in(self._store)
        # A task of SLURM that ends removes the folder after the last word, and others outlive it.
        return parting.claim(self._meeting, gone=self._place.by == "fabric")

    def end(self, code: int) -> int:
        """Waits for the ranks that this one started; after a failure they are ended."""
        if self._watch is not None:
            self._watch.close()
        if code:
            if self._place.leads:
                self.claim()
            ends = time.monotonic() + GRACE
            while any(one.poll() is None for one in self._started) and time.monotonic() < ends:
                time.sleep(0.05)
            self._kill()
            return code
        if dist.is_initialized():
            dist.destroy_process_group()
        for rank, process in enumerate(self._started, self._place.rank + 1):
            try:
                code = code or process.wait(self._config.rank_timeout)
            except subprocess.TimeoutExpired:
                parting.say(f"warpzone train: rank {rank} did not end and is killed.")
                code = FAILED
        self._kill()
        return FAILED if code else 0

    def _kill(self) -> None:
        """Ends the ranks that this one started. A stopped process takes no other signal."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.wait()
