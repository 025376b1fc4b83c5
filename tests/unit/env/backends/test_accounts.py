"""What the engine says about games that are played elsewhere, from nothing but RAM and screens, is
what it says about its own lanes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import warpzone
from warpzone import _engine, rom
from warpzone.env import seeds
from warpzone.env.infos import COLUMN
from warpzone.env.options import Options
from warpzone.env.stages import NUM_STAGES, stage_index, stage_name
from warpzone.env.walker import right_biased

STEPS = 500
#: A maze's loop can set Mario back past the start of its map, where x wraps around.
WRAPPED_X = 0x8000
#: All but what is about the caller's buttons, which RAM does not know.
COMPARED = [
    index for index, name in enumerate(_engine.INFO_FIELDS) if name not in ("forced", "buttons")
]
WEIGHTS = {"pixel": 0.07, "score": 0.01, "scale": 0.3, "milestone": 2.0, "milestone_interval": 90}
CASES: list[dict[str, Any]] = [
    {"reward": "progress", "stagnation_limit": 90},
    {"reward": "shaped", "reward_weights": WEIGHTS, "time_limit": 300},
    {"reward": "gym", "end": "game_over"},
]
#: Takes the wrong way in 4-4; its loop sets Mario back past the start of the map.
MAZE = (
    "RIGHT+B:36,RIGHT+A+B:72,RIGHT+A:28,RIGHT+A+B:4,RIGHT+A:16,RIGHT+A+B:16,RIGHT+A:56,RIGHT:16,"
    "RIGHT+A+B:80,RIGHT+A:52,RIGHT:16,RIGHT+A+B:20,RIGHT+A:40"
)


class Twin:
    """An environment and the accounts of its RAM."""

    def __init__(self, case: dict[str, Any]) -> None:
        # Without skipped scenes RAM after a step is the RAM that was accounted for.
        shared: dict[str, Any] = {"frame_skip": 1, "skip_cutscenes": False, **case}
        stages = [[stage_name(index)] for index in range(NUM_STAGES)]
        self.env = warpzone.MarioVectorEnv(
            NUM_STAGES,
            stages=stages,
            size=8,
            frame_stack=1,
            autoreset_mode="disabled",
            rom="eu",
            **shared,
        )
        config = Options(**shared).lane_config()
        self.accounts = [_engine.LaneAccounts(config) for _ in range(NUM_STAGES)]
        self.info = np.zeros((NUM_STAGES, len(_engine.INFO_FIELDS)), np.int32)
        self.flags = self.deaths = self.cuts = self.loops = 0

    def begin(self, lanes: Any) -> None:
        for lane, ram in zip(lanes, self.env.rams(lanes), strict=True):
            self.accounts[lane].begin(ram, lane, 0)

    def reset(self) -> None:
        self.env.reset(seed=1)
        self.begin(range(NUM_STAGES))

    def step(self, actions: Any) -> None:
        before = self.info.copy()
        _, reward, terminated, truncated, infos = self.env.step(actions)
        for lane, ram in enumerate(self.env.rams()):
            accounts = self.accounts[lane]
            assert accounts.frame(ram, last=True) == terminated[lane]
            assert accounts.finish() == (reward[lane], terminated[lane], truncated[lane])
            accounts.write_info(self.info[lane])
        # All fields are views of the engine's rows.
        rows = infos["x_pos"].base
        if not np.array_equal(self.info[:, COMPARED], rows[:, COMPARED]):
            lane, column = np.argwhere(self.info[:, COMPARED] != rows[:, COMPARED])[0]
            pytest.fail(f"{_engine.INFO_FIELDS[COMPARED[column]]} of lane {lane} differs")
        rising = (self.info > before)[:, [COLUMN["flag_get"], COLUMN["dying"]]]
        self.flags += int(rising[:, 0].sum())
        self.deaths += int(rising[:, 1].sum())
        self.cuts += int(truncated.sum())
        self.loops += int((infos["x_pos"] >= WRAPPED_X).sum())
        assert infos["furthest_x"].max() < WRAPPED_X
        ended = terminated | truncated
        if ended.any():
            self.env.reset(options={"reset_mask": ended})
            self.begin(np.flatnonzero(ended).tolist())

    def shaping(self) -> list[float]:
        sums: list[float] = np.sum([one.take_shaping() for one in self.accounts], axis=0).tolist()
        return sums


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["reward"]))
def test_every_stage(case: dict[str, Any]) -> None:
    twin = Twin(case)
    twin.reset()
    # One lane is played to its flag, one into a maze's loop.
    twin.env.force("demo-eu", [0])
    twin.env.force(MAZE, [stage_index("4-4")])
    rng = np.random.default_rng(4)
    held = right_biased(rng, NUM_STAGES)
    for step in range(2000 if case["reward"] == "progress" else STEPS):
        if step % 6 == 0:
            held = right_biased(rng, NUM_STAGES)
        twin.step(held)
        if step > STEPS and twin.flags:
            break
    np.testing.assert_allclose(twin.env._engine.take_shaping(), twin.shaping())
    assert twin.deaths > 0
    if "time_limit" not in case:
        assert twin.loops > 0
    if "stagnation_limit" in case:
        assert twin.cuts > 0
        assert twin.flags > 0
    twin.env.close()


def test_digits_that_are_none() -> None:
    """While a stage loads, bytes above 9 spell more than one digit."""
    time = _engine.RAM["time"]
    for digits, spelled in (((4, 0, 1), 401), ((10, 255, 7), 102557)):
        ram = np.zeros(2048, np.uint8)
        ram[time : time + 3] = digits
        assert _engine.read_signals(ram)[COLUMN["time"]] == spelled


def test_draws_are_the_engines() -> None:
    stages = (0, 7, 31)
    weights = [0.0] * NUM_STAGES
    options: dict[str, Any] = {"start_delay": (0, 9), "size": 8}
    env = warpzone.MarioVectorEnv(1, stages="1-1,2-4,8-4", rom="eu", **options)
    accounts = _engine.LaneAccounts(Options(**options).lane_config())
    accounts.seed(seeds.one_seed(5))
    for number in range(12):
        if number == 6:
            weights[0], weights[31] = 1.0, 3.0
            env.set_stage_weights(weights)
            accounts.set_stage_weights(weights)
        _, infos = env.reset(seed=[5] if number == 0 else None)
        drawn = (infos["start_stage"][0], infos["start_delay"][0])
        assert accounts.draw(stages) == drawn
    env.close()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda lane: lane.press(7), r"the action must be in 0\.\.6, and is 7"),
        (lambda lane: lane.frame(np.zeros(2047, np.uint8), True), r"ram must be .* \(2048,\)"),
        (lambda lane: lane.begin(np.zeros(2048, np.uint8), 32, 0), r"in -1\.\.31, and is 32"),
        (lambda lane: lane.draw([40]), r"in 0\.\.31, and is 40"),
        (lambda lane: lane.set_stage_weights([1.0]), "stage weights must be 32"),
        (lambda lane: lane.write_info(np.zeros(3, np.int32)), "row must be a writable"),
    ],
)
def test_nonsense_is_refused(call: Callable[[_engine.LaneAccounts], Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call(_engine.LaneAccounts(Options().lane_config()))


class Elsewhere:
    """The engine's own console as a machine that only Python can advance."""

    def __init__(self, image: bytes) -> None:
        self.console = _engine.Console(image)
        self.frames = 0

    def advance(self, buttons: int) -> None:
        self.frames += 1
        self.console.frame(buttons)

    def ram(self) -> Any:
        return self.console.ram()

    def poke(self, address: int, value: int) -> None:
        self.console.poke(address, value)


