"""A run that dies after its checkpoint and is resumed: every sink shows every update once."""

from pathlib import Path
from typing import Any

from pyarrow import parquet
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tiny_runs import Recorder, same, tiny

from warpzone.config import TrainConfig
from warpzone.observers.metrics import MetricsObserver
from warpzone.run.reader import parts, read_rows
from warpzone.run.resume import find_start
from warpzone.train.loop import Run

UPDATES = 12


def settings(folder: Path) -> TrainConfig:
    return tiny(
        runs_dir=str(folder),
        run_name="run",
        resume="auto",
        max_steps=UPDATES * 32,
        checkpoint_minutes=0.0,
        enable_tensorboard=True,
        metrics_rotate_mb=0.008,  # Two or three rows.
        adaptive=True,
        adaptive_window=3,
        adaptive_cooldown=1,
    )


def life(config: TrainConfig, checkpoint: int, last: int) -> Run:
    """From where the last one was saved to `last`; what comes after `checkpoint` is not saved."""
    writer = MetricsObserver(config)
    run = Run(config, [writer], start=find_start(config, print))
    try:
        writer.started(run)
        while run.global_update < last:
            run.update(run.driver.play, Recorder())  # type: ignore[arg-type]
            if run.global_update == checkpoint:
                run.save("interrupt")
    finally:
        run.close()
        writer.ended(run, "interrupt")
    return run


def test_every_update_is_there_once(tmp_path: Path) -> None:
    config = settings(tmp_path / "stopped")
    life(config, checkpoint=4, last=8)
    folder = tmp_path / "stopped" / "run"
    assert len(parts(folder, "metrics.jsonl")) >= 2  # Some rows after the checkpoint are in them.
    run = life(config, checkpoint=UPDATES, last=UPDATES)
    steps = [32 * update for update in range(1, UPDATES + 1)]
    rows = list(read_rows(folder, "metrics.jsonl"))
    assert [row["global_step"] for row in rows] == steps
    table = parquet.read_table(folder / "metrics" / "latest.parquet").to_pydict()
    assert table["global_step"] == steps
    assert table["loss_total"] == [row["loss_total"] for row in rows]
    events: Any = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    assert [event.step for event in events.Scalars("loss/loss_total")] == steps

    straight = life(settings(tmp_path / "straight"), checkpoint=UPDATES, last=UPDATES)
    assert same(run.agent, straight.agent)
    assert len({row["adaptive_lr_scale"] for row in rows}) > 1
    other = list(read_rows(straight.folder.path, "metrics.jsonl"))
    for name in ("loss_total", "adaptive_lr_scale", "adaptive_entropy_scale", "learning_rate"):
        assert [row[name] for row in rows] == [row[name] for row in other]
