"""However a run ends, it says so, leaves a checkpoint, and can be gone on with."""

import dataclasses
import json
import os
import pty
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from warpzone.cli.main import main  # noqa: E402
from warpzone.observers.progress import Progress  # noqa: E402
from warpzone.run.checkpoints import Checkpoints  # noqa: E402
from warpzone.run.files import sha256  # noqa: E402
from warpzone.run.sidecar import read_sidecar  # noqa: E402

OUT = pytest.CaptureFixture[str]
#: Seconds until something that must happen counts as not happening; busy machines are slow.
PATIENCE = 300.0
FLAGS = {
    "num-envs": 4, "num-threads": 1, "rollout-steps": 8, "minibatch": 16, "epochs": 1, "size": 36,
    "encoder-width": 0.125, "hidden-size": 16, "max-steps": 3200, "device": "cpu", "wall-lanes": 0,
    "run-name": "one", "lr": 0.0006,
}  # fmt: skip


def words(runs: Path, **changes: Any) -> list[str]:
    flags = {**FLAGS, "runs-dir": str(runs)}
    flags |= {name.replace("_", "-"): value for name, value in changes.items()}
    return ["train", *(str(word) for name, value in flags.items() for word in (f"--{name}", value))]


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("RUN_NAME", "AUTO_MEM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MARIO_ALLOW_CPU_AUTO", "1")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    # Started in the background or by nohup, the tests would inherit signals that are ignored, and
    # a run leaves those alone.
    handlers = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.SIGHUP: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    }
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
    torch.set_num_threads(before)


@pytest.fixture
def at_update(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Callable[[], None]], None]:
    """Something that happens when an update has been shown."""

    def plan(update: int, action: Callable[[], None]) -> None:
        def show(self: Progress, row: dict[str, Any]) -> None:
            if row["update"] == update:
                action()

        monkeypatch.setattr(Progress, "update", show)

    return plan


def latest(run: Path) -> Any:
    (path,) = Checkpoints(run / "checkpoints").latest()
    return read_sidecar(path)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith(("engine", "collector"))]


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["SIGINT", "SIGTERM", "SIGHUP"],
)
def test_a_signal_ends_in_good_order(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, at_update: Any, number: int, code: int
) -> None:
    at_update(3, lambda: signal.raise_signal(number))
    handler = signal.getsignal(number)
    assert main(words(tmp_path)) == code
    said = capfd.readouterr().err
    assert "[train][warn] interrupted" in said
    assert "interrupted at step 96 (update 3); resume with: warpzone train --resume" in said
    run = tmp_path / "one"
    sidecar = latest(run)
    assert (sidecar.global_update, sidecar.reason) == (3, "interrupt")
    assert signal.getsignal(number) == handler
    assert threads() == []
    # The checkpoint has the lanes in it: it was written between two updates.
    state = Checkpoints(run / "checkpoints").open(sidecar.stem).read_state()
    assert "lanes" in state["collector"]

    at_update(5, lambda: signal.raise_signal(number))
    assert main(["train", "--resume", str(run)]) == code
    assert [row["update"] for row in rows(run / "metrics.jsonl")] == [1, 2, 3, 4, 5]
    sessions = json.loads((run / "versions.json").read_text())["sessions"]
    assert [session["update"] for session in sessions] == [0, 3]
    assert sessions[1]["packages"]["torch"] == torch.__version__


def test_a_failure_leaves_a_checkpoint(capsys: OUT, tmp_path: Path, at_update: Any) -> None:
    from warpzone.train.recorder import Recorder

    real = Recorder.write
    with pytest.MonkeyPatch.context() as patch:

        def write(self: Recorder, row: Any, *rest: Any) -> None:
            real(self, row, *rest)
            if row["update"] == 2:
                raise OSError(5, "Input/output error on the disk")

        patch.setattr(Recorder, "write", write)
        assert main(words(tmp_path)) == 1
    said = capsys.readouterr().err
    assert "[train][warn] interrupted by a failure at step 64" in said
    assert "cannot be written: Input/output error" in said
    sidecar = latest(tmp_path / "one")
    assert (sidecar.global_update, sidecar.reason) == (2, "exception")
    at_update(3, lambda: signal.raise_signal(signal.SIGINT))
    assert main(words(tmp_path, resume="auto")) == 130
    assert [row["update"] for row in rows(tmp_path / "one" / "metrics.jsonl")] == [1, 2, 3]


