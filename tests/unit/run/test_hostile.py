"""Files that somebody else wrote: refused in one sentence, nothing executed, no memory taken."""

import json
import os
import pickle
import random
import resource
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from snapshots import WEIGHTS, snapshot, stem

from warpzone.cli.main import main
from warpzone.config import ConfigError
from warpzone.run import safe
from warpzone.run.checkpoints import Checkpoint, Checkpoints
from warpzone.run.loading import find_weights
from warpzone.run.sidecar import CheckpointError, decode, encode, read_sidecar

EXPECTED = {"encoder.weight": torch.zeros(2, 3), "heads.bias": torch.zeros(2)}


class Bomb:
    """Unpickled, it leaves a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)


class Greedy:
    """Unpickled, it is made by a call that PyTorch allows and that takes memory."""

    def __init__(self, make: Any, size: int) -> None:
        self.call = make, (size,)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def refused(read: Callable[[], object]) -> str:
    before = peak()
    with pytest.raises(CheckpointError) as caught:
        read()
    # Far below what the files claim; what reading imports for the first time counts as well.
    assert peak() - before < 256 << 20
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- state files -----------------------------------------------------------------------------
def test_a_pickle_is_not_unpickled(tmp_path: Path) -> None:
    target = tmp_path / "executed"
    plain, torchy, legacy = (tmp_path / f"{name}.state.pt" for name in ("plain", "zip", "legacy"))
    plain.write_bytes(pickle.dumps(Bomb(target)))
    torch.save({"a": Bomb(target)}, torchy)
    torch.save({"a": Bomb(target)}, legacy, _use_new_zipfile_serialization=False)
    for path in (plain, torchy, legacy):
        refused(lambda path=path: safe.read_state(path))  # type: ignore[misc]
    assert not target.exists()


@pytest.mark.parametrize("make", [bytearray, torch.FloatTensor])
def test_a_call_that_takes_memory_is_not_made(tmp_path: Path, make: Any) -> None:
    path = tmp_path / "greedy.state.pt"
    torch.save({"a": Greedy(make, 1 << 30)}, path)
    said = refused(lambda: safe.read_state(path))
    assert "contains forbidden types" in said
    assert make.__name__ in said


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.state.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb/data.pkl", b"\0" * (200 << 20))
    assert path.stat().st_size < 1 << 20
    assert "claims more data than its size" in refused(lambda: safe.read_state(path))


def test_a_part_that_claims_to_be_large_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "claims.state.pt"
    torch.save({"a": torch.zeros(10)}, path)
    content = bytearray(path.read_bytes())
    entry = content.index(b"PK\x01\x02")
    struct.pack_into("<I", content, entry + 20, 0x7FFF_0000)
    path.write_bytes(content)
    assert "more data than its size" in refused(lambda: safe.read_state(path))


def test_a_tensor_larger_than_its_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wide.state.pt"
    torch.save({"a": torch.zeros(1).expand(1 << 40)}, path)
    assert "larger than the file" in refused(lambda: safe.read_state(path))


def test_a_list_of_lists_of_lists_is_looked_through_once(tmp_path: Path) -> None:
    path = tmp_path / "laughs.state.pt"
    laugh: list[Any] = [0]
    for _ in range(15):
        laugh = [laugh] * 10
    torch.save({"a": laugh}, path)
    assert safe.read_state(path).keys() == {"a"}
    deep: list[Any] = []
    for _ in range(40):
        deep = [deep]
    torch.save({"a": deep}, path)
    assert "nested too deeply" in refused(lambda: safe.read_state(path))


def test_limits_are_exact(tmp_path: Path) -> None:
    """A tensor as large as the file, and values as deep as is allowed, are not refused."""
    path = tmp_path / "some.state.pt"

    def look(value: Any, size: int, depth: int) -> None:
        safe._look_through(path, value, size, depth, set())

    eight, nested = torch.zeros(2), {"a": [(1, "x")]}
    look(eight, 8, 1)
    look(nested, 0, 4)
    assert "larger than the file" in refused(lambda: look(eight, 7, 1))
    assert "nested too deeply" in refused(lambda: look(nested, 0, 3))
    assert "nested too deeply" in refused(lambda: look(eight, 8, 0))


@pytest.mark.parametrize("cut", [0, 10, 100, 1000])
def test_a_truncated_state_is_refused(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "whole.state.pt"
    torch.save({"a": torch.zeros(1000)}, path)
    path.write_bytes(path.read_bytes()[:cut])
    refused(lambda: safe.read_state(path))


# --- weights ---------------------------------------------------------------------------------
def weights_file(folder: Path) -> Path:
    Checkpoints(folder).write(snapshot(1))
    return folder / f"{stem(1)}.safetensors"


@pytest.mark.parametrize("cut", [0, 7, 8, 60, 400, -1])
def test_truncated_weights_are_refused(tmp_path: Path, cut: int) -> None:
    path = weights_file(tmp_path)
    path.write_bytes(path.read_bytes()[:cut])
    refused(lambda: safe.read_weights(path, EXPECTED))


@pytest.mark.parametrize("claim", [10 << 30, (1 << 64) - 1, 9 << 20])
def test_a_claim_of_a_huge_header_is_refused(tmp_path: Path, claim: int) -> None:
    path = tmp_path / "huge.safetensors"
    path.write_bytes(struct.pack("<Q", claim) + b"{}")
    assert "claims a header" in refused(lambda: safe.read_weights(path, EXPECTED))


@pytest.mark.parametrize(
    "part",
    [
        {"dtype": "F32", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 1 << 40]},
        {"dtype": "F32", "shape": [-2, 3], "data_offsets": [0, 24]},
        {"dtype": "F32", "shape": [2, 3], "data_offsets": [24, 0]},
        {"dtype": "X", "shape": [2, 3], "data_offsets": [0, 24]},
        {"dtype": ["F32"], "shape": [2, 3], "data_offsets": [0, 24]},
        {"dtype": {}, "shape": [2, 3], "data_offsets": [0, 24]},
        {"dtype": "F32", "shape": "many", "data_offsets": [0, 24]},
        [],
    ],
)
def test_a_header_that_lies_is_refused(tmp_path: Path, part: Any) -> None:
    header = json.dumps({"encoder.weight": part}).encode()
    path = tmp_path / "liar.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(24))
    refused(lambda: safe.read_weights(path, EXPECTED))


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    path = weights_file(tmp_path)
    other = {**EXPECTED, "encoder.weight": torch.zeros(3, 3)}
    assert "[2, 3], not [3, 3]" in refused(lambda: safe.read_weights(path, other))
    more = {**EXPECTED, "memory": torch.zeros(1)}
    assert "another network (memory)" in refused(lambda: safe.read_weights(path, more))


# --- side-cars -------------------------------------------------------------------------------
def sidecar_of(folder: Path) -> dict[str, Any]:
    Checkpoints(folder).write(snapshot(1))
    values: dict[str, Any] = json.loads((folder / f"{stem(1)}.json").read_text())
    return values


def test_wrong_shapes_in_the_sidecar_are_refused(tmp_path: Path) -> None:
    values = sidecar_of(tmp_path)
    values["shapes"]["encoder.weight"] = [9, 9]
    checkpoint = Checkpoint(tmp_path, decode(encode(values)))
    assert "have different shapes" in refused(checkpoint.verify)


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "/etc/passwd", "..", "a/b.safetensors", "a\\b.safetensors", ".hidden",
     "../x.safetensors", "x.state.pt", "", "x\0.safetensors", "x" * 300 + ".safetensors"],
)  # fmt: skip
def test_a_name_that_leaves_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    values = sidecar_of(tmp_path)
    values["files"]["weights"]["name"] = name
    assert "not a plain name" in refused(lambda: decode(encode(values)))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("version", 3), ("version", True), ("config", []), ("shapes", {"a": [1.5]}), ("files", {}),
        ("save_state", {"global_step": -1}), ("algo", 7), ("world", "1"), ("best", {"update": "x"}),
        ("timestamp", "\x1b[2J"), ("algo", "a\x1b[2J"),
    ],
)  # fmt: skip
def test_a_field_of_the_wrong_kind_is_refused(tmp_path: Path, field: str, value: Any) -> None:
    values = sidecar_of(tmp_path)
    assert "hash" not in refused(lambda: decode(encode({**values, field: value})))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, '{"version": NaN}', "\xff"])
def test_text_that_is_no_sidecar_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(text.encode("latin-1"))
    refused(lambda: read_sidecar(path))


HUGE = "9" * 5000


@pytest.mark.parametrize("place", ["more", "global_step", "shapes", "best"])
def test_a_number_of_thousands_of_digits_is_passed_over(
    tmp_path: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python refuses to read it, with an error that is none of JSON's."""
    checkpoints = Checkpoints(tmp_path)
    checkpoints.write(snapshot(1))
    checkpoints.write(snapshot(2))
    path = tmp_path / f"{stem(2)}.json"
    values = json.loads(path.read_text())
    target = {"more": values, "global_step": values["save_state"]}.get(place) or values[place]
    target["global_step" if place == "global_step" else "x"] = "HUGE"
    text = encode(values).replace('"HUGE"', HUGE)
    path.write_text(text)
    (tmp_path / "ppo_world2_stage3_latest.json").write_text(text)
    assert "not JSON" in refused(lambda: read_sidecar(path))
    (tmp_path / f"{stem(2)}.safetensors").unlink()
    refused(lambda: checkpoints.open(stem(2)))
    assert checkpoints.open(stem(1)).sidecar.global_update == 1
    gone = checkpoints.prune(last=1, every=0, best=0, newest=9, dry_run=True)
    assert gone == [stem(1)]
    main(["checkpoints", "list", str(tmp_path)])
    listed = capsys.readouterr().out
    assert "not JSON" in listed
    assert stem(1) in listed


