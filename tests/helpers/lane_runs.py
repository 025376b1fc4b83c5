"""What the properties have in common: small environments and strategies for their input."""

from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from warpzone.env.vector import MarioVectorEnv

#: Environments are slow compared with numbers; few but long examples find more here.
PROPERTY = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

NUM_ACTIONS = 7
seeds = st.integers(0, 2**31)
stage_sets = st.sampled_from(["1-1", "1-2", "4-4", "8-1", "1-1,2-2,7-4", "all", "game"])
configs = st.fixed_dictionaries(
    {
        "stages": stage_sets,
        "frame_skip": st.sampled_from([1, 2, 4, 7]),
        "frame_stack": st.sampled_from([1, 2, 4]),
        "size": st.sampled_from([84, 42, (60, 96)]),
        "gray": st.booleans(),
        "max_last_two": st.booleans(),
        "mask_status_bar": st.booleans(),
        "resize": st.sampled_from(["area", "nearest"]),
        "reward": st.sampled_from(["progress", "gym"]),
        "start_delay": st.sampled_from([0, (0, 20)]),
        "start_power": st.sampled_from(["small", "any"]),
        "start_halfway": st.sampled_from([0.0, 0.5]),
        "sticky": st.sampled_from([0.0, 0.25]),
        "end": st.sampled_from(["life", "game_over"]),
        "time_limit": st.sampled_from([0, 15]),
        "skip_cutscenes": st.booleans(),
    }
)


def plan(seed: int, steps: int, lanes: int) -> NDArray[np.int64]:
    """Right-biased actions, so that lanes get somewhere and die."""
    rng = np.random.default_rng(seed)
    chances = [0.05, 0.15, 0.15, 0.25, 0.25, 0.1, 0.05]
    return rng.choice(NUM_ACTIONS, size=(steps, lanes), p=chances)


def run(env: MarioVectorEnv, actions: NDArray[np.int64]) -> list[tuple[Any, ...]]:
    """Everything that each step returns, and the RAM after it."""
    out = []
    for row in actions:
        obs, reward, terminated, truncated, infos = env.step(row)
        fields = {key: value for key, value in infos.items() if not key.startswith(("_", "final"))}
        out.append((obs, reward, terminated, truncated, fields, env.rams()))
    return out


def assert_equal_runs(one: list[Any], other: list[Any], lanes: Any = slice(None)) -> None:
    """Step by step, bit by bit; `lanes` picks the lanes of `other` that match those of `one`."""
    assert len(one) == len(other)
    for step, (mine, theirs) in enumerate(zip(one, other, strict=True)):
        for index in (0, 1, 2, 3, 5):
            assert np.array_equal(mine[index], theirs[index][lanes]), (step, index)
        for key, value in mine[4].items():
            assert np.array_equal(value, theirs[4][key][lanes]), (step, key)
