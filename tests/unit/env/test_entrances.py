"""As what Mario begins an episode, and where: environments, their copies and the stages' own pages.
Whether he is then what the game itself makes him is the oracle's question
(`tests/oracle/test_entrances.py`)."""

from typing import Any

import gymnasium
import numpy as np
import pytest

from warpzone import _engine
from warpzone.env.backends import BackendEnv, BackendError
from warpzone.env.options import POWERS
from warpzone.env.single import MarioEnv
from warpzone.env.vector import MarioVectorEnv

HALFWAY = 2**31 - 1
#: Page of the middle of each stage of 1-1..1-4 and 8-1, as players know it; 0: there is none.
PAGES = {"1-1": 5, "1-2": 6, "1-3": 4, "1-4": 0, "8-1": 0}
SMALL: dict[str, Any] = {"size": 16, "frame_stack": 1, "num_threads": 1}


@pytest.mark.parametrize("power", POWERS[:3])
def test_every_episode_begins_so(rom: bytes, power: str) -> None:
    env = MarioVectorEnv(3, rom=rom, stages="1-1,1-4,8-1", start_power=power, time_limit=5, **SMALL)
    _, infos = env.reset(seed=1)
    resets = 0
    for _ in range(20):
        if (infos["steps"] == 0).all():
            assert infos["power"].tolist() == [POWERS.index(power)] * 3
            resets += 1
        *_, infos = env.step(np.zeros(3, np.int64))
    assert resets > 2
    env.close()


def test_any_is_drawn_by_the_seed_alone(rom: bytes) -> None:
    def powers(threads: int) -> list[list[int]]:
        options: dict[str, Any] = {**SMALL, "num_threads": threads, "start_power": "any"}
        env = MarioVectorEnv(16, rom=rom, **options)
        found = [env.reset(seed=4)[1]["power"].tolist()]
        found += [env.reset()[1]["power"].tolist() for _ in range(8)]
        env.close()
        return found

    drawn = powers(1)
    assert drawn == powers(3)
    assert sorted(set(np.ravel(drawn).tolist())) == [0, 1, 2]
    assert drawn[0] != drawn[1]


def test_stages_and_delays_are_those_of_small_mario(rom: bytes) -> None:
    """What is drawn before stays what it was, so that a seed keeps its stage and delay."""
    seen = []
    for power in ("small", "fire", "any"):
        options: dict[str, Any] = {"stages": "all", "start_delay": (0, 30), "start_power": power}
        env = MarioVectorEnv(12, rom=rom, **options, **SMALL)
        _, infos = env.reset(seed=8)
        seen.append((infos["start_stage"].tolist(), infos["start_delay"].tolist()))
        env.close()
    assert seen[0] == seen[1] == seen[2]


def test_a_game_goes_on_as_what_it_began(rom: bytes) -> None:
    """Fire throws, a hit makes Mario small, and the whole game begins so too."""
    env = gymnasium.make(
        "warpzone/SuperMarioBros-1-1-v0", rom=rom, start_power="fire", actions="NOOP;B;RIGHT"
    )
    _, info = env.reset(seed=0)
    assert info["power"] == 2
    for _ in range(100):
        *_, terminated, _, info = env.step(2)
        if info["power"] == 0:
            break
    assert info["power"] == 0
    assert not terminated
    env.close()
    game = MarioEnv(rom=rom, stages="game", end="game_over", start_power="big", start_halfway=1.0)
    _, info = game.reset(seed=0)
    assert (info["power"], info["restart"], info["x_pos"]) == (1, 0, 40)
    game.close()


@pytest.mark.parametrize(("stage", "page"), PAGES.items())
def test_halfway_pages_are_the_games_own(variant: str, stage: str, page: int) -> None:
    env = MarioVectorEnv(1, rom=variant, stages=stage, start_halfway=1.0, **SMALL)
    _, infos = env.reset(seed=0)
    assert infos["x_pos"][0] // 256 == page
    assert infos["furthest_x"][0] == infos["x_pos"][0]
    assert infos["restart"][0] == (HALFWAY if page else 0)
    env.close()


def test_a_share_begins_halfway_and_the_lane_goes_on_when_restored(rom: bytes) -> None:
    options: dict[str, Any] = {"start_power": "fire", "start_halfway": 0.5, **SMALL}
    env = MarioVectorEnv(32, rom=rom, **options)
    _, infos = env.reset(seed=2)
    halfway = infos["restart"] == HALFWAY
    assert 8 < halfway.sum() < 24
    assert (infos["power"] == np.where(halfway, 0, 2)).all()
    saved = [env.save(lane) for lane in range(32)]
    first = [env.reset()[1]["restart"].tolist() for _ in range(3)]
    for lane, state in enumerate(saved):
        env.load(lane, state)
    assert [env.reset()[1]["restart"].tolist() for _ in range(3)] == first
    env.close()


@pytest.mark.parametrize("change", [{"start_power": "big"}, {"start_halfway": 0.1}])
def test_other_back_ends_refuse(rom: bytes, change: dict[str, Any]) -> None:
    with pytest.raises(BackendError, match="begins as small Mario at the door"):
        BackendEnv("nes-py", rom=rom, **change)


def test_the_names_are_the_engines() -> None:
    assert [power.upper() for power in POWERS] == [p.name for p in _engine.StartPower]
