"""Options are checked before the engine sees them; buffers are never taken from a caller."""

import pickle
import re
from dataclasses import fields
from typing import Any

import gymnasium
import numpy as np
import pytest

from warpzone import _engine, rom
from warpzone.env.buffers import BufferPool
from warpzone.env.infos import InfoBuilder
from warpzone.env.options import OptionArgs, Options
from warpzone.env.rewards import RewardWeights
from warpzone.env.stages import lane_stages
from warpzone.env.vector import MarioVectorEnv


def test_defaults_are_the_documented_ones() -> None:
    options = Options()
    lanes = options.lane_config()
    assert lane_stages(options.stages, 2) == [(0,), (0,)]
    assert len(lanes.buttons) == 7
    assert (lanes.frame_skip, lanes.frame_stack) == (4, 4)
    assert (lanes.observe.height, lanes.observe.width) == (84, 84)
    assert lanes.observe.kind is _engine.ObserveKind.GRAY
    assert lanes.rules.reward is _engine.RewardKind.PROGRESS
    assert lanes.timing is _engine.Timing.VBLANK
    assert (lanes.delay_low, lanes.delay_high) == (0, 0)
    assert (lanes.start_power, lanes.start_halfway) == (_engine.StartPower.SMALL, 0.0)
    assert lanes.observe.mask_top == 0


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("color", "unexpected keyword argument 'color' of an environment, did you mean gray?"),
        ("frame_stak", "did you mean frame_stack?"),
        ("wheels", "there is stages, actions, frame_skip"),
    ],
)
def test_an_option_that_there_is_not_is_named(name: str, said: str) -> None:
    wrong: dict[str, Any] = {name: True}
    with pytest.raises(TypeError, match=re.escape(said)):
        MarioVectorEnv(1, **wrong)
    with pytest.raises(TypeError, match=re.escape(said)):
        gymnasium.make("warpzone/SuperMarioBros-1-1-v0", **wrong)


def test_short_forms() -> None:
    options = Options(size=(60, 80), start_delay=(3, 30), mask_status_bar=True)
    lanes = options.lane_config()
    assert (lanes.observe.height, lanes.observe.width) == (60, 80)
    assert (lanes.delay_low, lanes.delay_high) == (3, 30)
    assert lanes.observe.mask_top == 32
    assert Options(start_delay=5).delay == (5, 5)
    assert Options(reward_weights={"flag": 50.0}).weights == RewardWeights(flag=50.0)


@pytest.mark.parametrize(
    ("options", "kind", "shape"),
    [
        ({}, "GRAY", (84, 84)),
        ({"gray": False}, "RGB", (84, 84, 3)),
        ({"gray": False, "planar": True}, "PLANAR", (252, 84)),
        ({"obs": "tiles"}, "TILES", (13, 16)),
        ({"obs": "tiles", "gray": False, "size": 42}, "TILES", (13, 16)),
        ({"obs": "ram"}, "RAM", (1, 2048)),
    ],
)
def test_kinds_of_observation(options: dict[str, Any], kind: str, shape: tuple[int, ...]) -> None:
    spec = Options(**options).observe_spec()
    assert spec.kind.name == kind
    assert spec.shape == shape


def test_environments_take_every_option() -> None:
    assert list(OptionArgs.__annotations__) == [option.name for option in fields(Options)]


def test_reward_terms_have_one_name() -> None:
    """What Python calls a weight is what the engine calls it, and arrives there as it is."""
    engine = [name for name in vars(_engine.RewardWeights) if not name.startswith("_")]
    assert engine == [term.name for term in fields(RewardWeights)]
    values: dict[str, Any] = {name: index + 0.5 for index, name in enumerate(engine)}
    values["milestone_interval"] = 7
    given = RewardWeights(**values).to_engine()
    assert {name: getattr(given, name) for name in engine} == values


def test_the_engine_refuses_fields_by_name() -> None:
    with pytest.raises(TypeError, match="there is no coin; the fields are pixel, step, flag"):
        _engine.RewardWeights(coin=1.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="frame_skip cannot be 'often'"):
        _engine.LaneConfig(buttons=b"\0", frame_skip="often")  # type: ignore[arg-type]
    lanes = Options().lane_config()
    with pytest.raises(TypeError, match="observe cannot be 3"):
        lanes.observe = 3  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"frame_skip": 0}, r"frame_skip must be in 1\.\.1024, and is 0"),
        ({"buttons": b""}, "buttons must hold 1 to 256 actions, and holds 0"),
        ({"sticky": 1.0}, r"sticky must be a chance in \[0, 1\)"),
        ({"start_halfway": 1.5}, r"start_halfway must be a share in 0\.\.1"),
        ({"observe": _engine.ObserveSpec(height=0)}, "observation size is 0 x 84"),
        (
            {"rules": _engine.Rules(weights=_engine.RewardWeights(score=float("nan")))},
            "the reward weight score must be a finite number",
        ),
        (
            {"rules": _engine.Rules(weights=_engine.RewardWeights(milestone_interval=-1))},
            r"the reward weight milestone_interval must be in 0\.\.1000000 pixels",
        ),
    ],
)
def test_the_engine_refuses_values_by_name(change: dict[str, Any], sentence: str) -> None:
    lanes = Options().lane_config()
    for name, value in change.items():
        setattr(lanes, name, value)
    with pytest.raises(ValueError, match=sentence):
        _engine.Vector(rom.find("eu"), lanes, stages=[[0]])


