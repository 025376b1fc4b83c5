"""The protocol: start delays, grouping, and a slow reference that plays one lane at a time."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from tiny_runs import make_agent, tiny

from warpzone import _engine, rom
from warpzone.collect.lanes import lane_options
from warpzone.config import TrainConfig
from warpzone.env.infos import COLUMN
from warpzone.env.stages import stage_name
from warpzone.eval.cases import Case, Outcome, clears, make_cases, parse_delays
from warpzone.eval.chance import uniform
from warpzone.eval.eval_lanes import EvalLanes
from warpzone.eval.evaluate import evaluate, evaluate_cases
from warpzone.eval.policy import CPU_BATCH
from warpzone.eval.whole_game import play_games
from warpzone.model.agent import Agent
from warpzone.rom import native

PATIENCE = 20


@pytest.fixture(scope="module")
def image() -> bytes:
    return rom.find()


@pytest.fixture(scope="module")
def program(image: bytes) -> Any:
    return native.load(image)


def one_lane(
    config: TrainConfig, image: bytes, program: Any, case: Case, **changes: Any
) -> tuple[_engine.Vector, Any, Any]:
    """A vector of a single lane whose delay is the only one it can draw."""
    options = lane_options(
        config,
        stages=[stage_name(case.stage)],
        start_delay=(case.start_delay, case.start_delay),
        sticky=0.0,
        **{"time_limit": 0, **changes},
    )
    disabled = _engine.Autoreset.DISABLED
    vector = options.make_vector(image, 1, native=program, autoreset=disabled)
    obs = np.zeros((1, *vector.obs_shape), np.uint8)
    info = np.zeros((1, len(_engine.INFO_FIELDS)), np.int32)
    vector.seed([0])
    vector.reset(None, obs, info)
    return vector, obs, info


def test_each_lane_has_its_own_delay(image: bytes, program: Any) -> None:
    """Frame by frame the same as a lane whose vector knows only that delay."""
    config = tiny()
    cases = [Case(stage, "argmax", delay) for delay in (0, 1, 7, 30) for stage in (0, 1, 31)]
    lanes = EvalLanes(config, image, program, cases, stagnation_limit=0)
    landing = lanes.step(np.full(len(cases), 3), np.arange(len(cases)))
    for index, case in enumerate(cases):
        vector, obs, info = one_lane(config, image, program, case, stagnation_limit=0)
        assert (lanes.first_frames[index] == obs[0, 0]).all()
        assert (lanes.first_info[index] == info[0]).all()
        ends, reward = np.zeros((2, 1), np.bool_), np.zeros(1, np.float32)
        vector.step(np.array([3]), obs, reward, ends[0], ends[1], info, None, None)
        assert (landing.frames[index] == obs[0, 0]).all()
        assert (landing.info[index] == info[0]).all()
        assert landing.rewards[index] == reward[0]
        vector.close()
    lanes.close()


def reference(
    agent: Agent, config: TrainConfig, image: bytes, program: Any, case: Case
) -> tuple[bool, int, int, float]:
    """One lane, argmax, the network asked about copies of it: cleared, steps, x, return."""
    vector, obs, info = one_lane(config, image, program, case, stagnation_limit=PATIENCE)
    ends, reward, total, steps = np.zeros((2, 1), np.bool_), np.zeros(1, np.float32), 0.0, 0
    stack = torch.from_numpy(obs).repeat(CPU_BATCH, config.frame_stack, 1, 1)
    state = agent.initial_state(CPU_BATCH)
    previous = torch.zeros(CPU_BATCH, dtype=torch.int64)
    starts = torch.ones(CPU_BATCH, dtype=torch.bool)
    with torch.no_grad():
        while not ends.any():
            output = agent.act(stack, previous, state, starts)
            state, previous = output.state, output.logits.argmax(-1)
            action = np.array([int(previous[0])])
            vector.step(action, obs, reward, ends[0], ends[1], info, None, None)
            total, steps = total + float(reward[0]), steps + 1
            starts = torch.zeros_like(starts)
            frame = torch.from_numpy(obs).repeat(CPU_BATCH, 1, 1, 1)
            stack = torch.cat((stack[:, 1:], frame), 1)
    vector.close()
    cleared = bool(ends[0, 0]) and bool(info[0, COLUMN["flag_get"]])
    return cleared, steps, int(info[0, COLUMN["x_pos"]]), total


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"memory": "gru", "previous_action": True},
        {"color": True},
        {"observation": "tiles"},
        {"observation": "ram"},
    ],
)
def test_as_one_lane_at_a_time(changes: dict[str, Any], image: bytes, program: Any) -> None:
    config = tiny(**changes)
    agent = make_agent(config, seed=3)
    cases = make_cases((0, 5), ("argmax",), (0, 3, 11))
    outcomes = evaluate_cases(agent, config, image, program, cases, stuck_after=PATIENCE)
    for case, outcome in zip(cases, outcomes, strict=True):
        cleared, steps, x, total = reference(agent, config, image, program, case)
        assert (outcome.cleared, outcome.steps, outcome.x) == (cleared, steps, x)
        assert outcome.episode_return == pytest.approx(total, abs=1e-4)
        assert (outcome.stage, outcome.start_delay) == (stage_name(case.stage), case.start_delay)


def test_grouping_changes_nothing(image: bytes, program: Any) -> None:
    config = tiny(stages="1-2", memory="gru")
    agent = make_agent(config)

    def played(**changes: Any) -> list[Outcome]:
        arguments = {"delays": range(5), "stuck_after": PATIENCE, **changes}
        return evaluate(agent, config, image, program, **arguments)

    whole = played()
    assert len(whole) == 5 * 2
    assert played() == whole
    assert played(together=3) == whole
    sampled = [outcome for outcome in whole if outcome.policy == "sampled"]
    assert played(policies=("sampled",)) == sampled
    assert played(seed=1) != whole
    assert clears(whole) == sum(o.cleared for o in whole if o.policy == "argmax")


def test_evaluation_leaves_the_agent_alone(image: bytes, program: Any) -> None:
    config = tiny()
    agent = make_agent(config).train()
    torch.set_num_threads(2)
    try:
        evaluate(agent, config, image, program, delays=(0,), stuck_after=3)
        assert agent.training
        assert torch.get_num_threads() == 2
        # Threads that begin later are not bound to one core either.
        with ThreadPoolExecutor(1) as later:
            assert later.submit(torch.get_num_threads).result() == 2
    finally:
        torch.set_num_threads(1)


def test_powers_are_played_when_asked_for(image: bytes, program: Any) -> None:
    """Whatever the run is trained with: evaluations begin as small Mario at the door."""
    cases = make_cases((0, 1, 31), ("argmax",), (0, 9))
    drawn = []
    for power, expected in (("small", {0}), ("big", {1}), ("fire", {2}), ("any", {0, 1, 2})):
        config = tiny(start_power="fire", start_halfway=1.0)
        asked: dict[str, Any] = {"start_power": power} if power != "small" else {}
        lanes = EvalLanes(
            config, image, program, [*cases, *make_cases((0,), ("argmax",), range(8))], **asked
        )
        assert set(lanes.first_info[:, COLUMN["power"]].tolist()) <= expected
        assert not lanes.first_info[:, COLUMN["restart"]].any()
        drawn.append(set(lanes.first_info[:, COLUMN["power"]].tolist()))
        lanes.close()
    assert drawn[:3] == [{0}, {1}, {2}]
    assert len(drawn[3]) > 1
    # Small Mario dies of the first enemy; big Mario goes on.
    agent = make_agent(tiny(actions="RIGHT;RIGHT"))
    config = tiny(actions="RIGHT;RIGHT")
    asks: list[dict[str, Any]] = [{}, {"start_power": "small"}, {"start_power": "big"}]
    steps = [
        evaluate(agent, config, image, program, delays=(0,), policies=("argmax",), **given)[0].steps
        for given in asks
    ]
    assert steps[0] == steps[1] < steps[2]


def test_what_each_step_calls_may_end_it(image: bytes, program: Any) -> None:
    def refuse() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(make_agent(tiny()), tiny(), image, program, delays=(0,), each_step=refuse)


def test_whole_games(image: bytes, program: Any) -> None:
    """An agent that only runs right loses three lives in 1-1."""
    config = tiny(actions="right")
    agent = make_agent(config)
    with torch.no_grad():
        agent.heads.policy.weight.zero_()
        agent.heads.policy.bias.copy_(torch.tensor([0.0, 0.0, 0.0, 9.0, 0.0]))
    games = play_games(agent, config, image, program, policies=("argmax",), delays=(0, 4))
    assert [game.start_delay for game in games] == [0, 4]
    for game in games:
        assert (game.stage, game.reason, game.stages_cleared, game.won) == (
            *("1-1", "game over", 0),
            False,
        )
        assert 200 < game.x < 400


def test_chance_is_spread_evenly() -> None:
    keys = np.arange(64, dtype=np.uint64)
    numbers = np.stack([uniform(keys, step, 7) for step in range(50)])
    assert ((numbers > 0) & (numbers < 1)).all()
    assert abs(numbers.mean() - 0.5) < 0.01
    assert len(np.unique(numbers)) == numbers.size
    assert (uniform(keys[5:6], 3, 7) == numbers[3, 5:6]).all()


@pytest.mark.parametrize(
    ("text", "delays"), [("0..3", (0, 1, 2, 3)), ("7", (7,)), ("5,0..1,1", (0, 1, 5))]
)
def test_delays(text: str, delays: tuple[int, ...]) -> None:
    assert parse_delays(text) == delays


@pytest.mark.parametrize("text", ["", "x", "3..1", "0..121", "-1", "1..2..3"])
def test_wrong_delays(text: str) -> None:
    with pytest.raises(ValueError, match="start delay"):
        parse_delays(text)
