"""The archive and the curriculum: what they keep, what they weigh, and what lanes get of it."""

from typing import Any

import numpy as np
import pytest
from tiny_runs import collect, make_agent, make_collector, same_rollout, tiny

from warpzone import _engine, rom
from warpzone.collect.archive import (
    EXPLORERS,
    FIRST_EXPLORER,
    FURTHER,
    LEAST_WEIGHT,
    PATIENCE,
    Archive,
    Moment,
)
from warpzone.collect.curriculum import Curriculum
from warpzone.collect.episodes import Episode
from warpzone.collect.lanes import lane_options

ARCHIVED = {
    "num_envs": 8,
    "rollout_steps": 12,
    "minibatch": 48,
    "stagnation_limit": 8,
    "archive_share": 0.5,
    "archive_cell": 16,
    "max_steps": 10**6,
}


def test_archived_starts_lead_through_what_was_seen() -> None:
    config = tiny(**ARCHIVED, frame_stack=3)
    collector = make_collector(config, make_agent(config))
    collect(collector, 12)
    archive = collector.guide.archive
    assert len(archive.moments) > 3
    before = archive.episodes
    rollouts = collect(collector, 12, first=12)
    assert archive.episodes > before
    assert collector.guide.metrics()["archive_size"] == len(archive.moments)
    options = lane_options(config)
    image = rom.find(None)
    vector = options.make_vector(image, 1, autoreset=_engine.Autoreset.SAME_STEP)
    obs = np.zeros((1, *vector.obs_shape), np.uint8)
    info = np.zeros((1, len(_engine.INFO_FIELDS)), np.int32)
    reward, ends = np.zeros(1, np.float32), np.zeros((2, 1), np.bool_)
    last = (np.zeros_like(obs), np.zeros_like(info))
    vector.reset(None, obs, info)
    # Every forced step comes from the archive here: what follows it is what the moment showed.
    seen: dict[bytes, int] = {}
    for number, moment in archive.moments.items():
        vector.load(0, moment.state)
        vector.observe(0, obs[0])
        frames = [obs[0, 0].copy()]
        vector.force([0], moment.masks)
        for _ in range(config.frame_stack - 1):
            vector.step(np.zeros(1, np.int64), obs, reward, ends[0], ends[1], info, *last)
            frames.append(obs[0, 0].copy())
        seen[np.array(frames).tobytes()] = number
    checked = 0
    for rollout in rollouts:
        starts = rollout.forced & (rollout.age[:-1] == 0)
        for step, lane in starts.nonzero().tolist():
            if step + 2 < rollout.length:
                assert rollout.forced[step : step + 2, lane].all()
                row = step + config.frame_stack - 1
                checked += rollout.frames[row : row + 3, lane].numpy().tobytes() in seen
    assert checked > 2
    vector.close()
    collector.close()


def test_resuming_changes_nothing() -> None:
    changes = {**ARCHIVED, "stages": "1-1,1-2", "curriculum": "progress"}
    config = tiny(**changes, reward_scale_final=0.1, reward_scale_anneal_steps=3000)
    agent = make_agent(config)
    first, second = make_collector(config, agent), make_collector(config, agent)
    collect(first, 10)
    assert first.guide.archive.moments
    second.load_state_dict(first.state_dict())
    ours, theirs = collect(first, 4, first=10), collect(second, 4, first=10)
    assert all(same_rollout(one, other) for one, other in zip(ours, theirs, strict=True))
    assert first.guide.metrics() == second.guide.metrics()
    first.close()
    second.close()


@pytest.mark.parametrize(
    ("changes", "reason", "kept"),
    [
        ({"num_envs": 4}, "", True),
        ({"num_envs": 12}, "there are 8 saved lanes, and 12 are needed", True),
        ({"sticky": 0.5}, "other options; the archive starts empty", False),
        ({"backend": "backend_games:walk", "archive_share": 0.0}, "cannot be saved", False),
    ],
)
def test_an_archive_goes_on_with_other_settings(
    changes: dict[str, Any], reason: str, kept: bool
) -> None:
    """Moments stay as long as the lanes can play them; those that were still to prove themselves
    stay only if the lane that they are of goes on."""
    config = tiny(**ARCHIVED)
    first = make_collector(config, make_agent(config))
    collect(first, 10)
    archive = first.guide.archive
    while not any(found.lane >= 4 for found in archive._candidates):
        collect(first, 1, first=10)
    other = config.replace(force_sync=True, **changes)
    second = make_collector(other, make_agent(other))
    said = second.load_state_dict(first.state_dict())
    assert said.endswith(reason)
    assert bool(said) == bool(reason)
    again = second.guide.archive
    assert list(again.moments) == (list(archive.moments) if kept else [])
    lanes = [found.lane for found in archive._candidates if not said and found.lane < 4]
    assert [found.lane for found in again._candidates] == lanes
    collect(second, 2, first=12)
    first.close()
    second.close()


