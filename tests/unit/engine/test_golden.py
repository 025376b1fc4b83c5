"""The engine still does what the goldens recorded (rewritten only by scripts/golden.py --write)."""

from typing import Any

import golden_runs
import movies
import pytest

from warpzone import _engine


def _name(run: dict[str, Any]) -> str:
    world, number = divmod(run["stage"], 4)
    return f"{run['variant']}-{run['timing']}-{world + 1}-{number + 1}-{run['player']}"


@pytest.mark.parametrize("run", golden_runs.load_play(), ids=_name)
def test_play(run: dict[str, Any]) -> None:
    assert golden_runs.play(run) == run["checkpoints"]


def test_every_stage_and_timing_has_a_golden() -> None:
    recorded = [
        {k: v for k, v in run.items() if k != "checkpoints"} for run in golden_runs.load_play()
    ]
    assert recorded == golden_runs.play_inputs()


def test_translated_code_gives_the_same_goldens(
    variant: str, translated: _engine.NativeProgram
) -> None:
    for run in golden_runs.load_play():
        if run["variant"] == variant and run["timing"] == "vblank":
            assert golden_runs.play(run, translated) == run["checkpoints"], _name(run)


def test_whole_game(variant: str, translated: _engine.NativeProgram) -> None:
    """From power-on through a lost game and all 32 stages to the end, in one go."""
    game = movies.load_game(variant)
    assert golden_runs.game_result(variant, game.masks, translated) == game.expected
    stages = [(world, stage) for _, world, stage in game.expected["stage_changes"]]
    assert stages[-32:] == [(w, s) for w in range(1, 9) for s in range(1, 5)]
    assert game.expected["victory_frame"] is not None


def test_goldens_are_hashes_not_content() -> None:
    for run in golden_runs.load_play():
        for checkpoint in run["checkpoints"].values():
            assert all(len(value) == 16 for value in checkpoint.values())


def test_runs_code_and_decode() -> None:
    masks = bytes([0] * 300 + [8] + [130, 131] * 40 + [0])
    assert movies.decode(movies.encode(masks)) == masks
    assert all(len(line) < 100 for line in movies.encode(masks))
