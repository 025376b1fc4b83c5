"""Exchanges of a population: decided about all members or none, whenever it is killed, and not held
up by members that have ended."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("optuna")
pytest.importorskip("ray")

from ray.tune import CheckpointConfig

from warpzone.run.files import append_text
from warpzone.search import takeover
from warpzone.search.lineage import MEMBERS, read_member
from warpzone.search.standing import read_standing
from warpzone.search.takeover import (
    DECIDED,
    TOLD,
    Exchanges,
    begin,
    finish_exchange,
    incoming,
    member_file,
    remove_incoming,
)


class _Killed(BaseException):
    """What a kill leaves behind: nothing after it is done."""


class _Controller:
    """What the scheduler asks Tune for."""

    search_alg = None

    def __init__(self) -> None:
        self.trials: list[Any] = []

    def get_trials(self) -> list[Any]:
        return self.trials

    def get_live_trials(self) -> list[Any]:
        return [trial for trial in self.trials if not trial.is_finished()]


def population(folder: Path, members: int = 4) -> tuple[Any, _Controller]:
    """Members that have trained one session and wait for each other."""
    (folder / MEMBERS).mkdir()
    scheduler: Any = Exchanges(
        folder,
        time_attr="training_iteration",
        metric="value",
        mode="max",
        perturbation_interval=1,
        quantile_fraction=0.5,
        hyperparam_mutations={"lr": [0.1, 0.2, 0.3]},
        log_config=False,
        synch=True,
    )
    controller = _Controller()
    for number in range(members):
        there = folder / "ray" / str(number)
        there.mkdir(parents=True)
        told = {"run": f"member-{number:02d}", "step": 64}
        (there / TOLD).write_text(json.dumps(told))
        begin(folder, number, "", 0, {"lr": 0.1})
        append_text(member_file(folder, number), json.dumps(_value(number)) + "\n")
        trial = _Trial(number, there)
        controller.trials.append(trial)
        scheduler.on_trial_add(controller, trial)
    return scheduler, controller


def _value(number: int) -> dict[str, Any]:
    row = {"event": "value", "run": f"member-{number:02d}", "step": 64, "value": float(number)}
    return {**row, "settings": {"lr": 0.1}, "done": False}


class _Trial:
    """A member that is paused, as Tune knows it."""

    def __init__(self, number: int, there: Path) -> None:
        self.trial_id = f"x_{number:05d}"
        self.status = "PAUSED"
        self.config: dict[str, Any] = {"lr": 0.1, "_every": 64}
        self.experiment_tag = ""
        self.temporary_state = SimpleNamespace(saving_to=None)
        newest = SimpleNamespace(checkpoint=SimpleNamespace(path=str(there)))
        self._manager = SimpleNamespace(
            checkpoint_config=CheckpointConfig(), _latest_checkpoint_result=newest
        )
        self.run_metadata = SimpleNamespace(checkpoint_manager=self._manager)

    @property
    def checkpoint(self) -> Any:
        return self._manager._latest_checkpoint_result.checkpoint

    def is_finished(self) -> bool:
        return self.status == "TERMINATED"

    def set_config(self, config: dict[str, Any]) -> None:
        self.config = config

    def set_experiment_tag(self, tag: str) -> None:
        self.experiment_tag = tag


def report(scheduler: Any, controller: _Controller, *numbers: int) -> None:
    for number in numbers:
        result = {"training_iteration": 1, "value": float(number)}
        scheduler.on_trial_result(controller, controller.trials[number], result)


def begun(folder: Path) -> list[int]:
    """Members that are to begin another run."""
    rows = [read_member(member_file(folder, number)) for number in range(4)]
    return [number for number, own in enumerate(rows) if own[-1]["event"] == "begin"]


def test_the_worse_half_takes_over(tmp_path: Path) -> None:
    scheduler, controller = population(tmp_path)
    report(scheduler, controller, 0, 1, 2)
    assert begun(tmp_path) == []
    report(scheduler, controller, 3)
    assert begun(tmp_path) == [0, 1]
    for number in begun(tmp_path):
        last = read_member(member_file(tmp_path, number))[-1]
        assert last["parent"] in ("member-02", "member-03")
        assert (last["run"], last["step"]) == (f"member-{number:02d}-2", 64)
        assert (incoming(tmp_path, number) / TOLD).is_file()
    assert not (tmp_path / DECIDED).exists()


#: What is called when it is killed, at which time, and whether the exchange was decided by then.
MOMENTS = [
    ("fetch", 1, False),
    ("fetch", 2, False),
    ("write_text", 1, False),
    ("begin", 1, True),
    ("begin", 2, True),
    ("unlink", 1, True),
    ("unlink", 2, True),
]


@pytest.mark.parametrize(("name", "time", "decided"), MOMENTS)
def test_a_kill_while_an_exchange_is_written_down_makes_nobody_skip_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, time: int, decided: bool
) -> None:
    scheduler, controller = population(tmp_path)
    report(scheduler, controller, 0, 1, 2)
    with monkeypatch.context() as patch:
        owner: Any = Path if name == "unlink" else takeover
        patch.setattr(owner, name, _killing(getattr(owner, name), time))
        with pytest.raises(_Killed):
            report(scheduler, controller, 3)
    finish_exchange(tmp_path)
    # All of it, or all of it is decided again when the population goes on.
    assert begun(tmp_path) == ([0, 1] if decided else [])
    assert read_standing(tmp_path, 4).report == (2 if decided else 1)
    if decided:
        assert all((incoming(tmp_path, number) / TOLD).is_file() for number in (0, 1))
    assert not (tmp_path / DECIDED).exists()
    before = [read_member(member_file(tmp_path, number)) for number in range(4)]
    finish_exchange(tmp_path)
    assert [read_member(member_file(tmp_path, number)) for number in range(4)] == before
    remove_incoming(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {MEMBERS, "ray"}


def _killing(real: Callable[..., Any], time: int) -> Callable[..., Any]:
    calls = iter(range(1, 100))

    def call(*words: Any, **named: Any) -> Any:
        if next(calls) == time:
            raise _Killed
        return real(*words, **named)

    return call


@pytest.mark.parametrize("failed", [False, True])
def test_members_do_not_wait_for_one_that_has_ended(tmp_path: Path, failed: bool) -> None:
    """The last of a round ends instead of reporting: Tune alone would let the others wait for
    ever."""
    scheduler, controller = population(tmp_path)
    report(scheduler, controller, 0, 1, 2)
    assert scheduler.choose_trial_to_run(controller) is controller.trials[3]
    # Tune tells it before it ends the member.
    if failed:
        scheduler.on_trial_error(controller, controller.trials[3])
    else:
        scheduler.on_trial_complete(controller, controller.trials[3], {})
    controller.trials[3].status = "TERMINATED"
    assert begun(tmp_path) == [0]
    assert read_member(member_file(tmp_path, 0))[-1]["parent"] == "member-02"
    assert scheduler.choose_trial_to_run(controller) in controller.trials[:3]


def test_one_that_ends_early_does_not_hurry_the_others(tmp_path: Path) -> None:
    scheduler, controller = population(tmp_path)
    report(scheduler, controller, 0)
    scheduler.on_trial_complete(controller, controller.trials[3], {})
    controller.trials[3].status = "TERMINATED"
    assert begun(tmp_path) == []
    report(scheduler, controller, 1, 2)
    assert begun(tmp_path) == [0]
