"""Observables that no whole run is needed for, or that a run hides: what a part of it does with a
configuration."""

from __future__ import annotations

import contextlib
import json
import socket
import tempfile
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from effects import config_of, digests
from reference_replay import ToyLanes
from tiny_runs import CPU, Recorder, make_agent

from warpzone.collect import actor as actors
from warpzone.collect import backend_lanes
from warpzone.collect.curriculum import Curriculum
from warpzone.collect.episodes import Episode
from warpzone.config import ConfigError, TrainConfig
from warpzone.env.actions import action_table
from warpzone.eval.cases import Outcome
from warpzone.health.hints import NO_DISTANCE, Hints
from warpzone.health.pulse import Pulse
from warpzone.health.slow_steps import SlowSteps
from warpzone.health.stall import Stall
from warpzone.learn.learner import Learner
from warpzone.model import own
from warpzone.observers import dashboard as dashboards
from warpzone.observers import wall as walls
from warpzone.observers.make import make_observers
from warpzone.observers.metrics import MetricsObserver
from warpzone.observers.video_maker import VideoMaker
from warpzone.run.resume import find_start
from warpzone.train import evaluator
from warpzone.train.device import choose_device
from warpzone.train.loop import Run
from warpzone.train.session import train
from warpzone.train.stopping import Stop

CUDA = torch.device("cuda")


# --- the device -----------------------------------------------------------------------------------
def chosen_device(**changes: Any) -> str:
    """On a machine with a GPU."""
    with patch.object(torch.cuda, "is_available", lambda: True):
        return choose_device(config_of(**changes)).type


def autocasts(**changes: Any) -> Any:
    """In what precision a GPU computes; None as it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # That there is no GPU here.
        found = actors.autocast(config_of(**changes), CUDA)
    return getattr(found, "fast_dtype", None)


def graphs(**changes: Any) -> bool:
    """Whether a decision on a GPU is recorded. The tensors stay here, and so does the graph."""
    config = config_of(amp=False, **changes)
    recorded: list[Any] = []

    def record(work: Any, tensors: list[Any], **_: Any) -> Any:
        recorded.append(work)
        return work

    actor = actors.Actor(config, make_agent(config), 2, CPU)
    actor._device = CUDA
    with patch.object(actors, "record", record):
        actor.decide()
    return bool(recorded)


def compiled(**changes: Any) -> list[str]:
    """What is handed to torch.compile."""
    names: list[str] = []

    def note(function: Any) -> Any:
        names.append(function.__name__)
        return function

    with patch.object(torch, "compile", note):
        config = config_of(**changes)
        Learner(config, make_agent(config), CPU)
    return names


# --- schedules and hints --------------------------------------------------------------------------
def adapted(returns: tuple[float, ...], **changes: Any) -> Any:
    """Factors and weights after some updates with such mean returns, and one more."""
    config = config_of(**changes)
    agent = make_agent(config)
    learner = Learner(config, agent, CPU)
    for mean in returns:
        learner.adaptive.observe({"avg_return": mean, "recent_return_std": 1.0, "clear_rate": 0.0})
    toy = ToyLanes(2, config.frame_stack, agent.spec.actions, seed=0, picture=config.picture)
    rollout, _ = toy.rollout(config.rollout_steps)
    rates = learner.update(rollout, 0.0)
    return rates["learning_rate"], rates["entropy_bonus"], digests(agent.state_dict())


def hints(**changes: Any) -> list[list[str]]:
    """What is said about a run in which nobody moves."""
    reader = Hints(config_of(**changes))
    row: dict[str, Any] = {"env_distance_delta_sum": 0, "seconds": 1.0}
    return [reader.read({**row, "update": update}) for update in range(3 * NO_DISTANCE)]


def slow_steps(**changes: Any) -> list[str]:
    """What is said about a step of 20 seconds every 30."""
    said: list[str] = []
    clock = iter(range(0, 3000, 30))
    watch = SlowSteps(config_of(**changes), said.append, lambda: float(next(clock)))
    for _ in range(12):
        watch.add(20.0)
    return said


def stalled(**changes: Any) -> tuple[list[str], str]:
    """What is said about a run that does nothing for a minute, and what it ends with."""
    said: list[str] = []
    pulse, clock = Pulse(), iter(range(10, 60, 10))
    watch = Stall(
        config_of(**changes),
        pulse,
        said.append,
        leave=lambda code: None,
        now=lambda: pulse.last + next(clock),
    )
    for _ in range(4):
        watch.look()
    return said, watch.verdict


def wrong_way(name: str) -> str:
    """Buttons that take a wrong turn in a maze, as a script."""
    golden = Path(__file__).parents[1] / "golden" / "mazes.json"
    way = json.loads(golden.read_text())["ways"][name]["wrong"]
    names = action_table("complex").names
    return ",".join(f"{names[int(letter, 12)]}:4" for letter in way)


def shares(**changes: Any) -> list[float]:
    """Chances of stages after some clears, and then deaths."""
    curriculum = Curriculum(config_of(**changes))
    reasons = ["flag"] * 6 + ["death"] * 3
    for stage in (0, 1):
        for reason in reasons[stage:]:
            ended = Episode(0, stage, 0, 0.0, 1, 100, reason if stage == 0 else "death")
            curriculum.learn([ended])
    return [float(value) for value in curriculum.weights()]


def imitated(*, shown: bool = True, **changes: Any) -> dict[str, str]:
    """The weights after an update from a rollout whose forced steps a search showed, or did not."""
    config = config_of(**changes)
    agent = make_agent(config)
    toy = ToyLanes(
        config.num_envs, config.frame_stack, agent.spec.actions, seed=1, picture=config.picture
    )
    rollout, _ = toy.rollout(config.rollout_steps)
    rollout = rollout._replace(shown=rollout.forced & shown)
    assert rollout.forced.any()
    Learner(config, agent, CPU).update(rollout, 0.0)
    return digests(agent.state_dict())


# --- what stands beside a run ---------------------------------------------------------------------
def sinks(**changes: Any) -> str:
    """What is refused where no sink's package is installed."""
    with patch("importlib.util.find_spec", lambda name: None):
        try:
            MetricsObserver(config_of(**changes))
        except ConfigError as error:
            return str(error)
    return ""


