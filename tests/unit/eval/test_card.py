"""The card of an agent is its description, and its description what was measured."""

import shlex

import pytest
from small_agents import evaluation

from warpzone.cli.flags import resolve
from warpzone.cli.main import build_parser
from warpzone.env.stages import parse_stages
from warpzone.eval import card
from warpzone.run.shipped import read_card, read_description, shipped_names


def test_evaluations_of_one_kind_are_one() -> None:
    argmax = evaluation({"1-1": "101", "8-4": "000"})
    sampled = evaluation({"1-1": "110"}, totals={"sampled": {}})
    for row in (*sampled["episodes"], *sampled["stages"]):
        row["policy"] = "sampled"
    world = evaluation({"1-1": "000"}, rom="world")
    more = evaluation({"1-1": "11"}, delays="31,33")
    for row, delay in zip(more["episodes"], (31, 33), strict=True):
        row["start_delay"] = delay
    found = card.measured([world, more, argmax, sampled])
    kinds = [(one["rom"], one["delays"]) for one in found]
    assert sorted(kinds) == [("eu", "0..2"), ("eu", "31,33"), ("world", "0..2")]
    assert kinds[-1][0] == "world"
    first = next(one for one in found if one["delays"] == "0..2" and one["rom"] == "eu")
    assert first["clears"] == {
        "argmax": {"1-1": "101", "8-4": "000"},
        "sampled": {"1-1": "110"},
    }
    assert first["fails"] == {"1-1": [800, 1, 0], "8-4": [800, 3, 0]}
    assert card.total(first["clears"]["argmax"]) == (2, 6)


def test_the_usual_delays_come_first() -> None:
    usual = evaluation({"1-1": "1" * 31})
    others = evaluation({"1-1": "11"})
    assert [one["delays"] for one in card.measured([others, usual])] == ["0..30", "0..1"]


def test_the_sample_is_of_sure_stages() -> None:
    stages = {"1-1": "11", "1-2": "10", "1-3": "00", "1-4": "11"}
    document = evaluation(stages)
    chosen = card.sample(document["episodes"], stages)
    assert [(one["stage"], one["start_delay"], one["cleared"]) for one in chosen] == [
        ("1-1", 0, True), ("1-4", 0, True), ("1-3", 0, False),
    ]  # fmt: skip


def test_games_by_policy() -> None:
    lost = {"policy": "argmax", "stages_cleared": 2, "won": False, "stage": "1-3"}
    lost |= {"x": 40, "steps": 500, "score": 3}
    # The very same game twice; the third one differs only in how long it took.
    rows = [lost, {**lost, "stages_cleared": 3, "won": True, "stage": "8-4"}, dict(lost)]
    found = card.games([{"games": rows}])["argmax"]
    assert (found["games"], found["won"], found["mean"], found["best"]) == (3, 1, 2.33, 3)
    assert found["ended"] == {"1-3": 2, "8-4": 1}
    assert found["different"] == 2
    assert card.different([*rows, {**lost, "steps": 501}]) == 3
    (line,) = card.game_lines({"argmax": found})
    assert "1 of 3 games won (2 of them different); it ends in 1-3 (2), 8-4 (1)" in line
    # As older descriptions have it.
    del found["different"]
    (line,) = card.game_lines({"argmax": found})
    assert "1 of 3 games won; it ends in" in line


def test_rates_have_intervals() -> None:
    assert card.rate(766, 992) == "766 of 992, 77.2 % (95 %: 74.5 to 79.7)"


@pytest.mark.parametrize("name", shipped_names())
def test_cards_say_what_descriptions_say(name: str) -> None:
    about = read_description(name)
    text = read_card(name)
    assert card.render(about) == text
    first = about["measured"][0]
    assert (first["rom"], first["delays"]) == ("eu", "0..30")
    assert set(first["clears"]) == {"argmax", "sampled"}
    for clears in first["clears"].values():
        assert list(clears) == list(card.STAGES)
        assert {len(digits) for digits in clears.values()} == {31}
        assert card.rate(*card.total(clears)) in text
    words = shlex.split(about["training"]["command"])
    assert words[0] == "warpzone"
    if words[1] == "teach":
        # It has the settings of the agent that it began with.
        args = build_parser("teach").parse_args(words[1:])
        assert parse_stages(args.stages) == tuple(range(32))
    else:
        config = resolve(words[2:], prog="warpzone train", about="", say=lambda text: None)
        same = {field: getattr(config, field) for field in about["config"]}
        assert same == about["config"]
    never = [stage for stage, digits in first["clears"]["argmax"].items() if "1" not in digits]
    assert all(f"- {stage}: never cleared" in text for stage in never)
    assert {one["stage"] for one in about["sample"]} <= set(card.STAGES)
    assert len(about["sample"]) >= card.SAMPLE_CLEARED


def test_a_card_says_how_weights_are_kept() -> None:
    about = {**read_description("all"), "bytes": 6 << 20}
    words = {
        "half": "half precision (loading makes it single)",
        "single": "single precision",
        "mixed": "half precision, large matrices in 8 bits (loading makes it single)",
    }
    assert words.keys() == card.PRECISIONS.keys()
    for precision, said in words.items():
        text = card.render({**about, "precision": precision})
        assert f"| file | 6.0 MiB, {said} |" in text
        assert f"{card.PRECISIONS[precision].capitalize()}, on " in text


def test_a_card_shows_only_what_was_measured() -> None:
    about = read_description("all")
    sampled = evaluation({"1-1": "110"}, totals={"sampled": {}})
    for row in (*sampled["episodes"], *sampled["stages"]):
        row["policy"] = "sampled"
    short = {**about, "measured": card.measured([sampled]), "games": {}, "precision": "single"}
    short["training"] = {**about["training"], "seconds": None}
    text = card.render(short)
    assert "sampled: **2 of 3" in text
    assert "| 1-1 | 2/3 |" in text
    assert "1-2" not in text.partition("## What was measured")[2]
    assert "## Known failures" not in text
    assert "Single precision" in text
    assert "steps, from scratch" in text
    assert "Nothing yet." in card.render({**short, "measured": []})
