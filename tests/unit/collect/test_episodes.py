"""Episode accounting against lanes whose every step is known."""

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from warpzone.collect.episodes import HALFWAY, STAGE_WINDOW, EpisodeLog, in_order
from warpzone.env.infos import COLUMN


class Lanes(SimpleNamespace):
    """A group of lanes whose results are set by hand."""

    def __init__(self, count: int) -> None:
        width = len(COLUMN)
        super().__init__(
            lanes=slice(0, count),
            first=0,
            rewards=np.zeros(count, np.float32),
            terminated=np.zeros(count, np.bool_),
            truncated=np.zeros(count, np.bool_),
            info=np.zeros((count, width), np.int32),
            final_info=np.zeros((count, width), np.int32),
        )

    def at(self, *furthest: int) -> "Lanes":
        """A step after which no lane has ended."""
        self.terminated[:] = self.truncated[:] = False
        self.info[:, COLUMN["furthest_x"]] = furthest
        return self

    def end(self, lane: int, *, terminated: bool = False, **info: int) -> "Lanes":
        """Ends one lane with the step that `at` described."""
        (self.terminated if terminated else self.truncated)[lane] = True
        for name, value in info.items():
            self.final_info[lane, COLUMN[name]] = value
        return self


def add(log: EpisodeLog, lanes: Any) -> None:
    log.add(lanes)
    log.count(in_order([log.ended()]))


@pytest.mark.parametrize(
    ("terminated", "info", "reason"),
    [
        (True, {"flag_get": 1, "steps": 50}, "flag"),
        (True, {"flag_get": 0, "steps": 50}, "death"),
        (False, {"steps": 50}, "timeout"),
        (False, {"steps": 49}, "stagnation"),
    ],
)
def test_how_an_episode_ended(terminated: bool, info: dict[str, int], reason: str) -> None:
    log, lanes = EpisodeLog(1, time_limit=50), Lanes(1)
    add(log, lanes.at(40).end(0, terminated=terminated, **info))
    assert [episode.reason for episode in log.take()] == [reason]
    ratios = {name: log.summary()[f"episode_end_{name}_ratio"] for name in ("flag", "death")}
    assert ratios == {"flag": float(reason == "flag"), "death": float(reason == "death")}
    assert log.summary()[f"episode_end_{reason}_ratio"] == 1.0


@pytest.mark.parametrize(
    ("info", "reason"),
    [
        ({"flag_get": 1}, "flag"),
        ({"dying": 1}, "death"),
        ({"game_over": 1}, "death"),
        ({}, "setback"),
    ],
)
def test_a_set_back_is_the_end_of_one_who_lives(info: dict[str, int], reason: str) -> None:
    log, lanes = EpisodeLog(1, setbacks=True), Lanes(1)
    add(log, lanes.at(40).end(0, terminated=True, **info))
    assert [episode.reason for episode in log.take()] == [reason]
    assert log.summary()[f"episode_end_{reason}_ratio"] == 1.0


def test_without_a_time_limit_only_stagnation_truncates() -> None:
    log, lanes = EpisodeLog(1), Lanes(1)
    add(log, lanes.at(40).end(0, steps=100_000))
    assert log.take()[0].reason == "stagnation"


def test_clear_rates_of_stages_have_windows_of_their_own() -> None:
    log, lanes = EpisodeLog(1), Lanes(1)
    for flag in [1] * 50 + [0] * STAGE_WINDOW:
        add(log, lanes.at(40).end(0, terminated=True, start_stage=0, flag_get=flag))
    add(log, lanes.at(40).end(0, terminated=True, start_stage=5, flag_get=1))
    add(log, lanes.at(40).end(0, terminated=True, start_stage=-1, flag_get=0))
    assert log.clear_rates() == {"game": 0.0, "1-1": 0.0, "2-2": 1.0}
    summary = log.summary()
    assert summary["clear_rate_2_2"] == 1.0
    assert summary["clear_rate_game"] == 0.0
    assert summary["clear_rate"] == 51 / 152


def test_a_saved_log_goes_on_as_if_nothing_had_happened() -> None:
    first, lanes = EpisodeLog(2, time_limit=9), Lanes(2)
    lanes.rewards[:] = (0.5, 0.1)
    for x in range(40, 60):
        lanes.at(x, 2 * x)
        if x % 7 == 0:
            lanes.end(1, terminated=x % 2 == 0, furthest_x=2 * x, start_stage=x % 3)
        add(first, lanes)
    second = EpisodeLog(2, time_limit=9)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    for log in (first, second):
        add(log, lanes.at(65, 90).end(0, furthest_x=64, steps=3))
    assert first.take() == second.take()
    assert first.summary() == second.summary()
    assert first.state_dict() == second.state_dict()


def test_rates_are_from_the_door() -> None:
    """Clears from the archive have a rate of their own; those from halfway have none."""
    log, lanes = EpisodeLog(1), Lanes(1)
    add(log, lanes.at(40).end(0, terminated=True, flag_get=0))
    for restart in (HALFWAY, HALFWAY, 7):
        flag = int(restart == HALFWAY)
        add(log, lanes.at(40).end(0, terminated=True, flag_get=flag, restart=restart))
    assert log.clear_rates() == {"1-1": 0.0}
    assert log.summary()["clear_rate"] == 0.0
    assert log.summary()["archive_clear_rate"] == 0.0
    assert log.total == 4
    assert [episode.restart for episode in log.take()] == [0, HALFWAY, HALFWAY, 7]
