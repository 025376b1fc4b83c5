"""How stages, seeds and rewards are written."""

import numpy as np
import pytest

from warpzone.env.rewards import RewardWeights
from warpzone.env.seeds import expand, lane_seeds, one_seed
from warpzone.env.stages import NUM_STAGES, lane_stages, parse_stages, stage_index, stage_name


def test_names_and_indices_are_inverse() -> None:
    assert [stage_name(index) for index in (0, 3, 4, 31)] == ["1-1", "1-4", "2-1", "8-4"]
    assert [stage_index(stage_name(index)) for index in range(NUM_STAGES)] == list(range(32))


def test_sets() -> None:
    assert parse_stages("1-1") == (0,)
    assert parse_stages("1-1, 8-4") == (0, 31)
    assert parse_stages(["1-1", "1-1", "2-1"]) == (0, 0, 4)
    assert parse_stages("1-3..2-2") == (2, 3, 4, 5)
    assert parse_stages("all") == tuple(range(32))
    assert parse_stages("game") == ()


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("1-5", "1-5"),
        ("9-1", "9-1"),
        ("1-1,x", "x"),
        ("1-1,", "''"),
        ("", "''"),
        ("1-2..1-1", "backwards"),
        ("1-1..9-9", "9-9"),
        ("1-1,game", "game"),
    ],
)
def test_the_bad_token_is_named(text: str, token: str) -> None:
    with pytest.raises(ValueError, match=token):
        parse_stages(text)


def test_sets_per_lane() -> None:
    assert lane_stages("1-1", 3) == [(0,)] * 3
    assert lane_stages(["1-1", "1-2"], 2) == [(0, 1)] * 2
    assert lane_stages([["1-1"], ["1-2", "1-3"]], 2) == [(0,), (1, 2)]
    with pytest.raises(ValueError, match="2 lists for 3 lanes"):
        lane_stages([["1-1"], ["1-2"]], 3)
    with pytest.raises(ValueError, match="mixes"):
        lane_stages(["1-1", ["1-2"]], 2)
    with pytest.raises(TypeError, match="names"):
        lane_stages([[1], [2]], 2)  # type: ignore[list-item]
    for bad in (3, None, [3, 4]):
        with pytest.raises(TypeError, match="stages are written"):
            lane_stages(bad, 2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="outside"):
        stage_name(32)


def test_seeds_differ_and_do_not_depend_on_the_number_of_lanes() -> None:
    many = lane_seeds(7, 1000)
    assert len(set(many)) == 1000
    assert lane_seeds(7, 3) == many[:3]
    assert one_seed(7) == many[0]
    assert set(many).isdisjoint(lane_seeds(8, 1000))


def test_seed_lists() -> None:
    assert expand(5, 2) == lane_seeds(5, 2)
    assert expand([5, None], 2) == [one_seed(5), None]
    assert expand(np.array([5, 6]), 2) == [one_seed(5), one_seed(6)]  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="1 seeds were given for 2 lanes"):
        expand([1], 2)
    with pytest.raises(ValueError, match="negative"):
        expand(-1, 2)
    for bad in ("5", True, 1.5, [1.5, 2]):
        with pytest.raises(TypeError, match="whole number"):
            expand(bad, 2)  # type: ignore[arg-type]


def test_reward_weights_are_checked() -> None:
    given = RewardWeights(pixel=1, step=2, flag=3, death=4, clip=5).to_engine()
    assert (given.pixel, given.step, given.flag, given.death, given.clip) == (1, 2, 3, 4, 5)
    assert (given.score, given.scale, given.milestone, given.milestone_interval) == (0, 1, 0, 0)
    with pytest.raises(ValueError, match="'flag'"):
        RewardWeights(flag=float("nan"))
    with pytest.raises(ValueError, match="clip"):
        RewardWeights(clip=-1)
