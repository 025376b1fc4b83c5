"""Stages: how a `stages=` argument is written.

A stage is `W-S`, from `1-1` to `8-4`. A set is written `"1-1,1-3"`, `"1-1..2-4"` (a span) or
`"all"`; `"game"` is the whole game, played on from 1-1 through every flag.
"""

import re
from collections.abc import Sequence

WORLDS = 8
STAGES_PER_WORLD = 4
NUM_STAGES = WORLDS * STAGES_PER_WORLD
#: The longest start delay that is evaluated; a window of 0..30 can itself be memorised.
LONGEST_DELAY = 120

#: One set for all lanes, or one set for each lane (a sequence of sequences).
StageSpec = str | Sequence[str] | Sequence[Sequence[str]]

_STAGE = re.compile(r"([1-8])-([1-4])")


def stage_index(name: str) -> int:
    """0 for `1-1` … 31 for `8-4`."""
    match = _STAGE.fullmatch(name.strip())
    if match is None:
        raise ValueError(f"{name!r} is not a stage; stages are 1-1 to 8-4, written W-S")
    return (int(match[1]) - 1) * STAGES_PER_WORLD + int(match[2]) - 1


def stage_name(index: int) -> str:
    """`1-1` for 0 … `8-4` for 31."""
    if not 0 <= index < NUM_STAGES:
        raise ValueError(f"stage index {index} is outside 0..{NUM_STAGES - 1}")
    return f"{index // STAGES_PER_WORLD + 1}-{index % STAGES_PER_WORLD + 1}"


def parse_stages(spec: str | Sequence[str]) -> tuple[int, ...]:
    """The stages of one set, duplicates kept (they weigh double); empty means the whole game."""
    if not isinstance(spec, str):
        if any(not isinstance(token, str) for token in spec):
            raise TypeError(f"a set of stages holds names such as '1-1', not {spec!r}")
        tokens = list(spec)
    elif spec.strip() == "game":
        return ()
    else:
        tokens = spec.split(",")
    found = [index for token in tokens for index in _parse_token(token)]
    if not found:
        raise ValueError("no stage given; write e.g. '1-1', '1-1,1-2', '1-1..2-4', 'all' or 'game'")
    return tuple(found)


def lane_stages(spec: StageSpec, num_lanes: int) -> list[tuple[int, ...]]:
    """What each lane draws from."""
    if not isinstance(spec, str | Sequence) or any(
        not isinstance(item, str | Sequence) for item in spec
    ):
        raise TypeError(f"stages are written '1-1', '1-1..2-4', 'all' or 'game', not {spec!r}")
    if isinstance(spec, str) or all(isinstance(item, str) for item in spec):
        return [parse_stages(spec)] * num_lanes  # type: ignore[arg-type]
    if any(isinstance(item, str) for item in spec):
        raise ValueError(
            "stages mixes names and lists; give one set for all lanes or one list for each lane"
        )
    if len(spec) != num_lanes:
        raise ValueError(f"stages has {len(spec)} lists for {num_lanes} lanes")
    return [parse_stages(item) for item in spec]


def _parse_token(token: str) -> Sequence[int]:
    text = token.strip()
    if text == "all":
        return range(NUM_STAGES)
    if text == "game":
        raise ValueError("'game' is the whole game and cannot be mixed with single stages")
    first, dots, last = text.partition("..")
    if not dots:
        return (stage_index(text),)
    low, high = stage_index(first), stage_index(last)
    if low > high:
        raise ValueError(f"the span {text!r} runs backwards")
    return range(low, high + 1)
