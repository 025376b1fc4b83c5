"""Memory that really runs out: the run goes on with less of it, from its own checkpoint."""

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import tiny

from warpzone.config import ConfigError, TrainConfig
from warpzone.observers.observer import Observer
from warpzone.observers.progress import Progress
from warpzone.train.loop import Result, Run
from warpzone.train.session import train
from warpzone.train.stopping import Stop

torch = pytest.importorskip("torch")


class Greedy(Observer):
    """Asks torch for more memory than an address space has, wherever the network is given many
    observations at once. A limit on the process instead would also strike the libraries below
    torch, some of which do not survive an allocation that fails."""

    def __init__(self, most: int) -> None:
        self.most = most

    def started(self, run: Any) -> None:
        run.agent.encoder.register_forward_pre_hook(self.ask)

    def ask(self, _encoder: object, inputs: tuple[Any, ...]) -> None:
        if len(inputs[0]) > self.most:
            torch.empty(1 << 50, dtype=torch.uint8)


class Brief(Observer):
    """Ends a run once it has made three updates."""

    def between(self, run: Any, progress: Progress) -> None:
        if run.global_update >= 3:
            run.stop("enough")


def tight(folder: Path, **changes: bool) -> TrainConfig:
    """256 steps an update, learnt from at once."""
    return tiny(
        num_envs=16, rollout_steps=16, minibatch=256, max_steps=10**6, parquet_interval=0,
        monitor_interval=0, runs_dir=str(folder), run_name="tight", **changes,
    )  # fmt: skip


def test_the_run_goes_on_with_smaller_minibatches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tight(tmp_path, auto_mem=True)
    tried: list[tuple[int, int]] = []

    def learn(run: Run) -> Result:
        tried.append((run.config.minibatch, run.config.grad_accum))
        run.evaluate = lambda progress: None  # type: ignore[method-assign]
        return run.train(Progress(run.config, ""))

    train(config, lambda config: [Greedy(64), Brief()], Stop(), learn)
    assert tried == [(256, 1), (128, 2), (64, 4)]
    said = capsys.readouterr().err
    assert said.count("[train][warn] memory ran out") == 2
    assert "--minibatch 256 -> 128, --grad-accum 1 -> 2" in said
    assert "--minibatch 128 -> 64, --grad-accum 2 -> 4" in said
    assert said.count("resuming from") == 2
    folder = tmp_path / "tight"
    assert json.loads((folder / "config.json").read_text())["minibatch"] == 64
    rows = (folder / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(row)["update"] for row in rows] == [1, 2, 3]


def test_the_same_command_goes_on_where_memory_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tried: list[int] = []

    def learn(run: Run) -> Result:
        tried.append(run.config.minibatch)
        run.evaluate = lambda progress: None  # type: ignore[method-assign]
        return run.train(Progress(run.config, ""))

    config = tight(tmp_path, auto_mem=True).replace(resume="auto")
    train(config, lambda config: [Greedy(64), Brief()], Stop(), learn)
    assert tried == [256, 128, 64]
    train(config, lambda config: [Greedy(64), Brief()], Stop(), learn)
    assert tried == [256, 128, 64, 64]
    assert "resuming with reduced sizes: --minibatch 256 -> 64" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="--minibatch 64 there, 32 here"):
        train(config.replace(minibatch=32), lambda config: [], Stop(), learn)


@pytest.mark.parametrize(("auto_mem", "most"), [(False, 64), (True, 0)])
def test_where_no_rung_helps_the_run_ends_and_says_why(
    tmp_path: Path, auto_mem: bool, most: int
) -> None:
    """Without a ladder, or at its foot."""
    config = tight(tmp_path, auto_mem=auto_mem)
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        train(
            config,
            lambda config: [Greedy(most)],
            Stop(),
            lambda run: run.train(Progress(run.config, "")),
        )
    (sidecar,) = (tmp_path / "tight" / "checkpoints").glob("*_latest.json")
    assert json.loads(sidecar.read_text())["save_state"]["reason"] == "exception"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_a_full_gpu_is_gone_on_from(tmp_path: Path) -> None:
    class Tight(Observer):
        def started(self, run: Any) -> None:
            _, total = torch.cuda.mem_get_info()
            share = (torch.cuda.memory_reserved() + (300 << 20)) / total
            torch.cuda.set_per_process_memory_fraction(share)

    seen: list[int] = []

    def learn(run: Run) -> Result:
        seen.append(run.config.minibatch)
        return run.train(Progress(run.config, ""))

    config = TrainConfig(
        num_envs=256, rollout_steps=64, minibatch=16384, epochs=1, device="cuda", max_steps=32768,
        runs_dir=str(tmp_path), auto_mem=True,
    )  # fmt: skip
    try:
        train(config, lambda config: [Tight()], Stop(), learn)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert len(seen) > 1
    assert seen[-1] < 16384