def episode(stage: int, reason: str, x: int = 100, restart: int = 0) -> Episode:
    """One that ended."""
    return Episode(0, stage, 0, 0.0, 10, x, reason, restart)


def test_archive_counts_its_own() -> None:
    config = tiny(**ARCHIVED)
    collector = make_collector(config, make_agent(config))
    collect(collector, 20)
    recent, restarted = collector.episodes.recent, collector.episodes.restarted
    assert restarted
    assert all(e.restart for e in restarted)
    assert not any(e.restart for e in recent)
    assert "archive_clear_rate" in collector.episodes.summary()
    archive: Archive = collector.guide.archive
    number, moment = next(iter(archive.moments.items()))
    clears, attempts = archive.clears, moment.attempts
    archive.learn([episode(0, "flag", restart=number), episode(0, "flag")])
    assert (archive.clears, moment.attempts) == (clears + 1, attempts + 1)
    archive.learn([episode(0, "death", x=0, restart=number)] * 40)
    assert moment.clears
    assert number in archive.moments
    # A place from which nobody gets anywhere is given up, here and in the engine.
    hopeless = next(one for one in archive.moments.values() if not one.gains)
    archive.learn([episode(0, "death", x=0, restart=hopeless.number)] * PATIENCE)
    assert hopeless.number not in archive.moments
    archive.apply(collector.groups)
    for group in collector.groups:
        assert group.vector.num_restarts() == len(archive.moments)
    collector.close()


def archive_of_one(**changes: Any) -> tuple[Archive, Moment]:
    """An archive with one moment at x 1000, of which nothing is known yet."""
    archive = Archive(tiny(**{**ARCHIVED, **changes}))
    moment = Moment(1, (0,) * 8, b"", b"", 1000)
    archive._add(moment)
    return archive, moment


def test_a_moment_is_practised_as_much_as_it_teaches() -> None:
    """Most where half of the attempts gain ground; it is explored from where they fail."""
    archive, moment = archive_of_one()
    assert moment.weight == moment.need == 1.0
    archive.learn([episode(0, "death", x=1000 + FURTHER, restart=1)] * 29)
    archive.learn([episode(0, "death", x=1000 + FURTHER - 1, restart=1)] * 9)
    assert (moment.attempts, moment.gains) == (38, 29)
    assert moment.weight == pytest.approx(4 * 0.75 * 0.25)
    assert moment.need == pytest.approx(9 / 38)
    archive.learn([episode(0, "death", x=0, restart=1)] * 20)
    assert (moment.attempts, moment.gains) == (58, 29)
    assert moment.weight == 1.0
    archive.learn([episode(0, "death", x=0, restart=1)] * 10_000)
    assert moment.weight == LEAST_WEIGHT
    assert moment.need > 0.99
    archive.learn([episode(0, "flag", x=0, restart=1)] * 1_000_000)
    assert moment.weight == moment.need == LEAST_WEIGHT


def test_the_moments_that_teach_least_make_room() -> None:
    archive, _ = archive_of_one(archive_size=2)
    for number in (2, 3, 4):
        archive._add(Moment(number, (number,) * 8, b"", b"", 1000))
    archive.learn([episode(0, "flag", restart=number) for number in (1, 3, 3, 4, 4, 4)])
    archive._shrink()
    assert sorted(archive.moments) == [1, 2]
    assert archive.weights() == {0: archive.moments[1].weight, 2: 1.0}


def test_ground_on_a_wrong_way_is_no_gain() -> None:
    archive, moment = archive_of_one()
    archive.learn([episode(0, "setback", x=2000, restart=1)] * (PATIENCE - 1))
    assert (moment.attempts, moment.gains) == (PATIENCE - 1, 0)
    archive.learn([episode(0, "setback", x=2000, restart=1)])
    assert not archive.moments


