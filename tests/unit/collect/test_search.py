"""The search: its ways lead to the flag, only the seed decides them, and it knows its end."""

from dataclasses import replace
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray
from tiny_runs import collect, make_agent, make_collector, tiny

from warpzone import _engine, rom
from warpzone.collect import ways
from warpzone.collect.lanes import lane_options
from warpzone.collect.search import (
    HOLDING,
    LANES,
    TRIAL,
    Way,
    _path,
    _Trials,
    find_way,
    place_keys,
)
from warpzone.env.infos import COLUMN
from warpzone.env.options import OptionArgs
from warpzone.env.stages import parse_stages
from warpzone.env.vector import MarioVectorEnv
from warpzone.rom import native

MAZE = parse_stages("4-4")[0]
CONFIG = tiny(
    stages="4-4", actions="complex", start_delay=0, stagnation_limit=120, end_on_setback=True
)


def search(
    *known: list[int], most_steps: int = 3_000_000, threads: int = 1
) -> tuple[Way | None, int]:
    image = rom.find(None)
    return find_way(
        lane_options(CONFIG),
        image,
        native.load(image),
        stage=MAZE,
        seed=5,
        chances=np.full(12, 1 / 12),
        most_steps=most_steps,
        known=known,
        num_threads=threads,
    )


@cache
def found(threads: int = 1, most_steps: int = 3_000_000) -> tuple[Way | None, int]:
    return search(most_steps=most_steps, threads=threads)


def test_known_ways_are_tried_first() -> None:
    """One that leads to the flag ends the search; of others the search goes on from every place."""
    way, steps = found()
    assert way is not None
    wrong = [0] * 40
    again, taken = search(wrong, way.actions, most_steps=1)
    assert again is not None
    assert again.actions == way.actions
    assert taken == len(wrong) + len(way.actions)
    # Without its end the way is no way, and a search from the door finds none in so few steps.
    few = steps // 10
    assert found(most_steps=few)[0] is None
    shorter, taken = search(way.actions[:-40], most_steps=few)
    assert shorter is not None
    assert taken < few + len(way.actions)
    # Of more than there are lanes all are tried.
    many, _ = search(*[wrong] * 130, way.actions, most_steps=1)
    assert many is not None
    assert many.actions == way.actions


def test_a_way_begins_at_the_door_as_what_its_seed_draws() -> None:
    """Other lanes of the seed begin alike; a way from the middle never leads to the door."""
    config = tiny(stages="1-1", actions="complex", start_power="any", start_halfway=0.9)
    begun: dict[int, set[tuple[int, ...]]] = {}
    image = rom.find(None)

    def look(self: _Trials, most_steps: int, known: object) -> tuple[None, int]:
        info = self._info
        begun[self.seed] = set(
            zip(*(info[:, COLUMN[name]].tolist() for name in ("power", "restart")), strict=True)
        )
        return None, 0

    for seed in range(12):
        with patch.object(_Trials, "run", look):
            find_way(
                lane_options(config),
                image,
                native.load(image),
                stage=0,
                seed=seed,
                chances=np.full(12, 1 / 12),
                most_steps=1,
            )
    assert all(len(lanes) == 1 for lanes in begun.values())
    assert {lane for lanes in begun.values() for lane in lanes} == {(0, 0), (1, 0), (2, 0)}


def test_a_way_through_a_maze_leads_to_the_flag_in_an_environment() -> None:
    """As anybody would play it: with the plain environment, from the start without a delay."""
    way, steps = found()
    assert way is not None
    assert way.stage == MAZE
    assert len(way.actions) < steps
    options: OptionArgs = {"stages": "4-4", "actions": "complex", "end": "setback"}
    env = MarioVectorEnv(1, **options)
    env.reset()
    ends = []
    for action in way.actions:
        _, _, terminated, truncated, infos = env.step(np.array([action]))
        ends.append(bool(terminated[0] or truncated[0]))
    assert ends == [False] * (len(ends) - 1) + [True]
    assert infos["flag_get"][0]
    env.close()


def test_threads_do_not_matter() -> None:
    assert found(threads=2) == found()


def test_a_search_ends() -> None:
    way, steps = found(most_steps=3 * LANES * TRIAL - 1)
    assert way is None
    assert steps == 3 * LANES * TRIAL


def test_places_are_told_apart_by_where_mario_is_on_the_map_and_on_the_screen() -> None:
    def key(**changed: int) -> tuple[int, ...]:
        row = np.zeros((1, len(COLUMN)), np.int32)
        there = {"x_pos": 1282, "y_pos": 127, "screen_x": 1150, "world": 8, "stage": 4}
        for name, value in (there | changed).items():
            row[0, COLUMN[name]] = value
        return place_keys(row)[0]

    assert key() == key(x_pos=1283, y_pos=126, screen_x=1151, score=5, x_speed=3)
    # The screen goes along with Mario.
    assert key() == key(x_pos=1309, screen_x=1177)
    others = [
        key(x_pos=1250, screen_x=1118),
        key(y_pos=95),
        # In the air, and with the screen further on.
        key(float_state=1),
        key(screen_x=1170),
        key(loops_correct=1),
        key(area_index=2),
    ]
    assert len({key(), *others}) == 1 + len(others)
    assert key(float_state=1) == key(float_state=2)


