"""Starts the ranks of a run with Lightning Fabric, and ends all of them if one is lost."""

from __future__ import annotations

import dataclasses
import logging
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
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
from warpzone.dist.group import GroupRanks
from warpzone.dist.meeting import meet
from warpzone.dist.place import MEETING, Place, fitted, require_devices
from warpzone.dist.watch import Watch
from warpzone.train.device import choose_device

if TYPE_CHECKING:
    from lightning.fabric import Fabric

FAILED = 1
USAGE = 2
#: Seconds that others wait for rank 0, which knows more about a loss, to say what happened.
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
        device = choose_device(config)
        require_devices(config, device, place)
        if place.by == "fabric" and place.leads and MEETING in os.environ:
            raise ConfigError(f"{MEETING} is set: a run cannot be started from a rank of another")
    except ConfigError:
        if place.leads:
            raise
        return USAGE
    with _meeting(place) as meeting, ExitStack() as stack:
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
        if code and heard is not None and not ranks.followed and parting.claim(meeting):
            parting.say(f"rank {place.rank}: {heard.last}")
        return group.end(code)


@contextmanager
def _meeting(place: Place) -> Iterator[Path | None]:
    """A private folder for the ranks of one machine that this package starts."""
    if place.by != "fabric" or not place.one_machine:
        yield None
        return
    if MEETING in os.environ:
        yield Path(os.environ[MEETING])
        return
    folder = tempfile.mkdtemp(prefix="warpzone-ranks-")
    os.environ[MEETING] = folder
    try:
        yield Path(folder)
    finally:
        del os.environ[MEETING]
        shutil.rmtree(folder, ignore_errors=True)


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
            self._watch = Watch(self._started, self.lost)
        return GroupRanks(self._config.rank_timeout, self._place.local_size)

    def _fabric(self) -> Fabric:
        try:
            from lightning.fabric import Fabric
            from lightning.fabric.strategies.ddp import DDPStrategy
        except ImportError as error:
            raise ConfigError(
                "several ranks need Lightning; install it with: pip install 'warpzone[scale]'"
            ) from error
        logging.getLogger("lightning.fabric").setLevel(logging.WARNING)
        group, place, meeting = self, self._place, self._meeting
        backend = "nccl" if self._device.type == "cuda" else "gloo"
        timeout = max(self.timeout, START)

        class Strategy(DDPStrategy):
            """Ranks of one machine meet in a private folder: the store that PyTorch has by default
            listens on every address. Those that torchrun starts meet in its own store, apart from
            those before a restart."""

            def setup_environment(self) -> None:
                store: Store | None = None
                if meeting is not None:
                    store = FileStore(str(meeting / "store"), place.size)
                elif place.by == "torchrun":
                    whole, _, _ = next(
                        rendezvous("env://", place.rank, place.size, timeout=timeout)
                    )
                    store, number = meet(whole, place.rank, place.size, timeout)
                    group.restarts = number - 1
                if store is not None:
                    dist.init_process_group(
                        backend,
                        store=store,
                        rank=place.rank,
                        world_size=place.size,
                        timeout=timeout,
                    )
                super().setup_environment()

        return Fabric(
            accelerator=self._device.type,
            devices=place.local_size,
            num_nodes=place.size // place.local_size,
            strategy=Strategy(process_group_backend=backend, timeout=timeout),
        )

    def lost(self, text: str) -> NoReturn:
        """Ends this rank, and those that it started, because another one is lost; one of all ranks
        says which. Returns never: exchanges that are under way cannot be taken back."""
        if self._watch is not None:
            text = self._watch.found(FIRST_WORD) or text
        if not self._place.leads and self._meeting is not None:
            time.sleep(FIRST_WORD)
        if parting.claim(self._meeting):
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

    def end(self, code: int) -> int:
        """Waits for the ranks that this one started; after a failure they are ended."""
        if self._watch is not None:
            self._watch.close()
        if code:
            if self._place.leads:
                parting.claim(self._meeting)
            ends = time.monotonic() + GRACE
            while any(one.poll() is None for one in self._started) and time.monotonic() < ends:
                time.sleep(0.05)
            self._kill()
            return code
        if dist.is_initialized():
            dist.destroy_process_group()
        for rank, process in enumerate(self._started, 1):
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
