"""The recorded whole games in tests/golden/game_*.json: every button from power-on to the end.

They were found by search on our engine and hold a title demo, a lost game, a restart and then all
32 stages without warps. `runs` is run-length coded: `mask*frames`, separated by blanks.
"""

import json
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden"
_LINE = 96


@dataclass(frozen=True)
class Game:
    masks: bytes
    expected: dict[str, Any]


def game_path(variant: str) -> Path:
    return GOLDEN / f"game_{variant}.json"


def load_game(variant: str) -> Game:
    content = json.loads(game_path(variant).read_text())
    return Game(decode(content["runs"]), content["expected"])


def save_game(variant: str, game: Game) -> None:
    content = {"expected": game.expected, "runs": encode(game.masks)}
    game_path(variant).write_text(json.dumps(content, indent=1) + "\n")


def encode(masks: bytes) -> list[str]:
    lines = [""]
    for mask, run in groupby(masks):
        token = f"{mask}*{len(list(run))}"
        if len(lines[-1]) + len(token) >= _LINE:
            lines.append("")
        lines[-1] = f"{lines[-1]} {token}".lstrip()
    return lines


def decode(lines: list[str]) -> bytes:
    masks = bytearray()
    for token in " ".join(lines).split():
        mask, _, count = token.partition("*")
        masks += bytes([int(mask)]) * int(count)
    return bytes(masks)
