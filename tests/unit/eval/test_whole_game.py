"""Whole games: where a stage or a life begins, the agent begins anew, whoever lets it play."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from small_agents import small_run
from tiny_runs import make_agent, tiny

import warpzone
from warpzone import rom
from warpzone.config import TrainConfig
from warpzone.env.infos import COLUMN
from warpzone.env.stages import stage_index
from warpzone.eval import performance, whole_game
from warpzone.eval.cases import Case
from warpzone.eval.eval_lanes import EvalLanes, Landing
from warpzone.eval.loaded import LoadedAgent
from warpzone.eval.policy import Decisions, Policy
from warpzone.eval.whole_game import STANDING, Game, begins_anew, play_games, stages_of
from warpzone.model.agent import Agent
from warpzone.rom import native

REMEMBERS = {"memory": "gru", "previous_action": True}
#: Goes right and dies, soon or a little later.
RIGHT = {"actions": "NOOP;RIGHT;RIGHT+A", "stages": "1-1", **REMEMBERS}
GAME = {"stages": "game", "whole_game": True}
DELAYS = (0, 4, 9)


class Watched(Policy):
    """Keeps what was decided, and where lanes began anew: the decisions before, lanes, frames."""

    made: ClassVar["Watched"]

    def __init__(self, agent: Agent, frames: NDArray[np.uint8], **others: Any) -> None:
        self.decided: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = []
        self.begun: list[tuple[int, NDArray[np.int64], NDArray[np.uint8]]] = []
        super().__init__(agent, frames, **others)
        Watched.made = self

    @property
    def times_begun(self) -> int:
        """How often lanes have begun anew after the game's start."""
        return sum(len(lanes) for _, lanes, _ in self.begun[1:])

    def begin(self, lanes: NDArray[np.int64], frames: NDArray[np.uint8]) -> None:
        if len(lanes):
            self.begun.append((len(self.decided), lanes.copy(), frames.copy()))
        super().begin(lanes, frames)

    def decide(self, lanes: NDArray[np.int64]) -> Decisions:
        made = super().decide(lanes)
        self.decided.append((lanes.copy(), made.logits))
        return made


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> type[Watched]:
    for module in (whole_game, performance):
        monkeypatch.setattr(module, "Policy", Watched)
    return Watched


def hasty(config: TrainConfig, seed: int = 5) -> Agent:
    """An agent that remembers, and mostly goes right."""
    agent = make_agent(config, seed=seed)
    with torch.no_grad():
        agent.heads.policy.weight.mul_(0.1)
        agent.heads.policy.bias.copy_(torch.tensor([-4.0, 2.0, 0.0]))
    return agent


def played(config: TrainConfig, agent: Agent, **changes: Any) -> list[Game]:
    image = rom.find()
    others = {"policies": ("sampled",), "delays": DELAYS, **changes}
    return play_games(agent, config, image, native.load(image), **others)


@pytest.mark.parametrize("memory", ["none", "gru", "lstm", "gtrxl"])
def test_lanes_begin_as_new_ones_do(memory: str) -> None:
    agent = make_agent(tiny(memory=memory, previous_action=True)).eval()
    shown = np.random.default_rng(0).integers(0, 256, (6, 5, 36, 36), dtype=np.uint8)
    every, some, others = np.arange(5), np.array([1, 3]), np.array([0, 2, 4])
    with Policy(agent, shown[0]) as policy, Policy(agent, shown[0]) as goes_on:
        for frames in shown[1:]:
            for one in (policy, goes_on):
                one.decide(every)
                one.observe(every, frames, np.array([1, 2, 3, 4, 5]))
        policy.begin(some, shown[5][some])
        for lane in some.tolist():
            np.testing.assert_array_equal(policy.stack(lane), np.stack([shown[5][lane]] * 4))
        decided, kept = policy.decide(every), goes_on.decide(every)
    with Policy(agent, shown[5]) as fresh:
        new = fresh.decide(every)
    for expected, lanes in ((new, some), (kept, others)):
        np.testing.assert_array_equal(decided.logits[lanes], expected.logits[lanes])
        np.testing.assert_array_equal(decided.values[lanes], expected.values[lanes])
    assert not np.array_equal(decided.logits[others], new.logits[others])


@pytest.mark.parametrize(
    ("after", "anew"),
    [
        ({}, False),
        ({"stage": 3}, True),
        ({"stage": 1}, True),
        ({"world": 4}, True),
        ({"world": 4, "stage": 1, "life": 2}, True),
        ({"life": 0}, True),
        ({"life": 2}, False),  # One was won.
    ],
)
def test_where_a_lane_begins_anew(after: dict[str, int], anew: bool) -> None:
    before = {"world": 3, "stage": 2, "life": 1}
    rows = [np.array([[one[name] for name in STANDING]]) for one in (before, before | after)]
    assert begins_anew(tiny(stages="all"), *rows).tolist() == [anew]
    # Who was trained on whole games was never cut off there.
    for trained in (GAME, {"stages": "game"}):
        assert begins_anew(tiny(**trained), *rows).tolist() == [False]


