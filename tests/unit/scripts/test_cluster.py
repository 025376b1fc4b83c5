"""The scripts that start runs on clusters: they pass shellcheck, and print what they would do."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from warpzone.cli import flags
from warpzone.cli.train import ABOUT, PROG

SCRIPTS = Path(__file__).parents[3] / "scripts" / "cluster"
TRAIN = ["--preset", "quick", "--stages", "1-1,1-2", "--num-envs", "16", "--groups", "1"]


def run(script: str, *words: str, path: str = "") -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PATH": path + os.pathsep + os.environ["PATH"]}
    command = ["bash", str(SCRIPTS / script), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environ)


@pytest.mark.parametrize("script", sorted(path.name for path in SCRIPTS.glob("*.sh")))
def test_shellcheck_and_help(script: str) -> None:
    # Beside the interpreter, which need not be on PATH.
    shellcheck = Path(sys.executable).with_name("shellcheck")
    checked = subprocess.run(
        [str(shellcheck), str(SCRIPTS / script)], capture_output=True, text=True, timeout=60
    )
    assert checked.returncode == 0, checked.stdout
    shown = run(script, "-h")
    assert shown.returncode == 0
    assert shown.stdout.startswith(f"Usage: {script}")
    assert run(script, "--help").stdout == shown.stdout
    assert os.access(SCRIPTS / script, os.X_OK)


def require_understood(words: list[str]) -> None:
    """`warpzone train` knows these flags."""
    config = flags.resolve([*words, "--device", "cpu"], prog=PROG, about=ABOUT, say=lambda _: None)
    assert config.stages == "1-1,1-2"


def test_a_job_of_slurm() -> None:
    shown = run(
        "slurm.sh", "--nodes", "2", "--gpus", "4", "--name", "mine", "--dry-run", "--", *TRAIN
    )
    lines = shown.stdout.splitlines()
    assert (lines[0], lines[-1]) == ("sbatch <<'JOB'", "JOB")
    for line in ("nodes=2", "ntasks-per-node=4", "gpus-per-node=4", "job-name=mine"):
        assert f"#SBATCH --{line}" in lines
    words = shlex.split(lines[-2])
    assert words[:5] == ["exec", "srun", "--kill-on-bad-exit=1", "warpzone", "train"]
    assert words[words.index("--devices") + 1] == "4"
    require_understood([word for word in words[5:] if word != "cuda" and word != "--device"])
    assert words[-len(TRAIN) :] == TRAIN


def test_a_job_without_gpus() -> None:
    shown = run("slurm.sh", "--gpus", "0", "--tasks", "2", "--dry-run")
    assert "--gpus-per-node" not in shown.stdout
    assert "#SBATCH --ntasks-per-node=2" in shown.stdout
    assert "--device cpu --devices 2 --nodes 1" in shown.stdout


def test_a_job_is_given_to_sbatch(tmp_path: Path) -> None:
    taken = tmp_path / "job"
    fake = tmp_path / "sbatch"
    fake.write_text(f"#!/usr/bin/env bash\ncat > {taken}\n")
    fake.chmod(0o755)
    assert run("slurm.sh", "--name", "x", path=str(tmp_path)).returncode == 0
    printed = run("slurm.sh", "--name", "x", "--dry-run").stdout.splitlines()
    assert taken.read_text().splitlines() == printed[1:-1]


def test_hosts_are_called_one_by_one(tmp_path: Path) -> None:
    words = ("--hosts", "me@a,b", "--ranks", "2", "--name", "mine", "--folder", "/with space")
    shown = run("ssh_torchrun.sh", *words, "--dry-run", "--", *TRAIN)
    first, second = (shlex.split(line) for line in shown.stdout.splitlines())
    assert first[:5] == ["ssh", "-tt", "-o", "BatchMode=yes", "me@a"]
    assert second[4] == "b"
    inner = shlex.split(first[5])
    assert inner[:5] == ["cd", "/with space", "&&", "exec", "python"]
    for flag, value in (("--nnodes", "2"), ("--node-rank", "0"), ("--master-addr", "a")):
        assert inner[inner.index(flag) + 1] == value
    assert shlex.split(second[5])[inner.index("--node-rank") + 1] == "1"
    assert inner[-len(TRAIN) :] == TRAIN
    require_understood(inner[inner.index("train") + 1 :])
    # What is printed is what is done.
    taken = tmp_path / "calls"
    fake = tmp_path / "ssh"
    fake.write_text(f'#!/usr/bin/env bash\nprintf "%s\\n" "$*" >> {taken}\n')
    fake.chmod(0o755)
    assert run("ssh_torchrun.sh", *words, "--", *TRAIN, path=str(tmp_path)).returncode == 0
    assert sorted(taken.read_text().splitlines()) == sorted(
        " ".join(call[1:]) for call in (first, second)
    )


def test_a_ray_cluster_by_ssh(tmp_path: Path) -> None:
    words = ("--hosts", "a,b,c", "--user", "me", "--actors", "6", "--name", "mine")
    folder = ("--folder", "/with space")
    actors = [*TRAIN, "--algo", "vtrace", "--epochs", "1"]
    shown = run("ray.sh", *words, *folder, "--dry-run", "--", *actors)
    before, _, rest = shown.stdout.partition("FILE'\n")
    assert before == "cat > cluster.yaml <<'"
    text, _, commands = rest.partition("FILE\n")
    config = yaml.safe_load(text)
    assert config["provider"] == {"type": "local", "head_ip": "a", "worker_ips": ["b", "c"]}
    assert config["auth"] == {"ssh_user": "me"}
    assert config["min_workers"] == config["max_workers"] == 2
    assert "@" not in text
    up, call = (shlex.split(line) for line in commands.splitlines())
    assert up == ["ray", "up", "--yes", "--no-config-cache", "cluster.yaml"]
    assert call[:3] == ["ray", "exec", "cluster.yaml"]
    inner = shlex.split(call[3])
    assert inner[:6] == ["cd", "/with space", "&&", "exec", "warpzone", "train"]
    assert inner[-len(actors) :] == actors
    trained = inner[6:]
    del trained[trained.index("--ray") : trained.index("--ray") + 2]
    trained[trained.index("--num-envs") + 1] = "24"
    require_understood(trained)
    # What is printed is what is done, with the same file.
    taken = tmp_path / "calls"
    fake = tmp_path / "ray"
    fake.write_text(
        f'#!/usr/bin/env bash\nprintf "%s\\n" "$*" >> {taken}\ncat "${{@: -1}}" >> {taken}\n'
    )
    fake.chmod(0o755)
    assert run("ray.sh", *words, "--stop", path=str(tmp_path)).returncode == 0
    assert taken.read_text().startswith("down --yes ")
    assert taken.read_text().partition("\n")[2] == text
    stopped = run("ray.sh", *words, "--stop", "--dry-run").stdout.splitlines()
    assert stopped[-1] == "ray down --yes cluster.yaml"


def test_ray_takes_the_cluster_file() -> None:
    pytest.importorskip("ray")
    from ray.autoscaler._private.util import prepare_config, validate_config

    shown = run("ray.sh", "--hosts", "a,b", "--dry-run").stdout
    text = shown.partition("FILE'\n")[2].partition("FILE\n")[0]
    validate_config(prepare_config(yaml.safe_load(text)))


def test_a_task_of_skypilot(tmp_path: Path) -> None:
    actors = [*TRAIN, "--algo", "vtrace", "--epochs", "1", "--actors", "4"]
    words = ("--nodes", "3", "--actors", "4", "--name", "mine", "--gpu", "H100:1", "--spot")
    (line,) = run("sky.sh", *words, "--dry-run", "--", *actors).stdout.splitlines()
    call = shlex.split(line)
    assert call[:3] == ["sky", "launch", "--yes"]
    for flag, value in (("--cluster", "mine"), ("--num-nodes", "3"), ("--gpus", "H100:1")):
        assert call[call.index(flag) + 1] == value
    assert "--use-spot" in call
    given = dict(
        word.split("=", 1) for word in call if word.split("=")[0] in ("NAME", "ACTORS", "FLAGS")
    )
    task = yaml.safe_load(Path(call[-1]).read_text())
    assert given.keys() == task["envs"].keys()
    require_understood(given["FLAGS"].split())
    require_understood([*task["envs"]["FLAGS"].split(), "--stages", "1-1,1-2"])
    assert '--actors "$ACTORS" --ray "$head:6379" $FLAGS' in task["run"]
    script = tmp_path / "run.sh"
    script.write_text("#!/usr/bin/env bash\n" + task["run"])
    shellcheck = Path(sys.executable).with_name("shellcheck")
    checked = subprocess.run([str(shellcheck), str(script)], capture_output=True, timeout=60)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    ("script", "words", "sentence"),
    [
        ("slurm.sh", ["--nodes", "two"], "--nodes takes a whole number, not 'two'."),
        ("slurm.sh", ["--name", "a b"], "--name takes letters, digits"),
        ("slurm.sh", ["--nodes"], "--nodes needs a value"),
        ("slurm.sh", ["--what", "1"], "unknown option '--what'"),
        ("slurm.sh", ["--nodes", "0"], "must be above 0."),
        ("ray.sh", [], "--hosts is missing."),
        ("ray.sh", ["--hosts", "a,$(b)"], "is not the name of a host."),
        ("ray.sh", ["--hosts", "a", "--actors", "x"], "--actors takes a whole number, not 'x'."),
        ("ray.sh", ["--hosts", "a", "--actors", "0"], "--actors must be above 0."),
        ("ray.sh", ["--hosts", "a", "--user", "a/b"], "--user takes letters, digits"),
        ("sky.sh", ["--nodes", "0"], "--nodes takes a whole number above 0, not '0'."),
        ("sky.sh", ["--name", "a b"], "--name takes letters, digits"),
        ("sky.sh", ["--", "--run-name", "a b"], "'a b' has a character that cannot be passed on"),
        ("ssh_torchrun.sh", [], "--hosts is missing."),
        ("ssh_torchrun.sh", ["--hosts", "a,-oProxyCommand=x"], "is not the name of a host."),
        ("ssh_torchrun.sh", ["--hosts", "a", "--port", "x"], "--port takes a whole number"),
    ],
)
def test_refused(script: str, words: list[str], sentence: str) -> None:
    refused = run(script, "--dry-run", *words)
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert sentence in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1
