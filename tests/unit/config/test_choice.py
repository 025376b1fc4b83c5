"""The preset that fits what is asked and what the machine has."""

import pytest
from tiny_runs import tiny

from warpzone.config.choice import choose_preset, fitted, made_for_others

BOTH = ("all", "all-cpu", "fast-1-1", "quick")
FORMER = ("fast-1-1", "quick")


@pytest.mark.parametrize(
    ("stages", "cuda", "known", "name", "why"),
    [
        ("1-1", False, BOTH, "quick", "one stage, and the network runs on the CPU"),
        ("8-4", False, BOTH, "quick", "one stage, and the network runs on the CPU"),
        ("1-1", True, BOTH, "fast-1-1", "one stage, and the network runs on a GPU"),
        ("all", False, BOTH, "all-cpu", "32 stages, and the network runs on the CPU"),
        ("all", True, BOTH, "all", "32 stages, and the network runs on a GPU"),
        ("1-1,1-2", True, BOTH, "all", "2 stages, and the network runs on a GPU"),
        ("game", False, BOTH, "all-cpu", "the whole game, and the network runs on the CPU"),
        ("all", False, FORMER, "quick", "32 stages, and the network runs on the CPU"),
        ("all", True, FORMER, "fast-1-1", "32 stages, and the network runs on a GPU"),
        ("all", True, ("all-cpu", "quick"), "all-cpu", "32 stages"),
    ],
)
def test_the_choice(stages: str, cuda: bool, known: tuple[str, ...], name: str, why: str) -> None:
    choice = choose_preset(stages, cuda=cuda, known=known)
    assert choice.name == name
    assert choice.why.startswith(why)


def test_a_preset_says_for_which_stages_it_was_made() -> None:
    one, two = tiny(stages="1-1"), tiny(stages="1-2")
    assert made_for_others(one, one) == ""
    assert "was made for 1-1 and is used for 1-2" in made_for_others(one, two)
    everything, game = tiny(stages="all"), tiny(stages="game")
    assert made_for_others(everything, two) == ""
    assert "is used for all" in made_for_others(one, everything)
    assert "is used for game" in made_for_others(everything, game)
    assert made_for_others(game, everything) == ""


def test_a_preset_chosen_for_the_whole_game_chooses_among_no_stages() -> None:
    preset = tiny(stages="all", curriculum="progress", end_on_setback=True)
    assert fitted(preset, "game") == preset.replace(curriculum="none", end_on_setback=False)
    assert fitted(preset, "all") == preset
