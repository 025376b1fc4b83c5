"""Populations: settings stay in their ranges, lineages are put together from what members say."""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tiny_spaces import tiny_space

pytest.importorskip("optuna")
pytest.importorskip("ray")

from warpzone.config import ConfigError
from warpzone.run.lock import RunLock
from warpzone.search import population, standing
from warpzone.search.lineage import MEMBERS, write_population
from warpzone.search.parameter import Parameter
from warpzone.search.population import (
    PopulationOrder,
    _fitting,
    _scheduler,
    check,
    draw,
    valid_draw,
)
from warpzone.search.standing import hold, read_standing

PLAIN: dict[str, Any] = {"space": {"clip": {"low": 0.1, "high": 0.3}}}


def order(tmp_path: Path, **changes: Any) -> PopulationOrder:
    settings: dict[str, Any] = {"members": 4, "workers": 2, "exchange": 32, "quantile": 0.25}
    kept = {name: changes.pop(name, value) for name, value in settings.items()}
    space = tiny_space(**{**PLAIN, **changes})
    return PopulationOrder(tmp_path / "x.toml", space, tmp_path / "x", **kept)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"space": {}}, "`when` is for sweeps only"),
        ({"space": {"clip": {"low": 0.1, "high": 0.2}, "memory": {"choices": ["none", "gru"]}}},
         "is a setting of the network"),
        ({"members": 1}, "--members must be at least 2"),
        ({"quantile": 0.6}, "--quantile must be above 0 and at most 0.5"),
        ({"exchange": 97}, "--exchange 97 is more than max_steps 96"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        check(order(tmp_path, **changes))
    assert not (tmp_path / "x").exists()


def test_a_name_is_used_once(tmp_path: Path) -> None:
    check(order(tmp_path))
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "population.json").write_text("{}")
    with pytest.raises(ConfigError, match="exists already"):
        check(order(tmp_path))


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "sweep.json").write_text("{}")
    with pytest.raises(ConfigError, match="exists already"):
        check(order(tmp_path))


def kept(made: PopulationOrder, **changes: Any) -> None:
    """What a population writes down about itself."""
    (made.folder / MEMBERS).mkdir(parents=True, exist_ok=True)
    facts = {"members": 4, "exchange": 32, "space": made.space.identity(), **changes}
    write_population(made.space, made.folder, facts)


def test_only_the_same_population_goes_on(tmp_path: Path) -> None:
    kept(order(tmp_path))
    check(order(tmp_path))
    # Who trains it, and how many take over, may change.
    check(order(tmp_path, workers=1, quantile=0.5))
    other = {"space": {**PLAIN["space"], "lr": {"low": 1e-4, "high": 1e-2}}}
    with pytest.raises(ConfigError, match=r"is a population of another space \(lr differ\)"):
        check(order(tmp_path, **other))
    with pytest.raises(ConfigError, match="another space"):
        check(order(tmp_path, fixed={"max_steps": 128}))
    with pytest.raises(ConfigError, match="with --members 4; go on with that"):
        check(order(tmp_path, members=5))
    with pytest.raises(ConfigError, match="with --exchange 32; go on with that"):
        check(order(tmp_path, exchange=64))
    kept(order(tmp_path), format=2)
    with pytest.raises(ConfigError, match="of format 2, and this version writes 1"):
        check(order(tmp_path))


def told(folder: Path, member: int, *rows: tuple[str, int, bool]) -> None:
    """What a member wrote down: begun runs and values."""
    lines, run = [], ""
    for number, (event, step, done) in enumerate(rows):
        begun = event == "begin"
        run = f"member-{member:02d}-{number}" if begun else run
        more: dict[str, Any] = {"parent": "x" if number else None} if begun else {}
        more |= {} if begun else {"value": 1.0, "done": done}
        settings = {"lr": number / 100}
        lines.append({"event": event, "run": run, "step": step, "settings": settings, **more})
    path = folder / MEMBERS / f"{member:02d}.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


