"""Every way to compute a step gives the same step: instruction sets, translated code."""

import platform
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from lane_runs import PROPERTY, assert_equal_runs, configs, plan, run, seeds

from warpzone import _engine
from warpzone.env.options import Native
from warpzone.env.vector import MarioVectorEnv


@PROPERTY
@given(config=configs, seed=seeds)
def test_simd_levels_give_identical_results(rom: bytes, config: dict[str, Any], seed: int) -> None:
    if len(_engine.SIMD_LEVELS) < 2:
        pytest.skip("this CPU has the portable code only")
    actions = plan(seed, 20, 3)
    runs = []
    for level in _engine.SIMD_LEVELS:
        env = MarioVectorEnv(3, rom=rom, num_threads=1, simd=level, **config)
        env.reset(seed=seed)
        runs.append(run(env, actions))
        env.close()
    for other in runs[1:]:
        assert_equal_runs(runs[0], other)


@PROPERTY
@given(config=configs, seed=seeds)
def test_translated_code_equals_the_interpreter(
    rom: bytes, native: Any, config: dict[str, Any], seed: int
) -> None:
    actions = plan(seed, 40, 3)
    runs = []
    ways: list[Native] = [False, True]
    if platform.machine() == "x86_64":
        ways.append("emitted")
    for way in ways:
        env = MarioVectorEnv(3, rom=rom, num_threads=1, native=way, **config)
        assert env.native is (way is not False)
        env.reset(seed=seed)
        runs.append(run(env, actions))
        env.close()
    for other in runs[1:]:
        assert_equal_runs(runs[0], other)


images = hnp.arrays(np.uint8, st.tuples(st.integers(8, 240), st.integers(8, 256)))


@PROPERTY
@given(image=images, height=st.integers(4, 120), width=st.integers(4, 128))
def test_area_resize_is_within_one_gray_level_of_cv2(
    image: np.ndarray, height: int, width: int
) -> None:
    cv2 = pytest.importorskip("cv2")
    height, width = min(height, image.shape[0]), min(width, image.shape[1])
    wanted = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
    for level in _engine.SIMD_LEVELS:
        ours = _engine.resize_area(image, height, width, level)
        assert ours.shape == (height, width)
        assert np.abs(ours.astype(int) - wanted).max() <= 1


@pytest.mark.parametrize("level", _engine.SIMD_LEVELS)
def test_observations_are_within_one_gray_level_of_cv2(rom: bytes, level: str) -> None:
    """The gray screen, resized by OpenCV, in real play."""
    cv2 = pytest.importorskip("cv2")
    options: dict[str, Any] = {"rom": rom, "frame_stack": 1, "stages": "all", "num_threads": 1}
    small = MarioVectorEnv(8, simd=level, **options)
    full = MarioVectorEnv(8, simd=level, size=(240, 256), **options)
    small.reset(seed=1)
    full.reset(seed=1)
    for row in plan(5, 40, 8):
        ours, screens = small.step(row)[0][:, 0], full.step(row)[0][:, 0]
        for mine, screen in zip(ours, screens, strict=True):
            wanted = cv2.resize(screen, (84, 84), interpolation=cv2.INTER_AREA)
            assert np.abs(mine.astype(int) - wanted).max() <= 1
    small.close()
    full.close()
