"""Actors on a real Ray: what they play is learned as if one process had played it, and a lost one
is replaced. One Ray with one node serves all tests; `tests/e2e/test_fleet.py` has two nodes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from kept_ways import PRACTISED
from rank_runs import alone
from tiny_runs import tiny

from warpzone.dist.cluster import ENVIRONMENT, NAMESPACE, Cluster

# Ray reads it when it is imported.
os.environ.update(ENVIRONMENT)
ray = pytest.importorskip("ray")

from fleet_runs import fleet  # noqa: E402
from ray.cluster_utils import Cluster as Machines  # noqa: E402

from warpzone.collect import ways  # noqa: E402
from warpzone.collect.archive import FIRST_EXPLORER  # noqa: E402
from warpzone.collect.collector import Collected  # noqa: E402
from warpzone.collect.curriculum import Curriculum  # noqa: E402
from warpzone.collect.practice import Practice  # noqa: E402
from warpzone.collect.search import Way, find_way  # noqa: E402
from warpzone.collect.ways import FIRST_PLACE  # noqa: E402
from warpzone.config import TrainConfig  # noqa: E402
from warpzone.dist.crew import FleetError  # noqa: E402
from warpzone.dist.fleet import FleetCollector  # noqa: E402
from warpzone.dist.moments import LearnersArchive  # noqa: E402
from warpzone.dist.remote import RemoteActor, tensors_of  # noqa: E402
from warpzone.observers.archive import ArchiveObserver  # noqa: E402
from warpzone.observers.observer import ObservedRun, Observer  # noqa: E402
from warpzone.run.reader import read_rows  # noqa: E402

HERE, THERE = Cluster(remote=False), Cluster(remote=True)
MACHINE = {"num_cpus": 2, "object_store_memory": 100 << 20}
PATIENCE = 240.0


@pytest.fixture(scope="module")
def machines() -> Iterator[Any]:
    made = Machines(True, head_node_args={**MACHINE, "include_dashboard": False})
    ray.init(made.address, namespace=NAMESPACE, log_to_driver=False, logging_level="ERROR")
    yield made
    ray.shutdown()
    made.shutdown()  # type: ignore[no-untyped-call]


def settings(folder: Path, **changes: Any) -> TrainConfig:
    values: dict[str, Any] = {
        "algo": "vtrace",
        "max_steps": 10_000,
        "checkpoint_minutes": 0.0,
        "run_name": "one",
        "resume": "auto",
        "rank_timeout": PATIENCE,
    }
    return tiny(runs_dir=str(folder), **{**values, **changes})


class Killer(Observer):
    """Kills the process of an actor after an update."""

    def __init__(self, update: int) -> None:
        self._update = update

    def updated(self, run: ObservedRun, row: dict[str, Any], collected: Collected) -> None:
        if run.global_update == self._update:
            actor_processes()[0].kill()


def actor_processes() -> list[psutil.Process]:
    """Of all actors on the nodes of this machine, which this process has started."""
    found = psutil.Process().children(recursive=True)
    return [one for one in found if "".join(one.cmdline()).startswith("ray::RemoteActor")]


#: Everything that an actor carries from one rollout to the next.
KIND: dict[str, Any] = {
    "memory": "gru",
    "noisy": True,
    "minibatch": 16,
    "normalize_advantages": True,
    "stages": "1-1,1-2",
    "curriculum": "progress",
    "sticky": 0.2,
    "ema": 0.9,
}


#: The same for the archive, in games that come further.
ARCHIVE: dict[str, Any] = {
    "archive_share": 0.9,
    "archive_cell": 16,
    "archive_explore": 0.3,
    "scripted_sequence": "RIGHT+B:16",
    "scripted_share": 1.0,
}


#: The same for a way that is searched for and imitated.
WAYS: dict[str, Any] = {
    "archive_share": 0.9,
    "search_steps": 2_000_000,
    "imitation": 0.5,
}

#: What a course found needs no search.
KINDS = {"curriculum": KIND, "archive": ARCHIVE, "ways": WAYS, "recorded": PRACTISED}


@pytest.fixture
def soon(searched: dict[Any, Any], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Stages are searched after two episodes, and what is found counts as tried in vain, so that it
    is imitated; the stages that were searched in this process."""
    stages: list[int] = []

    def find(*words: Any, **named: Any) -> Any:
        stages.append(named["stage"])
        key = named["stage"], named["seed"], named["chances"].tobytes()
        if key not in searched:
            searched[key] = find_way(*words, **named)
        return searched[key]

    def tried(way: Way, first: int, places: Any, attempts: Any, clears: Any) -> Practice:
        return Practice(way, first, places, attempts if attempts.any() else attempts + 30.0, clears)

    monkeypatch.setattr(ways, "EPISODES", 2)
    monkeypatch.setattr(ways, "find_way", find)
    monkeypatch.setattr(ways, "Practice", tried)
    return stages


