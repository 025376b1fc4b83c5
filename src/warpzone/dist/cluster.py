"""Ray: one that is started here and ends with this process, or a cluster that is there already."""

from __future__ import annotations

import logging
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType

from warpzone.config import ConfigError
from warpzone.dist.ray_folder import ray_folder

#: What Ray reads when it is imported: no usage statistics, workers that get as much of the machine
#: as any other process, and nothing that listens beyond the loopback address, which is what the
#: last one means on Linux too.
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}
#: Attempts to start Ray.
STARTS = 3
#: Seconds in which a cluster must answer, and one that is a Ray cluster must say so.
ANSWER, GREETING = 10.0, 30.0
NAMESPACE = "warpzone"
#: Three times a third is a whole, whatever a float makes of it.
ROUNDING = 1e-6
#: Tried in a process of its own: it cannot be interrupted, and takes a minute to give up.
GREET = "import sys; from ray._raylet import GcsClient; GcsClient(address=sys.stdin.read())"
ADDRESS = re.compile(r"(auto|[\w.-]+:\d{1,5})", re.ASCII)


@dataclass(frozen=True)
class Cluster:
    """Where actors are."""

    #: Whether it outlives this process, and its actors can.
    remote: bool


@contextmanager
def open_cluster(
    address: str, *, cpus: int, store: int, gpu_share: float = 0.0
) -> Iterator[Cluster]:
    """The cluster at an address, or one on this machine. cpus: how many actors it must have room
    for; store: bytes of shared memory of one that is started here; gpu_share: what each actor has
    of a GPU. ConfigError if it is too small, OSError if it is not there; neither names the
    address."""
    os.environ.update(ENVIRONMENT)
    try:
        import ray
    except ImportError as error:
        raise ConfigError("actors need Ray: pip install 'warpzone[fleet]'") from error
    if not address:
        gpus = _gpus_here() if gpu_share else 0
        require_gpus(cpus, gpu_share, gpus, "this machine")
        with _own(cpus, gpus, store):
            yield Cluster(remote=False)
        return
    _connect(address)
    try:
        has = ray.cluster_resources()  # type: ignore[no-untyped-call]
        there = int(has.get("CPU", 0))
        if there < cpus:
            raise ConfigError(f"--actors {cpus}: the Ray cluster has room for {there}, a CPU each")
        require_gpus(cpus, gpu_share, int(has.get("GPU", 0)), "the Ray cluster")
        yield Cluster(remote=True)
    finally:
        ray.shutdown()


def require_gpus(actors: int, share: float, gpus: int, who: str) -> None:
    """ConfigError if so many GPUs have no room for the actors. No actor has parts of two GPUs."""
    if not share:
        return
    room = gpus * int(1 / share + ROUNDING)
    if room < actors:
        raise ConfigError(
            f"--actors {actors} with --actor-gpus {share:g}: {who} has {gpus} "
            f"GPU{'' if gpus == 1 else 's'}, with room for {room}"
        )


def _gpus_here() -> int:
    import torch

    return torch.cuda.device_count()


@contextmanager
def _own(cpus: int, gpus: int, store: int) -> Iterator[None]:
    import ray

    with ray_folder() as place:
        try:
            start_here(place, cpus=cpus, gpus=gpus, store=store)
            yield
        finally:
            ray.shutdown()


def start_here(place: str, *, cpus: int, gpus: int, store: int) -> None:
    """Ray on this machine alone, with its files in a folder. Ray gives its own processes 30 seconds
    to start, which on a busy machine is not enough."""
    import ray

    for attempt in range(1, STARTS + 1):
        try:
            with _Starting("Ray did not start on this machine: {reason}."):
                ray.init(
                    address="local",
                    num_cpus=cpus,
                    num_gpus=gpus,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    object_store_memory=store,
                    namespace=NAMESPACE,
                    _temp_dir=place,
                )
        except OSError:
            if attempt == STARTS:
                raise
        else:
            _hush()
            return


class _Starting:
    """Ray is being started or joined: what it says against that becomes an OSError with our own
    sentence, and nothing is left of it."""

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        import ray
        from ray.exceptions import RayError

        if kind is None:
            return
        ray.shutdown()
        # A node that does not come up in time is a plain `Exception`; anything else is no answer
        # of Ray's, and goes on as it is.
        if kind is Exception or issubclass(kind, (OSError, RuntimeError, ValueError, RayError)):
            reason = str(error).split(". ")[0]
            raise OSError(self.sentence.format(reason=reason)) from error


def check_address(address: str) -> None:
    """ConfigError if it is no address of a Ray cluster; the sentence does not repeat it."""
    if address.startswith("ray://"):
        raise ConfigError(
            "--ray takes HOST:PORT of a cluster that this machine is a node of (`ray start "
            "--address`), not a ray:// address"
        )
    if address and not ADDRESS.fullmatch(address):
        raise ConfigError("--ray takes HOST:PORT, or auto for the cluster of this machine")


def _connect(address: str) -> None:
    import ray

    check_address(address)
    if address != "auto":
        _greet(address)
    # Without Ray's reason, which has the address in it.
    with _Starting(
        "the Ray cluster of --ray does not take this machine: start `ray start --address` on "
        "it first, with the same versions of Ray and Python."
    ):
        ray.init(
            address=address,
            namespace=NAMESPACE,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    _hush()


def _greet(address: str) -> None:
    """OSError if no Ray cluster answers. Ray itself takes a minute to say so."""
    host, _, port = address.rpartition(":")
    silence = f"no Ray cluster answers at the address of --ray within {ANSWER:g} s."
    try:
        socket.create_connection((host, int(port)), ANSWER).close()
        subprocess.run(  # noqa: S603 (our own interpreter)
            [sys.executable, "-c", GREET],
            input=address.encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=GREETING,
            check=True,
        )
    except (OSError, OverflowError) as error:
        raise OSError(silence) from error
    except subprocess.SubprocessError as error:
        raise OSError("what answers at the address of --ray is no Ray cluster.") from error


def _hush() -> None:
    """Ray prints every loss at length, with addresses; this program says it in one line."""
    from ray._private import worker

    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *args, **kwargs: None