def test_restarts_fade_as_the_door_is_mastered() -> None:
    config = tiny(**{**ARCHIVED, "stages": "1-1,1-2", "stagnation_limit": 0})
    collector = make_collector(config, make_agent(config))
    given: list[list[float]] = []
    for group in collector.groups:
        group.vector = Recorded(group.vector, given)  # type: ignore[assignment]
    guide = collector.guide
    guide.curriculum.learn([episode(0, "flag")] * 100 + [episode(1, "death")] * 100)
    # What was reached from the archive does not count.
    guide.curriculum.learn([episode(1, "flag", restart=3)] * 100)
    guide.before(0)
    assert len(given) == len(collector.groups)
    for shares in given:
        assert shares[:3] == pytest.approx([0.0, config.archive_share, config.archive_share])
    collector.close()


class Recorded:
    """A vector that notes the shares it is given."""

    def __init__(self, vector: Any, given: list[list[float]]) -> None:
        self._vector, self._given = vector, given

    def set_restart_shares(self, shares: list[float]) -> None:
        self._given.append(shares)
        self._vector.set_restart_shares(shares)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._vector, name)


def test_explorers_press_what_they_are_given() -> None:
    config = tiny(**{**ARCHIVED, "archive_share": 0.9, "archive_explore": 0.5})
    collector = make_collector(config, make_agent(config))
    collect(collector, 12)
    archive = collector.guide.archive
    rollouts = collect(collector, 12, first=12)
    explored = [e for e in collector.episodes.restarted if e.restart >= FIRST_EXPLORER]
    plain = [e for e in collector.episodes.restarted if 0 < e.restart < FIRST_EXPLORER]
    # Half of the restarts, and they are forced for longer than the stack's warm-up.
    assert len(explored) > 5
    assert len(plain) > 5
    longest = max(int(rollout.forced.sum(0).max()) for rollout in rollouts)
    assert longest > config.frame_stack
    # They are exchanged before each rollout, and no moment counts them as its own.
    collector.guide.before(24 * config.steps_per_update)
    for group in collector.groups:
        assert group.vector.num_restarts() == len(archive.moments) + EXPLORERS
    attempts = sum(moment.attempts for moment in archive.moments.values())
    archive.learn([episode(0, "flag", restart=FIRST_EXPLORER)])
    assert sum(moment.attempts for moment in archive.moments.values()) == attempts
    collector.close()


def test_resuming_changes_no_explorer() -> None:
    config = tiny(**{**ARCHIVED, "archive_explore": 0.5, "stages": "1-1,1-2"})
    agent = make_agent(config)
    first, second = make_collector(config, agent), make_collector(config, agent)
    collect(first, 10)
    assert first.guide.archive.moments
    second.load_state_dict(first.state_dict())
    ours, theirs = collect(first, 6, first=10), collect(second, 6, first=10)
    assert all(same_rollout(one, other) for one, other in zip(ours, theirs, strict=True))
    assert any(rollout.forced.any() for rollout in ours)
    first.close()
    second.close()


def test_curriculum_weighs_stages() -> None:
    config = tiny(stages="1-1,1-2,1-3", curriculum="clear-rate", curriculum_floor=0.3)
    curriculum = Curriculum(config)
    assert curriculum.weights()[:3] == pytest.approx([1 / 3] * 3)
    curriculum.learn([episode(0, "flag")] * 50 + [episode(1, "death")] * 50)
    weights = curriculum.weights()
    assert weights.sum() == pytest.approx(1.0)
    assert weights[0] == pytest.approx(0.1)
    assert weights[1] == weights[2] == pytest.approx(0.45)
    # Starts from the archive say nothing about the way from the door.
    curriculum.learn([episode(1, "flag", restart=3)] * 50)
    assert (curriculum.weights() == weights).all()
    again = Curriculum(config)
    again.load_state_dict(curriculum.state_dict())
    assert (again.weights() == weights).all()


def test_curriculum_follows_learning() -> None:
    curriculum = Curriculum(tiny(stages="1-1,1-2", curriculum="progress", curriculum_floor=0.0))
    curriculum.learn([episode(0, "death", x=100)] * 300 + [episode(1, "death", x=100)] * 300)
    curriculum.learn([episode(1, "flag", x=3000)] * 10)
    assert curriculum.weights()[1] > 0.9