@pytest.mark.parametrize("stage", [0, 5, 31, -1])
def test_other_machines_reach_the_same_start(stage: int) -> None:
    image = rom.find("eu")
    other, ours = Elsewhere(image), _engine.Console(image)
    _engine.reach_start(other, stage)
    ours.start_stage(stage)
    assert other.console.save() == ours.save()
    name = "game" if stage < 0 else stage_name(stage)
    env = warpzone.MarioVectorEnv(1, stages=name, size=8, rom="eu", native=False)
    env.reset()
    np.testing.assert_array_equal(other.ram(), env.ram(0))
    env.close()


def test_scenes_of_other_machines_are_skipped() -> None:
    """Mario falls out of the picture: the scene is run through to the next moment of play."""
    other = Elsewhere(rom.find("eu"))
    _engine.reach_start(other, -1)
    lives = other.ram()[_engine.RAM["life"]]
    _engine.skip_scenes(other, single_stage=False)
    start = other.frames
    other.poke(_engine.RAM["player_y_high"], 2)
    _engine.skip_scenes(other, single_stage=False)
    assert other.frames > start
    assert other.ram()[_engine.RAM["life"]] == lives - 1
    assert other.ram()[_engine.RAM["player_state"]] == _engine.PlayerState.IN_CONTROL


def test_a_machine_that_does_not_get_on_is_an_error() -> None:
    class Stuck(Elsewhere):
        def advance(self, buttons: int) -> None:
            self.frames += 1

    with pytest.raises(RuntimeError, match="the game did not start within 20000 frames"):
        _engine.reach_start(Stuck(rom.find("eu")), 0)


@pytest.mark.parametrize(
    "options",
    [{}, {"gray": False}, {"gray": False, "planar": True, "resize": "nearest"},
     {"crop": (32, 8, 16, 0), "mask_status_bar": True}, {"size": (240, 256), "max_last_two": True}],
)  # fmt: skip
def test_screens_are_observed_as_lanes_see_them(options: dict[str, Any]) -> None:
    chosen: dict[str, Any] = {"size": 42, **options}
    env = warpzone.MarioVectorEnv(1, rom="eu", frame_stack=1, frame_skip=1, **chosen)
    screens = _engine.Screens(Options(**chosen).observe_spec())
    env.reset(seed=1)
    for _ in range(60):
        before = env.screen(0)
        obs = env.step(np.array([3]))[0]
        previous = before if chosen.get("max_last_two") else None
        np.testing.assert_array_equal(screens.observe(env.screen(0), previous), obs[0, 0])
    env.close()


def test_screens_that_are_smaller_are_cropped_in_proportion() -> None:
    spec = Options(size=(30, 32), crop=(120, 0, 0, 128), mask_status_bar=True).observe_spec()
    screen = np.arange(60 * 64, dtype=np.uint8).reshape(60, 64)
    np.testing.assert_array_equal(_engine.Screens(spec).observe(screen), screen[30:, :32])
    with pytest.raises(ValueError, match=r"the screen is 0 x 64; expected 1 to 4096"):
        _engine.Screens(spec).observe(screen[:0])
    with pytest.raises(ValueError, match="screen must be"):
        _engine.Screens(spec).observe(screen, screen[:30])
    with pytest.raises(ValueError, match="a screen is observed as a picture"):
        _engine.Screens(Options(obs="ram").observe_spec()).observe(screen)
