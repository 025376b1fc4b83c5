"""Practice along ways that a course, or somebody else, has found."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kept_ways import KEPT
from tiny_runs import make_agent, make_collector, tiny

from warpzone import _engine, rom
from warpzone.collect import ways
from warpzone.collect.collector import Collector
from warpzone.collect.episodes import Episode
from warpzone.collect.practice import DECAY, Practice, spread
from warpzone.collect.search import Way
from warpzone.collect.ways import FIRST_PLACE
from warpzone.config import ConfigError, load_preset
from warpzone.env.infos import COLUMN
from warpzone.env.stages import NUM_STAGES, parse_stages
from warpzone.run.recorded_ways import OtherGameError, known_ways, recorded_ways

NO_CLEARS = np.zeros(NUM_STAGES)

#: There are ways of start delays 46, 59, 61, 79 and 27, 30, 103.
WATER, CASTLE, MAZE = parse_stages("7-1,5-4,4-4")
GIVEN: dict[str, Any] = {
    "stages": "7-1,5-4",
    "actions": "complex",
    "num_envs": 8,
    "minibatch": 64,
    "stagnation_limit": 120,
    "archive_share": 0.8,
    "ways": str(KEPT),
}


def make(**changes: Any) -> Collector:
    config = tiny(**{**GIVEN, **changes})
    return make_collector(config, make_agent(config))


def episode(stage: int, reason: str, restart: int = 0) -> Episode:
    return Episode(0, stage, 0, 0.0, 10, 100, reason, restart)


ALL = {WATER: [46, 59, 61, 79], CASTLE: [27, 30, 103]}


@pytest.mark.parametrize(
    ("changes", "delays"),
    [
        ({"start_delay": 120}, ALL),
        ({"start_delay": 60}, {WATER: [46, 59], CASTLE: [27, 30]}),
        ({"start_delay": 120, "start_power": "any"}, ALL),
        # No lane begins as one of these, or gets to the flag in time.
        ({"start_delay": 120, "start_power": "fire"}, {}),
        ({"start_delay": 120, "episode_timeout_steps": 200}, {CASTLE: [27, 30]}),
    ],
)
def test_recorded_ways_are_practised_in_lanes_that_begin_alike(
    changes: dict[str, Any], delays: dict[int, list[int]]
) -> None:
    collector = make(**changes)
    found = collector.guide.ways
    recorded = recorded_ways(KEPT, collector.config, [WATER, CASTLE], 12)
    assert found.begin_with(recorded) == sum(map(len, delays.values()))
    for stage in (WATER, CASTLE):
        seeds = [one.way.seed for one in found.practices.values() if one.way.stage == stage]
        assert len(seeds) == len(delays.get(stage, []))
        if not seeds:
            continue
        vector = found._door("7-1").make_vector(
            rom.find(None), len(seeds), autoreset=_engine.Autoreset.SAME_STEP
        )
        obs = np.zeros((len(seeds), *vector.obs_shape), np.uint8)
        info = np.zeros((len(seeds), len(_engine.INFO_FIELDS)), np.int32)
        vector.seed(seeds)
        vector.reset(None, obs, info)
        assert sorted(info[:, COLUMN["start_delay"]].tolist()) == delays[stage]
        assert not info[:, COLUMN["power"]].any()
        vector.close()
    collector.close()


def test_the_shipped_ways_lead_to_the_flag_in_runs_of_the_preset_that_names_them() -> None:
    preset = load_preset("all")
    played = ("actions", "start_delay", "start_power", "stagnation_limit", "end_on_setback", "ways")
    collector = make(stages="all", **{name: getattr(preset, name) for name in played})
    recorded = known_ways(collector.config, parse_stages("all"), 12)
    assert len(recorded) == 68
    assert collector.guide.ways.begin_with(recorded) == 68
    hard = parse_stages("1-3,2-2,2-3,3-3,4-3,4-4,5-1..5-4,6-2..6-4,7-1..8-4")
    assert collector.guide.ways.stages == sorted(hard)
    collector.close()


@pytest.mark.parametrize("changes", [{"actions": "simple"}, {"rom": "world"}, {"frame_skip": 2}])
def test_ways_of_another_game_are_refused_and_the_shipped_ones_left_out(
    changes: dict[str, Any],
) -> None:
    """The preset names the shipped ones, whatever else a run changes."""
    other = tiny(**{**GIVEN, **changes})
    assert known_ways(other.replace(ways="shipped"), [WATER], 12) == []
    with pytest.raises(OtherGameError, match=next(iter(changes))):
        known_ways(other, [WATER], 12)


def test_of_many_recorded_ways_those_far_from_each_other_are_practised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ways, "MOST_WAYS", 2)
    collector = make(start_delay=120)
    found = collector.guide.ways
    recorded = recorded_ways(KEPT, collector.config, [WATER], 12)
    chosen = [one.actions for one in recorded if one.start_delay in (46, 61)]
    assert found.begin_with(recorded) == 2
    assert sorted(one.way.actions for one in found.practices.values()) == sorted(chosen)
    collector.close()


def test_ways_hear_of_attempts_on_others_before_places_are_weighed() -> None:
    collector = make(start_delay=120)
    guide = collector.guide
    guide.ways.begin_with(recorded_ways(KEPT, collector.config, [CASTLE], 12))
    one, other, *_ = guide.ways.practices.values()
    guide.ways.apply(collector.groups, {}, NO_CLEARS)
    assert (other.prior == 0.5).all()
    guide.ways.learn([episode(CASTLE, "death", one.first)] * 50)
    guide.ways.apply(collector.groups, {}, NO_CLEARS)
    # Both begin at the same door.
    assert other.places[0].cell == one.places[0].cell
    assert other.prior[0] < 0.1
    assert one.prior[0] == 0.5
    collector.close()


def test_ways_that_lead_nowhere_make_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "MOST_WAYS", 1)
    collector = make(start_delay=120)
    found = collector.guide.ways
    first, *others = recorded_ways(KEPT, collector.config, [CASTLE], 12)
    assert found.begin_with([first._replace(actions=[0] * 9), *others]) == 1
    (one,) = found.practices.values()
    assert one.way.actions in [other.actions for other in others]
    collector.close()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8, 40, 121])
def test_what_is_spread_is_far_from_what_came_before(count: int) -> None:
    order = spread(count)
    assert sorted(order) == list(range(count))
    for size in (1, 2, 4, 8, 16, 32):
        if size <= count:
            some = sorted(order[:size])
            assert max(b - a for a, b in pairwise([*some, count])) <= 2 * -(-count // size)


def test_ways_of_one_stage_share_its_episodes() -> None:
    """Lanes begin on all of them, each counts its own attempts, and all go when it is learned."""
    collector = make(start_delay=120, num_envs=64, groups=1, max_steps=512)
    guide = collector.guide
    recorded = recorded_ways(KEPT, collector.config, [WATER, CASTLE], 12)
    guide.ways.begin_with(recorded)
    (group,) = collector.groups
    guide.ways.apply([group], {}, NO_CLEARS)
    info = np.zeros((group.count, len(_engine.INFO_FIELDS)), np.int32)
    obs = np.zeros((group.count, *group.vector.obs_shape), np.uint8)
    group.vector.set_restart_share(1.0)
    group.vector.reset(None, obs, info)
    drawn = info[:, COLUMN["restart"]].tolist()
    began: Counter[int] = Counter()
    for first, practice in guide.ways.practices.items():
        numbers = range(first, first + len(practice.places))
        lanes = [lane for lane, number in enumerate(drawn) if number in numbers]
        began[practice.way.stage] += len(lanes)
        assert lanes
        assert (info[lanes, COLUMN["start_stage"]] == practice.way.stage).all()
        guide.ways.learn([episode(practice.way.stage, "flag", first)] * 3)
        # Of another stage, which no place of this one belongs to.
        guide.ways.learn([episode(MAZE, "flag", first)] * 3)
    assert began.total() == group.count
    for practice in guide.ways.practices.values():
        assert practice.attempts.sum() == practice.clears.sum()
        assert practice.attempts.sum() == pytest.approx(1 + DECAY + DECAY**2)
    for _ in range(100):
        guide.curriculum.learn([episode(WATER, "flag"), episode(CASTLE, "death")])
    guide.ways.look(guide.curriculum, guide.archive.pressed)
    assert guide.ways.stages == [CASTLE]
    assert len(guide.ways.practices) == 3
    # Nothing is searched for without --search-steps.
    assert guide.metrics()["searched_steps"] == 0.0
    assert guide.metrics()["ways"] == 3.0
    collector.close()


def test_ways_need_episodes_to_give_their_places_to() -> None:
    with pytest.raises(ConfigError, match=r"--ways .* --archive-share"):
        tiny(**{**GIVEN, "archive_share": 0.0})


def test_places_of_a_way_are_behind_the_door_where_episodes_begin_halfway() -> None:
    """A recorded way through 1-1; its places are restart points of lanes that begin halfway."""
    golden = Path(__file__).parents[2] / "golden" / "powers.json"
    letters = json.loads(golden.read_text())["ways"]["eu big"]
    changes = {"stages": "1-1,1-2", "rom": "eu", "start_delay": 0, "start_halfway": 0.9}
    collector = make(**changes)
    found = collector.guide.ways
    way = Way(0, 3, [int(letter, 12) for letter in letters])
    places = found._places(way)
    assert len(places) > 100
    found.practices[FIRST_PLACE] = Practice(way, FIRST_PLACE, places, *np.zeros((2, len(places))))
    found._next += len(places)
    found.apply(collector.groups, {}, NO_CLEARS)
    info = np.zeros((collector.groups[0].count, len(_engine.INFO_FIELDS)), np.int32)
    vector = collector.groups[0].vector
    obs = np.zeros((collector.groups[0].count, *vector.obs_shape), np.uint8)
    vector.set_restart_share(1.0)
    for number in range(FIRST_PLACE + 1, FIRST_PLACE + len(places)):
        vector.weigh_restart(number, 0.0)
    vector.reset(None, obs, info)
    begun = info[info[:, COLUMN["start_stage"]] == 0]
    assert len(begun)
    assert set(begun[:, COLUMN["restart"]].tolist()) == {FIRST_PLACE}
    assert (begun[:, COLUMN["x_pos"]] == 40).all()
    collector.close()
