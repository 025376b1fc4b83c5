"""Memory that really runs out: the run goes on with less of it, from its own checkpoint."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from warpzone.config import TrainConfig
from warpzone.train.ladder import rungs

torch = pytest.importorskip("torch")

#: Room for weights, rollouts and minibatches of 512 steps with much to spare; the pictures of 2,048
#: steps alone, as floats, and what the first layer makes of them take half as much again.
MIB = 250
SCRIPT = """
import json, resource, sys, torch
from warpzone.config import TrainConfig
from warpzone.train.observer import Observer
from warpzone.train.progress import Progress
from warpzone.train.session import train
from warpzone.train.stopping import Stop

torch.set_num_threads(1)

class Tight(Observer):
    def started(self, run):
        if run.config.minibatch == 2048:
            fields = dict(l.split(":", 1) for l in open("/proc/self/status") if ":" in l)
            used = int(fields["VmData"].split()[0]) << 10
            limit = resource.getrlimit(resource.RLIMIT_DATA)[1]
            resource.setrlimit(resource.RLIMIT_DATA, (used + (MIB << 20), limit))

class Enough(Observer):
    def between(self, run, progress):
        if run.global_update == 3:
            run.stop("enough")

def learn(run):
    run.evaluated_at = -2
    run._evaluate = lambda progress: run.outcomes
    result = run.train(Progress(run.config, ""))
    print(json.dumps({"updates": run.global_update, "minibatch": run.config.minibatch,
                      "accum": run.config.grad_accum, "lanes": run.config.num_envs}))
    return result

config = TrainConfig(num_envs=128, rollout_steps=16, minibatch=2048, epochs=1, device="cpu",
                     num_threads=1, runs_dir=sys.argv[1], run_name="tight", auto_mem=AUTO,
                     size=84, hidden_size=64, max_steps=10**6, parquet_interval=0,
                     monitor_interval=0)
train(config, lambda config: [Tight(), Enough()], Stop(), learn)
"""


def start(folder: Path, auto: bool) -> subprocess.CompletedProcess[str]:
    code = SCRIPT.replace("MIB", str(MIB)).replace("AUTO", str(auto))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MARIO_ALLOW_CPU_AUTO": "1"}
    environment["MALLOC_ARENA_MAX"] = "1"
    return subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, env=environment
    )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a limit on memory")
def test_the_run_goes_on_with_smaller_minibatches(tmp_path: Path) -> None:
    done = start(tmp_path, auto=True)
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["updates"] == 3
    # How many rungs it takes depends on what the processor's convolutions need beside tensors.
    whole = TrainConfig(num_envs=128, rollout_steps=16, minibatch=2048, epochs=1)
    ladder = [(c.minibatch, c.grad_accum, c.num_envs) for _, c in rungs(whole)]
    assert (result["minibatch"], result["accum"], result["lanes"]) in ladder
    assert "[train][warn] memory ran out" in done.stderr
    assert "--minibatch 2048 -> 1024, --grad-accum 1 -> 2" in done.stderr
    assert "goes on from" in done.stderr
    config = json.loads((tmp_path / "tight" / "config.json").read_text())
    assert config["minibatch"] == result["minibatch"]
    rows = (tmp_path / "tight" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(row)["update"] for row in rows] == [1, 2, 3]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_a_full_gpu_is_gone_on_from(tmp_path: Path) -> None:
    from warpzone.train.observer import Observer
    from warpzone.train.progress import Progress
    from warpzone.train.session import train
    from warpzone.train.stopping import Stop

    class Tight(Observer):
        def started(self, run: object) -> None:
            _, total = torch.cuda.mem_get_info()
            share = (torch.cuda.memory_reserved() + (300 << 20)) / total
            torch.cuda.set_per_process_memory_fraction(share)

    seen: list[int] = []

    def learn(run):  # type: ignore[no-untyped-def]
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
