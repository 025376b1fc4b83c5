"""Alerts of a run: in the log, in its folder and at a webhook, whatever the webhook does."""

import json
from pathlib import Path
from typing import Any

import pytest
from http_servers import listening
from observed_runs import learn, observed
from tiny_runs import Recorder, tiny

from warpzone.config import TrainConfig
from warpzone.health.webhook import Webhook
from warpzone.learn.learner import Learner, LearningError, NotFiniteError
from warpzone.observers.alerts import AlertObserver
from warpzone.observers.log import LogObserver
from warpzone.train.loop import Run

#: A disk that is always too small.
FULL: dict[str, Any] = {"alert_disk_gb": 1e9}


def alerts(run: Run) -> list[dict[str, Any]]:
    text = (run.folder.path / "alerts.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_an_alert_is_logged_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = observed(tmp_path, AlertObserver, **FULL)
    (row,) = alerts(run)
    assert (row["kind"], row["update"], row["global_step"]) == ("disk", 1, 32)
    assert "[train][alert] disk: " in capsys.readouterr().err
    assert row["text"].endswith("GiB are left on the disk of the run")
    assert run.pulse.message == f"alert: {row['text']}"


def test_an_alert_and_a_stall_reach_the_webhook(tmp_path: Path) -> None:
    said: list[str] = []
    with listening() as posted:
        hook = Webhook(f"http://127.0.0.1:{posted.port}/", said.append)
        config = tiny(runs_dir=str(tmp_path), run_name="run", **FULL)
        observer = AlertObserver(config, hook)
        run = learn(Run(config, [observer]))
        observer.stalled("no progress for 9 s")
        observer.stalled("no progress for 18 s")  # Within the cooldown.
        hook.close()
    assert [message["kind"] for message in posted.messages] == ["disk", "stall"]
    assert posted.messages[1]["text"] == "run: no progress for 9 s"
    assert [row["kind"] for row in alerts(run)] == ["disk", "stall"]
    assert said == []


def weights(folder: Path, observer: AlertObserver, config: TrainConfig) -> list[Any]:
    run = learn(Run(config.replace(runs_dir=str(folder)), [observer]))
    return [part.tolist() for part in run.agent.parameters()]


def test_a_server_that_hangs_changes_nothing(tmp_path: Path) -> None:
    config = tiny(run_name="run", **FULL)
    with listening() as posted:
        posted.answering.clear()
        hook = Webhook(f"http://127.0.0.1:{posted.port}/", lambda text: None, timeout=60.0)
        hanging = weights(tmp_path / "hanging", AlertObserver(config, hook), config)
        posted.answering.set()
        hook.close()
    assert hanging == weights(tmp_path / "none", AlertObserver(config), config)


def test_what_cannot_be_written_does_not_end_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tiny(runs_dir=str(tmp_path), run_name="run", **FULL)
    run = Run(config, [AlertObserver(config)])
    (run.folder.path / "alerts.jsonl").mkdir()
    assert learn(run).global_step == 96
    assert "[train][warn] the alert is not in alerts.jsonl" in capsys.readouterr().err


def test_the_best_clear_rate_outlives_a_resume() -> None:
    first, second = (AlertObserver(tiny()) for _ in range(2))
    rows = {"update": 1, "clear_rate": 0.9, "episodes_completed": 500, "updates_skipped": 0.0}
    first._alerts.read({**rows, "seconds": 1.0})
    second.load_state_dict(first.state_dict())
    assert second.state_dict() == {"best": 0.9, "skipped": 0.0}
    second.load_state_dict({})
    assert second.state_dict() == {"best": 0.0}


@pytest.mark.parametrize(("error", "kinds"), [(NotFiniteError, ["nan"]), (LearningError, [])])
def test_a_run_that_cannot_learn_says_so_before_its_log_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[LearningError], kinds: list[str]
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error("not finite 5 times in a row")

    monkeypatch.setattr(Learner, "update", fail)
    config = tiny(runs_dir=str(tmp_path), run_name="run")
    with listening() as posted:
        hook = Webhook(f"http://127.0.0.1:{posted.port}/", lambda text: None)
        run = Run(config, [LogObserver(), AlertObserver(config, hook)])
        with pytest.raises(error, match="not finite 5 times"):
            run.train(Recorder())  # type: ignore[arg-type]
        hook.close()
    assert [message["kind"] for message in posted.messages] == kinds
    log = (tmp_path / "run" / "logs" / "train.log").read_text()
    assert log.count("[train][alert] nan: not finite 5 times in a row") == len(kinds)
    assert (tmp_path / "run" / "alerts.jsonl").is_file() == bool(kinds)
