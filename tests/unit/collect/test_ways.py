"""Practice along a way: when one is searched for, where episodes begin, and that a resume changes
nothing."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tiny_runs import make_agent, make_collector, tiny

from warpzone import _engine, rom
from warpzone.collect import ways
from warpzone.collect.collector import Collector
from warpzone.collect.episodes import Episode
from warpzone.collect.lanes import lane_options
from warpzone.collect.practice import DECAY, SHOWN, STRIDE, Practice, Spot
from warpzone.collect.search import Way
from warpzone.collect.ways import EPISODES, FIRST_PLACE, LEARNED, Ways
from warpzone.config import ConfigError
from warpzone.env.infos import COLUMN
from warpzone.env.stages import NUM_STAGES, parse_stages

MAZE = parse_stages("4-4")[0]
SEARCHING: dict[str, Any] = {
    "stages": "1-1,4-4",
    "actions": "complex",
    "num_envs": 8,
    "minibatch": 64,
    "stagnation_limit": 120,
    "end_on_setback": True,
    "archive_share": 0.8,
    "search_steps": 3_000_000,
}

NO_CLEARS = np.zeros(NUM_STAGES)


def episode(stage: int, reason: str, restart: int = 0) -> Episode:
    return Episode(0, stage, 0, 0.0, 10, 100, reason, restart)


def make(**changes: Any) -> Collector:
    config = tiny(**{**SEARCHING, **changes})
    return make_collector(config, make_agent(config))


def the_one(found: Ways) -> Practice:
    (practice,) = found.practices.values()
    return practice


def after(collector: Collector, ended: list[Episode]) -> None:
    """What the guide does with episodes that ended, without playing."""
    guide = collector.guide
    guide.curriculum.learn(ended)
    guide.ways.learn(ended)
    guide.ways.look(guide.curriculum, guide.archive.pressed)


@pytest.fixture(scope="module")
def searched() -> Any:
    collector = make()
    after(collector, [episode(MAZE, "death")] * EPISODES + [episode(0, "flag")] * EPISODES)
    yield collector
    collector.close()


def test_only_a_stage_that_nobody_clears_is_searched(searched: Collector) -> None:
    found = searched.guide.ways
    assert found.stages == [MAZE]
    assert len(found.practices) == 1
    assert 0 < found.searched_steps <= SEARCHING["search_steps"]
    steps = found.searched_steps
    after(searched, [episode(MAZE, "death")] * EPISODES * 4)
    assert found.searched_steps == steps  # there is a way already


def test_a_search_waits_and_is_not_repeated_at_once() -> None:
    collector = make(search_steps=1)
    found = collector.guide.ways
    spent = []
    for _ in range(4 * EPISODES):
        after(collector, [episode(MAZE, "death")])
        spent.append(found.searched_steps)
    changes = [index + 2 for index, (a, b) in enumerate(pairwise(spent)) if a != b]
    assert changes == [EPISODES, 2 * EPISODES, 4 * EPISODES]
    assert not found.practices
    collector.close()


def test_a_way_is_dropped_once_the_stage_is_learned(searched: Collector) -> None:
    collector = make()
    collector.guide.ways.load_state_dict(searched.guide.ways.state_dict())
    collector.guide.curriculum.learn([episode(MAZE, "death")] * 100)
    for _ in range(100):
        if collector.guide.curriculum.clear_rate[MAZE] >= LEARNED:
            break
        assert MAZE in collector.guide.ways.stages
        after(collector, [episode(MAZE, "flag")])
    assert not collector.guide.ways.practices
    collector.guide.ways.apply(collector.groups, {}, NO_CLEARS)
    assert all(group.vector.num_restarts() == 0 for group in collector.groups)
    collector.close()


def test_episodes_begin_along_the_way_as_weighed(searched: Collector) -> None:
    """With no moment in the archive, eight of ten episodes of the maze begin on the way; those
    lanes go on as the way did."""
    practice = the_one(searched.guide.ways)
    assert len(practice.places) == (len(practice.way.actions) - 1) // STRIDE
    middle = practice.first + len(practice.places) // 2
    searched.guide.ways.learn([episode(MAZE, "flag", middle), episode(MAZE, "death", middle)] * 30)
    searched.prepare(0)
    counts: Counter[int] = Counter()
    for group in searched.groups:
        obs = np.zeros((group.count, *group.vector.obs_shape), np.uint8)
        info = np.zeros_like(group.info)
        for _ in range(600):
            group.vector.reset(None, obs, info)
            rows = info[info[:, COLUMN["start_stage"]] == MAZE]
            counts.update(rows[:, COLUMN["restart"]].tolist())
    total = sum(counts.values())
    assert counts[0] == pytest.approx(0.2 * total, abs=5 * (0.16 * total) ** 0.5)
    weights = practice.weights(0.0) / practice.weights(0.0).sum()
    for index, weight in enumerate(weights):
        expected = 0.8 * weight * total
        assert counts[practice.first + index] == pytest.approx(expected, abs=5 * expected**0.5 + 2)
    assert set(counts) <= {0, *range(practice.first, practice.first + len(practice.places))}


def test_most_episodes_of_a_searched_stage_begin_inside_it(searched: Collector) -> None:
    collector = make(archive_share=0.2)
    guide = collector.guide
    room = np.ones(32)
    assert guide.ways.shares(room).tolist() == pytest.approx([0.2] * 32)
    guide.ways.load_state_dict(searched.guide.ways.state_dict())
    # It fades as the stage's start is learned.
    room[MAZE] = 0.75
    expected = [0.2] * 32
    expected[MAZE] = 0.6
    assert guide.ways.shares(room).tolist() == pytest.approx(expected)
    given: list[float] = []
    group = collector.groups[0]

    class Heard:
        def add_restart(self, number: int, state: bytes, masks: bytes, weight: float) -> None:
            given.append(weight)

    class Told:
        vector = Heard()

    guide.ways.apply([Told()], {MAZE: 5.0}, NO_CLEARS)  # type: ignore[list-item]
    assert len(given) == len(the_one(guide.ways).places)
    # Three times as often as at the moments of the archive.
    assert sum(given) == pytest.approx(15.0)
    assert group.vector.num_restarts() == 0
    collector.close()


def practice(size: int = 60) -> Practice:
    none = np.zeros(size), np.zeros(size)
    return Practice(Way(MAZE, 0, []), FIRST_PLACE, [Spot(b"", b"")] * size, *none)


def test_attempts_are_forgotten_and_neighbours_looked_at() -> None:
    one = practice(9)
    for cleared in (True, False, True):
        one.count(FIRST_PLACE + 4, cleared)
    tried = DECAY**2 + DECAY + 1.0
    assert one.attempts.tolist() == pytest.approx([0, 0, 0, 0, tried, 0, 0, 0, 0])
    assert one.clears[4] == pytest.approx(DECAY**2 + 1.0)
    near = (DECAY**2 + 2.0) / (tried + 2.0)
    assert one.chances().tolist() == pytest.approx([0.5] * 2 + [near] * 5 + [0.5] * 2)


def test_what_the_policy_can_do_alone_is_not_imitated() -> None:
    """Attempts clear from place 20 on. What leads to a place begins some places before it."""
    one = practice()
    for _ in range(40):
        for index in range(len(one.places)):
            one.count(FIRST_PLACE + index, index >= 20)
    for index, taught in enumerate(one.taught(0.0)):
        begins = index - SHOWN[index % len(SHOWN)] // STRIDE
        assert taught == (begins < 20)
    assert one.taught(0.0)[20:36].any()
    assert not one.taught(0.0)[36:].any()
    # Who has not tried yet may be able to.
    assert not practice().taught(0.5).any()


def test_only_forced_steps_before_taught_places_are_shown(searched: Collector) -> None:
    collector = make(rollout_steps=8)
    guide = collector.guide
    guide.ways.load_state_dict(searched.guide.ways.state_dict())
    one = the_one(guide.ways)
    size, middle = len(one.places), len(one.places) // 2
    one.attempts[:], one.clears[:] = 30.0, 0.0
    one.clears[middle:] = 30.0
    taught = one.taught(0.0)
    assert 0 < taught.sum() < size
    numbers = np.array([0, 7, FIRST_PLACE - 1, one.first + size, 1 << 24], np.int32)
    assert not guide.ways.teaches(np.append(numbers, np.int32(one.first))).any()
    guide.ways.apply(collector.groups, {}, NO_CLEARS)
    assert not guide.ways.teaches(numbers).any()
    places = np.arange(one.first, one.first + size, dtype=np.int32)
    assert guide.ways.teaches(places).tolist() == taught.tolist()
    shown, hidden = 0, 0
    for update in range(90):
        collector.prepare(update * collector.config.steps_per_update)
        rollout = collector.collect()
        assert not (rollout.shown & ~rollout.forced).any()
        shown += int(rollout.shown.sum())
        hidden += int((rollout.forced & ~rollout.shown).sum())
    assert shown > 0
    assert hidden > 0
    collector.close()


def test_only_episodes_that_began_on_the_way_count() -> None:
    collector = make()
    found = collector.guide.ways
    found.practices[FIRST_PLACE] = one = practice(3)
    ended = [
        episode(MAZE, "flag", FIRST_PLACE),
        episode(MAZE, "death", FIRST_PLACE),
        episode(MAZE, "flag", FIRST_PLACE + 2),
        # From the start, from a moment of the archive, from behind the way, of another stage.
        episode(MAZE, "flag"),
        episode(MAZE, "flag", 7),
        episode(MAZE, "flag", FIRST_PLACE + 3),
        episode(0, "flag", FIRST_PLACE + 1),
    ]
    found.learn(ended)
    assert one.attempts.tolist() == pytest.approx([DECAY + 1.0, 0.0, 1.0])
    assert one.clears.tolist() == pytest.approx([DECAY, 0.0, 1.0])
    collector.close()


def test_lanes_that_begin_on_the_way_are_where_it_was(searched: Collector) -> None:
    """From the first step that is shown to the place, whatever their actions are."""
    one = the_one(searched.guide.ways)
    options = replace(lane_options(searched.config), stages=[["4-4"]])
    image = rom.find(None)

    def lane() -> Any:
        return options.make_vector(image, 1, autoreset=_engine.Autoreset.SAME_STEP)

    played, begun = lane(), lane()
    obs = np.zeros((1, *played.obs_shape), np.uint8)
    info = np.zeros((1, len(_engine.INFO_FIELDS)), np.int32)
    rest: Any = (np.zeros(1, np.float32), *np.zeros((2, 1), np.bool_))

    def step(vector: Any, action: int) -> None:
        vector.step(np.array([action]), obs, *rest, info, np.zeros_like(obs), info.copy())

    played.seed([one.way.seed])
    played.reset(None, obs, info)
    shown = [obs.copy()]
    for action in one.way.actions[:-1]:
        step(played, action)
        shown.append(obs.copy())
    for index in range(0, len(one.places), 4):
        state, masks, _ = one.places[index]
        begun.add_restart(1, state, masks, 1.0)
        begun.set_restart_share(1.0)
        begun.reset(None, obs, info)
        end = (index + 1) * STRIDE
        begin = max(0, end - SHOWN[index % len(SHOWN)])
        assert np.array_equal(obs, shown[begin])
        for later in range(begin + 1, end + 1):
            step(begun, 0)
            assert info[0, COLUMN["forced"]]
            assert np.array_equal(obs, shown[later])
        step(begun, 0)
        assert not info[0, COLUMN["forced"]]
        begun.remove_restart(1)
    played.close()
    begun.close()


def test_every_search_of_a_stage_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    def nothing(*_: Any, stage: int, seed: int, **__: Any) -> tuple[None, int]:
        asked.append((stage, seed))
        return None, 1

    monkeypatch.setattr(ways, "find_way", nothing)
    collector = make()
    for _ in range(3):
        after(collector, [episode(MAZE, "death")] * 2 * EPISODES)
        after(collector, [episode(0, "death")] * 2 * EPISODES)
    assert {stage for stage, _ in asked} == {0, MAZE}
    assert len({seed for _, seed in asked}) == len(asked) >= 4
    collector.close()


def test_what_is_mastered_counts_from_the_end() -> None:
    one = practice(10)
    assert one.mastered == 0.0
    for _ in range(30):
        for index in range(10):
            one.count(FIRST_PLACE + index, index >= 6 or index == 0)
    assert one.mastered == pytest.approx(0.4, abs=0.11)
    assert one.weights(1.0)[8] < one.weights(1.0)[6]


def test_a_resume_changes_nothing(searched: Collector) -> None:
    ours = searched.guide.ways
    again = make()
    assert again.guide.load_state_dict(searched.guide.state_dict())
    theirs = again.guide.ways
    assert theirs.state_dict() == ours.state_dict()
    assert the_one(theirs).places == the_one(ours).places
    assert theirs.metrics() == ours.metrics()
    # Lanes that cannot play the way go without it.
    other = make(frame_skip=3)
    other.guide.ways.load_state_dict(ours.state_dict())
    assert not other.guide.ways.practices
    again.close()
    other.close()


def test_a_search_needs_episodes_to_give_its_places_to() -> None:
    with pytest.raises(ConfigError, match=r"--search-steps .* --archive-share"):
        tiny(**{**SEARCHING, "archive_share": 0.0})


def test_a_run_searches_and_practises() -> None:
    """The whole of it, in a collector that plays: its lanes begin on the way."""
    config = tiny(**SEARCHING, rollout_steps=8)
    collector = make_collector(config, make_agent(config))
    collector.guide.curriculum.episodes[MAZE] = EPISODES
    seen: set[int] = set()
    for update in range(90):
        collector.prepare(update * config.steps_per_update)
        collector.collect()
        seen |= {one.restart for one in collector.episodes.take()}
    metrics = collector.guide.metrics()
    assert metrics["ways"] == 1.0
    assert metrics["searched_steps"] == collector.guide.ways.searched_steps > 0
    assert any(ways.FIRST_PLACE <= number < 1 << 24 for number in seen)
    assert the_one(collector.guide.ways).attempts.sum() > 0
    collector.close()
