"""Action sets and button scripts."""

import pytest

from warpzone.env.actions import ACTION_SETS, BUTTONS, action_table, button_mask, mask_name
from warpzone.env.script import load_script, parse_script, script_names


def test_buttons_are_the_bits_of_the_controller() -> None:
    order = ["A", "B", "SELECT", "START", "UP", "DOWN", "LEFT", "RIGHT"]
    assert [BUTTONS[name] for name in order] == [1, 2, 4, 8, 16, 32, 64, 128]


def test_named_sets_keep_the_order_of_gym_super_mario_bros() -> None:
    actions = pytest.importorskip("gym_super_mario_bros.actions")
    for name, theirs in (
        ("right", actions.RIGHT_ONLY),
        ("simple", actions.SIMPLE_MOVEMENT),
        ("complex", actions.COMPLEX_MOVEMENT),
    ):
        assert action_table(name).masks == bytes(button_mask(entry) for entry in theirs)


def test_extended_set() -> None:
    assert action_table("extended").masks == bytes([0, 8, 128, 130, 129, 131, 136, 138])
    assert action_table("extended").names == (
        *ACTION_SETS["extended"][:6],
        "RIGHT+START",
        "RIGHT+START+B",
    )


def test_own_tables_in_every_spelling() -> None:
    expected = bytes([0, 129, 32])
    assert action_table([["NOOP"], ["right", "A"], ["down"]]).masks == expected
    assert action_table(["NOOP", "RIGHT+A", "Down"]).masks == expected
    assert action_table(expected).masks == expected
    assert action_table([[], ["A"]]).masks == bytes([0, 1])


def test_mask_names_and_masks_are_inverse() -> None:
    for mask in range(256):
        assert button_mask(mask_name(mask)) == mask


@pytest.mark.parametrize(
    ("actions", "error", "text"),
    [
        ("jumpy", ValueError, "jumpy"),
        ([["right", "C"]], ValueError, "'C'"),
        ([["NOOP", "A"]], ValueError, "NOOP"),
        ([], ValueError, "1 to 256"),
        ([[1, 2]], TypeError, "1"),
        (7, TypeError, "int"),
        (["A"] * 257, ValueError, "257"),
        ([1, 2], TypeError, "not 1"),
        ("NOOP;RIGHT;", ValueError, "without buttons"),
    ],
)
def test_bad_actions_are_named(actions: object, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        action_table(actions)  # type: ignore[arg-type]


def test_script_is_run_length_coded() -> None:
    masks = parse_script("# warm up\nNOOP:2, RIGHT+B:3\nright+a+b:1  # jump\n")
    assert masks == bytes([0, 0, 130, 130, 130, 131])


@pytest.mark.parametrize("text", ["RIGHT", "RIGHT:0", "RIGHT:x", "RIGHT:-1", "JUMP:3", "RIGHT::2"])
def test_bad_script_tokens_are_named(text: str) -> None:
    with pytest.raises(ValueError, match=text.split(":")[0]):
        parse_script(f"NOOP:1,{text}")


def test_scripts_have_limits() -> None:
    with pytest.raises(ValueError, match="empty"):
        parse_script(" # nothing\n")
    with pytest.raises(ValueError, match="frames"):
        parse_script("A:1000001")
    with pytest.raises(ValueError, match="no script 'nothing'"):
        load_script("nothing")
    with pytest.raises(ValueError, match=r"no script 'RIGHT\+B'; write BUTTONS:FRAMES"):
        load_script("RIGHT+B")
    with pytest.raises(TypeError, match="not 5"):
        load_script(5)  # type: ignore[arg-type]


def test_a_script_may_be_longer_than_the_name_of_a_file() -> None:
    text = ",".join(["RIGHT+B:2,A:1"] * 400)
    assert load_script(text) == bytes([130, 130, 1]) * 400


def test_packaged_scripts_can_be_read() -> None:
    assert "demo-eu" in script_names()
    for name in script_names():
        assert len(load_script(name)) > 100