START, FIRST, SECOND = ("begin", 0, False), ("value", 32, False), ("value", 64, False)
TAKEN, END = ("begin", 32, False), ("value", 96, True)


@pytest.mark.parametrize(
    ("members", "report", "finished"),
    [
        ([[], []], 0, False),
        ([[START], []], 1, False),
        # One is ahead: it reports again, the other trains.
        ([[START, FIRST], [START]], 1, False),
        # All have a value, nobody has gone on: they are to exchange.
        ([[START, FIRST], [START, FIRST]], 1, False),
        # A session that was repeated after a kill is one.
        ([[START, FIRST, FIRST], [START, FIRST]], 1, False),
        # It was decided who takes over from whom.
        ([[START, FIRST], [START, FIRST, TAKEN]], 2, False),
        ([[START, FIRST, SECOND], [START, FIRST]], 2, False),
        ([[START, FIRST, SECOND, END], [START, FIRST, SECOND]], 3, False),
        # One ended before its time.
        ([[START, ("value", 40, True)], [START, FIRST, SECOND]], 2, False),
        ([[START, FIRST, SECOND, END], [START, FIRST, TAKEN, END]], 1, True),
    ],
)
def test_members_go_on_together(
    tmp_path: Path, members: list[list[tuple[str, int, bool]]], report: int, finished: bool
) -> None:
    for number, rows in enumerate(members):
        if rows:
            told(tmp_path, number, *rows)
    found = read_standing(tmp_path, len(members))
    assert (found.report, found.finished) == (report, finished)
    assert found.begun == any(members)
    expected = [{"lr": (len(rows) - 1) / 100} if rows else None for rows in members]
    assert list(found.settings) == expected


def test_a_population_has_one_trainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = hold(tmp_path)
    half = tmp_path / ".population.json.32562-85987097"
    half.write_text("{")
    with pytest.raises(ConfigError, match="another process is training the population"):
        hold(tmp_path)
    assert half.exists()  # the other one may be writing it
    first.close()
    # A member of a killed one that does not end.
    run = tmp_path / "member-00"
    run.mkdir()
    (run / "config.json").write_text("{}")
    monkeypatch.setattr(standing, "GRACE", 0.0)
    monkeypatch.setattr(standing, "LOOK", 0.0)
    member = RunLock(run)
    with pytest.raises(ConfigError, match="another process is training the run"):
        hold(tmp_path)
    member.close()
    assert half.exists()
    hold(tmp_path).close()
    assert not half.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_exit_code_of_a_population_says_which_signal_ended_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    places: list[Path] = []

    def start_here(place: str, **_: Any) -> None:
        places.append(Path(place))
        # Ray sets a handler of its own.
        signal.signal(number, lambda signum, _frame: sys.exit(signum))

    monkeypatch.setattr(population, "start_here", start_here)
    # Under nohup it is ignored, and stays so.
    outside = signal.signal(number, signal.SIG_DFL)
    try:
        with pytest.raises(SystemExit) as ended, population._ray(order(tmp_path)):
            os.kill(os.getpid(), number)
            time.sleep(60)
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, outside)
    assert ended.value.code == 128 + number
    assert not places[0].exists()


@pytest.mark.parametrize(
    "parameter",
    [
        Parameter("lr", 1e-5, 1e-2, log=True),
        Parameter("entropy", 0.0, 0.1),
        Parameter("epochs", 1, 5),
        Parameter("minibatch", 16, 64, step=16),
        Parameter("algo", choices=("ppo", "a2c")),
    ],
)
def test_draws_are_spread_over_the_range(parameter: Parameter) -> None:
    rng = random.Random(1)
    values = [draw(parameter, rng) for _ in range(300)]
    if parameter.choices:
        assert set(values) == set(parameter.choices)
        return
    assert all(parameter.low <= value <= parameter.high for value in values)
    middle = (parameter.low * parameter.high) ** 0.5 if parameter.log else 0.0
    middle = middle or (parameter.low + parameter.high) / 2
    assert 0.25 < sum(value < middle for value in values) / 300 < 0.75
    assert all(isinstance(value, int) for value in values) == parameter.whole