def test_never_auto_and_latest(capsys: OUT, tmp_path: Path, at_update: Any) -> None:
    stop = lambda: signal.raise_signal(signal.SIGTERM)  # noqa: E731
    at_update(2, stop)
    assert main(words(tmp_path)) == 143
    assert main(words(tmp_path, resume="never")) == 2
    assert "exists already; resume it (--resume auto)" in capsys.readouterr().err
    assert main(words(tmp_path, resume="auto", lr=0.1)) == 2
    assert "--lr 0.0006 there, 0.1 here" in capsys.readouterr().err
    assert main(words(tmp_path, resume="auto", hidden_size=32, resume_relax_match="")[:-1]) == 2
    assert "network mismatch (--hidden-size 16 there, 32 here)" in capsys.readouterr().err
    at_update(3, stop)
    assert main([*words(tmp_path, resume="latest", lr=0.1), "--resume-relax-match"]) == 143
    assert "resuming from" in capsys.readouterr().err
    # Another run of the same settings: `auto` finds it, and goes on in a folder of its own.
    at_update(4, stop)
    other = words(tmp_path, run_name="two", resume="auto", lr=0.1)
    assert main(other) == 143
    said = capsys.readouterr().err
    assert "one/checkpoints/ppo_world1_stage1_0000003.json" in said
    assert latest(tmp_path / "two").global_update == 4
    assert latest(tmp_path / "one").global_update == 3
    old = tmp_path / "one" / "checkpoints" / "ppo_world1_stage1_0000002"
    assert main(["train", "--resume", str(old)]) == 2
    assert "has continued to ppo_world1_stage1_0000003" in capsys.readouterr().err
    assert main(["train", "--resume", str(tmp_path / "nothing.json")]) == 2
    assert "it is neither a checkpoint nor a folder" in capsys.readouterr().err


class Bomb:
    """Unpickled, it leaves a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)


def replace_state(store: Checkpoints, update: int, state: Any) -> None:
    """Another state, about which the side-car is right."""
    sidecar = store.open(f"ppo_world1_stage1_{update:07d}").sidecar
    path = store.folder / sidecar.state.name
    torch.save(state, path)
    entry = dataclasses.replace(sidecar.state, bytes=path.stat().st_size, sha256=sha256(path))
    store.write_sidecar(dataclasses.replace(sidecar, state=entry))


def test_bad_checkpoints_are_passed_over(capsys: OUT, tmp_path: Path, at_update: Any) -> None:
    """One that is cut off, a pickle in the place of a state, and one that is whole but no run's;
    the side-cars of the last two are right about them."""
    stop = lambda: signal.raise_signal(signal.SIGTERM)  # noqa: E731
    at_update(4, stop)
    assert main(words(tmp_path, checkpoint_interval=1, keep_last=9)) == 143
    store = Checkpoints(tmp_path / "one" / "checkpoints")
    cut = store.folder / "ppo_world1_stage1_0000004.state.pt"
    cut.write_bytes(cut.read_bytes()[:-100])
    executed = tmp_path / "executed"
    for update, state in ((3, {"counters": Bomb(executed)}), (2, {"counters": 7})):
        replace_state(store, update, state)
    at_update(2, stop)
    assert main(words(tmp_path, resume="auto")) == 143
    said = capsys.readouterr().err
    assert "0000004: ppo_world1_stage1_0000004.state.pt has" in said
    assert "0000003.json: ppo_world1_stage1_0000003.state.pt contains forbidden types" in said
    assert "does not hold what a run needs" in said
    assert "resuming from" in said
    assert not executed.exists()
    assert latest(tmp_path / "one").global_update == 2
    assert [row["update"] for row in rows(tmp_path / "one" / "metrics.jsonl")] == [1, 2]


def test_bad_checkpoints_are_passed_over_for_a_new_folder(
    capsys: OUT, tmp_path: Path, at_update: Any
) -> None:
    """What looks good from outside is refused only when a run takes it up, in its new folder."""
    stop = lambda: signal.raise_signal(signal.SIGTERM)  # noqa: E731
    at_update(3, stop)
    assert main(words(tmp_path, checkpoint_interval=1)) == 143
    store = Checkpoints(tmp_path / "one" / "checkpoints")
    replace_state(store, 3, {"counters": 7})
    at_update(4, stop)
    for name, start in (("two", "auto"), ("three", str(tmp_path / "one"))):
        assert main(words(tmp_path, run_name=name, resume=start)) == 143
        assert "resuming from" in capsys.readouterr().err.split("does not hold what a run needs")[1]
        assert [row["update"] for row in rows(tmp_path / name / "metrics.jsonl")] == [3, 4]


def test_two_processes_do_not_share_a_folder(capsys: OUT, tmp_path: Path, at_update: Any) -> None:
    codes: list[int] = []
    said: list[str] = []

    def second() -> None:
        codes.append(main(words(tmp_path, resume="auto")))
        said.append(capsys.readouterr().err)
        signal.raise_signal(signal.SIGTERM)

    at_update(1, second)
    assert main(words(tmp_path, checkpoint_interval=1)) == 143
    assert codes == [2]
    assert "another process is training" in said[0]


# --- disks ---------------------------------------------------------------------------------------
@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=20m", "none", str(place)], capture_output=True
    )
    if made.returncode:
        pytest.skip(f"no tmpfs here: {made.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_stops_the_run(
    capsys: OUT, small_disk: Path, at_update: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice: seen beforehand, and met in the middle of a file."""

    def fill() -> None:
        with (small_disk / "filler").open("wb") as file:
            left = os.statvfs(small_disk)
            file.write(b"\0" * (left.f_bavail * left.f_frsize - (64 << 10)))

    run = small_disk / "one"
    for spare in (16 << 20, -(1 << 30)):
        monkeypatch.setattr("warpzone.run.files.SPARE", spare)
        at_update(3, fill)
        shutil.rmtree(run, ignore_errors=True)
        assert main(words(small_disk, checkpoint_interval=2, hidden_size=64)) == 1
        lines = capsys.readouterr().err.splitlines()
        complaints = [line for line in lines if not line.startswith("[")]
        assert len(complaints) == 1
        fits = "does not fit" if spare > 0 else "No space left on device"
        assert fits in complaints[0]
        (small_disk / "filler").unlink()
        sidecar = latest(run)
        Checkpoints(run / "checkpoints").open(sidecar.stem).verify()
        assert sum("space kept back for the last checkpoint is used" in x for x in lines) == 1
        assert (sidecar.global_update, sidecar.reason) == (4, "exception")
        at_update(5, lambda: signal.raise_signal(signal.SIGTERM))
        monkeypatch.setattr("warpzone.run.files.SPARE", 0)
        assert main(words(small_disk, resume="auto", checkpoint_interval=2, hidden_size=64)) == 143
        assert [row["update"] for row in rows(run / "metrics.jsonl")] == [1, 2, 3, 4, 5]


