"""The retro back-end: FCEUmm through stable-retro, in a worker process."""

import numpy as np
import pytest
from backend_rigs import QUICK, Rig, rig

from warpzone import _engine
from warpzone import rom as roms
from warpzone.env.backends.interface import BackendError
from warpzone.env.infos import COLUMN
from warpzone.env.options import Options
from warpzone.stability.trial import check_game

pytest.importorskip("stable_retro", reason="needs stable-retro")


def test_plays_the_game_at_every_stage_asked_for() -> None:
    with rig("retro", 2, sync=False, settings=QUICK, stages=[["1-1"], ["8-4"]]) as game:
        game.reset(1, 2)
        assert game.info[:, COLUMN["start_stage"]].tolist() == [0, 31]
        assert game.info[:, COLUMN["world"]].tolist() == [1, 8]
        assert (game.info[:, COLUMN["life"]] == 2).all()
        check_game(game.lanes, game.arrays, 12)


def test_start_is_that_of_the_native_engine() -> None:
    """FCEUmm's RAM is the engine's at the start of a stage, but for counters that run from
    power-on, and its picture is nearly the engine's: only the edges and the colours differ."""
    with rig("retro", 1, sync=False, size=84) as game:
        game.reset(1)
        options = Options(frame_stack=1, size=84)
        image = roms.load_stored("eu").data
        vector = options.make_vector(image, 1, autoreset=_engine.Autoreset.SAME_STEP)
        ours = Rig(vector)
        ours.reset(1)
        names = ("x_pos", "y_pos", "coins", "score", "furthest_x", "player_state")
        columns = [COLUMN[name] for name in names]
        assert game.info[0, columns].tolist() == ours.info[0, columns].tolist()
        difference = np.abs(game.obs.astype(int) - ours.obs)
        assert difference.mean() < 12
        same = (game.lanes.ram([0]) == vector.ram([0])).mean()
        assert same > 0.97


def test_one_game_in_a_process() -> None:
    with pytest.raises(BackendError, match="worker processes"), rig("retro", 2):
        pass
