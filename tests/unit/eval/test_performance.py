"""Agents for people to watch: the frames are those of the evaluated episode."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tiny_runs import make_agent, tiny

from warpzone import rom
from warpzone.env.actions import BUTTONS
from warpzone.eval import video_frames
from warpzone.eval.cases import Case
from warpzone.eval.eval_lanes import EvalLanes
from warpzone.eval.evaluate import evaluate_cases
from warpzone.eval.overlay import _PAD, PANEL, PARTS, Panel, parse_parts, visible
from warpzone.eval.performance import Performance, Shot, _softmax
from warpzone.rom import native

CASES = [Case(0, "argmax", 0), Case(1, "sampled", 5), Case(0, "sampled", 3)]
PATIENCE = 25


@pytest.fixture(scope="module")
def played() -> tuple[Performance, list[list[Shot]], list[Any]]:
    config = tiny()
    agent, image = make_agent(config, seed=3), rom.find()
    program = native.load(image)
    performance = Performance(agent, config, image, program, CASES, stuck_after=PATIENCE)
    shots = list(performance.frames())
    outcomes = evaluate_cases(agent, config, image, program, CASES, stuck_after=PATIENCE)
    return performance, shots, outcomes


def test_it_is_the_evaluated_episode(played: Any) -> None:
    performance, shots, outcomes = played
    for shot, outcome in zip(performance.last, outcomes, strict=True):
        assert (shot.stage, shot.case.start_delay) == (outcome.stage, outcome.start_delay)
        assert (shot.x, shot.furthest_x, shot.end) == (
            *(outcome.x, outcome.furthest_x),
            outcome.reason,
        )
    # All but the first are drawn after a frame; a step that ends an episode may be cut short.
    longest = max(outcome.steps for outcome in outcomes) * 4 + 1
    # One more says that the last lane is stuck, which is known only after its last frame.
    assert longest - 4 < len(shots) <= longest + 1
    assert [shot.end for shot in shots[-1]] == [outcome.reason for outcome in outcomes]


def test_frames_are_those_of_lanes_stepped_the_usual_way(played: Any) -> None:
    _, shots, _ = played
    config, image = tiny(), rom.find()
    lanes = EvalLanes(config, image, native.load(image), CASES, stagnation_limit=0)
    everyone = np.arange(len(CASES))
    assert (shots[0][1].screen == lanes.vector.screen(1)).all()
    for step in range(5):
        actions = np.array([shot.action for shot in shots[4 * step + 1]])
        landing = lanes.step(actions, everyone)
        for lane in range(len(CASES)):
            assert (shots[4 * step + 4][lane].screen == lanes.vector.screen(lane)).all()
            # The next decision is made with what this step came to.
            assert (shots[4 * step + 5][lane].seen == landing.frames[lane]).all()
    lanes.close()


def test_chances_and_values(played: Any) -> None:
    _, shots, _ = played
    for shot in shots[9]:
        assert shot.chances.sum() == pytest.approx(1.0, abs=1e-5)
        assert np.isfinite(shot.value)
        assert shot.case.policy == "sampled" or shot.action == shot.chances.argmax()


def one(shots: list[list[Shot]], end: str) -> Iterator[list[Shot]]:
    for index, frame in enumerate(shots):
        last = index == len(shots) - 1
        yield [replace(frame[0], end=end if last else "")]


def test_slow_motion_only_before_a_death(played: Any) -> None:
    _, shots, _ = played
    some = shots[:100]
    panel = Panel([str(i) for i in range(7)], (), 1)
    counts = {
        end: sum(1 for _ in video_frames.single(one(some, end), panel, slow=3))
        for end in ("flag", "death", "stuck")
    }
    assert counts["flag"] == counts["stuck"] == 100 + video_frames.HOLD
    assert counts["death"] == 100 + 2 * video_frames.BEFORE + video_frames.HOLD


def test_overlays(played: Any) -> None:
    _, shots, _ = played
    names = [f"ACTION{i}" for i in range(7)]
    shot = shots[20][0]
    plain = Panel(names, (), 2).compose(shot)
    assert plain.shape == (480, 512, 3)
    drawn = {}
    for parts in (("buttons",), ("value",), ("policy",), ("view",), PARTS):
        picture = Panel(names, parts, 2).compose(shot)
        assert picture.shape == (480, 512 + 2 * PANEL, 3)
        assert (picture[:, :512] == plain).all()
        drawn[parts] = picture
    assert len({picture.tobytes() for picture in drawn.values()}) == len(drawn)
    ended = Panel(names, (), 1).compose(replace(shot, end="flag"))
    assert tuple(ended[0, 0]) != tuple(shot.screen[0, 0])


#: Colours of the panel: what is on, what is off, curves, and an episode's end by death.
ON, OFF, CURVE, DEAD = (255, 92, 80), (92, 99, 112), (98, 168, 255), (255, 70, 60)


def drawn_by(parts: tuple[str, ...], *shots: Shot) -> Any:
    """The panel alone after some decisions, in pixels of twice the NES's."""
    panel = Panel([str(i) for i in range(7)], parts, 2)
    for shot in shots:
        picture = panel.compose(replace(shot, chances=shot.chances.copy()))
    return picture[:, 512:]


