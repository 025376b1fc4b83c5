"""A course: what it draws, what it keeps of rounds, and which agent is the best."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import make_agent, tiny

from warpzone import rom
from warpzone.env.stages import parse_stages, stage_name
from warpzone.eval.cases import Outcome
from warpzone.eval.weights import find_agent
from warpzone.eval.whole_game import Game
from warpzone.run.folder import RunFolder
from warpzone.run.safe import read_header
from warpzone.teach import course
from warpzone.teach.course import Course, NothingFoundError, Plan, failures, sharpen
from warpzone.teach.fitting import Fit
from warpzone.teach.lessons import Lesson
from warpzone.teach.tasks import Findings, Start

STAGES = parse_stages("1-1,4-3")
FIRST, SECOND = STAGES


def outcome(stage: str, delay: int, cleared: bool) -> Outcome:
    return Outcome(
        stage, "argmax", delay, cleared, 100, 10, 300, 1.0, "flag" if cleared else "death"
    )


def lesson(agent: Any, start: Start, length: int, shown: bool) -> Lesson:
    encoded = torch.randn(length, agent.spec.scaled_features).half()
    actions = torch.zeros(length, dtype=torch.int64)
    logits, marks = torch.zeros(length, agent.spec.actions).half(), (actions == 0) & shown
    values = torch.zeros(length).half()
    return Lesson(start.stage, start.start_delay, encoded, actions, marks, logits, values)


def game(stages: int, won: bool = False) -> Game:
    return Game("argmax", 0, "2-1", 40, stages, won, "won" if won else "game over", 100, 50)


class World:
    """Stands for the game: 1-1 is cleared alone, 4-3 never, and evaluations are told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, clears: list[int]) -> None:
        self.explored: list[list[Start]] = []
        self.fitted: list[list[tuple[int, int, float]]] = []
        self.clears = clears
        self.finds = True
        self.powers: list[str] = []
        self.averaged = 0
        world = self

        class Explorer:
            def __init__(self, agent: Any, *_: Any, **kwargs: Any) -> None:
                self.agent, self.known = agent, kwargs["known"]
                world.powers.append(kwargs["start_power"])
                assert world.averaged == 1
                # One memory of what worked for all rounds.
                assert len(self.known) == len(world.explored)

            def explore(self, starts: list[Start], steps: int, search: int) -> Findings:
                assert (steps, search) == (77, 33)
                self.known[len(world.explored)] = None
                world.explored.append(starts)
                number = len(world.explored)
                # All but one of each stage.
                left = [starts[0], starts[-1]]
                found = [
                    lesson(self.agent, start, number, start.stage == SECOND)
                    for start in starts[1:-1]
                ]
                alone = [(start, start.stage == FIRST) for start in starts]
                return Findings(found if world.finds else [], alone, left, 100, 7)

        class Fitter:
            def __init__(self, agent: Any, **told: Any) -> None:
                assert told == {"learning_rate": 0.25, "shown_weight": 3.0, "seed": 11}
                self.agent = agent

            def fit(self, lessons: list[Lesson], weights: list[float], steps: int, **_: Any) -> Fit:
                assert steps == 5
                assert world.averaged == 0
                world.fitted.append(
                    [(o.stage, o.length, w) for o, w in zip(lessons, weights, strict=True)]
                )
                with torch.no_grad():
                    next(self.agent.heads.parameters()).add_(1.0)
                return Fit(0.5, 0.75, 0.01)

            @contextmanager
            def averaged(self) -> Iterator[None]:
                world.averaged += 1
                yield
                world.averaged -= 1

        def evaluate(agent: Any, *_: Any, **kwargs: Any) -> list[Outcome]:
            assert kwargs["policies"] == ("argmax",)
            assert kwargs["stages"] == "1-1,4-3"
            assert world.averaged == 1
            count = world.clears.pop(0)
            return [outcome("1-1", 0, True), *(outcome("4-3", d, d < count) for d in range(4))]

        for name, stand_in in (("Explorer", Explorer), ("Fitter", Fitter), ("evaluate", evaluate)):
            monkeypatch.setattr(course, name, stand_in)


def run(
    world: World, tmp_path: Path, rounds: int, told: list[str] | None = None, **changes: Any
) -> Path:
    config = tiny(runs_dir=str(tmp_path), run_name="taught")
    folder = RunFolder.create(config)
    folder.write_config(config)
    values = {"episodes": 3, "trial_steps": 77, "search_steps": 33, "fit_steps": 5, "lr": 0.25}
    plan = Plan(STAGES, **{**values, "rounds": rounds, "shown_weight": 3.0, "seed": 11, **changes})
    told = [] if told is None else told
    one = Course(plan, make_agent(config), config, rom.find(None), None, folder, say=told.append)
    try:
        one.run()
    finally:
        folder.close()
    return folder.path