@pytest.fixture(scope="module")
def searched() -> dict[Any, Any]:
    """What searches have found: the same one need not be made twice."""
    return {}


@pytest.mark.limit(600)
@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_an_actor_without_lag_is_the_run_in_one_process(
    machines: Any, tmp_path: Path, kind: dict[str, Any]
) -> None:
    """Bit by bit, over a checkpoint, from which a run in one process goes on as well."""
    half = 3 if kind is KIND else 14
    whole = alone(settings(tmp_path / "whole", **kind), updates=2 * half)
    config = settings(tmp_path / "actor", **kind, actors=1, max_lag=0)
    first = fleet(config, updates=half, save=True)
    assert first["notes"] == []
    second = fleet(config, updates=2 * half, save=True)
    assert second["notes"] == []
    assert torch.equal(torch.cat([first["actions"], second["actions"]]), whole["actions"])
    assert first["episodes"] + second["episodes"] == whole["episodes"] != []
    for name, part in whole["weights"].items():
        assert torch.equal(second["weights"][name], part), name
    require_same(second["state"]["collector"], whole["state"]["collector"])
    for mine, yours in zip(first["rows"] + second["rows"], whole["rows"], strict=True):
        assert mine["lag_max"] == mine["policy_lag"] == mine["actors_lost"] == 0
        for name, value in yours.items():
            if "time" not in name and "sec" not in name and name != "eta":
                assert mine[name] == value, name
    if kind is ARCHIVE:
        assert first["rows"][-1]["archive_size"] > 1
        assert second["rows"][-1]["archive_episodes"] > first["rows"][-1]["archive_episodes"] > 0
    if kind in (WAYS, PRACTISED):
        count = 1.0 if kind is WAYS else 2.0
        assert first["rows"][-1]["ways"] == second["rows"][-1]["ways"] == count
        for part in (first, second):
            assert any(row["loss_imitation"] > 0 for row in part["rows"])
        assert [numbers for *_, numbers in second["episodes"] if on_a_way(numbers)]
    back = alone(settings(tmp_path / "actor", **kind), updates=2 * half + 1)
    further = alone(settings(tmp_path / "whole", **kind), updates=2 * half + 1)
    for name, part in further["weights"].items():
        assert torch.equal(back["weights"][name], part), name


@pytest.mark.limit(600)
def test_several_actors_have_one_curriculum(machines: Any, tmp_path: Path) -> None:
    """Statistics of all episodes, as one process has them; every actor plays by them."""
    kind = {"stages": "1-1,1-2,4-1", "curriculum": "progress", "stagnation_limit": 2}
    whole = alone(settings(tmp_path / "whole", **kind), updates=6)
    config = settings(tmp_path / "actors", **kind, actors=2, max_lag=0)
    first = fleet(config, updates=3, save=True)
    second = fleet(config, updates=6)
    assert first["episodes"] + second["episodes"] == whole["episodes"]
    mine, yours = (one["state"]["collector"]["guide"]["curriculum"] for one in (second, whole))
    assert mine == yours
    assert sum(mine["episodes"]) == len(whole["episodes"]) > 2
    names = [name for name in whole["rows"][0] if name.startswith("stage_share_")]
    assert len(names) == 3
    for row, expected in zip(first["rows"] + second["rows"], whole["rows"], strict=True):
        assert {name: row[name] for name in names} == {name: expected[name] for name in names}


