"""`archive.json`: the moments of a run's archive, for its maps."""

import json
from pathlib import Path

import pytest
from observed_runs import learn
from tiny_runs import tiny

from warpzone.maps.events import read_restarts
from warpzone.observers.archive import ArchiveObserver
from warpzone.observers.make import make_observers
from warpzone.train.loop import Run


def test_the_file_holds_what_the_archive_holds_at_the_end(tmp_path: Path) -> None:
    config = tiny(
        runs_dir=str(tmp_path), run_name="run", stages="1-1,1-2", archive_share=0.5, max_steps=2000
    )
    run = Run(config, [ArchiveObserver()])
    learn(run)
    said = json.loads((tmp_path / "run" / "archive.json").read_text())
    assert said["global_step"] == run.global_step
    moments = run.collector.guide.archive.moments.values()
    assert len(said["moments"]) == len(moments) > 0
    for row, moment in zip(said["moments"], moments, strict=True):
        stage, area_type, area_index, x, y, *counts = row
        assert (stage, x) == (moment.key[0], moment.x)
        assert (area_type, area_index) == moment.key[3:5]
        # In the band of heights that the moment stands for.
        assert y // 48 == moment.key[-1]
        assert counts == [moment.attempts, moment.gains, moment.clears]
    both = [read_restarts(tmp_path / "run", stage) for stage in ("1-1", "1-2")]
    assert sum(map(len, both)) == len(moments)


def test_only_a_run_with_an_archive_writes_it() -> None:
    def writers(share: float) -> int:
        made = make_observers(tiny(archive_share=share))
        return sum(isinstance(one, ArchiveObserver) for one in made)

    assert (writers(0.0), writers(0.5)) == (0, 1)


def test_what_cannot_be_written_does_not_end_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(tiny(runs_dir=str(tmp_path), run_name="run", archive_share=0.5), [ArchiveObserver()])
    (run.folder.path / "archive.json").mkdir()
    assert learn(run).global_step == 96
    assert "[train][warn] the archive is not in archive.json" in capsys.readouterr().err
