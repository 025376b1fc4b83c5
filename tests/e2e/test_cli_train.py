"""`warpzone train` and its benchmarks, as a user runs them: tiny runs and bad input."""

import errno
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from warpzone.cli.main import main  # noqa: E402
from warpzone.config import TrainConfig  # noqa: E402

SMALL = ["--num-envs", "8", "--rollout-steps", "16", "--minibatch", "64", "--size", "42"]
SMALL += ["--hidden-size", "32", "--device", "cpu"]
TINY = [*SMALL, "--max-steps", "256"]
OUT = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tests run side by side; torch's own threads would only fight over the cores."""
    monkeypatch.delenv("RUN_NAME", raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def few_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluation from three start delays and with little patience: it is not what is tested."""
    from warpzone.eval import evaluate

    few = partial(evaluate.evaluate, delays=(0, 7, 30))
    monkeypatch.setattr("warpzone.train.evaluator.evaluate", few)
    monkeypatch.setattr(evaluate, "STUCK_AFTER", 20)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.usefixtures("few_delays")
def test_a_run_leaves_everything_behind(
    capsys: OUT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUN_NAME", "first")
    imageio = pytest.importorskip("imageio.v3")
    assert main(["train", *TINY, "--seed", "3", "--runs-dir", str(tmp_path)]) == 0
    said = capsys.readouterr()
    run = tmp_path / "first"
    first, second = said.err.splitlines()[:2]
    assert first.startswith("[train] preset quick: one stage, and the network runs on the CPU")
    assert "--device cpu: the network runs on the CPU" in second
    assert "of 3 start delays" in said.out
    assert str(run) in said.out
    assert json.loads((run / "config.json").read_text())["seed"] == 3
    metrics = rows(run / "metrics.jsonl")
    assert [row["global_step"] for row in metrics] == [128, 256]
    assert len(rows(run / "evals.jsonl")) == 6
    assert (run / "best.safetensors").is_file()
    video = run / "best.mp4"
    assert str(video) in said.out
    frames = list(imageio.imiter(video))
    assert frames[0].shape == (720, 768, 3)
    assert len(frames) > 20

    assert main(["train", *TINY, "--runs-dir", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_dry_run_estimates_and_leaves_nothing(capsys: OUT, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    assert main(["train", *TINY, "--dry-run", "--runs-dir", str(runs)]) == 0
    out = capsys.readouterr().out
    config, _, estimate = out.partition("\n}\n")
    assert json.loads(config + "}")["num_envs"] == 8
    for word in ("parameters", "rollouts", "lanes", "optimiser", "steps/s"):
        assert word in estimate
    assert not runs.exists()


def test_config_out_can_be_a_preset_again(capsys: OUT, tmp_path: Path) -> None:
    preset, copy = tmp_path / "mine.toml", tmp_path / "copy.json"
    words = ["train", *TINY, "--lr", "0.001", "--no-mask-status-bar", "--dry-run"]
    assert main([*words, "--config-out", str(preset)]) == 0
    assert tomllib.loads(preset.read_text())["lr"] == 0.001
    assert main(["train", "--preset", str(preset), "--dry-run", "--config-out", str(copy)]) == 0
    config = TrainConfig(**json.loads(copy.read_text()))
    assert (config.lr, config.num_envs, config.mask_status_bar) == (0.001, 8, False)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--num-envs", "7"], "7 lanes do not divide"),
        (["--minibatch", "100"], "does not divide into minibatches"),
        (["--warmup", "1.5"], "--warmup"),
        (["--compile", "--cuda-graphs"], "exclude each other"),
        (["--frobnicate"], "unknown flag --frobnicate"),
        (["something"], "unknown word something"),
        (["--num-envs", "many"], "--num-envs must be a whole number, not 'many'"),
        (["--lr", "fast"], "--lr must be a number, not 'fast'"),
        (["--lr", "nan"], "--lr must be finite"),
        (["--lr"], "--lr needs a value"),
        (["--algo", "dqn"], "--algo must be one of ppo, vtrace, appo, a2c, not 'dqn'"),
        (["--preset", "nowhere"], "no preset 'nowhere'"),
        (["--preset"], "--preset needs a value"),
        (["--stages", "9-9"], "9-9"),
        (["--stages", "1-2", "--world", "3"], "--stages excludes"),
        (["--stages", "1-2", "--whole-game"], "--stages excludes"),
        (["--actions", "dance"], "dance"),
        (["--frame-skip", "5000"], "5000"),
        (["--run-name", "../elsewhere"], "--run-name"),
        (["--run-name", ".."], "--run-name"),
        (["--hidden-size", "30000000000"], "are free"),
        (["--num-envs", "10000000", "--max-steps", "9000000000"], "lower --num-envs"),
    ],
)
def test_wrong_usage_is_one_sentence(
    capsys: OUT, tmp_path: Path, words: list[str], text: str
) -> None:
    runs = tmp_path / "runs"
    assert main(["train", *TINY, "--runs-dir", str(runs), *words]) == 2
    assert not runs.exists()
    said = capsys.readouterr()
    complaints = [line for line in said.err.splitlines() if not line.startswith("[train]")]
    assert len(complaints) == 1
    assert complaints[0].startswith("warpzone train: ")
    assert complaints[0].endswith(".")
    assert text in complaints[0]
    assert said.out == ""


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("reward = 'fame'", "--reward must be one of"),
        ("num_envs = 'many'", "preset"),
        ("lanes = 3", "'lanes'"),
        ("num_envs = ", "cannot be read"),
        ("amp = 1", "--amp must be true or false"),
    ],
)
def test_wrong_preset_is_one_sentence(capsys: OUT, tmp_path: Path, line: str, text: str) -> None:
    preset = tmp_path / "wrong.toml"
    preset.write_text(line + "\n")
    assert main(["train", "--preset", str(preset), "--dry-run"]) == 2
    error = capsys.readouterr().err
    assert text in error
    assert len(error.splitlines()) == 1


def failure(capsys: OUT, *words: str) -> str:
    assert main(["train", *TINY, *words]) == 1
    lines = [x for x in capsys.readouterr().err.splitlines() if not x.startswith("[train]")]
    assert len(lines) == 1
    return lines[0]


def test_missing_rom_is_a_failure(capsys: OUT, folders: Path) -> None:
    runs = folders / "runs"
    assert "warpzone rom install" in failure(capsys, "--runs-dir", str(runs))
    assert not runs.exists()


def test_unwritable_folder_is_a_failure(capsys: OUT, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = failure(capsys, "--runs-dir", str(tmp_path / "file"))
    assert "cannot be written: Not a directory" in said


def test_full_disk_is_a_failure(
    capsys: OUT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("warpzone.run.jsonl.append_text", full)
    said = failure(capsys, "--runs-dir", str(tmp_path), "--run-name", "full")
    assert "cannot be written: No space left on device" in said


def test_interrupt_saves_the_weights(
    capsys: OUT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from warpzone.eval.weights import find_agent
    from warpzone.observers.progress import Progress

    def interrupt(self: Progress, row: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "update", interrupt)
    words = [*TINY, "--runs-dir", str(tmp_path), "--run-name", "cut"]
    assert main(["train", *words]) == 130
    assert "[train][warn] interrupted at step 128" in capsys.readouterr().err
    found = find_agent(tmp_path / "cut")
    assert found.config.run_name == "cut"
    assert all(bool(part.isfinite().all()) for part in found.agent.parameters())


def test_video_prefers_clears() -> None:
    from warpzone.eval.best_video import candidates

    def row(delay: int, cleared: bool, x: int, policy: str = "argmax") -> dict[str, Any]:
        return {
            "policy": policy, "stage": "1-1", "start_delay": delay, "cleared": cleared,
            "furthest_x": x, "steps": 400 + delay,
        }  # fmt: skip

    found = candidates(
        [row(1, False, 3000), row(9, True, 3161), row(2, True, 3161), row(0, True, 1, "sampled")],
        ["1-1"],
    )
    assert found == [("1-1", 2), ("1-1", 9), ("1-1", 1)]


def test_bench_train_prints_and_adds_to_the_ledger(
    capsys: OUT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers are of this moment; that they are all there is what counts."""
    ledger = tmp_path / "own" / "ledger.jsonl"
    monkeypatch.setenv("WARPZONE_LEDGER", str(ledger))
    assert main(["bench", "train", *SMALL, "--seconds", "0.02", "--rounds", "1"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert rows(ledger) == [result]
    for group, names in (
        ("alone", ("engine", "inference", "learner")),
        ("end_to_end", ("serial", "overlap")),
    ):
        for name in names:
            rate = result[group][name]
            assert rate["frames_per_sec"] == pytest.approx(4 * rate["steps_per_sec"])
            assert rate["steps_per_sec"] > 0
    assert set(result["ratio_to_slowest"]) == {"serial", "overlap"}
    assert result["machine"]["cpu"]
    assert "--rounds 1" in result["command"]


def test_bench_overlap_script(tmp_path: Path) -> None:
    """As a script of its own: help, a dry run, and a table."""
    script = Path(__file__).parents[2] / "scripts" / "benchmark_overlap.py"
    words = ["--num-envs-list", "4,8", "--rollout-list", "8", "--updates", "3", *SMALL[4:]]

    def start(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(script), *more],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            check=True,
        )

    assert "--warmup-frac" in start("-h").stdout
    dry = start(*words, "--dry-run").stdout.splitlines()
    assert len(dry) == 4
    assert all(line.startswith("[benchmark] ") for line in dry)
    assert not list(tmp_path.iterdir())
    start(*words)
    (table,) = tmp_path.glob("bench_overlap_*.csv")
    lines = table.read_text().splitlines()
    assert len(lines) == 5
    assert lines[1].startswith("sync,4,8,")
    assert lines[2].startswith("overlap,4,8,")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["train", "--rounds", "0"], "at least one round"),
        (["train", "--frobnicate"], "unknown flag"),
        (["overlap", "--warmup-frac", "1"], "--warmup-frac"),
        (["overlap", "--num-envs-list", "0"], "--num-envs"),
        (["overlap", "--updates", "1"], "--updates"),
    ],
)
def test_wrong_bench_usage_is_one_sentence(capsys: OUT, words: list[str], text: str) -> None:
    assert main(["bench", *words]) == 2
    said = capsys.readouterr().err.splitlines()
    (error,) = [line for line in said if not line.startswith("[bench] preset quick: ")]
    assert text in error
