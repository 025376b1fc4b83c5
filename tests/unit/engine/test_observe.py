"""Observations against their definition in NumPy and against OpenCV, on every instruction set."""

from typing import Any

import cv2
import numpy as np
import pytest
import reference_observe as reference
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from warpzone import MarioVectorEnv, _engine

Image = NDArray[np.uint8]
SIZES = [(84, 84), (64, 64), (42, 42), (96, 96), (128, 128), (84, 96), (32, 32)]
SOURCES = [(240, 256), (208, 256), (224, 240)]


def images(height: int, width: int) -> list[Image]:
    rng = np.random.default_rng(height * width)
    noise = rng.integers(0, 256, (height, width), dtype=np.uint8)
    edges = np.where(rng.random((height, width)) < 0.5, 0, 255).astype(np.uint8)
    white = np.full((height, width), 255, np.uint8)
    ramp = np.linspace(0, 255, height * width).astype(np.uint8).reshape(height, width)
    return [noise, edges, white, ramp]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("source", SOURCES)
def test_area_is_exact_and_within_one_level_of_opencv(
    source: tuple[int, int], size: tuple[int, int]
) -> None:
    for image in images(*source):
        expected = reference.resize_area(image, *size)
        for level in _engine.SIMD_LEVELS:
            assert np.array_equal(_engine.resize_area(image, *size, level), expected), level
        opencv = cv2.resize(image, size[::-1], interpolation=cv2.INTER_AREA)
        assert np.abs(opencv.astype(int) - expected).max() <= 1


@settings(max_examples=60, deadline=None)
@given(
    source=st.tuples(st.integers(1, 240), st.integers(1, 256)),
    size=st.tuples(st.integers(1, 240), st.integers(1, 256)),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_size_is_exact(source: tuple[int, int], size: tuple[int, int], seed: int) -> None:
    image = np.random.default_rng(seed).integers(0, 256, source, dtype=np.uint8)
    expected = reference.resize_area(image, *size)
    for level in _engine.SIMD_LEVELS:
        assert np.array_equal(_engine.resize_area(image, *size, level), expected), level


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("source", SOURCES)
def test_nearest_is_opencv(source: tuple[int, int], size: tuple[int, int]) -> None:
    image = images(*source)[0]
    opencv = cv2.resize(image, size[::-1], interpolation=cv2.INTER_NEAREST)
    assert np.array_equal(reference.resize_nearest(image, *size), opencv)


def test_gray_is_opencv() -> None:
    rgb = np.random.default_rng(0).integers(0, 256, (100, 100, 3), dtype=np.uint8)
    assert np.array_equal(reference.to_gray(rgb), cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY))


def test_equal_size_copies() -> None:
    image = images(240, 256)[0]
    for level in _engine.SIMD_LEVELS:
        assert np.array_equal(_engine.resize_area(image, 240, 256, level), image)


@pytest.mark.parametrize(
    ("image", "size", "level"),
    [
        (np.zeros((241, 256), np.uint8), (84, 84), "portable"),
        (np.zeros((240, 256), np.uint8), (0, 84), "portable"),
        (np.zeros((240, 256), np.uint8), (84, 84), "mmx"),
    ],
)
def test_refusals(image: Image, size: tuple[int, int], level: str) -> None:
    with pytest.raises(ValueError, match=r"expected|must be"):
        _engine.resize_area(image, *size, level)


#: Options of the environment and the same for the reference.
SPECS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"simd": "portable"}, {}),
    ({"mask_status_bar": True}, {"mask_top": 32}),
    ({"crop": (32, 0, 0, 0)}, {"crop": (32, 0, 0, 0)}),
    ({"crop": (8, 16, 24, 1), "gray": False}, {"crop": (8, 16, 24, 1), "gray": False}),
    ({"resize": "nearest"}, {"resize": "nearest"}),
    ({"size": (42, 60), "resize": "area"}, {"size": (42, 60)}),
]


@pytest.mark.parametrize(("options", "spec"), SPECS)
def test_environments_observe_their_screens(
    rom: bytes, options: dict[str, Any], spec: dict[str, Any]
) -> None:
    size = spec.get("size", (84, 84))
    rest = {name: value for name, value in spec.items() if name != "size"}
    env = MarioVectorEnv(2, rom=rom, frame_stack=1, frame_skip=1, native=False, **options)
    obs, _ = env.reset(seed=1)
    for step in range(25):
        for lane in range(2):
            expected = reference.observe([env.screen(lane)], *size, **rest)
            assert np.array_equal(np.squeeze(obs[lane]), expected), (step, lane)
        obs = env.step(np.array([1, 4]))[0]
    env.close()


def test_brighter_of_two_frames(rom: bytes) -> None:
    both = MarioVectorEnv(1, rom=rom, frame_stack=1, frame_skip=2, native=False, max_last_two=True)
    single = MarioVectorEnv(1, rom=rom, frame_stack=1, frame_skip=1, native=False)
    both.reset(seed=1)
    single.reset(seed=1)
    for _ in range(30):
        obs = both.step(np.array([3]))[0]
        screens = []
        for _ in range(2):
            single.step(np.array([3]))
            screens.append(single.screen(0))
        assert np.array_equal(obs[0, 0], reference.observe(screens, 84, 84))
    both.close()
    single.close()
