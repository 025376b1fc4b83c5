"""The names of what is in a run's folder, spelled once. Nothing else is in this file, so that
every reader and writer of a run can import it."""

from __future__ import annotations

from pathlib import Path

#: The configuration; a folder that has one is a run.
CONFIG = "config.json"
#: One row for each update, for each finished episode, for each evaluated episode, and now and then.
METRICS = "metrics.jsonl"
EPISODES = "episodes.jsonl"
EVALS = "evals.jsonl"
HEARTBEAT = "heartbeat.jsonl"
#: What should bring somebody to look at the run.
ALERTS = "alerts.jsonl"
#: How the environments of other back-ends were made, and which workers were lost.
ENV_EVENTS = "env.jsonl"
#: The places inside stages where episodes may begin, and what came of it.
ARCHIVE = "archive.json"
#: The newest metrics and heartbeats as columns.
PARQUET = Path("metrics") / "latest.parquet"
HEARTBEATS_PARQUET = Path("metrics") / "heartbeats.parquet"
#: Code, packages and machine of each start of the run.
VERSIONS = "versions.json"
#: Ways to the flag that a course of `warpzone teach` found.
WAYS = "ways.jsonl"
#: An evaluation of more stages than training looks at: `warpzone eval RUN --json RUN/eval.json`.
EVALUATION = "eval.json"

#: The weights of the last and of the best evaluation, and what all weights end with.
WEIGHTS = "weights.safetensors"
BEST = "best.safetensors"
WEIGHTS_SUFFIX = ".safetensors"
CHECKPOINTS = "checkpoints"
SIDECAR_SUFFIX = ".json"
#: The side-car of the newest checkpoint ends with this.
LATEST_SUFFIX = "_latest" + SIDECAR_SUFFIX

#: Beside the weights of a shipped agent: what is known about it, and the same for people.
DESCRIPTION_SUFFIX = ".json"
CARD_SUFFIX = ".md"

VIDEOS = "videos"
BEST_VIDEO = "best.mp4"
VIDEO_SUFFIXES = (".mp4", ".gif")

LOGS = "logs"
LOG = "train.log"

#: The inbox of commands, their results, and the state of the run.
CONTROL = "control"
ANSWERS = "control.jsonl"
STATE = "state.json"

#: Pictures of lanes, and the files that viewers touch: any pictures, and the game's own screens.
WALL = "wall"
WALL_PICTURES = "latest.bin"
WALL_WANTED = "wanted"
WALL_SCREENS = "wanted-screens"

#: What W&B keeps beside a run, links included; only W&B opens it.
WANDB = "wandb"

#: In the folder of a sweep or a population: what it is and what it found. Its runs are in folders
#: below it.
SWEEP = "sweep.json"
POPULATION = "population.json"