class _Noted(Exception):  # noqa: N818 (no error: it carries what was asked for)
    pass


def dashboard(**changes: Any) -> list[str]:
    """The command that serves one; empty for none. Without a port of its own, a free one."""
    config = config_of(runs_dir="runs", **{"dashboard_port": 0, **changes})
    if not config.dashboard:
        return []

    def start(words: list[str], **options: Any) -> None:
        raise _Noted(*words[4:])

    fake = SimpleNamespace(Popen=start, PIPE=None, DEVNULL=None)
    with (
        tempfile.TemporaryDirectory() as place,
        patch.object(dashboards, "subprocess", fake),
        patch.object(dashboards, "missing", lambda: ""),
    ):
        run: Any = SimpleNamespace(config=config, folder=SimpleNamespace(path=Path(place)))
        try:
            dashboards.DashboardObserver(config).started(run)
        except _Noted as noted:
            words = [str(word) for word in noted.args]
            if config.dashboard_port == 0:
                del words[words.index("--port") + 1]
            return words
    raise AssertionError("nothing was started")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def videos(**changes: Any) -> list[list[str]]:
    """Videos that are asked for while a run goes on: the flags of each."""
    asked: list[list[str]] = []

    def start(self: VideoMaker, run: Run, path: Path, words: Any) -> None:
        asked.append([path.name, *words])
        raise OSError("not made here")

    with patch.object(VideoMaker, "start", start):
        run_in_place(make_observers, **changes)
    return asked


def wall(**changes: Any) -> list[Any]:
    """Shape of the pictures that are shown of a run whose updates take a second each."""
    shapes: list[Any] = []
    clock = iter(range(1, 100))

    class Looking(walls.WallObserver):
        def started(self, run: Any) -> None:
            (run.folder.path / "wall").mkdir()
            (run.folder.path / "wall" / "wanted").touch()

        def ended(self, run: Any, reason: str) -> None:
            pictures = run.folder.path / "wall" / "latest.bin"
            shapes.append(json.loads(pictures.read_bytes().partition(b"\n")[0])["shape"])

    def watch(config: TrainConfig) -> list[Any]:
        return [Looking(config.wall_lanes, config.wall_rate)] if config.wall_lanes else []

    fake = SimpleNamespace(monotonic=lambda: float(next(clock)), time=time.time)
    with patch.object(walls, "time", fake):
        run_in_place(watch, **changes)
    return shapes


def opened(**changes: Any) -> Any:
    """With what a back-end's lanes are opened."""
    config, asked = config_of(**changes), []

    def note(spec: Any, settings: Any, *, sync: bool, report: Any) -> None:
        asked.append((spec.backend, spec.ram_x, settings, sync))
        raise _Noted

    with patch.object(backend_lanes, "open_lanes", note), contextlib.suppress(_Noted):
        backend_lanes.make_backend_groups(config, b"", pinned=False)
    return asked