def colour_at(panel: Any, x: float, y: float) -> tuple[int, ...]:
    return tuple(int(part) for part in panel[round(2 * y), round(2 * x)])


def test_the_pad_shows_what_is_held(played: Any) -> None:
    shot = replace(played[1][20][0], mask=BUTTONS["B"] | BUTTONS["RIGHT"], end="")
    panel = drawn_by(("buttons",), shot)
    places = {"LEFT": (15, 47), "RIGHT": (35, 47), "UP": (25, 37), "DOWN": (25, 57)}
    places |= {"SELECT": (50, 54), "START": (62, 54), "B": (78, 52), "A": (94, 52)}
    for name, place in places.items():
        assert colour_at(panel, *place) == (ON if name in ("B", "RIGHT") else OFF), name


def test_the_curve_goes_from_the_lowest_to_the_highest_value(played: Any) -> None:
    shots = [replace(played[1][20][0], value=value, end="") for value in (-2.0, 6.0, 2.0)]
    panel = drawn_by(("value",), *shots)
    for x, y in ((6, 64), (7, 36), (8, 50)):
        assert colour_at(panel, x, y) == CURVE
    assert (panel == CURVE).all(-1).any(0).nonzero()[0].tolist() == [12, 13, 14, 15, 16]
    # Nothing changed, so it is flat, at the bottom.
    flat = drawn_by(("value",), *[replace(shots[0], value=3.0)] * 3)
    assert (flat == CURVE).all(-1).any(1).nonzero()[0].tolist() == [128]


def test_bars_are_as_long_as_actions_are_likely(played: Any) -> None:
    chances = np.array([0.5, 0.25, 0.125, 0.125, 0.0, 0.0, 0.0], np.float32)
    panel = drawn_by(("policy",), replace(played[1][20][0], chances=chances, action=1, end=""))
    for row, chance in enumerate(chances[:4]):
        line = panel[2 * (24 + 8 * row + 3), 104:]
        colour = ON if row == 1 else CURVE
        assert int((line == colour).all(-1).sum()) == pytest.approx(2 * 54 * chance + 1, abs=1)


def test_the_second_line_says_where_or_how_it_ended(played: Any) -> None:
    shot = replace(played[1][20][0], x=188)
    for end, colour in (("", OFF), ("death", DEAD)):
        line = drawn_by(("view",), replace(shot, end=end))[26:46]
        assert (line == colour).all(-1).any(), end


def test_observations_of_other_kinds_are_shown() -> None:
    planar = np.stack([np.full((36, 36), value, np.uint8) for value in (1, 2, 3)]).reshape(108, 36)
    assert (visible(planar) == [1, 2, 3]).all()
    tiles = np.zeros((13, 16), np.uint8)
    tiles[3, 4] = 2
    assert visible(tiles).max() == 255
    ram = np.arange(2048, dtype=np.uint16).astype(np.uint8).reshape(1, 2048)
    assert visible(ram).shape == (32, 64)
    assert visible(ram).tobytes() == ram.tobytes()
    gray = np.ones((84, 84), np.uint8)
    assert visible(gray) is gray


