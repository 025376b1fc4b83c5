"""Layouts show the same numbers in other places; what cannot be shown is refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from warpzone.env.backends.env import BackendEnv, BackendVectorEnv
from warpzone.env.options import Options
from warpzone.env.vector import MarioVectorEnv

Reorder = Callable[[NDArray[np.uint8]], NDArray[np.uint8]]


def as_channels_last(stack: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Pixel by pixel, for one observation `[stack, height, width(, 3)]`."""
    pictures = [picture if picture.ndim == 3 else picture[..., None] for picture in stack]
    return np.concatenate(pictures, axis=-1)


def as_channels_first(stack: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return as_channels_last(stack).transpose(2, 0, 1)


def as_picture(stack: NDArray[np.uint8]) -> NDArray[np.uint8]:
    assert len(stack) == 1
    return stack.reshape(stack.shape[1:])


CASES: list[tuple[dict[str, Any], Reorder, tuple[int, ...]]] = [
    ({"layout": "picture", "frame_stack": 1}, as_picture, (20, 30)),
    ({"layout": "picture", "frame_stack": 1, "gray": False}, as_picture, (20, 30, 3)),
    ({"layout": "channels_last"}, as_channels_last, (20, 30, 4)),
    ({"layout": "channels_last", "gray": False}, as_channels_last, (20, 30, 12)),
    ({"layout": "channels_last", "gray": False, "frame_stack": 1}, as_channels_last, (20, 30, 3)),
    ({"layout": "channels_first"}, as_channels_first, (4, 20, 30)),
    ({"layout": "channels_first", "gray": False, "frame_stack": 2}, as_channels_first, (6, 20, 30)),
    ({"layout": "channels_last", "obs": "tiles"}, as_channels_last, (13, 16, 4)),
]


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize(("options", "reorder", "shape"), CASES)
def test_layout(
    options: dict[str, Any], reorder: Reorder, shape: tuple[int, ...], dtype: str
) -> None:
    """At resets, steps, ends and when one lane is asked; compared with the stack as it is."""
    shared: dict[str, Any] = {"rom": "eu", "size": (20, 30), "time_limit": 3}
    shared["autoreset_mode"] = "SAME_STEP"
    ours = MarioVectorEnv(2, **shared, **options, dtype=dtype)
    plain = MarioVectorEnv(2, **shared, **{**options, "layout": "stack"})
    scale = 255 if dtype == "float32" else 1

    def check(shown: NDArray[Any], stack: NDArray[np.uint8]) -> None:
        assert ours.single_observation_space.contains(shown)
        assert shown.dtype == dtype
        assert shown.shape == shape
        assert np.array_equal(np.rint(shown * scale), reorder(stack))

    first, wanted = ours.reset(seed=0)[0], plain.reset(seed=0)[0]
    assert ours.observation_space.contains(first)
    for lane in range(2):
        check(first[lane], wanted[lane])
    for _ in range(3):
        actions = np.array([3, 4])
        obs, *_, infos = ours.step(actions)
        stacks, *_, plain_infos = plain.step(actions)
        for lane in range(2):
            check(obs[lane], stacks[lane])
            check(ours.observation(lane), stacks[lane])
    for lane in range(2):
        check(infos["final_obs"][lane], plain_infos["final_obs"][lane])
    ours.send(np.array([3, 4]))
    plain.send(np.array([3, 4]))
    # Lanes come in the order in which they end.
    received, order = ours.recv(), plain.recv()
    for place, lane in enumerate(received[4]["lane"]):
        check(received[0][place], order[0][order[4]["lane"].tolist().index(lane)])
    ours.close()
    plain.close()


def test_results_stay_the_callers() -> None:
    env = MarioVectorEnv(1, rom="eu", frame_stack=1, layout="picture", size=16)
    kept = [env.reset(seed=0)[0]]
    copies = [kept[0].copy()]
    for _ in range(8):
        kept.append(env.step(np.array([3]))[0])
        copies.append(kept[-1].copy())
    assert all(map(np.array_equal, kept, copies))
    env.close()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"layout": "picture"}, "layout='picture' shows one picture; give frame_stack=1, not 4"),
        ({"layout": "hwc"}, "layout must be one of stack, picture, channels_last, channels_first"),
        ({"dtype": "float64"}, "dtype must be one of uint8, float32, not 'float64'"),
        (
            {"layout": "channels_last", "gray": False, "planar": True},
            "planar=True cannot be had with layout='channels_last'; choose one",
        ),
    ],
)
def test_refusals(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Options(**options)


def test_other_back_ends_show_them_too() -> None:
    pytest.importorskip("nes_py", reason="needs nes-py")
    options: dict[str, Any] = {"rom": "eu", "size": 16, "gray": False, "frame_stack": 2}
    single = BackendEnv("nes-py", layout="channels_last", dtype="float32", **options)
    vector = BackendVectorEnv("nes-py", 2, sync=True, layout="channels_first", **options)
    assert single.observation_space.contains(single.reset(seed=0)[0])
    assert single.step(3)[0].shape == (16, 16, 6)
    assert vector.observation_space.contains(vector.reset(seed=0)[0])
    assert vector.step(np.array([3, 3]))[0].shape == (2, 6, 16, 16)
    single.close()
    vector.close()