def test_with_a_life_lost_it_decides_as_a_new_one(watched: type[Watched]) -> None:
    config = tiny(**RIGHT)
    agent = hasty(config).eval()
    games = played(config, agent)
    assert {game.reason for game in games} == {"game over"}
    _, *lost = watched.made.begun
    # The third one ends a game.
    assert sorted(lane for _, lanes, _ in lost for lane in lanes) == [0, 0, 1, 1, 2, 2]
    for number, lanes, frames in lost:
        there, logits = watched.made.decided[number]
        with Policy(agent, frames) as fresh:
            expected = fresh.decide(np.arange(len(lanes))).logits
        np.testing.assert_array_equal(logits[np.isin(there, lanes)], expected)


def test_who_was_trained_on_whole_games_remembers(watched: type[Watched]) -> None:
    config = tiny(**RIGHT | GAME)
    agent = hasty(config)
    played(config, agent)
    kept = watched.made
    assert kept.times_begun == 0
    played(config.replace(stages="1-1", whole_game=False), agent)
    number, lanes, _ = watched.made.begun[1]
    for (_, one), (_, other) in zip(kept.decided[:number], watched.made.decided, strict=False):
        np.testing.assert_array_equal(one, other)
    there, logits = kept.decided[number]
    anew = np.isin(there, lanes)
    assert (logits[anew] != watched.made.decided[number][1][anew]).any(-1).all()


class EnoughError(Exception):
    """The next stage is reached."""


@pytest.mark.limit(300)
def test_in_the_next_stage_it_decides_as_a_new_one(
    watched: type[Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = warpzone.load_agent("shipped:all")
    seen: list[Landing] = []
    step = EvalLanes.step

    def note(self: EvalLanes, *args: Any) -> Landing:
        seen[:] = [step(self, *args)]
        return seen[0]

    def decide(self: Watched, lanes: NDArray[np.int64]) -> Decisions:
        made = Policy.decide(self, lanes)
        self.decided.append((lanes, made.logits))
        if len(self.begun) > 1:
            raise EnoughError
        return made

    monkeypatch.setattr(EvalLanes, "step", note)
    monkeypatch.setattr(watched, "decide", decide)
    with pytest.raises(EnoughError):
        played(agent.config, agent.network, policies=("argmax",), delays=(4,))
    (landed,) = seen
    assert stages_of(landed.info).tolist() == [stage_index("1-2")]
    assert landed.info[0, COLUMN["life"]] == 2
    ((_, _, frames),) = watched.made.begun[1:]
    np.testing.assert_array_equal(frames, landed.frames)
    assert (watched.made.stack(0) == frames).all()
    with Policy(agent.network, frames) as fresh:
        np.testing.assert_array_equal(
            watched.made.decided[-1][1], fresh.decide(np.zeros(1, np.int64)).logits
        )


@pytest.mark.parametrize("trained", [{}, GAME], ids=str)
def test_who_watches_sees_the_same_games(watched: type[Watched], trained: dict[str, Any]) -> None:
    config, image = tiny(**RIGHT | trained), rom.find()
    agent = hasty(config)
    games = played(config, agent)
    evaluated = watched.made
    cases = [Case(-1, "sampled", delay) for delay in DELAYS]
    shown = performance.Performance(agent, config, image, native.load(image), cases)
    for _ in shown.frames():
        pass
    assert [(shot.stage, shot.x) for shot in shown.last] == [("game", game.x) for game in games]
    for (lanes, logits), (others, seen) in zip(
        evaluated.decided, watched.made.decided, strict=True
    ):
        np.testing.assert_array_equal(lanes, others)
        np.testing.assert_array_equal(logits, seen)
    assert watched.made.times_begun == evaluated.times_begun == (0 if trained else 6)


def steps(agent: LoadedAgent) -> Iterator[int]:
    """A game as the guide plays it: its actions."""
    env = agent.make_env(stages="game", num_threads=1, rom="eu")
    try:
        obs, infos = env.reset(seed=0)
        ended = np.zeros(1, np.bool_)
        while not ended.any():
            before, actions = infos, agent.act(obs)
            yield int(actions[0])
            obs, _, terminated, truncated, infos = env.step(actions)
            ended = terminated | truncated
            agent.reset(ended)
            agent.begin_anew(before, infos)
    finally:
        env.close()


@pytest.mark.parametrize("trained", [{}, GAME], ids=str)
def test_programs_play_the_same_games(
    watched: type[Watched], tmp_path: Path, trained: dict[str, Any]
) -> None:
    small_run(tmp_path / "one", **RIGHT | trained)
    agent = warpzone.load_agent("one", runs_dir=tmp_path)
    agent.network.load_state_dict(hasty(agent.config).state_dict())
    (game,) = played(agent.config, agent.network, policies=("argmax",), delays=(0,))
    assert game.reason == "game over"
    evaluated = [int(logits.argmax()) for _, logits in watched.made.decided]
    assert list(steps(agent)) == evaluated
    assert watched.made.times_begun == (0 if trained else 2)
