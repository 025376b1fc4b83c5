"""Two processes that stay ranks of one gloo group: what one learns, both learn together."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import tempfile
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

#: Seconds that an exchange may take on a busy machine.
TIMEOUT = 120.0


class RankPool:
    """Calls functions on all ranks; the functions take the ranks before their arguments."""

    def __init__(self, size: int = 2) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._pipes: list[Connection] = []
        self._processes: list[Any] = []
        context = multiprocessing.get_context("spawn")
        for rank in range(size):
            here, there = context.Pipe()
            arguments = (rank, size, self._folder.name, there)
            process = context.Process(target=_serve, args=arguments, daemon=True)
            process.start()
            there.close()
            self._pipes.append(here)
            self._processes.append(process)

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> list[Any]:
        """What the function returns on each rank."""
        for pipe in self._pipes:
            pipe.send((function, arguments, named))
        answers = [pipe.recv() for pipe in self._pipes]
        for rank, (_, error) in enumerate(answers):
            assert not error, f"rank {rank}: {error}"
        return [result for result, _ in answers]

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(10)
            process.kill()
        self._folder.cleanup()


def _serve(rank: int, size: int, folder: str, pipe: Connection) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    import torch
    import torch.distributed as dist
    from torch._C._distributed_c10d import FileStore

    from warpzone.dist.group import GroupRanks

    torch.set_num_threads(1)
    store = FileStore(str(Path(folder) / "store"), size)
    timeout = timedelta(seconds=TIMEOUT)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=timeout)
    ranks = GroupRanks(TIMEOUT, size)
    while True:
        try:
            function, arguments, named = pipe.recv()
        except EOFError:
            return
        answer: tuple[Any, str] = (None, "")
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                answer = (function(ranks, *arguments, **named), "")
        except Exception:  # noqa: BLE001 (whatever it is, the test shows it)
            answer = (None, traceback.format_exc())
        pipe.send(answer)