@pytest.mark.limit(600)
def test_several_actors_have_one_archive(
    machines: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All begin at its moments; the checkpoint is that of any run."""
    monkeypatch.setattr("warpzone.observers.archive.INTERVAL", 0.0)
    config = settings(tmp_path, **ARCHIVE, actors=2, max_lag=0)
    seen = fleet(config, updates=32, save=True, watch=lambda made: ArchiveObserver())
    assert seen["rows"][-1]["archive_size"] > 1
    restarted = [lane for lane, *_, restart in seen["episodes"] if restart]
    assert {lane // 2 for lane in restarted} == {0, 1}
    assert seen["rows"][-1]["archive_episodes"] == len(restarted)
    places = json.loads((seen["folder"] / "archive.json").read_text())["moments"]
    assert len(places) == seen["rows"][-1]["archive_size"]
    saved = seen["state"]["collector"]["guide"]["archive"]
    assert len(saved["numbers"]) == len(places)
    # The moments are saved once, not with every actor.
    for own in seen["state"]["collector"]["fleet"]["actors"]:
        assert own["guide"]["archive"]["numbers"] == []
    back = alone(settings(tmp_path, **ARCHIVE), updates=33)
    assert not [note for note in back["notes"] if "start" in note]
    assert back["rows"][0]["archive_episodes"] >= seen["rows"][-1]["archive_episodes"]


@pytest.mark.limit(600)
def test_several_actors_practise_one_way(machines: Any, tmp_path: Path, soon: list[int]) -> None:
    """The learner searches, once, and counts what all of them try; they lag behind it."""
    config = settings(tmp_path, **WAYS, actors=2, max_lag=1)
    first = fleet(config, updates=20, save=True)
    assert soon == [0]
    second = fleet(config, updates=40)
    # It is saved with the run, and not searched for again.
    assert soon == [0]
    assert all(row["ways"] == 1.0 for row in second["rows"])
    assert second["rows"][-1]["searched_steps"] == first["rows"][-1]["searched_steps"] > 0
    assert any(row["loss_imitation"] > 0 for row in second["rows"])
    # Lane, stage, ..., why it ended, where it began.
    begun = [one for one in first["episodes"] + second["episodes"] if on_a_way(one[-1])]
    assert {one[0] // 2 for one in begun} == {0, 1}
    saved = second["state"]["collector"]["guide"]["ways"]
    expected = Practice(Way(0, 0, []), FIRST_PLACE, [], *np.zeros((2, len(saved["counts"][0][0]))))
    expected.attempts += 30.0
    for *_, reason, restart in begun:
        expected.count(restart, reason == "flag")
    assert saved["counts"][0] == [expected.attempts.tolist(), expected.clears.tolist()]


def on_a_way(restart: int) -> bool:
    return FIRST_PLACE <= restart < FIRST_EXPLORER


def test_an_actor_plays_by_the_curriculum_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It is in this process, which is not to end ten minutes after it was asked last.
    monkeypatch.setattr(RemoteActor, "_end_if_orphaned", lambda actor: None)
    config = settings(tmp_path, stages="1-1,1-2", curriculum="clear-rate", curriculum_floor=0.0)
    known = Curriculum(config)
    known.episodes[:2], known.clear_rate[:2] = (7, 9), (1.0, 0.0)
    told = LearnersArchive(config).told(known, lambda body: body)
    actor = RemoteActor()
    threads = torch.get_num_threads()
    actor.begin(config, (0, 2), 0, 1)
    weights = {name: part.numpy() for name, part in tensors_of(actor._agent).items()}
    stages: dict[int, list[int]] = {0: [], 1: []}
    for version in range(16):
        parcel = actor.play(weights, version, 0, told)
        for one in parcel.ended:
            stages[one.lane].append(one.episode.stage)
        assert actor._collector.guide.curriculum.episodes[1] >= 9
    actor._groups.close()
    torch.set_num_threads(threads)
    # The first game of a lane had begun before it was told.
    assert {stage for own in stages.values() for stage in own[1:]} == {1}


def require_same(mine: Any, yours: Any, where: str = "") -> None:
    """A saved state is in another."""
    if isinstance(yours, dict):
        for name, part in yours.items():
            require_same(mine[name], part, f"{where}.{name}")
    elif isinstance(yours, torch.Tensor):
        assert torch.equal(mine, yours), where
    else:
        assert mine == yours, where


@pytest.mark.limit(600)
def test_a_killed_actor_costs_its_rollout_and_is_replaced(
    machines: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = settings(tmp_path, actors=2, max_lag=1)
    seen = fleet(config, updates=6, save=True, watch=lambda made: Killer(3), enough=back)
    rows = seen["rows"]
    assert [row["update"] for row in rows] == list(range(1, len(rows) + 1))
    assert all(0 <= row["lag_p50"] <= row["lag_max"] <= 1 for row in rows)
    assert any(row["lag_max"] == 1 for row in rows)
    assert [row["policy_lag"] for row in rows] == [row["lag_max"] for row in rows]
    assert rows[2]["actors_lost"] == 0
    assert rows[-1]["actors_lost"] == 1
    assert rows[-1]["rollouts_lost"] <= 1
    said = capfd.readouterr().err
    assert " is lost (its process ended): " in said
    assert "and another takes its place" in said
    # Four lanes of two actors, whoever played them.
    assert seen["actions"].shape[1:] == (8, 4)
    fewer = fleet(config.replace(actors=1), updates=len(rows) + 1)
    assert fewer["notes"][0] == "the lanes of 2 actors are dealt anew to 1"
    assert not [note for note in fewer["notes"] if "start again" in note]
    assert fewer["rows"][0]["lag_max"] == 0


def back(row: dict[str, Any]) -> bool:
    """An actor was lost, and another is there."""
    return bool(row["actors_lost"] == 1 and row["actors_present"] == 2)


@pytest.mark.limit(600)
def test_a_resumed_learner_finds_the_actors_of_one_that_was_killed(
    machines: Any, tmp_path: Path
) -> None:
    words = [
        *("--device", "cpu", "--num-envs", "4", "--groups", "2", "--rollout-steps", "8"),
        *("--minibatch", "16", "--epochs", "1", "--hidden-size", "16", "--algo", "vtrace"),
        *(
            "--size",
            "36",
            "--encoder-width",
            "0.125",
            "--stagnation-limit",
            "3",
            "--run-name",
            "one",
        ),
        *("--checkpoint-interval", "1", "--eval-interval", "0", "--max-steps", "100000000"),
        *("--actors", "2", "--runs-dir", str(tmp_path), "--ray", machines.address, "--preset"),
        *("quick", "--max-time", "60"),
    ]
    command = [sys.executable, "-m", "warpzone.cli.main", "train", *words]
    learner = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    ends = time.monotonic() + PATIENCE
    while not list((tmp_path / "one" / "checkpoints").glob("*_0000003.json")):
        if time.monotonic() > ends or learner.poll() is not None:
            learner.kill()
            pytest.fail(learner.communicate()[1])
        time.sleep(0.1)
    learner.kill()
    _, said = learner.communicate()
    actors = actor_names()
    assert len(actors) == 2
    files = [path for path in (tmp_path / "one").rglob("*") if path.is_file()]
    assert not [path for path in files if machines.address.encode() in path.read_bytes()]
    assert machines.address not in said
    from warpzone.run.resume import saved_config

    config = saved_config(settings(tmp_path, resume="auto"))
    assert config is not None
    config = config.replace(resume="auto")
    before = max(row["update"] for row in read_rows(tmp_path / "one", "metrics.jsonl"))
    again = fleet(config, updates=before + 3, cluster=THERE)
    assert "all 2 actors are still there, and go on with their games" in again["notes"]
    assert not [note for note in again["notes"] if "start again" in note]
    # The learner that ends in order ends them.
    while actor_names() & actors:
        assert time.monotonic() < ends
        time.sleep(0.1)


def actor_names() -> set[str]:
    """The actors that outlive their learner."""
    return set(ray.util.list_named_actors())


@pytest.mark.limit(600)
def test_an_actor_that_fails_ends_the_run_with_its_reason(machines: Any, tmp_path: Path) -> None:
    def spoil(made: FleetCollector) -> Observer:
        made._agent = torch.nn.Module()  # type: ignore[assignment]
        return Observer()

    with pytest.raises(FleetError, match="actor 0 failed: 'encoder"):
        fleet(settings(tmp_path, actors=1), watch=spoil)
