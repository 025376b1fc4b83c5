"""Workers of a sweep, in this process: what trials leave behind, how they end and go on."""

import json
import os
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tiny_spaces import tiny_space, write

optuna = pytest.importorskip("optuna")
torch = pytest.importorskip("torch")

from warpzone.cli.flags import resolve  # noqa: E402
from warpzone.run.lock import RunLock  # noqa: E402
from warpzone.run.reader import read_rows  # noqa: E402
from warpzone.search.budget import Account, Caps  # noqa: E402
from warpzone.search.objective import points_of  # noqa: E402
from warpzone.search.space import read_space  # noqa: E402
from warpzone.search.trial import TrialObserver  # noqa: E402
from warpzone.search.worker import Job, Worker  # noqa: E402
from warpzone.train.stopping import Stop  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def quick_evaluations() -> Any:
    """Three start delays and little patience: what is evaluated is not what is tested."""
    from warpzone.eval import evaluate

    few = partial(evaluate.evaluate, delays=(0, 7, 30))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warpzone.train.evaluator.evaluate", few)
        patch.setattr(evaluate, "STUCK_AFTER", 20)
        yield
    torch.set_num_threads(threads)


def worker(folder: Path, *, trials: int, stop: Stop | None = None, **changes: Any) -> Worker:
    job: dict[str, Any] = {"heartbeat": 10, "threads": 1, "caps": changes.pop("caps", Caps())}
    path = folder / "tiny.toml"
    if not path.exists():
        write(path, **changes)
    job |= {"space": str(path), "folder": str(folder), "storage": str(folder / "journal.log")}
    made = Job(trials=trials, **job)
    assert Job.from_json(made.to_json()) == made
    return Worker(made, read_space(path), stop if stop is not None else Stop())


def record(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "sweep.json").read_text()))


def states(folder: Path) -> list[str]:
    return [trial["state"] for trial in record(folder)["trials"]]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    worker(folder, trials=5, pruner="none").work()
    return folder


def test_trials_are_runs(swept: Path) -> None:
    trials = record(swept)["trials"]
    assert [trial["state"] for trial in trials] == ["complete"] * 5
    for trial in trials:
        run = swept / trial["run"]
        saved = json.loads((run / "config.json").read_text())
        assert {name: saved[name] for name in trial["params"]} == trial["params"]
        assert saved["hidden_size"] == 16
        assert (run / "best.safetensors").is_file()
        assert trial["steps"] == 96
        assert [step for step, _ in trial["curve"]] == [32, 64, 96]
        points = points_of(read_rows(run, "evals.jsonl"))
        means = [sum(row["furthest_x"] for row in rows) / len(rows) for _, rows in points]
        assert trial["value"] == max(means)
        assert [value for _, value in trial["curve"]] == [max(means[: n + 1]) for n in range(3)]


def test_the_command_of_the_best_trial_is_its_configuration(swept: Path) -> None:
    found = record(swept)
    best = next(trial for trial in found["trials"] if trial["number"] == found["best"])
    assert best["value"] == max(trial["value"] for trial in found["trials"])
    program, command, *words = found["command"].split()
    assert (program, command) == ("warpzone", "train")
    config = resolve(words, prog="warpzone train", about="", say=lambda _: None)
    assert config == tiny_space(pruner="none").config(best["params"])


def test_a_finished_sweep_has_nothing_to_do(swept: Path) -> None:
    before = record(swept)
    worker(swept, trials=5).work()
    assert record(swept) == before


def test_importance_is_known_for_what_all_trials_have(swept: Path) -> None:
    found = record(swept)["importance"]
    assert set(found) <= {"lr", "entropy", "algo"}
    assert all(share >= 0 for share in found.values())