def test_many_start_delays_first_and_then_more_where_the_agent_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world = World(monkeypatch, [0, 2, 4, 4])
    run(world, tmp_path, 3)
    for stage in STAGES:
        first = [one for one in world.explored[0] if one.stage == stage]
        assert len(set(first)) == 24
        assert not any(one.drawn for one in first)
        assert {one.start_delay for one in first} <= set(range(121))
    for starts in world.explored[1:]:
        counts = {stage: [one for one in starts if one.stage == stage] for stage in STAGES}
        assert {stage: len(set(part)) for stage, part in counts.items()} == {FIRST: 3, SECOND: 12}
        # In half of them the agent draws its actions.
        assert sum(one.drawn for one in counts[SECOND]) == 6
    # Another round draws others.
    assert world.explored[1] != world.explored[2]


def test_stages_of_which_only_clears_are_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world = World(monkeypatch, [0, 2, 4])
    run(world, tmp_path, 2, keep=(SECOND,))
    for starts in world.explored:
        assert {(one.stage, one.tried) for one in starts} == {(FIRST, True), (SECOND, False)}


@pytest.mark.parametrize("power", ["small", "any"])
def test_what_is_found_as_small_mario_is_a_way(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, power: str
) -> None:
    world = World(monkeypatch, [0, 2])
    path = run(world, tmp_path, 1, start_power=power)
    assert world.powers == [power]
    assert (path / "ways.jsonl").exists() == (power == "small")


