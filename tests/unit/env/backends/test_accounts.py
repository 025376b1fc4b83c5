"""The NumPy twin of the engine's rewards, ends and infos says what the engine says, for all lanes
at once, from nothing but RAM."""

from typing import Any

import numpy as np
import pytest

import warpzone
from warpzone import _engine
from warpzone.env import seeds
from warpzone.env.backends import signals
from warpzone.env.backends.accounts import WRAPPED_X, Accounts
from warpzone.env.backends.rng import Rng, draw_stage
from warpzone.env.options import Options
from warpzone.env.stages import NUM_STAGES, stage_index, stage_name
from warpzone.env.walker import right_biased

STEPS = 500
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
        self.accounts = Accounts(Options(**shared), NUM_STAGES)
        self.accounts.start_stage[:] = np.arange(NUM_STAGES)
        self.info = np.zeros((NUM_STAGES, len(_engine.INFO_FIELDS)), np.int32)
        self.everyone = np.ones(NUM_STAGES, np.bool_)
        self.flags = self.deaths = self.cuts = self.loops = 0

    def reset(self) -> None:
        self.env.reset(seed=1)
        self.accounts.begin(self.env.rams(), self.everyone)

    def step(self, actions: Any) -> None:
        _, reward, terminated, truncated, infos = self.env.step(actions)
        ram, accounts = self.env.rams(), self.accounts
        accounts.begin_step()
        accounts.frame(ram, self.everyone)
        accounts.score(ram, self.everyone)
        rewards, cut = accounts.finish_step()
        np.testing.assert_array_equal(rewards, reward)
        np.testing.assert_array_equal(accounts.done, terminated)
        np.testing.assert_array_equal(cut, truncated)
        self.compare(ram, infos)
        self.flags += int(accounts.flag.sum())
        self.deaths += int(accounts.death.sum())
        self.cuts += int(cut.sum())
        self.loops += int((infos["x_pos"] >= WRAPPED_X).sum())
        assert infos["furthest_x"].max() < WRAPPED_X
        ended = terminated | truncated
        if ended.any():
            self.env.reset(options={"reset_mask": ended})
            accounts.begin(self.env.rams(), ended)

    def compare(self, ram: Any, infos: dict[str, Any]) -> None:
        signals.write_signals(ram, self.info)
        self.accounts.write_counters(self.info)
        # All fields are views of the engine's rows.
        rows = infos["x_pos"].base
        if not np.array_equal(self.info[:, COMPARED], rows[:, COMPARED]):
            lane, column = np.argwhere(self.info[:, COMPARED] != rows[:, COMPARED])[0]
            pytest.fail(f"{_engine.INFO_FIELDS[COMPARED[column]]} of lane {lane} differs")


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
    np.testing.assert_allclose(twin.env._engine.take_shaping(), twin.accounts.take_shaping())
    assert twin.deaths > 0
    if "time_limit" not in case:
        assert twin.loops > 0
    if "stagnation_limit" in case:
        assert twin.cuts > 0
        assert twin.flags > 0
    twin.env.close()


def test_digits_that_are_none() -> None:
    """While a stage loads, bytes above 9 spell more than one digit."""
    ram = np.zeros((2, 2048), np.uint8)
    ram[0, signals.TIME : signals.TIME + 3] = 4, 0, 1
    ram[1, signals.TIME : signals.TIME + 3] = 10, 255, 7
    assert signals.game_time(ram).tolist() == [401, 102557]


def test_draws_are_the_engines() -> None:
    stages = (0, 7, 31)
    weights = [0.0] * NUM_STAGES
    env = warpzone.MarioVectorEnv(1, stages="1-1,2-4,8-4", start_delay=(0, 9), size=8, rom="eu")
    rng = Rng(seeds.one_seed(5))
    for number in range(12):
        if number == 6:
            weights[0], weights[31] = 1.0, 3.0
            env.set_stage_weights(weights)
        _, infos = env.reset(seed=[5] if number == 0 else None)
        assert infos["start_stage"][0] == draw_stage(stages, weights if number >= 6 else (), rng)
        assert infos["start_delay"][0] == rng.below(10)
    env.close()
