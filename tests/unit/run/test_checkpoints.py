"""Checkpoints on the disk: what is written, what is found again, what is kept."""

import errno
import gc
import io
import json
import os
import weakref
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from snapshots import WEIGHTS, snapshot, stem
from torch import Tensor

from warpzone.run import checkpoints as module
from warpzone.run.checkpoints import Checkpoint, Checkpoints
from warpzone.run.files import append_text, remove_leftovers, require_space, write_text
from warpzone.run.sidecar import CheckpointError, own_hash, read_sidecar


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_names_and_content(tmp_path: Path) -> None:
    written = Checkpoints(tmp_path / "c").write(snapshot(12))
    assert names(tmp_path / "c") == [
        f"{stem(12)}.json",
        f"{stem(12)}.safetensors",
        f"{stem(12)}.state.pt",
        "ppo_world2_stage3_latest.json",
    ]
    sidecar = json.loads((tmp_path / "c" / f"{stem(12)}.json").read_text())
    assert sidecar["version"] == 2
    assert sidecar["sidecar_sha256"] == own_hash(sidecar)
    assert sidecar["save_state"] == {
        "global_step": 384, "global_update": 12, "type": "checkpoint", "reason": "normal",
    }  # fmt: skip
    assert sidecar["config"]["num_envs"] == 4
    assert sidecar["shapes"] == {"encoder.weight": [2, 3], "heads.bias": [2]}
    latest = json.loads((tmp_path / "c" / "ppo_world2_stage3_latest.json").read_text())
    assert latest["save_state"]["type"] == "latest"
    assert latest["files"] == sidecar["files"]
    written.verify()
    state = written.read_state()
    assert torch.equal(state["moments"], torch.full((3,), 12.0))
    expected: dict[str, Tensor] = {
        "encoder.weight": torch.zeros(2, 3),
        "heads.bias": torch.zeros(2),
    }
    loaded = written.read_weights(expected)
    # What torch.compile puts before names never reaches a file.
    assert loaded.keys() == expected.keys()
    assert torch.equal(loaded["encoder.weight"], WEIGHTS["encoder.weight"])


def test_a_lost_sidecar_is_made_again(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path)
    before = store.write(snapshot(3)).sidecar
    (tmp_path / f"{stem(3)}.json").unlink()
    assert store.open(stem(3)).sidecar == before  # From the one of the latest.
    (tmp_path / "ppo_world2_stage3_latest.json").unlink()
    again = store.open(stem(3))  # From the weights.
    assert again.sidecar == before
    again.verify()


@pytest.mark.parametrize("dies_at", range(4))
def test_every_half_written_checkpoint_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_at: int
) -> None:
    """The process dies before the rename of each of the four files."""
    store = Checkpoints(tmp_path)
    store.write(snapshot(1))
    renames = iter(range(4))
    real = os.replace

    def replace(source: Path, target: Path) -> None:
        if next(renames) == dies_at:
            raise KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        store.write(snapshot(2))
    monkeypatch.undo()
    (latest,) = store.latest()
    named = store.open(read_sidecar(latest).stem)
    named.verify()
    assert named.sidecar.global_update == 1
    good = []
    for name in store.stems():
        try:
            found = store.open(name)
            found.verify()
        except CheckpointError:
            continue
        good.append(found.sidecar.global_update)
    # Once state and weights are there, the side-car can be made from them.
    assert good == ([2, 1] if dies_at >= 2 else [1])


def test_keep_policy(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path)
    for update in range(1, 13):
        store.write(snapshot(update))
    store.write(snapshot(40))  # Left over from a life that went further.
    store.commit(store.open(stem(12)).sidecar)
    gone = store.prune(last=2, every=5, best=3, newest=12)
    kept = sorted(module.update_of(name) for name in store.stems())
    assert kept == [3, 5, 10, 11, 12, 40]
    assert len(gone) == 7
    latest = store.open(stem(12)).sidecar
    store.commit(store.open(stem(3)).sidecar)
    store.prune(last=1, every=0, best=-1, newest=12)
    # What the latest names is never removed.
    assert sorted(module.update_of(name) for name in store.stems()) == [3, 12, 40]
    assert latest.global_update == 12


def test_no_space_is_seen_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Checkpoints(tmp_path)
    store.write(snapshot(1))
    before = names(tmp_path)
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    with pytest.raises(OSError, match="does not fit"):
        require_space(tmp_path, free + 1)
    monkeypatch.setattr(module, "AROUND", free)
    with pytest.raises(OSError, match="does not fit"):
        store.write(snapshot(2))
    assert names(tmp_path) == before


def test_appended_lines_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    append_text(path, '{"a": 1}\n')
    with path.open("a") as file:
        file.write('{"torn": ')
    append_text(path, '{"a": 2}\n')
    assert [json.loads(line)["a"] for line in path.read_text().splitlines()] == [1, 2]


def test_leftovers_are_removed_and_nothing_else(tmp_path: Path) -> None:
    write_text(tmp_path / ".hidden.json", "{}")
    (tmp_path / f".{stem(1)}.state.pt.4711-0123abcd").write_bytes(b"half")
    remove_leftovers(tmp_path)
    assert names(tmp_path) == [".hidden.json"]


def test_reason_changes_without_the_rest(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path)
    written = store.write(snapshot(5))
    times = {name: (tmp_path / name).stat().st_mtime_ns for name in names(tmp_path)}
    store.commit(written.sidecar.with_reason("interrupt"))
    assert read_sidecar(store.latest()[0]).reason == "interrupt"
    large = (f"{stem(5)}.state.pt", f"{stem(5)}.safetensors")
    assert all((tmp_path / name).stat().st_mtime_ns == times[name] for name in large)
    Checkpoint(tmp_path, read_sidecar(store.latest()[0])).verify()


def test_a_failed_write_keeps_nobody_alive() -> None:
    """The writer of torch.save holds the file: what that keeps of an error must not lead back."""

    class Full(io.BytesIO):
        def write(self, data: Any) -> int:
            raise OSError(errno.ENOSPC, "no room")

    class Owner:
        pass

    def save(owner: Owner) -> None:
        sink = module._Sink(Full())
        torch.save({"a": torch.zeros(1000)}, cast(Any, sink))
        sink.finish()

    owner = Owner()
    alive = weakref.ref(owner)
    with pytest.raises(OSError, match="no room"):
        save(owner)
    del owner
    gc.collect()
    assert alive() is None