def test_worse_trials_are_pruned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pruner is asked after each evaluation but the last; it says yes at the second."""
    asked: list[int] = []

    def prune(self: Any, study: Any, trial: Any) -> bool:
        asked.append(trial.last_step)
        return bool(trial.last_step == 64)

    monkeypatch.setattr(optuna.pruners.MedianPruner, "prune", prune)
    worker(tmp_path, trials=1).work()
    (trial,) = record(tmp_path)["trials"]
    assert (trial["state"], trial["value"], trial["steps"]) == ("pruned", None, 64)
    assert asked == [32, 64]


def test_evaluations_are_reported_where_they_were_planned() -> None:
    """Rollouts of trials differ in size, and pruners compare what is at the same step."""
    trial: Any = None
    watcher = TrialObserver(trial, tiny_space(), Caps())
    planned = {1: 32, 31: 32, 33: 32, 47: 32, 49: 64, 64: 64, 95: 96, 100: 96}
    assert {step: watcher._planned(step) for step in planned} == planned
    never = TrialObserver(trial, tiny_space(pruner="none", fixed={"eval_interval": 0}), Caps())
    assert never._planned(33) == 33


def test_the_last_evaluation_prunes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optuna.pruners.MedianPruner, "prune", lambda *_: bool(_[2].last_step == 96))
    worker(tmp_path, trials=1).work()
    assert states(tmp_path) == ["complete"]


class _After:
    """A stop that a signal sets at the n-th time it is looked at."""

    def __init__(self, looks: int) -> None:
        self.left = looks
        self.signum = 0

    def __bool__(self) -> bool:
        self.left -= 1
        self.signum = 15 if self.left < 0 else 0
        return self.signum != 0

    def check(self) -> None:
        from warpzone.train.stopping import Interrupted

        if self:
            raise Interrupted(15)


def test_an_interrupted_trial_goes_on_from_its_checkpoint(tmp_path: Path, swept: Path) -> None:
    stop: Any = _After(200)
    worker(tmp_path, trials=1, stop=stop, pruner="none").work()
    first = record(tmp_path)["trials"]
    assert [trial["state"] for trial in first] == ["fail", "waiting"]
    assert 0 < first[0]["steps"] < 96
    worker(tmp_path, trials=1).work()
    _, again = record(tmp_path)["trials"]
    assert (again["state"], again["run"]) == ("complete", "trial-0000")
    # Resumed, and bit for bit what it would have been.
    assert again["steps"] == 96 - first[0]["steps"]
    whole = record(swept)["trials"][0]
    assert (again["value"], again["curve"]) == (whole["value"], whole["curve"])
    assert len(Account(worker(tmp_path, trials=1)._trials()).counted) == 1


def test_the_trial_of_a_dead_worker_is_tried_again(tmp_path: Path) -> None:
    crew = worker(tmp_path, trials=1)
    lost = crew.study.ask()
    crew.study._storage.record_heartbeat(lost._trial_id)  # type: ignore[attr-defined]
    long_ago = time.time() - 41
    os.utime(tmp_path / "journal.log.alive" / str(lost._trial_id), (long_ago, long_ago))
    crew.work()
    assert states(tmp_path) == ["fail", "complete"]
    assert record(tmp_path)["trials"][1]["run"] == "trial-0000"


def test_a_folder_in_use_is_left_to_its_process(tmp_path: Path) -> None:
    (tmp_path / "trial-0000").mkdir()
    held = RunLock(tmp_path / "trial-0000")
    try:
        worker(tmp_path, trials=1).work()
    finally:
        held.close()
    assert record(tmp_path)["trials"][0]["run"] == "trial-0000-2"


def test_limits_of_the_whole_sweep(tmp_path: Path) -> None:
    worker(tmp_path, trials=9, caps=Caps(steps=100), pruner="none").work()
    assert states(tmp_path) == ["complete", "complete"]
    worker(tmp_path, trials=9, caps=Caps(steps=100)).work()
    assert len(states(tmp_path)) == 2


def test_a_limit_ends_a_trial_that_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warpzone.search.trial.LOOK_EVERY", 0.0)
    worker(tmp_path, trials=9, caps=Caps(steps=40), pruner="none").work()
    first, again = record(tmp_path)["trials"]
    assert (first["state"], first["steps"], again["state"]) == ("fail", 64, "waiting")


def test_settings_that_contradict_each_other_are_a_pruned_trial(tmp_path: Path) -> None:
    """Each end alone is right, both together are not."""
    both = {"minibatch": {"choices": [16, 32]}, "rollout_steps": {"choices": [8, 4]}}
    changes: dict[str, Any] = {"space": both, "sampler": "random", "seed": 2, "pruner": "none"}
    worker(tmp_path, trials=6, **changes).work()
    for trial in record(tmp_path)["trials"]:
        wrong = (trial["params"]["minibatch"], trial["params"]["rollout_steps"]) == (32, 4)
        assert trial["state"] == ("pruned" if wrong else "complete")
        assert ("does not divide" in trial["reason"]) == wrong
    assert "pruned" in states(tmp_path)


def test_two_sweeps_at_once_share_the_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two commands on one storage, begun at the same moment: each trial is done once."""
    done: list[tuple[str, int]] = []
    ready = threading.Barrier(2)

    def run_trial(trial: Any, *_: Any, **__: Any) -> float:
        trial.suggest_float("lr", 1e-5, 1e-2, log=True)
        done.append((threading.current_thread().name, trial.number))
        time.sleep(0.02)
        return float(trial.number)

    monkeypatch.setattr("warpzone.search.trial.run_trial", run_trial)
    write(tmp_path / "tiny.toml")

    def sweep() -> None:
        ready.wait()
        worker(tmp_path, trials=12).work()

    crews = [threading.Thread(target=sweep, name=name) for name in ("one", "two")]
    for crew in crews:
        crew.start()
    for crew in crews:
        crew.join()
    assert sorted(number for _, number in done) == list(range(12))
    assert {name for name, _ in done} == {"one", "two"}
    found = worker(tmp_path, trials=12).study
    assert len(optuna.get_all_study_names(found._storage)) == 1
    counted = Account(found.get_trials()).counted
    assert [trial.state.name for trial in counted] == ["COMPLETE"] * 12
    assert len({trial.params["lr"] for trial in counted}) == 12


