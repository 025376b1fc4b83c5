"""What earlier releases wrote must go on working: agents that play, checkpoints that resume.

`tests/golden/releases/VERSION` has files of that version, written once and never again: `run`, a
run's folder with a checkpoint, `agent`, weights that decide clearly, and what they decided
(actions.json).
As a program (`python releases.py`) it tries everything in the environment that runs it and prints
the outcomes as JSON; `scripts/compatibility.py` does so for every combination of versions.
"""

import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

RELEASES = Path(__file__).parents[1] / "golden" / "releases"
#: The smallest training there is.
SMALL = (
    "--num-envs 2 --groups 1 --num-threads 1 --rollout-steps 8 --minibatch 16 --epochs 1 --size 36"
)
SMALL += " --encoder-width 0.125 --hidden-size 16 --device cpu --seed 7 --eval-interval 0"


def versions() -> list[str]:
    """The releases whose files are kept."""
    return sorted(path.name for path in RELEASES.iterdir() if path.is_dir())


def play() -> str:
    """Environments of Gymnasium, single and vectorised."""
    import gymnasium
    import numpy as np

    import warpzone  # noqa: F401 (registers the environments)

    env = gymnasium.make("warpzone/SuperMarioBros-1-1-v0")
    env.reset(seed=0)
    env.step(1)
    env.close()
    envs = gymnasium.make_vec("warpzone/SuperMarioBros-1-1-v0", num_envs=2)
    envs.reset(seed=0)
    observations = envs.step(np.array([1, 1]))[0]
    envs.close()
    return f"{observations.shape} {observations.dtype}"


def actions(version: str) -> list[int]:
    """What a release's agent does when it is shown noise of every brightness; a network that was
    loaded wrongly does something else."""
    import numpy as np

    import warpzone

    agent = warpzone.load_agent(str(RELEASES / version / "agent" / "best.safetensors"))
    env = agent.make_env(num_envs=8, stages="1-1")
    shape = env.observation_space.shape
    env.close()
    assert shape is not None
    noise = np.random.default_rng(0)
    done: list[int] = []
    for step in range(12):
        brightest = np.arange(1, 9).reshape(8, *(1,) * (len(shape) - 1)) * (step % 4 + 1) * 8
        shown = noise.integers(0, 256, shape) * (noise.integers(0, 256, shape) < brightest)
        done += [int(action) for action in agent.act(shown.astype(np.uint8))]
    return done


def expected(version: str) -> list[int]:
    """The same, written down when the release was made."""
    found: list[int] = json.loads((RELEASES / version / "actions.json").read_text())
    return found


def resume(version: str, folder: Path) -> int:
    """Goes on with a release's run in a copy of its folder; the steps that it then has."""
    from warpzone.run.names import CHECKPOINTS

    run = folder / f"run-{version}"
    shutil.copytree(RELEASES / version / "run", run)
    train(folder, "--resume", str(run), "--max-steps", "128")
    steps = [
        json.loads(path.read_text())["save_state"]["global_step"]
        for path in (run / CHECKPOINTS).glob("*.json")
    ]
    return int(max(steps))


def train(folder: Path, *words: str) -> None:
    """A training command, in a folder of its own."""
    from warpzone.cli.main import main

    said = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stderr(said):
        code = main(["train", *words])
    if code:
        raise RuntimeError(f"warpzone train {' '.join(words)}: {code}, {said.getvalue()[-500:]}")


def checks(folder: Path) -> dict[str, Callable[[], object]]:
    """Everything that a combination of versions must be able to do."""

    def agents() -> str:
        for version in versions():
            if actions(version) != expected(version):
                raise RuntimeError(f"the agent of {version} plays otherwise")
        return f"{len(versions())} release(s)"

    def resumes() -> str:
        for version in versions():
            if resume(version, folder) != 128:
                raise RuntimeError(f"the run of {version} did not go on")
        return f"{len(versions())} release(s)"

    def trains() -> str:
        train(folder, *SMALL.split(), "--max-steps", "64", "--run-name", "new")
        return "64 steps"

    return {"play": play, "agent": agents, "resume": resumes, "train": trains}


def main() -> int:
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(sys.stderr):
        for check, act in checks(Path(name)).items():
            try:
                found[check] = f"ok: {act()}"
            except Exception as error:  # noqa: BLE001 - whatever a version raises is its result
                traceback.print_exc()
                found[check] = f"{type(error).__name__}: {error}"
    print(json.dumps(found))
    return 0 if all(text.startswith("ok") for text in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
