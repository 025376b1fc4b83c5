"""`module:factory`: any Gymnasium environment, wherever it keeps x."""

from typing import Any

import backend_games
import numpy as np
import pytest
from backend_rigs import rig

from warpzone.env.backends import factory, stage_warning
from warpzone.env.backends.factory_lanes import HINT_AFTER
from warpzone.env.backends.interface import BackendError, RamX
from warpzone.env.backends.select import check_name, is_factory
from warpzone.env.infos import COLUMN

RIGHT, NOOP = 1, 0
X = COLUMN["x_pos"]
WEIGHTS = {"pixel": 0.5, "step": 0.0, "flag": 0.0, "death": 0.0, "clip": 0.0}


@pytest.mark.parametrize("name", ["walk", "hidden", "masks", "staged"])
def test_x_is_found_and_paid(name: str) -> None:
    with rig(f"backend_games:{name}", frame_skip=2, reward_weights=WEIGHTS) as game:
        game.reset(1)
        assert game.info[0, X] == 40
        game.step(RIGHT)
        assert game.info[0, X] == 46
        assert game.reward[0] == pytest.approx(3.0)
        game.step(NOOP)
        assert game.reward[0] == 0.0
        assert game.info[0, COLUMN["furthest_x"]] == 46


def test_x_from_ram() -> None:
    with rig("backend_games:with_ram", frame_skip=1, ram_x=RamX(enabled=True)) as game:
        game.reset(1)
        game.step(RIGHT)
        assert game.info[0, X] == 43
        assert game.lanes.counters() == {"env_shaping_parse_fail": 0}


def test_x_has_two_bytes() -> None:
    class Far:
        ram = np.zeros(2048, np.uint8)

    Far.ram[[0x6D, 0x86]] = 3, 44
    assert factory.x_of({}, Far(), RamX(enabled=True)) == 3 * 256 + 44
    assert factory.x_of({}, Far(), RamX(enabled=False)) is None
    assert factory.x_of({"x_pos": 5, "metrics": {"mario_x": 6}}, Far(), RamX(True)) == 6


def test_x_is_missed_counted_and_hinted_at(capsys: pytest.CaptureFixture[str]) -> None:
    with rig("backend_games:with_ram", frame_skip=1) as game:
        game.reset(1)
        # It walks to its end a few times; nothing of it is seen.
        for _ in range(HINT_AFTER + 5):
            game.step(RIGHT)
        assert game.lanes.counters() == {"env_shaping_parse_fail": HINT_AFTER + 5}
        assert game.lanes.take_shaping()[3] == HINT_AFTER + 5
        assert game.lanes.take_shaping()[3] == 0
    hints = [line for line in capsys.readouterr().err.splitlines() if "[env][hint]" in line]
    assert len(hints) == 1
    assert "--enable-ram-x-parse" in hints[0]


def test_ram_is_asked_last_and_wrong_addresses_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nowhere = RamX(True, 0x7FE, 0x9999)
    with rig("backend_games:walk", frame_skip=1, ram_x=nowhere) as game:
        game.reset(1)
        game.step(RIGHT)
        assert game.info[0, X] == 43
    with rig("backend_games:with_ram", frame_skip=1, ram_x=nowhere) as game:
        game.reset(1)
        for _ in range(HINT_AFTER):
            game.step(RIGHT)
    assert "RAM has no x at 0x07fe and 0x9999" in capsys.readouterr().err


def test_flag_ends_and_pays() -> None:
    weights = {"pixel": 0.0, "step": 0.0, "flag": 7.0, "death": -3.0, "clip": 0.0}
    with rig("backend_games:walk", frame_skip=8, reward_weights=weights) as game:
        game.reset(1)
        for _ in range(14):
            game.step(RIGHT)
            assert not game.terminated[0]
        game.step(RIGHT)
        assert game.terminated[0]
        assert not game.truncated[0]
        assert game.reward[0] == 7.0
        assert game.final_info[0, X] >= 400
        assert game.final_info[0, COLUMN["flag_get"]] == 1
        assert game.info[0, COLUMN["flag_get"]] == 0
        assert game.info[0, X] == 40
        assert game.final_info[0, COLUMN["steps"]] == 15


def test_a_flag_that_stays_in_sight_is_paid_once() -> None:
    weights = {"pixel": 0.0, "step": 0.0, "flag": 7.0, "death": 0.0, "clip": 0.0}
    with rig("backend_games:generous", frame_skip=8, reward_weights=weights) as game:
        game.reset(1)
        paid = 0.0
        for _ in range(20):
            game.step(RIGHT)
            paid += float(game.reward[0])
        assert game.info[0, COLUMN["flag_get"]] == 1
        assert paid == 7.0


def test_a_maze_that_wraps_x_around_is_no_new_ground() -> None:
    with rig("backend_games:looped", frame_skip=1, reward_weights=WEIGHTS) as game:
        game.reset(1)
        rewards = []
        for _ in range(10):
            game.step(RIGHT)
            rewards.append(float(game.reward[0]))
        # Three steps to 49, the loop, three over old ground, then new ground again.
        assert rewards == [1.5] * 3 + [0.0] * 4 + [1.5] * 3
        assert game.info[0, COLUMN["furthest_x"]] == 58