# --- whole lives ----------------------------------------------------------------------------------
def run_in_place(watch: Any = lambda config: (), **changes: Any) -> Run:
    """A run in a folder that is gone afterwards, with observers."""
    with tempfile.TemporaryDirectory() as place:
        config = config_of(**{"runs_dir": place, **changes})
        run = Run(config, watch(config))
        with patch.object(evaluator, "evaluate", lambda *_, each_step: []):
            run.train(Recorder())  # type: ignore[arg-type]
        return run


def stopped(**changes: Any) -> int:
    """Updates of a run whose every evaluation clears three start delays."""
    outcome = {"stage": "1-1", "furthest_x": 9, "steps": 9, "time_left": 9, "episode_return": 9.0}

    def evaluate(*_: Any, each_step: Any) -> list[Outcome]:
        return [
            Outcome(policy="argmax", start_delay=i, cleared=i < 3, reason="flag", **outcome)  # type: ignore[arg-type]
            for i in range(31)
        ]

    with tempfile.TemporaryDirectory() as place, patch.object(evaluator, "evaluate", evaluate):
        run = Run(config_of(runs_dir=place, **changes))
        run.train(Recorder())  # type: ignore[arg-type]
    return run.global_update


def paid_hours(**changes: Any) -> int:
    """Updates of a run that has used a GPU for two hours."""
    with tempfile.TemporaryDirectory() as place:
        run = Run(config_of(runs_dir=place, **changes))
        run.budget.gpu_seconds = 7200.0
        try:
            run.learn(Recorder())  # type: ignore[arg-type]
        finally:
            run.close()
    return run.global_update


def began(**changes: Any) -> Any:
    """Where a run begins whose folder, or one of another place, holds a checkpoint of two updates
    with other settings (`gamma`) or the same."""
    with tempfile.TemporaryDirectory() as place:
        there = {name: value for name, value in changes.items() if name in ("algo", "per")}
        first = config_of(runs_dir=f"{place}/old", run_name="one", checkpoint_interval=1, **there)
        _live(Run(first))
        root = changes.get("checkpoint_root", "").replace("OLD", f"{place}/old")
        runs = f"{place}/{changes.pop('place', 'old')}"
        values = {"runs_dir": runs, "max_steps": 1000, **changes, "checkpoint_root": root}
        said: list[str] = []
        try:
            start = find_start(config_of(**values), said.append)
        except ConfigError as error:
            return str(error).partition(":")[2]
        run = Run(config_of(**values), start=start)
        run.close()
        return run.global_step


def refused(**changes: Any) -> str:
    """Why a network is not made; empty if it is."""
    config = config_of(**changes)
    try:
        own.make_agent(config, 2)
    except ConfigError as error:
        return str(error)
    return ""


def first_weights(**changes: Any) -> float:
    """A number that tells of the weights that a run begins with, beside one that has ended."""
    with tempfile.TemporaryDirectory() as place:
        _live(Run(config_of(runs_dir=place, run_name="one", checkpoint_interval=1, seed=5)))
        run = Run(config_of(runs_dir=place, run_name="two", **changes))
        run.close()
        return sum(float(part.detach().double().abs().sum()) for part in run.agent.parameters())


def notes(**changes: Any) -> list[str]:
    """What a run that goes on could not take up."""
    with tempfile.TemporaryDirectory() as place:
        config = config_of(runs_dir=place, run_name="one", checkpoint_interval=1, **changes)
        _live(Run(config))
        config = config.replace(resume="auto", max_steps=10**6)
        run = Run(config, start=find_start(config, lambda text: None))
        run.close()
        return run.notes


def _live(run: Run) -> None:
    try:
        run.learn(Recorder())  # type: ignore[arg-type]
    finally:
        run.close()


def given_up(**changes: Any) -> Any:
    """What becomes of a run for whose first minibatches there is no memory."""
    tried: list[int] = []

    def learn(run: Run) -> Any:
        tried.append(run.config.minibatch)
        run.close()
        if len(tried) == 1:
            raise MemoryError("no memory is left")

    with tempfile.TemporaryDirectory() as place, contextlib.redirect_stderr(None):
        config = config_of(runs_dir=place, run_name="one", **changes)
        try:
            train(config, lambda config: (), Stop(), learn)
        except MemoryError:
            return "ended", tried
    return "went on", tried