def test_every_place_is_where_its_actions_lead() -> None:
    """Places along which no way was found, too."""
    options = replace(lane_options(CONFIG), stages=[["1-1"]] * LANES, obs="ram", frame_stack=1)
    image = rom.find(None)
    mode = _engine.Autoreset.SAME_STEP
    vector = options.make_vector(image, LANES, autoreset=mode, native=native.load(image))
    trials = _Trials(vector, 0, 5, np.full(12, 1 / 12))
    lengths: list[int] = []
    shorter = 0
    for number in range(12):
        assert trials._trial() is None
        assert sum(trials._visits) == (number + 1) * LANES
        # Who comes to a known place sooner takes it over, and nobody else does.
        found = [place.length for place in trials._list]
        assert all(now <= before for now, before in zip(found, lengths, strict=False))
        shorter += sum(now < before for now, before in zip(found, lengths, strict=False))
        lengths = found
    assert shorter > 0
    keys = {index: key for key, index in trials._places.items()}
    assert len(keys) > LANES
    for first in range(0, len(trials._list), LANES):
        numbers = range(first, min(first + LANES, len(trials._list)))
        paths = [_path(trials._list[number]) for number in numbers]
        lengths_here = np.array([len(path) for path in paths])
        assert lengths_here.tolist() == [trials._list[number].length for number in numbers]
        vector.seed([5] * LANES)
        vector.reset(None, trials._obs, trials._info)
        for step in range(max(map(len, paths))):
            actions = np.zeros(LANES, np.int64)
            actions[: len(paths)] = [(path[step : step + 1] or [0])[0] for path in paths]
            trials._step(actions)
            # In one episode: what lies behind an end is not on the way to anything.
            under_way = lengths_here > step
            assert not ((trials._terminated | trials._truncated)[: len(paths)] & under_way).any()
            arrived = np.flatnonzero(lengths_here == step + 1)
            there = place_keys(trials._info[arrived])
            assert there == [keys[numbers[lane]] for lane in arrived]
            states = trials._info[arrived, COLUMN["player_state"]]
            assert (states == _engine.PlayerState.IN_CONTROL).all()
    vector.close()


class Scripted:
    """A game in which three lanes come to a new place each, after five steps. The first has ended
    by then, and the second is not in control."""

    obs_shape = (1,)
    places = (9999, 8888, 7777)

    def __init__(self) -> None:
        self.taken = 0
        self.loaded: list[bytes] = []

    def seed(self, seeds: list[int]) -> None: ...

    def reset(self, _: None, obs: Any, info: NDArray[np.int32]) -> None:
        info[:, COLUMN["player_state"]] = _engine.PlayerState.IN_CONTROL

    def save(self, lane: int) -> bytes:
        return bytes([lane])

    def load(self, lane: int, state: bytes) -> None:
        self.loaded.append(state)

    def step(self, actions: Any, obs: Any, reward: Any, *rest: NDArray[Any]) -> None:
        terminated, _, info, *_ = rest
        self.taken += 1
        terminated[:] = False
        terminated[0] = self.taken == 3
        if self.taken == 5:
            for lane, x in enumerate(self.places):
                info[lane, COLUMN["x_pos"]] = x
            info[1, COLUMN["player_state"]] = _engine.PlayerState.DYING


def test_places_are_of_lanes_that_play() -> None:
    game = Scripted()
    trials = _Trials(game, 0, 5, np.full(12, 1 / 12))  # type: ignore[arg-type]
    assert trials._trial() is None
    assert game.loaded == [bytes([0])] * LANES
    start, found = trials._list
    assert (start.length, found.length, found.state, found.before) == (0, 5, bytes([2]), start)
    x = place_keys(trials._info)[2]
    assert list(trials._places) == [place_keys(np.array(trials._info[3:4]))[0], x]


def test_buttons_are_drawn_by_their_chances_and_held() -> None:
    """Against a loop: one draw after the other, each for as long as it was drawn for."""
    trials = _Trials.__new__(_Trials)
    trials.chances = np.array([0.5, 0.0, 0.3, 0.2])
    trials.random = np.random.default_rng(3)
    actions = trials._draw_actions()
    random = np.random.default_rng(3)
    held = random.integers(*HOLDING, (TRIAL, LANES))
    drawn = random.choice(4, (TRIAL, LANES), p=trials.chances)
    for lane in range(LANES):
        expected: list[int] = []
        for seconds, action in zip(held[:, lane], drawn[:, lane], strict=True):
            expected += [int(action)] * int(seconds)
        assert actions[:, lane].tolist() == expected[:TRIAL]
    assert 1 not in actions


def test_a_search_presses_what_the_policy_presses(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def nothing(*_: Any, chances: NDArray[np.float64], **__: Any) -> tuple[None, int]:
        asked.append(chances)
        return None, 1

    monkeypatch.setattr(ways, "find_way", nothing)
    config = tiny(stages="1-1", archive_share=0.5, search_steps=1)
    collector = make_collector(config, make_agent(config))
    guide = collector.guide
    guide.curriculum.episodes[0] = ways.EPISODES
    collect(collector, 1)
    (chances,) = asked
    assert np.array_equal(chances, guide.archive.pressed)
    assert len(set(chances.tolist())) > 1
    collector.close()


@pytest.mark.long
@pytest.mark.limit(1800)
def test_a_way_through_the_last_stage_is_found() -> None:
    """Its first pipe can be entered only while the screen is behind."""
    image = rom.find(None)
    config = replace(CONFIG, stages="8-4")
    way, steps = find_way(
        lane_options(config),
        image,
        native.load(image),
        stage=parse_stages("8-4")[0],
        seed=1,
        chances=np.full(12, 1 / 12),
        most_steps=20_000_000,
        num_threads=2,
    )
    assert way is not None
    assert steps < 20_000_000
