"""What a checkpoint holds of the replay, and what the first row says about time."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tiny_runs import learn

from warpzone.run.sidecar import CheckpointError
from warpzone.train import session
from warpzone.train.recorder import Recorder
from warpzone.train.saving import state_of

PER = {"algo": "vtrace", "per": True, "per_memory_gb": 0.01, "per_segments": 4}


def test_replay_is_saved_up_to_its_limit(tmp_path: Path) -> None:
    run, _ = learn(tmp_path, **PER)
    assert run.learner.replaying is not None
    storage = run.learner.replaying.replay.storage
    held = storage.size * storage.spec.bytes / 2**30
    assert held > 0
    for limit, saved in ((held, True), (0.999 * held, False)):
        limited = SimpleNamespace(**vars(run))
        limited.config = run.config.replace(checkpoint_replay_gb=limit)
        state = state_of(limited, lanes=False)  # type: ignore[arg-type]
        assert (state["replay"] is not None) == saved


def test_nothing_was_logged_before_the_first_update() -> None:
    unused: Any = None
    budget: Any = SimpleNamespace(global_update=0)
    assert Recorder(unused, budget, unused, None).begin().log == 0.0


def test_a_checkpoint_that_fails_is_skipped_and_notes_are_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second checkpoint loads; what its run has to say is said."""
    said: list[str] = []
    tried: list[set[Path]] = []
    checkpoints = [SimpleNamespace(path=Path(name)) for name in ("newest", "older")]

    def find(_config: Any, _say: Any, passed: set[Path]) -> Any:
        tried.append(set(passed))
        return SimpleNamespace(checkpoint=checkpoints[len(passed)])

    def make(_config: Any, _observers: Any, *, start: Any, **_others: Any) -> Any:
        if start.checkpoint.path == Path("newest"):
            raise CheckpointError("it is damaged")
        return SimpleNamespace(notes=["the replay starts empty"])

    monkeypatch.setattr(session, "find_start", find)
    monkeypatch.setattr(session, "say", said.append)
    monkeypatch.setattr(session, "Run", make)
    monkeypatch.setattr(session, "_in_place", lambda config, start: config)
    unused: Any = None
    run = session.begin(unused, lambda config: (), unused)
    assert run.notes == ["the replay starts empty"]
    assert tried == [set(), {Path("newest")}]
    assert said == [
        "[train][warn] skipped newest: it is damaged",
        "[train][warn] the replay starts empty",
    ]