def test_such_a_number_inside_the_weights_is_passed_over(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    path = tmp_path / f"{stem(1)}.safetensors"
    save_file({"a": torch.ones(1)}, path, metadata={"checkpoint": f'{{"version": {HUGE}}}'})
    refused(lambda: Checkpoints(tmp_path).open(stem(1)))
    with pytest.raises(ConfigError, match="cannot be used"):
        find_weights(path)


def test_a_flipped_bit_of_a_sidecar_is_seen(tmp_path: Path) -> None:
    """Whatever is still accepted says the same as before."""
    Checkpoints(tmp_path).write(snapshot(1))
    content = (tmp_path / f"{stem(1)}.json").read_bytes()
    whole = decode(content.decode())
    generator = random.Random(0)
    refusals = 0
    for _ in range(1500):
        place = generator.randrange(len(content) * 8)
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        try:
            found = decode(flipped.decode())
        except (CheckpointError, UnicodeDecodeError):
            refusals += 1
        else:
            assert found == whole
    assert refusals > 1000


def test_a_sidecar_of_before_has_no_hash_and_loads(tmp_path: Path) -> None:
    values = sidecar_of(tmp_path)
    whole = decode(encode(values))
    del values["sidecar_sha256"]
    refused(lambda: decode(json.dumps(values)))
    assert decode(json.dumps({**values, "version": 1})) == whole


def test_a_huge_sidecar_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with path.open("wb") as file:
        file.truncate(10 << 30)
    assert "larger than" in refused(lambda: read_sidecar(path))


def test_a_changed_byte_is_seen(tmp_path: Path) -> None:
    Checkpoints(tmp_path).write(snapshot(1))
    for name in (f"{stem(1)}.state.pt", f"{stem(1)}.safetensors"):
        path = tmp_path / name
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
        checkpoint = Checkpoints(tmp_path).open(stem(1))
        assert "its hash does not match" in refused(checkpoint.verify)
        content[-1] ^= 1
        path.write_bytes(content)


def test_reading_needs_no_more_memory_than_the_file(tmp_path: Path) -> None:
    """In a process of its own: every hostile file under a limit of address space."""
    Checkpoints(tmp_path).write(snapshot(1))
    huge = tmp_path / "huge.safetensors"
    huge.write_bytes(struct.pack("<Q", 10 << 30) + b"{}")
    code = f"""
import resource, torch
from pathlib import Path
from warpzone.run import safe
from warpzone.run.sidecar import CheckpointError
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20),) * 2)
try:
    safe.read_header(Path({str(huge)!r}))
except CheckpointError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "claims a header of 10,737,418,240 bytes" in done.stdout


def test_weights_with_prefixes_of_compiled_networks_load(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    path = tmp_path / "old.safetensors"
    save_file(
        {f"_orig_mod.{safe.plain_name(name)}": value for name, value in WEIGHTS.items()}, path
    )
    assert safe.read_weights(path, EXPECTED).keys() == EXPECTED.keys()