def test_a_wall_of_lanes(played: Any) -> None:
    _, shots, _ = played
    pictures = list(video_frames.wall(iter(shots), columns=2, scale=1))
    assert len(pictures) == len(shots) + video_frames.HOLD
    assert pictures[0].shape == (482, 514, 3)
    first = next(i for i, frame in enumerate(shots) if frame[0].end)
    assert (pictures[first][:240, :256] == pictures[-1][:240, :256]).all()


def test_a_wall_is_slow_if_the_last_to_end_dies(played: Any) -> None:
    _, shots, _ = played
    some = [[replace(shot, end="") for shot in frame[:2]] for frame in shots[:100]]

    def count(first: str, last: str) -> int:
        """Lane 1 ends halfway, lane 0 with the last frame."""
        late = [[a, replace(b, end=first)] for a, b in some[50:]]
        late[-1][0] = replace(late[-1][0], end=last)
        return sum(
            1 for _ in video_frames.wall(iter([*some[:50], *late]), columns=2, scale=1, slow=3)
        )

    assert count("death", "flag") == 100 + video_frames.HOLD
    assert count("flag", "death") == 100 + 2 * video_frames.BEFORE + video_frames.HOLD


def test_words() -> None:
    assert parse_parts("all") == PARTS
    assert parse_parts("none") == ()
    assert parse_parts("view, policy") == ("view", "policy")
    with pytest.raises(ValueError, match="hat"):
        parse_parts("hat")
    assert video_frames.parse_mosaic("4x3") == (4, 3)
    for text in ("4", "0x3", "20x20", "x", "4x"):
        with pytest.raises(ValueError, match="mosaic"):
            video_frames.parse_mosaic(text)
    cases = video_frames.mosaic_cases((0, 1), "argmax", 2, 5)
    assert [(case.stage, case.start_delay) for case in cases] == [
        *((0, 2), (1, 2), (0, 3), (1, 3), (0, 4)),
    ]
    with pytest.raises(ValueError, match="more stages"):
        video_frames.mosaic_cases((0,), "argmax", 110, 12)


def test_chances_of_any_logits() -> None:
    """Those of a sure network are far apart."""
    logits = np.array([[0.0, 1000.0], [-1000.0, -1000.0], [0.0, np.log(3.0)]], np.float32)
    shares = np.array([[0.0, 1.0], [0.5, 0.5], [0.25, 0.75]])
    np.testing.assert_allclose(_softmax(logits), shares, rtol=1e-6)


def test_the_pad_has_buttons_of_one_size_that_do_not_touch() -> None:
    boxes = {name: _PAD[name] for name in BUTTONS if name in _PAD}
    assert len(boxes) == 8
    for group in (("LEFT", "RIGHT", "UP", "DOWN"), ("SELECT", "START"), ("A", "B")):
        sizes = {(boxes[n][2] - boxes[n][0], boxes[n][3] - boxes[n][1]) for n in group}
        assert len(sizes) == 1, group
    for first, (left, top, right, bottom) in boxes.items():
        assert 0 <= left < right <= 100
        assert 0 <= top < bottom <= 44
        for second, other in boxes.items():
            apart = right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
            assert apart or first == second, (first, second)


@pytest.mark.parametrize("start", [{"start_power": "any"}, {"start_halfway": 1.0}])
def test_it_begins_as_it_is_told(start: dict[str, Any]) -> None:
    """With a power it is still the evaluated episode; 1-4 has no middle."""
    config = tiny()
    agent, image = make_agent(config, seed=3), rom.find()
    program = native.load(image)
    cases = [Case(0, "argmax", delay) for delay in range(9)] + [Case(3, "argmax", 0)]
    performance = Performance(agent, config, image, program, cases, stuck_after=2, **start)
    first = next(iter(performance.frames()))
    began = [shot.began for shot in first]
    if "start_halfway" in start:
        assert began == ["halfway"] * 9 + ["small"]
        assert [shot.x > 1000 for shot in first] == [True] * 9 + [False]
        return
    assert set(began) == {"small", "big", "fire"}
    outcomes = evaluate_cases(agent, config, image, program, cases, stuck_after=2, **start)
    for _ in performance.frames():
        pass
    ends = [(shot.x, shot.furthest_x, shot.end) for shot in performance.last]
    assert ends == [(outcome.x, outcome.furthest_x, outcome.reason) for outcome in outcomes]