def test_all_but_one_column_can_be_cropped() -> None:
    assert Options(crop=(0, 0, 255, 0), size=8).crop == (0, 0, 255, 0)
    with pytest.raises(ValueError, match=r"crop .*0\.\.255"):
        Options(crop=(0, 0, 256, 0))


def test_engine_settings_can_be_sent_to_other_processes() -> None:
    lanes = Options(obs="ram", reward_weights={"flag": 50.0}).lane_config()
    assert repr(pickle.loads(pickle.dumps(lanes))) == repr(lanes)


def test_numbers_of_numpy_are_numbers() -> None:
    four, half = np.int64(4), np.float32(0.5)
    options: dict[str, Any] = {
        "frame_skip": four,
        "size": np.int64(42),
        "start_delay": (four, np.int32(9)),
        "crop": (np.int64(32), 0, 0, 0),
        "sticky": half,
        "reward_weights": {"pixel": half},
    }
    env = MarioVectorEnv(1, rom="eu", num_threads=1, **options)
    obs, infos = env.reset(seed=0)
    assert obs.shape == (1, 4, 42, 42)
    assert 4 <= infos["start_delay"][0] <= 9
    env.close()


def checked(options: Options) -> _engine.LaneConfig:
    """Everything that the engine is told."""
    lane_stages(options.stages, 1)
    return options.lane_config()


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("frame_skip", 0, ValueError),
        ("frame_skip", 1.5, TypeError),
        ("frame_skip", True, TypeError),
        ("frame_stack", 65, ValueError),
        ("size", 0, ValueError),
        ("size", (84, 84, 1), ValueError),
        ("size", 84.5, ValueError),
        ("size", "84", ValueError),
        ("gray", 1, TypeError),
        ("crop", (0, 0, 0), ValueError),
        ("crop", (120, 120, 0, 0), ValueError),
        ("crop", (-1, 0, 0, 0), ValueError),
        ("crop", 32, ValueError),
        ("resize", "cubic", ValueError),
        ("reward", "score", ValueError),
        ("reward_weights", {"coin": 1}, ValueError),
        ("reward_weights", "coin", TypeError),
        ("start_delay", (5, 2), ValueError),
        ("start_delay", -1, ValueError),
        ("start_delay", 1.5, ValueError),
        ("start_power", "huge", ValueError),
        ("start_halfway", 1.5, ValueError),
        ("start_halfway", "often", ValueError),
        ("sticky", 1.0, ValueError),
        ("sticky", "often", ValueError),
        ("end", "never", ValueError),
        ("time_limit", -1, ValueError),
        ("stagnation_limit", 0.5, TypeError),
        ("timing", "pal", ValueError),
        ("stages", "0-1", ValueError),
        ("actions", "all", ValueError),
        ("obs", "sound", ValueError),
    ],
)
def test_bad_values_are_refused_by_name(name: str, value: Any, error: type[Exception]) -> None:
    said = {"stages": "0-1", "actions": "action set", "reward_weights": "coin"}.get(name, name)
    with pytest.raises(error, match=said):
        checked(Options(**{name: value}))


def test_pool_reuses_only_what_nobody_holds() -> None:
    pool = BufferPool((2, 3), np.uint8)
    first = pool.take()
    address = first.ctypes.data
    second = pool.take()
    assert second.ctypes.data != address
    del first
    assert pool.take().ctypes.data == address


def test_pool_respects_views_and_containers() -> None:
    pool = BufferPool((4, 4), np.uint8)
    kept = [pool.take()[1:, ::2].T]
    address = kept[0].base.ctypes.data  # type: ignore[union-attr]
    kept.append(pool.take()[0])
    kept.append(np.asarray(memoryview(pool.take().data)))
    for _ in range(10):
        fresh = pool.take()
        assert all(not np.shares_memory(fresh, held) for held in kept)
        assert fresh.ctypes.data != address
        kept.append(fresh)


def test_pool_content_survives_in_the_callers_hands() -> None:
    pool = BufferPool((8,), np.uint8)
    history = []
    for value in range(50):
        array = pool.take()
        array[:] = value
        history.append(array[:4])
    assert [int(part[0]) for part in history] == list(range(50))


def info_columns() -> list[str]:
    enemies = [f"enemy{slot}_{name}" for slot in range(5) for name in ("type", "active", "x", "y")]
    return ["coins", "flag_get", "x_pos", *enemies, "steps"]


def test_info_blocks_are_used_again_only_when_free() -> None:
    builder = InfoBuilder(info_columns(), 3)
    first = builder.take()
    assert builder.take() is first
    infos = first.infos()
    second = builder.take()
    assert second is not first
    del infos
    assert builder.take() is first
    for keep in ("x_pos", "flag_get", "enemies", "_coins"):
        part = first.infos()[keep][1:]
        assert builder.take() is second
        del part
        assert builder.take() is first


def test_info_fields_and_masks() -> None:
    builder = InfoBuilder(info_columns(), 2)
    block = builder.take()
    block.rows[:] = np.arange(block.rows.size).reshape(block.rows.shape)
    infos = block.infos()
    assert infos["x_pos"].tolist() == [2, 26]
    assert infos["flag_get"].tolist() == [True, True]
    assert infos["enemies"][1, 4].tolist() == [43, 44, 45, 46]
    assert builder.single(block.rows[1])["steps"] == infos["steps"][1] == 47
    partial = block.masked(np.array([False, True]))
    assert partial["x_pos"].tolist() == [0, 26]
    assert partial["_x_pos"].tolist() == [False, True]
