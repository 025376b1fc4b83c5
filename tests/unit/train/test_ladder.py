"""The rungs that a run climbs down when memory runs out."""

import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny_runs import tiny

from warpzone.config import TrainConfig, load_preset
from warpzone.train.ladder import describe, out_of_memory, rungs, shortage
from warpzone.train.session import _next_rung


def test_optimiser_steps_stay_as_long_as_possible() -> None:
    config = TrainConfig(num_envs=64, rollout_steps=64, minibatch=1024, epochs=1)
    path = list(rungs(config))
    names = [what for what, _ in path]
    assert names[:4] == ["minibatches", "minibatches", "rollouts", "lanes"]
    for _, smaller in path[:2]:
        assert smaller.minibatch * smaller.grad_accum == 1024
        assert smaller.steps_per_update == config.steps_per_update
    assert path[2][1].rollout_steps == 32
    assert path[3][1].num_envs == 32
    assert describe(config, path[0][1]) == "--minibatch 1024 -> 512, --grad-accum 1 -> 2"


@pytest.mark.parametrize(
    "config",
    [
        *(load_preset(name) for name in ("quick", "fast-1-1")),
        TrainConfig(memory="gru", algo="vtrace", epochs=1, per=True, per_burn_in=20),
        TrainConfig(num_envs=48, rollout_steps=24, minibatch=384, grad_accum=3, epochs=1),
        tiny(),
    ],
)
def test_every_rung_is_smaller_and_makes_sense(config: TrainConfig) -> None:
    before = config
    count = 0
    for _, smaller in rungs(config):
        # That it exists at all means that it was checked.
        size = (smaller.num_envs * smaller.rollout_steps, smaller.minibatch)
        assert size < (before.num_envs * before.rollout_steps, before.minibatch)
        before = smaller
        count += 1
    assert count < 40
    assert before.num_envs >= min(8, config.num_envs)


def test_memory_that_is_missing_is_told_from_other_failures() -> None:
    impossible: Any = None
    with pytest.raises(RuntimeError) as caught:
        impossible = torch.empty(1 << 50, dtype=torch.uint8)
    assert impossible is None
    assert out_of_memory(caught.value)
    assert out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
    assert out_of_memory(MemoryError())
    assert not out_of_memory(RuntimeError("the engine broke"))
    assert "allocate" in shortage(caught.value)
    assert "enforce" not in shortage(caught.value)
    assert shortage(MemoryError()) == "the system gives no more"


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("could not create a primitive"),
        RuntimeError("can't start new thread"),
        RuntimeError("std::bad_alloc"),
        ImportError("libarrow.so: failed to map segment from shared object"),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
    ],
)
def test_libraries_without_memory_say_so_in_their_own_ways(error: Exception) -> None:
    assert out_of_memory(error)


def test_a_failure_of_clearing_up_is_the_failure_before_it() -> None:
    with pytest.raises(ImportError) as caught:
        try:
            raise MemoryError
        finally:
            raise ImportError("no module")
    assert out_of_memory(caught.value)
    assert not out_of_memory(ImportError("no module"))
    assert not out_of_memory(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))


def test_the_next_rung_goes_on_in_the_folder_of_the_run_that_failed() -> None:
    config = load_preset("quick").replace(runs_dir="elsewhere", resume="never")
    what, smaller = next(iter(rungs(config)))
    assert what
    failure = MemoryError()
    assert _next_rung(config, rungs(config), None, failure) == smaller
    run: Any = SimpleNamespace(folder=SimpleNamespace(path=Path("runs") / "mine"))
    found = _next_rung(config, rungs(config), run, failure)
    assert found == smaller.replace(
        resume="auto", resume_relax_match=True, run_name="mine", runs_dir="runs"
    )
    with pytest.raises(MemoryError) as raised:
        _next_rung(config, iter(()), run, failure)
    assert raised.value is failure