def test_explored_settings_stay_in_their_ranges(tmp_path: Path) -> None:
    """Tune multiplies what it explores, whatever the range is."""
    from ray.tune.schedulers import pbt

    made = order(tmp_path)
    scheduler = _scheduler(made)
    config: dict[str, Any] = {**valid_draw(made.space), "_folder": "x", "lr": 1e-2, "clip": 0.3}
    explore: Any = pbt._explore
    for _ in range(200):
        config, _ = explore(
            config, scheduler._hyperparam_mutations, 0.25, (0.8, 1.25), _fitting(made.space)
        )
        assert config["_folder"] == "x"
        made.space.config({k: v for k, v in config.items() if k != "_folder"})
        assert 1e-5 <= config["lr"] <= 1e-2
        assert 0.1 <= config["clip"] <= 0.3


def test_the_worst_members_take_over_from_the_best(tmp_path: Path) -> None:
    """Tune compares scores, which are the larger the better whatever the objective is."""
    assert _scheduler(order(tmp_path))._metric_op == 1.0
    few = _scheduler(order(tmp_path, objective="steps", clears=3))
    assert few._metric_op == -1.0
    assert few._quantile_fraction == 0.25
    assert _scheduler(order(tmp_path, exchange=0)) is None


def test_settings_that_contradict_each_other_are_drawn_anew() -> None:
    both = {"minibatch": {"choices": [16, 32]}, "rollout_steps": {"choices": [8, 4]}}
    space = tiny_space(space={**both, "clip": {"low": 0.1, "high": 0.3}})
    wrong = {**valid_draw(space), "minibatch": 32, "rollout_steps": 4}
    fitted = _fitting(space)(wrong)
    assert (fitted["minibatch"], fitted["rollout_steps"]) != (32, 4)
    for _ in range(50):
        space.config(valid_draw(space))


def test_a_lineage_is_what_members_wrote_down(tmp_path: Path) -> None:
    """A session that was repeated after a kill counts once; half a line counts not at all."""
    (tmp_path / MEMBERS).mkdir()
    good, other = {"lr": 0.001}, {"lr": 0.002}
    rows = {
        "00": [
            {"event": "begin", "run": "member-00", "parent": None, "step": 0, "settings": good},
            {"event": "value", "run": "member-00", "step": 32, "value": 1.0, "settings": good},
            {"event": "value", "run": "member-00", "step": 32, "value": 1.0, "settings": good},
            {"event": "value", "run": "member-00", "step": 64, "value": 2.0, "settings": good},
        ],
        "01": [
            {"event": "begin", "run": "member-01", "parent": None, "step": 0, "settings": other},
            {"event": "value", "run": "member-01", "step": 32, "value": 0.5, "settings": other},
            {"event": "begin", "run": "member-01-2", "parent": "member-00", "step": 32,
             "settings": good},
            {"event": "value", "run": "member-01-2", "step": 64, "value": 3.0, "settings": good},
        ],
    }  # fmt: skip
    for name, lines in rows.items():
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (tmp_path / MEMBERS / f"{name}.jsonl").write_text(text + '{"event": "val')
    found = write_population(tiny_space(**PLAIN), tmp_path, {"members": 2})
    assert json.loads((tmp_path / "population.json").read_text()) == found
    assert [(run["run"], run["parent"], run["step"]) for run in found["runs"]] == [
        ("member-00", None, 0),
        ("member-01", None, 0),
        ("member-01-2", "member-00", 32),
    ]
    assert [point["step"] for point in found["runs"][0]["points"]] == [32, 64]
    assert found["best"] == {"value": 3.0, "step": 64, "run": "member-01-2", "settings": good}
    assert "--lr 0.001" in found["command"]
