"""A run whose machine loses its power, at any moment: what it flushed to the disk, in which order,
and that it goes on from every state that may be left."""

import json
import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path, PurePath

import pytest
import torch
from crashes import Disk, Op, fingerprint, lay_out, recorded
from safetensors.torch import load_file
from tiny_runs import Recorder, tiny

from warpzone.config import TrainConfig
from warpzone.run.resume import find_start
from warpzone.train.loop import Run

pytestmark = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="the C library here is not glibc"
)
UPDATES = 4
#: Written for who looks, and worth nothing after a crash.
PASSING = ("state.json", "latest.bin")
LIFE = """
import sys
sys.path += [{helpers!r}, {here!r}]
from test_durability import live
live({folder!r})
"""


def settings(folder: str, **changes: object) -> TrainConfig:
    return tiny(
        runs_dir=folder,
        run_name="one",
        observation="tiles",
        checkpoint_interval=1,
        checkpoint_minutes=0.0,
        keep_last=2,
        max_steps=32 * UPDATES,
        **changes,
    )


def live(folder: str) -> None:
    """What the recorded process does; with one thread, as tests have."""
    torch.set_num_threads(1)
    run = Run(settings(folder))
    try:
        run.learn(Recorder())  # type: ignore[arg-type]
        run.folder.save_weights("weights.safetensors", run.agent, {})
    finally:
        run.close()


@dataclass
class Life:
    """A whole run, and everything it did to its folder."""

    ops: list[Op]
    folder: Path


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Life:
    scratch = tmp_path_factory.mktemp("scratch")
    folder = tmp_path_factory.mktemp("runs")
    here = Path(__file__).parent
    helpers = str(here.parents[1] / "helpers")
    text = LIFE.format(helpers=helpers, here=str(here), folder=str(folder))
    return Life(recorded([sys.executable, "-c", text], folder, scratch), folder)


def named(ops: list[Op]) -> list[tuple[int, Op]]:
    """The places in which a file that matters gets its name."""
    return [
        (place, op)
        for place, op in enumerate(ops)
        if op.what == "rename" and PurePath(op.other).name not in PASSING
    ]


def test_written_flushed_named_and_the_folder_flushed(life: Life) -> None:
    renames = named(life.ops)
    suffixes = {"".join(PurePath(op.other).suffixes) for _, op in renames}
    assert suffixes >= {".json", ".safetensors", ".state.pt"}
    names = {PurePath(op.other).name for _, op in renames}
    assert names >= {"config.json", "versions.json", "weights.safetensors"}
    for place, op in renames:
        before = [one for one in life.ops[:place] if one.path == op.path]
        kinds = [one.what for one in before]
        assert kinds[0] == "empty", op
        assert kinds[-1] == "sync", f"{op.other} gets its name before its content is on the disk"
        assert "write" in kinds
        assert kinds.count("sync") == 1
        after = life.ops[place + 1]
        folder = str(PurePath(op.other).parent)
        assert (after.what, after.path) == ("sync", folder), f"the name {op.other} is not flushed"


def test_rows_are_flushed_before_the_checkpoint_that_counts_on_them(life: Life) -> None:
    for place, op in named(life.ops):
        if PurePath(op.other).suffix != ".json" or "checkpoints" not in op.other:
            continue
        for name in ("one/metrics.jsonl", "one/episodes.jsonl"):
            kinds = [one.what for one in life.ops[:place] if one.path == name]
            assert kinds[-1] == "sync", (op.other, name)


def test_a_run_goes_on_from_whatever_a_crash_leaves(life: Life, tmp_path: Path) -> None:
    """After every single operation, with all, some or none of what was not flushed."""
    disk, known, tried = Disk(), set(), 0
    promised = 0
    for place, op in enumerate(life.ops):
        disk.apply(op)
        before = life.ops[place - 1]
        if op.what == "sync" and before.what == "rename" and "_latest" in before.other:
            sidecar = json.loads(_content(disk, before.other))
            promised = max(promised, int(sidecar["save_state"]["global_update"]))
        for kind, state in disk.states().items():
            if (mark := (promised, fingerprint(state))) in known:
                continue
            known.add(mark)
            tried += 1
            where = tmp_path / str(tried)
            lay_out(state, where)
            check(where, promised, f"after {place}: {op.what} {op.path}, with {kind}")
            shutil.rmtree(where)
    assert promised == UPDATES
    assert tried > 50


def _content(disk: Disk, name: str) -> bytes:
    file = disk.names[name]
    assert file is not None
    return bytes(file.seen)


def check(folder: Path, promised: int, what: str) -> None:
    """The checkpoint that was promised, or a newer one, is found whole, with the rows before it."""
    config = settings(str(folder), resume="auto")
    start = find_start(config, lambda text: None)
    found = 0 if start.checkpoint is None else start.checkpoint.sidecar.global_update
    assert found >= promised, what
    if start.checkpoint is None:
        return
    start.checkpoint.verify()
    start.checkpoint.read_state()
    lines = (folder / "one" / "metrics.jsonl").read_text().splitlines()[:found]
    assert [json.loads(line)["update"] for line in lines] == list(range(1, found + 1)), what


@pytest.mark.parametrize("share", [0.3, 0.55, 0.8])
@pytest.mark.parametrize("kind", ["everything", "all names", "what was flushed"])
def test_it_ends_with_the_same_weights(life: Life, tmp_path: Path, share: float, kind: str) -> None:
    disk = Disk()
    for op in life.ops[: int(share * len(life.ops))]:
        disk.apply(op)
    lay_out(disk.states()[kind], tmp_path)
    config = settings(str(tmp_path), resume="auto")
    run = Run(config, start=find_start(config, lambda text: None))
    try:
        run.learn(Recorder())  # type: ignore[arg-type]
    finally:
        run.close()
    whole = load_file(life.folder / "one" / "weights.safetensors")
    ended = run.agent.state_dict()
    assert run.global_update == UPDATES
    assert all(bool((ended[name] == part).all()) for name, part in whole.items())
    straight = (life.folder / "one" / "episodes.jsonl").read_text()
    assert (tmp_path / "one" / "episodes.jsonl").read_text() == straight
