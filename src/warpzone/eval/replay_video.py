"""A video of the best episode: the policy plays once, its actions are played again frame by frame
and every frame is drawn."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import safe_open

from warpzone import _engine, native, rom
from warpzone.config import TrainConfig
from warpzone.env.stages import parse_stages, stage_name
from warpzone.eval.evaluate import DELAYS, STEP_LIMIT, STUCK_AFTER
from warpzone.model.agent import Agent
from warpzone.run.folder import BEST, WEIGHTS, load_agent
from warpzone.train.lanes import COLUMN, lane_options
from warpzone.video import write_video

VIDEO = "best.mp4"
EVALS = "evals.jsonl"
#: Alone and in a batch a network computes the same up to rounding, which now and then turns an
#: episode; a clear that does not repeat is followed by the next one, this often.
ATTEMPTS = 4

Image = NDArray[np.uint8]


@dataclass(frozen=True)
class Episode:
    """What was played: the actions give the same episode again."""

    stage: str
    start_delay: int
    actions: tuple[int, ...]
    cleared: bool
    furthest_x: int


class _Lane:
    """One lane that is stepped by hand and never starts anew by itself."""

    def __init__(
        self,
        config: TrainConfig,
        image: bytes,
        program: _engine.NativeProgram | None,
        stage: str,
        delay: int,
        **changes: Any,
    ) -> None:
        options = lane_options(
            config, stages=[stage], start_delay=(delay, delay), sticky=0.0, time_limit=0, **changes
        )
        self.vector = _engine.Vector(
            image,
            native=program,
            num_threads=1,
            autoreset="disabled",
            **options.engine_arguments(1),
        )
        self.obs = np.zeros((1, *self.vector.obs_shape), np.uint8)
        self.info = np.zeros((1, len(_engine.INFO_FIELDS)), np.int32)
        self._reward = np.zeros(1, np.float32)
        self._ends = np.zeros((2, 1), np.bool_)
        self.vector.seed([0])
        self.vector.reset(None, self.obs, self.info)

    def step(self, action: int) -> tuple[bool, bool]:
        """Whether the game ended the episode, and whether it was cut."""
        actions = np.array([action], np.int64)
        terminated, truncated = self._ends
        self.vector.step(
            actions, self.obs, self._reward, terminated, truncated, self.info, None, None
        )
        return bool(terminated[0]), bool(truncated[0])

    def __getitem__(self, field: str) -> int:
        return int(self.info[0, COLUMN[field]])


@torch.no_grad()
def play(
    agent: Agent,
    config: TrainConfig,
    image: bytes,
    program: _engine.NativeProgram | None,
    *,
    stage: str,
    start_delay: int,
) -> Episode:
    """The argmax policy plays one life."""
    lane = _Lane(config, image, program, stage, start_delay, stagnation_limit=STUCK_AFTER)
    device = next(agent.parameters()).device
    was_training = agent.training
    agent.eval()
    agent.zero_noise()
    stack = torch.from_numpy(lane.obs).to(device).repeat(1, config.frame_stack, 1, 1)
    state = agent.initial_state(1, device=device)
    previous = torch.zeros(1, dtype=torch.int64, device=device)
    starts = torch.ones(1, dtype=torch.bool, device=device)
    actions: list[int] = []
    terminated = truncated = False
    while not (terminated or truncated) and len(actions) < STEP_LIMIT:
        output = agent.act(stack, previous, state, starts)
        state = output.state
        previous = output.logits.argmax(-1)
        actions.append(int(previous))
        terminated, truncated = lane.step(actions[-1])
        starts = torch.zeros_like(starts)
        stack = torch.cat((stack[:, 1:], torch.from_numpy(lane.obs).to(device)), 1)
    agent.train(was_training)
    lane.vector.close()
    return Episode(
        stage=stage,
        start_delay=start_delay,
        actions=tuple(actions),
        cleared=terminated and bool(lane["flag_get"]),
        furthest_x=lane["furthest_x"],
    )


def draw(
    episode: Episode, config: TrainConfig, image: bytes, program: _engine.NativeProgram | None
) -> Iterator[Image]:
    """Every frame of the episode in full resolution, scenes that are skipped left out."""
    lane = _Lane(
        config,
        image,
        program,
        episode.stage,
        episode.start_delay,
        frame_skip=1,
        stagnation_limit=0,
    )
    try:
        yield lane.vector.screen(0)
        for action in episode.actions:
            for _ in range(config.frame_skip):
                ended, _ = lane.step(action)
                yield lane.vector.screen(0)
                if ended:
                    return
    finally:
        lane.vector.close()


def candidates(rows: Sequence[dict[str, Any]], stages: Sequence[str]) -> list[tuple[str, int]]:
    """Stages and start delays worth showing, best first: clears (later stages, then faster ones,
    first), then the longest ways."""
    argmax = [row for row in rows if row["policy"] == "argmax"]
    if not argmax:
        return [(stage, delay) for stage in stages for delay in DELAYS]

    def worth(row: dict[str, Any]) -> tuple[Any, ...]:
        if row["cleared"]:
            return True, row["stage"], -row["steps"]
        return False, "", row["furthest_x"]

    ordered = sorted(argmax, key=worth, reverse=True)
    return [(row["stage"], row["start_delay"]) for row in ordered]


def write_best(run: Path, path: Path | None = None, device: str = "cpu") -> tuple[Path, Episode]:
    """Writes the video of a run's best weights into its folder; says where, and what it shows."""
    agent, config = load_agent(run)
    agent.to(device)
    image = rom.find(config.rom)
    program = native.load(image)
    stages = [stage_name(index) for index in parse_stages(config.stages)] or ["1-1"]
    best: Episode | None = None
    for stage, delay in candidates(_evaluated(run), stages)[:ATTEMPTS]:
        episode = play(agent, config, image, program, stage=stage, start_delay=delay)
        if best is None or _value(episode) > _value(best):
            best = episode
        if best.cleared:
            break
    if best is None:
        raise ValueError(f"{run} has no stage to show")
    path = path or run / VIDEO
    write_video(path, draw(best, config, image, program))
    return path, best


def _value(episode: Episode) -> tuple[bool, int]:
    return episode.cleared, episode.furthest_x


def _evaluated(run: Path) -> list[dict[str, Any]]:
    """Rows of the evaluation that the newest best weights come from."""
    file = run / EVALS
    if not file.is_file():
        return []
    weights = run / (BEST if (run / BEST).is_file() else WEIGHTS)
    with safe_open(weights, "pt") as opened:
        meta = json.loads((opened.metadata() or {}).get("meta", "{}"))
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return [row for row in rows if row["global_step"] == meta.get("global_step")]