def test_failures_are_remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the agent did alone decides, and the rounds before."""
    world = World(monkeypatch, [2, 0])
    run(world, tmp_path, 1)
    weights = {stage: weight for stage, _, weight in world.fitted[0]}
    assert weights[FIRST] == pytest.approx(2.0)
    assert weights[SECOND] == pytest.approx(2.0 * (1.0 + 4.0 * (0.6 * 0.5 + 0.4 * 1.0)))


def test_what_is_done_in_a_stage_that_is_mostly_failed_is_hardly_kept() -> None:
    one = Course.__new__(Course)
    one._failing = {FIRST: 0.9}
    one.plan = Plan(STAGES)
    agent = make_agent(tiny())
    kept, shown = (lesson(agent, Start(FIRST, 3), 4, shown) for shown in (False, True))
    assert one._weight(5, 1, shown) == pytest.approx(1.0 + 4.0 * 0.9)
    assert one._weight(5, 1, kept) == pytest.approx(0.1 * (1.0 + 4.0 * 0.9))
    # Where nothing is to change, the little that works is kept all the more.
    one.plan = Plan(STAGES, keep=(FIRST,))
    assert one._weight(5, 1, kept) == one._weight(5, 1, shown)


def test_lessons_of_all_rounds_are_fitted_new_ones_more_often(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(course, "MOST_KEPT", 24)
    world = World(monkeypatch, [0, 0, 0, 0])
    monkeypatch.setattr(course, "FAILING_WEIGHT", 0.0)
    run(world, tmp_path, 3)
    # Of those without anything to learn the oldest have gone.
    kept = [[one for one in part if one[0] == FIRST] for part in world.fitted]
    assert [len(part) for part in kept] == [23, 24, 24]
    assert {length for _, length, _ in kept[2]} == {1, 2, 3}
    shown = [[one for one in part if one[0] == SECOND] for part in world.fitted]
    assert [len(part) for part in shown] == [23, 34, 45]
    assert {(length, weight) for _, length, weight in shown[2]} == {(1, 1.0), (2, 2.0), (3, 2.0)}


def test_the_best_agent_is_kept_and_all_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told: list[str] = []
    path = run(World(monkeypatch, [1, 3, 2]), tmp_path, 2, told)
    rows = [json.loads(line) for line in (path / "evals.jsonl").read_text().splitlines()]
    assert [row["global_step"] for row in rows[::5]] == [0, 107, 214]
    assert [row["clears"] for row in rows[::5]] == [2, 4, 3]
    assert {row["stage"] for row in rows} == {"1-1", "4-3"}
    weights = [
        next(find_agent(file).agent.heads.parameters())
        for file in (path, path / "best.safetensors", path / "weights.safetensors")
    ]
    start = next(make_agent(tiny()).heads.parameters())
    torch.testing.assert_close(weights[0], start + 1.0)
    torch.testing.assert_close(weights[1], start + 1.0)
    torch.testing.assert_close(weights[2], start + 2.0)
    assert find_agent(path).global_step == 107
    assert [text.split()[0] for text in told] == ["[eval]"] + ["[teach]", "[teach]", "[eval]"] * 2
    assert "alone the flag from 24 of 48 starts; lessons for 23 others" in told[1]
    assert "none for 1 of 1-1, 1 of 4-3" in told[1]
    assert "75% of shown actions lead, drift 0.0100" in told[2]


def test_games_of_each_round(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    world, played = World(monkeypatch, [0, 0, 0]), list[list[Start]]()

    class Games:
        won = 2

        def __init__(self, agent: Any, *_: Any, **__: Any) -> None:
            self.agent = agent
            assert world.averaged == 1

        def explore(self, starts: list[Start], steps: int) -> Findings:
            assert steps == 77
            played.append(starts)
            found = [lesson(self.agent, Start(20, 1), 9, True)]
            return Findings(found, [(starts[0], True), (starts[0], False)], [], 50, 0)

    monkeypatch.setattr(course, "GameExplorer", Games)
    monkeypatch.setattr(course, "play_games", lambda *_, **__: [game(3)])
    told: list[str] = []
    path = run(world, tmp_path, 2, told, games=5)
    assert [len(set(starts)) for starts in played] == [5, 5]
    assert all(start.stage == 0 for starts in played for start in starts)
    # Far from each other; after the first round half of them are drawn.
    delays = [[start.start_delay for start in starts] for starts in played]
    assert delays[0] != delays[1]
    for one in delays:
        assert all(24 <= later - sooner <= 25 for sooner, later in pairwise(one))
        assert one[0] - one[-1] + 121 <= 25
    assert [sum(start.drawn for start in starts) for starts in played] == [0, 2]
    # Their lessons are taken, of stages that are not taught as well; they say nothing about how
    # often stages are failed.
    assert sum(stage == 20 for stage, _, _ in world.fitted[1]) == 2
    weights = {stage: weight for stage, _, weight in world.fitted[1]}
    assert weights[20] == 2.0
    assert any("with trials 2 of 5 games are won" in text for text in told)
    rows = [json.loads(line) for line in (path / "evals.jsonl").read_text().splitlines()]
    assert rows[-1]["global_step"] == 2 * (107 + 50)


@pytest.mark.parametrize(("judge", "best"), [("stages", 1), ("games", 2)])
def test_games_may_say_which_agent_is_the_best(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, judge: str, best: int
) -> None:
    world = World(monkeypatch, [1, 3, 2, 0])
    played = iter([[game(4), game(5)], [game(3)], [game(32, won=True), game(1)], [game(9)]])

    class Games:
        won = 0

        def __init__(self, *_: Any, **__: Any) -> None: ...

        def explore(self, starts: list[Start], steps: int) -> Findings:
            return Findings([], [], [], 0, 0)

    def play(agent: Any, *_: Any, policies: tuple[str, ...]) -> list[Game]:
        # From the start delays of the protocol, with the weights that are evaluated.
        assert policies == ("argmax",)
        assert world.averaged == 1
        return next(played)

    monkeypatch.setattr(course, "GameExplorer", Games)
    monkeypatch.setattr(course, "play_games", play)
    told: list[str] = []
    path = run(world, tmp_path, 3, told, games=2, judge=judge)
    assert find_agent(path).global_step == best * 107
    said = [text.split(", ", 1)[1] for text in told if text.startswith("[eval]")]
    assert said[2] == (
        "round 2: argmax clears 3 of 5; in games 16.50 stages in a row, 1 of 2 games are won"
    )
    meta = json.loads(read_header(path / "best.safetensors")[1]["meta"])
    assert (meta["stages_in_a_row"], meta["games_won"]) == {1: (3.0, 0), 2: (16.5, 1)}[best]
    rows = [json.loads(line) for line in (path / "evals.jsonl").read_text().splitlines()]
    assert "games_won" not in rows[0]


def test_nothing_found_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    world = World(monkeypatch, [0, 0])
    world.finds = False
    with pytest.raises(NothingFoundError, match="no trial reached the flag"):
        run(world, tmp_path, 1)


def test_a_sharper_policy_draws_what_is_likely(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    agent = make_agent(tiny())
    obs = torch.randint(0, 255, (3, agent.spec.stack, agent.spec.height, agent.spec.width))
    lanes = torch.zeros(3, dtype=torch.int64), agent.initial_state(3), torch.ones(3).bool()
    with torch.no_grad():
        before = agent.act(obs.to(torch.uint8), *lanes)
        sharpen(agent, 2.5)
        after = agent.act(obs.to(torch.uint8), *lanes)
    torch.testing.assert_close(after.logits, 2.5 * before.logits)
    torch.testing.assert_close(after.value, before.value)
    # Before the first evaluation.
    seen: list[torch.Tensor] = []
    world = World(monkeypatch, [0, 0])
    evaluate = vars(course)["evaluate"]

    def note(agent: Any, *rest: Any, **kwargs: Any) -> Any:
        seen.append(agent.heads.policy.weight.detach().clone())
        return evaluate(agent, *rest, **kwargs)

    monkeypatch.setattr(course, "evaluate", note)
    run(world, tmp_path, 1, sharpen=3.0)
    torch.testing.assert_close(seen[0], 3.0 * make_agent(tiny()).heads.policy.weight)


def test_failures() -> None:
    outcomes = [outcome("1-1", d, True) for d in range(3)]
    outcomes += [outcome("4-3", d, d == 0) for d in range(4)]
    assert failures(STAGES, outcomes) == {FIRST: 0.0, SECOND: 0.75}
    assert [stage_name(stage) for stage in STAGES] == ["1-1", "4-3"]
