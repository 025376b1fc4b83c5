"""What the goldens in tests/golden are made of: inputs that can be generated again, and hashes of
RAM and screen at checkpoints. Only scripts/golden.py writes them."""

import hashlib
import json
from typing import Any

import movies
from play_scripts import PLAYERS, start_stage

from warpzone import _engine, rom
from warpzone.play.movie import Movie, MovieFrame, play_movie

PLAY_FILE = movies.GOLDEN / "play.json"
VARIANTS = tuple(rom.VARIANTS)
CHECKPOINTS = (1, 100, 200, 300)
NES_PY_CHECKPOINTS = (1, 40, 120)
NES_PY_STAGES = (0, 1, 6, 7, 15, 22, 28, 31)
GAME_CHECKPOINT_FRAMES = 5000


def digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def hashes(console: _engine.Console) -> dict[str, str]:
    return {
        "ram": digest(console.ram().tobytes()),
        "screen": digest(console.screen_indices().tobytes()),
    }


def play_inputs() -> list[dict[str, Any]]:
    """One run for each stage, variant and timing (fewer for the slow one), players taking turns."""
    inputs = []
    for variant in VARIANTS:
        for stage in range(32):
            player = list(PLAYERS)[stage % len(PLAYERS)]
            run = {"variant": variant, "stage": stage, "player": player, "seed": 100 + stage}
            inputs.append(run | {"timing": "vblank"})
            if stage in NES_PY_STAGES:
                inputs.append(run | {"timing": "nes-py"})
    return inputs


def play(run: dict[str, Any], native: _engine.NativeProgram | None = None) -> dict[str, Any]:
    """Plays a run's inputs; answers its checkpoints."""
    console = _engine.Console(rom.find(run["variant"]), timing=run["timing"], native=native)
    start_stage(console, run["stage"])
    player = PLAYERS[run["player"]](run["seed"])
    due = CHECKPOINTS if run["timing"] == "vblank" else NES_PY_CHECKPOINTS
    seen = {}
    for number in range(1, due[-1] + 1):
        console.frame(player(console.ram()))
        if number in due:
            seen[str(number)] = hashes(console)
    return seen


def game_result(
    variant: str, masks: bytes, native: _engine.NativeProgram | None = None
) -> dict[str, Any]:
    """How a whole game goes: what `play_movie` reports, and hashes on the way."""
    image = rom.find(variant)
    result = play_movie(image, Movie(tuple(MovieFrame(mask) for mask in masks)), native=native)
    console = _engine.Console(image, native=native)
    seen = {}
    for start in range(0, len(masks), GAME_CHECKPOINT_FRAMES):
        part = masks[start : start + GAME_CHECKPOINT_FRAMES]
        console.frames(part)
        seen[str(start + len(part))] = hashes(console)
    return {
        "frames": result.frames,
        "lag_frames": result.lag_frames,
        "deaths": result.deaths,
        "victory_frame": result.victory_frame,
        "end": [result.world, result.stage, result.x, result.lives, result.mode],
        "stage_changes": [[c.frame, c.world, c.stage] for c in result.stage_changes],
        "checkpoints": seen,
    }


def load_play() -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads(PLAY_FILE.read_text())["runs"]
    return runs


def current_play() -> list[dict[str, Any]]:
    return [run | {"checkpoints": play(run)} for run in play_inputs()]
