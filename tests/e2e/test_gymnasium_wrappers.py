"""Gymnasium's own wrappers for pictures, as they are: right shapes, or a sentence."""

import copy
import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import (
    AtariPreprocessing,
    FrameStackObservation,
    GrayscaleObservation,
    ResizeObservation,
)

import warpzone

cv2 = pytest.importorskip("cv2")

PICTURE: dict[str, Any] = {"rom": "eu", "frame_stack": 1, "layout": "picture"}
SCREEN: dict[str, Any] = {**PICTURE, "frame_skip": 1, "size": (240, 256)}


@pytest.mark.parametrize(("gray", "shape"), [(True, (48, 64)), (False, (48, 64, 3))])
def test_resize(gray: bool, shape: tuple[int, ...]) -> None:
    env = warpzone.MarioEnv(**SCREEN, gray=gray)
    resized = ResizeObservation(env, (48, 64))
    obs, _ = resized.reset(seed=0)
    assert resized.observation_space.shape == obs.shape == shape
    screen = env.screen()
    if not gray:
        assert np.array_equal(obs, cv2.resize(screen, (64, 48), interpolation=cv2.INTER_AREA))
    env.close()


def test_resize_of_stacks_as_channels() -> None:
    """Each picture of the stack is resized by itself."""
    env = warpzone.MarioEnv(rom="eu", layout="channels_last")
    twin = warpzone.MarioEnv(rom="eu")
    resized = ResizeObservation(env, (48, 64))
    resized.reset(seed=0)
    twin.reset(seed=0)
    for action in (3, 3, 4, 4):
        obs = resized.step(np.int64(action))[0]
        stack = twin.step(action)[0]
    assert resized.observation_space.shape == obs.shape == (48, 64, 4)
    for number, picture in enumerate(stack):
        expected = cv2.resize(picture, (64, 48), interpolation=cv2.INTER_AREA)
        assert np.array_equal(obs[:, :, number], expected)
    env.close()
    twin.close()


#: Layouts whose first two axes are not height and width, and one with too many channels.
NO_PICTURES: list[dict[str, Any]] = [
    {},
    {"frame_stack": 1},
    {"gray": False, "planar": True},
    {"layout": "channels_first"},
    {"layout": "channels_first", "gray": False, "frame_stack": 1},
    {"layout": "channels_last", "gray": False},
    {"gray": False, "planar": True, "layout": "picture", "frame_stack": 1},
    {"obs": "tiles"},
]


@pytest.mark.parametrize("options", NO_PICTURES, ids=str)
def test_resize_refuses_what_is_no_picture(options: dict[str, Any]) -> None:
    """The stack would be taken for the height, and nothing would say so."""
    env = warpzone.MarioEnv(rom="eu", **options)
    wrapped = gymnasium.wrappers.TimeLimit(env, 100)
    advice = "ResizeObservation .*: give frame_stack=1, layout='picture' or layout='channels_last'"
    for whole in (env, wrapped):
        with pytest.raises(ValueError, match=advice):
            ResizeObservation(whole, (64, 64))
    env.close()
    lanes = warpzone.MarioVectorEnv(2, rom="eu", **options)
    with pytest.raises(ValueError, match=advice):
        gymnasium.wrappers.vector.ResizeObservation(lanes, (64, 64))
    lanes.close()


def test_resize_refuses_ids_as_they_are() -> None:
    env = gymnasium.make("warpzone/SuperMarioBros-1-1-v0", rom="eu")
    with pytest.raises(ValueError, match="takes the first two axes for height and width"):
        ResizeObservation(env, (64, 64))
    again = copy.deepcopy(env)
    with pytest.raises(ValueError, match="takes the first two axes for height and width"):
        ResizeObservation(again, (64, 64))
    env.close()
    again.close()


def test_resize_of_many_lanes() -> None:
    lanes = warpzone.MarioVectorEnv(2, **PICTURE)
    resized = gymnasium.wrappers.vector.ResizeObservation(lanes, (48, 64))
    obs, _ = resized.reset(seed=0)
    assert obs.shape == (2, 48, 64)
    lanes.close()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gray": False},
        {"layout": "channels_first", "gray": False},
        # Three moments in gray: they are not red, green and blue.
        {"layout": "channels_last", "frame_stack": 3},
        {"layout": "channels_first", "frame_stack": 1, "gray": False, "size": (84, 3)},
    ],
    ids=str,
)
def test_grayscale_refuses_what_has_no_colours(options: dict[str, Any]) -> None:
    env = warpzone.MarioEnv(rom="eu", **options)
    advice = (
        "GrayscaleObservation .*: give gray=False, frame_stack=1, layout='picture', or leave it out"
    )
    with pytest.raises(ValueError, match=advice):
        GrayscaleObservation(env)
    env.close()