def test_brighter_of_the_last_two() -> None:
    shown = []
    for both in (False, True):
        options: dict[str, Any] = {"frame_skip": 2, "size": (60, 64), "max_last_two": both}
        with rig("backend_games:walk", **options) as game:
            game.reset(1)
            frames = []
            for _ in range(3):
                game.step(RIGHT)
                frames.append(game.obs[0, 0].copy())
            shown.append(frames)
    for last, brighter in zip(*shown, strict=True):
        assert (brighter >= last).all()
        assert np.count_nonzero(brighter) > np.count_nonzero(last)


def test_what_was_made_is_closed_when_the_next_cannot_be() -> None:
    backend_games.MADE.clear()
    backend_games.CLOSED.clear()
    with (
        pytest.raises(OSError, match="no third cartridge"),
        rig("backend_games:third_breaks", 3),
    ):
        pass
    assert len(backend_games.CLOSED) == 2


def test_limits_truncate() -> None:
    with rig("backend_games:walk", stagnation_limit=3, time_limit=5) as game:
        game.reset(1)
        for _ in range(2):
            game.step(NOOP)
            assert not game.truncated[0]
        game.step(NOOP)
        assert game.truncated[0]
        for _ in range(4):
            game.step(RIGHT)
            assert not game.truncated[0]
        game.step(RIGHT)
        assert game.truncated[0]


def test_script_is_pressed_and_marked() -> None:
    with rig("backend_games:walk", frame_skip=4, start_script="RIGHT:8") as game:
        game.reset(1)
        for x in (52, 64):
            game.step(NOOP)
            assert game.info[0, X] == x
            assert game.info[0, COLUMN["forced"]] == 1
        game.step(NOOP)
        assert game.info[0, X] == 64
        assert game.info[0, COLUMN["forced"]] == 0


def test_script_with_other_buttons_is_refused() -> None:
    with rig("backend_games:walk", start_script="DOWN:8") as game:
        game.reset(1)
        with pytest.raises(BackendError, match="DOWN"):
            game.step(NOOP)


def test_pictures_are_resized() -> None:
    said: list[str] = []
    with rig("backend_games:walk", size=30, mask_status_bar=True, said=said) as game:
        assert said[0] == "constructing env 1/1"
        assert said[1].startswith("env 1/1 ready in ")
        assert game.lanes.obs_shape == (1, 30, 30)
        game.reset(1)
        # An eighth of the screen and a bit: the status bar of a picture of this height.
        assert not game.obs[0, 0, :4].any()
        assert game.obs[0, 0, 4].any()
        before = game.obs.copy()
        game.step(RIGHT)
        assert not np.array_equal(before, game.obs)


@pytest.mark.parametrize(
    ("backend", "words"),
    [
        ("backend_games:nothing", "has no 'nothing'"),
        ("no_such_module:make", "cannot be imported"),
        ("backend_games:DIE", "not a function"),
        ("backend_games:lonely", "no environment"),
    ],
)
def test_refusals(backend: str, words: str) -> None:
    with pytest.raises(BackendError, match=words), rig(backend):
        pass


def test_other_action_sets_are_refused() -> None:
    with (
        pytest.raises(BackendError, match="12 actions"),
        rig("backend_games:walk", actions="complex"),
    ):
        pass


def test_actions_out_of_range_are_refused() -> None:
    with rig("backend_games:walk") as game:
        game.reset(1)
        with pytest.raises(ValueError, match=r"0\.\.6"):
            game.step(7)


def test_names() -> None:
    assert is_factory("a.b:c.d")
    assert not any(map(is_factory, ("native", "a:", ":b", "a b:c")))
    assert check_name("nes-py") is None
    assert "module:factory" in str(check_name("snes"))


class TestStageWarning:
    @pytest.fixture(autouse=True)
    def _fresh(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(stage_warning, "_warned", set())
        monkeypatch.delenv(stage_warning.SUPPRESS, raising=False)
        monkeypatch.delenv(stage_warning.STRICT, raising=False)

    def test_said_once(self, capsys: pytest.CaptureFixture[str]) -> None:
        for _ in range(2):
            with rig("backend_games:walk", 2, stages="1-1,1-2"):
                pass
        said = capsys.readouterr().err
        assert said.count("[env][warn]") == 1
        assert stage_warning.SUPPRESS in said

    def test_silenced(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(stage_warning.SUPPRESS, "1")
        with rig("backend_games:walk", stages="1-2"):
            pass
        assert "[env][warn]" not in capsys.readouterr().err

    def test_strict(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(stage_warning.STRICT, "1")
        with (
            pytest.raises(BackendError, match="can only start"),
            rig("backend_games:walk", stages="8-4"),
        ):
            pass

    def test_not_for_those_that_know_stages(self, capsys: pytest.CaptureFixture[str]) -> None:
        with rig("backend_games:staged", stages="8-4") as game:
            game.reset(1)
            assert game.lanes._envs[0].stage == "8-4"
        assert "[env][warn]" not in capsys.readouterr().err
