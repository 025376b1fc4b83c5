"""Steps that go on while the caller does something else, on threads that several vectors share."""

import contextlib
import gc
import os
import subprocess
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from warpzone import _engine, rom
from warpzone.env.options import Options

LANES = 6
OPTIONS = Options(size=42, frame_stack=1, stages="1-1", time_limit=20, start_delay=(0, 5))


def make(num_threads: int | _engine.Threads = 2) -> _engine.Vector:
    same_step = _engine.Autoreset.SAME_STEP
    image = rom.find("eu")
    vector = OPTIONS.make_vector(image, LANES, autoreset=same_step, num_threads=num_threads)
    vector.seed(list(range(LANES)))
    return vector


def arrays(vector: _engine.Vector) -> tuple[Any, ...]:
    obs = np.zeros((LANES, *vector.obs_shape), np.uint8)
    info = np.zeros((LANES, len(_engine.INFO_FIELDS)), np.int32)
    ends = np.zeros(LANES, np.bool_)
    return obs, np.zeros(LANES, np.float32), ends, ends.copy(), info, obs.copy(), info.copy()


def begun(num_threads: int | _engine.Threads = 2) -> tuple[_engine.Vector, tuple[Any, ...]]:
    vector = make(num_threads)
    results = arrays(vector)
    vector.reset(None, results[0], results[4])
    return vector, results


@pytest.mark.parametrize("num_threads", [1, 2, 5])
def test_groups_on_shared_threads_live_as_they_do_alone(num_threads: int) -> None:
    threads = _engine.Threads(num_threads)
    assert threads.num_threads == num_threads
    groups = [begun(threads) for _ in range(3)]
    alone = [begun(1) for _ in range(3)]
    rng = np.random.default_rng(0)
    for _ in range(40):
        actions = rng.integers(0, 7, (3, LANES))
        for (vector, results), chosen in zip(groups, actions, strict=True):
            vector.start(chosen, *results)
        for (vector, _), (other, expected), chosen in zip(groups, alone, actions, strict=True):
            other.step(chosen, *expected)
            vector.finish()
        for (_, results), (_, expected) in zip(groups, alone, strict=True):
            for result, wanted in zip(results, expected, strict=True):
                np.testing.assert_array_equal(result, wanted)


def test_nothing_else_touches_lanes_that_are_under_way() -> None:
    vector, results = begun()
    actions = np.ones(LANES, np.int64)
    with pytest.raises(RuntimeError, match="no step is under way"):
        vector.finish()
    vector.start(actions, *results)
    for call in (
        lambda: vector.start(actions, *results),
        lambda: vector.step(actions, *results),
        lambda: vector.reset(None, results[0], results[4]),
        lambda: vector.save(0),
        lambda: vector.take_shaping(),
    ):
        with pytest.raises(RuntimeError, match="a step is under way; finish it first"):
            call()
    vector.finish()
    assert vector.save(0)


def test_wrong_steps_are_refused_at_the_start() -> None:
    vector, results = begun()
    with pytest.raises(ValueError, match="the action of lane 0"):
        vector.start(np.full(LANES, 99), *results)
    with pytest.raises(ValueError, match="actions"):
        vector.start(np.zeros(LANES + 1, np.int64), *results)
    vector.step(np.zeros(LANES, np.int64), *results)


def test_arrays_stay_while_the_engine_writes_to_them() -> None:
    (vector, _), (other, expected) = begun(), begun()
    actions = np.ones(LANES, np.int64)
    for _ in range(20):
        mine = arrays(vector)
        kept = [weakref.ref(array) for array in mine]
        vector.start(actions, *mine)
        del mine
        gc.collect()
        assert all(array() is not None for array in kept)
        held = [array() for array in kept]
        vector.finish()
        other.step(actions, *expected)
        for result, wanted in zip(held, expected, strict=True):
            np.testing.assert_array_equal(result, wanted)
        del held, result
        gc.collect()
        assert all(array() is None for array in kept)


def test_actions_are_the_callers_again_at_once() -> None:
    (vector, results), (other, expected) = begun(), begun()
    for _ in range(20):
        actions = np.full(LANES, 3)
        other.step(actions, *expected)
        vector.start(actions, *results)
        actions[:] = 99
        vector.finish()
        np.testing.assert_array_equal(results[0], expected[0])


def test_closing_ends_the_step_that_is_under_way() -> None:
    threads = _engine.Threads(2)
    other, results = begun(threads)
    for _ in range(5):
        vector, mine = begun(threads)
        vector.start(np.ones(LANES, np.int64), *mine)
        vector.close()
        with pytest.raises(RuntimeError, match="closed"):
            vector.finish()
        vector, mine = begun(threads)
        vector.start(np.ones(LANES, np.int64), *mine)
        del vector
    del threads
    other.step(np.ones(LANES, np.int64), *results)


@pytest.mark.parametrize("number", [0, -1, 1025])
def test_the_number_of_threads_is_checked(number: int) -> None:
    with pytest.raises(ValueError, match=r"num_threads must be in 1\.\.1024"):
        _engine.Threads(number)
    with pytest.raises(ValueError, match=r"num_threads must be in 1\.\.1024"):
        make(number)


def test_results_stay_in_place_whoever_begins_and_ends_steps() -> None:
    """One thread only begins steps. The other ends them and begins its own before the first one
    may have come back, which must not let go of its results."""
    vector, results = begun(2)
    actions = np.ones(LANES, np.int64)
    over = threading.Event()

    def begin() -> None:
        while not over.is_set():
            with contextlib.suppress(RuntimeError):
                vector.start(actions, *results)

    beginner = threading.Thread(target=begin)
    beginner.start()
    held = 0
    for _ in range(200):
        with contextlib.suppress(RuntimeError):
            vector.finish()
        memory = bytearray(results[0].nbytes)
        obs = np.frombuffer(memory, np.uint8).reshape(results[0].shape)
        try:
            vector.start(actions, obs, *results[1:])
        except RuntimeError:
            continue
        del obs
        with pytest.raises(BufferError):  # only while somebody uses it
            memory.append(0)
        held += 1
    over.set()
    beginner.join()
    vector.close()
    assert held > 0


#: A thread that nobody waits for is inside the engine when the program ends.
DAEMON = """
import threading, time
import numpy as np
from test_start import LANES, begun

vector, results = begun()
def play():
    while True:
        vector.step(np.ones(LANES, np.int64), *results)
threading.Thread(target=play, daemon=True).start()
time.sleep(0.2)
"""


def test_program_ends_in_order_while_a_daemon_thread_plays() -> None:
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", DAEMON], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