def test_two_sweeps_that_both_ask_for_the_last_trial_train_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[int] = []

    def run_trial(trial: Any, *_: Any, **__: Any) -> float:
        done.append(trial.number)
        return 1.0

    monkeypatch.setattr("warpzone.search.trial.run_trial", run_trial)
    write(tmp_path / "tiny.toml")
    # Both have seen that a trial is missing before either asks for it.
    both = threading.Barrier(2, timeout=60)

    def sweep() -> None:
        crew = worker(tmp_path, trials=1)
        real = crew._one
        monkeypatch.setattr(crew, "_one", lambda: (both.wait(), real()))
        crew.work()

    crews = [threading.Thread(target=sweep) for _ in range(2)]
    for crew in crews:
        crew.start()
    for crew in crews:
        crew.join()
    assert done == [0]
    assert states(tmp_path) == ["complete"]


def test_one_trial_too_many_is_not_trained(tmp_path: Path) -> None:
    crew = worker(tmp_path, trials=1)
    crew.study.ask()
    crew._one()
    assert crew.study.trials[1].user_attrs["surplus"] is True
    assert not (tmp_path / "trial-0001").exists()
    assert [trial["number"] for trial in record(tmp_path)["trials"]] == [0]


def test_a_worker_that_was_taken_for_dead_lets_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker fails the trial while this one trains it."""
    crew = worker(tmp_path, trials=1)
    real = crew._objective

    def objective(trial: Any) -> float:
        crew.study._storage.set_trial_state_values(
            trial._trial_id, optuna.trial.TrialState.FAIL, None
        )
        return real(trial)

    monkeypatch.setattr(crew, "_objective", objective)
    crew._one()
    assert [trial.state.name for trial in crew.study.trials] == ["FAIL"]