def test_a_file_that_may_not_grow_stops_the_run(
    capsys: OUT, tmp_path: Path, at_update: Any
) -> None:
    """The same where no file system can be mounted: the kernel refuses in the middle of a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    run = tmp_path / "one"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (12 << 10, hard))

    at_update(3, limit)
    try:
        code = main(words(tmp_path, checkpoint_interval=2))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert code == 1
    assert "File too large" in capsys.readouterr().err
    sidecar = latest(run)
    assert sidecar.global_update == 2
    Checkpoints(run / "checkpoints").open(sidecar.stem).verify()
    assert list((run / "checkpoints").glob(".*")) == []
    for row in rows(run / "metrics.jsonl"):
        assert row["update"] <= 4


# --- processes -----------------------------------------------------------------------------------
def wait_for(path: Path, process: "subprocess.Popen[Any]") -> None:
    until = time.monotonic() + PATIENCE
    while not (path.is_file() and path.stat().st_size):
        assert process.poll() is None, "the run ended before its first update"
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_lost_terminal_and_a_second_interrupt(tmp_path: Path) -> None:
    """In a terminal that goes away, and with a second signal while the first is obeyed."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "warpzone.cli.main"]
    controller, terminal = pty.openpty()
    lost = subprocess.Popen(
        [*command, *words(tmp_path, max_steps=10**7)],
        stdin=terminal, stdout=terminal, stderr=terminal, env=environment,
        start_new_session=True, preexec_fn=lambda: _take_terminal(terminal),
    )  # fmt: skip
    os.close(terminal)
    reader = threading.Thread(target=_drain, args=(controller,), daemon=True)
    reader.start()
    wait_for(tmp_path / "one" / "metrics.jsonl", lost)
    os.kill(lost.pid, signal.SIGSTOP)  # So that the terminal goes first.
    os.close(controller)
    os.kill(lost.pid, signal.SIGCONT)
    assert lost.wait(PATIENCE) == 129
    assert latest(tmp_path / "one").reason == "interrupt"

    # An update that never ends: only the second signal does.
    slow = words(tmp_path, run_name="two", max_steps=10**7, num_envs=512, rollout_steps=512,
                 minibatch=16, epochs=50)  # fmt: skip
    busy = subprocess.Popen(
        [*command, *slow], stderr=subprocess.PIPE, text=True, env=environment, bufsize=1
    )
    assert busy.stderr is not None
    for line in busy.stderr:
        if "two on cpu" in line:
            break
    time.sleep(1.0)
    busy.send_signal(signal.SIGINT)
    for line in busy.stderr:
        if "[train][warn] interrupted" in line:
            break
    busy.send_signal(signal.SIGINT)
    assert busy.wait(PATIENCE) == 130
    busy.stderr.close()
    assert not (tmp_path / "two" / "metrics.jsonl").exists()


def _take_terminal(terminal: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


def _drain(controller: int) -> None:
    try:
        while os.read(controller, 4096):
            pass
    except OSError:
        return