def test_spaces_stay_boxes() -> None:
    """Whoever else reads the space finds what Gymnasium's own class would be."""
    env = warpzone.MarioEnv(rom="eu")
    space = env.observation_space
    plain = gymnasium.spaces.Box(0, 255, (4, 84, 84), np.uint8)
    assert isinstance(space, gymnasium.spaces.Box)
    assert space == plain
    assert plain == space
    assert pickle.loads(pickle.dumps(space)) == plain
    assert repr(space) == repr(plain)
    env.close()


@pytest.mark.parametrize("keep", [True, False])
def test_grayscale(keep: bool) -> None:
    env = warpzone.MarioEnv(**PICTURE, gray=False)
    gray = GrayscaleObservation(env, keep_dim=keep)
    obs = gray.reset(seed=0)[0]
    assert gray.observation_space.contains(obs)
    assert obs.shape == ((84, 84, 1) if keep else (84, 84))
    env.close()


def test_stack_over_single_pictures() -> None:
    env = FrameStackObservation(warpzone.MarioEnv(**PICTURE), 4)
    plain = warpzone.MarioEnv(rom="eu")
    assert np.array_equal(env.reset(seed=0)[0], plain.reset(seed=0)[0])
    for action in (3, 4, 3, 3, 1):
        assert np.array_equal(env.step(action)[0], plain.step(np.int64(action))[0])
    env.close()
    plain.close()


@pytest.mark.parametrize("gray", [True, False])
def test_atari_preprocessing(gray: bool) -> None:
    """What it makes of the screen is what its own source makes of two frames."""
    env = warpzone.MarioEnv(**SCREEN, gray=gray)
    twin = warpzone.MarioEnv(**SCREEN, gray=gray)
    wrapped = AtariPreprocessing(env, noop_max=0, grayscale_obs=gray, frame_skip=4)
    obs = wrapped.reset(seed=0)[0]
    assert wrapped.observation_space.contains(obs)
    twin.reset(seed=0)
    for _ in range(3):
        obs, reward, *_ = wrapped.step(3)
        steps = [twin.step(np.int64(3)) for _ in range(4)]
        brightest = np.maximum(steps[2][0], steps[3][0])
        assert np.array_equal(obs, cv2.resize(brightest, (84, 84), interpolation=cv2.INTER_AREA))
        assert reward == pytest.approx(sum(step[1] for step in steps))
    env.close()
    twin.close()


def test_atari_preprocessing_sees_lost_lives() -> None:
    env = warpzone.MarioEnv(**SCREEN, stages="game", end="game_over")
    wrapped = AtariPreprocessing(env, frame_skip=4, terminal_on_life_loss=True)
    wrapped.reset(seed=0)
    assert wrapped.lives == 3
    ended = False
    for _ in range(200):
        *_, ended, _, info = wrapped.step(3)
        if ended:
            break
    assert ended
    assert info["life"] == 1
    assert wrapped.lives == 2
    env.close()


@pytest.mark.parametrize(
    ("options", "frame_skip"),
    [({}, 4), ({}, 1), ({"frame_skip": 1}, 4), ({**PICTURE, "frame_skip": 2}, 1)],
)
def test_atari_preprocessing_refuses_what_it_would_spoil(
    options: dict[str, Any], frame_skip: int
) -> None:
    env = warpzone.MarioEnv(**{"rom": "eu", **options})
    with pytest.raises(ValueError, match=r"frame.?skip"):
        AtariPreprocessing(env, frame_skip=frame_skip).reset(seed=0)
    env.close()


def test_checker_without_a_display(monkeypatch: pytest.MonkeyPatch) -> None:
    """It tries every render mode that is named; a window is named where one can be opened."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    env = gymnasium.make("warpzone/SuperMarioBros-1-1-v0", rom="eu")
    check_env(env.unwrapped)
    assert env.metadata["render_modes"] == ["rgb_array"]
    env.close()
    human = warpzone.MarioEnv(rom="eu", render_mode="human")
    assert human.metadata["render_modes"] == ["rgb_array", "human"]
    human.close()
