"""JSON lines: whole, readable by every tool, whoever writes and whatever happens."""

import gzip
import json
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from warpzone.run import reader, rotation
from warpzone.run.jsonl import JsonLines, encode

NAME = "metrics.jsonl"


def steps(folder: Path) -> list[int]:
    return [row["global_step"] for row in reader.read_rows(folder, NAME)]


def fill(lines: JsonLines, first: int, last: int) -> None:
    lines.append(NAME, [{"global_step": step} for step in range(first, last + 1)])


def test_numbers_that_json_does_not_know_are_null(tmp_path: Path) -> None:
    row = {
        "nan": float("nan"),
        "inf": [float("inf"), -float("inf"), 1.5],
        "deep": {"a": {"b": float("nan")}},
        "numpy": np.float64("nan"),
        "single": np.float32("inf"),
        "count": np.int64(3),
        "tensor": torch.tensor(0.5),
        "text": "NaN",
        "none": None,
    }
    line = encode(row)
    assert json.loads(line, parse_constant=pytest.fail) == {
        "nan": None,
        "inf": [None, None, 1.5],
        "deep": {"a": {"b": None}},
        "numpy": None,
        "single": None,
        "count": 3,
        "tensor": 0.5,
        "text": "NaN",
        "none": None,
    }
    with pytest.raises(TypeError, match="is not a value of a row"):
        encode({"object": object()})


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_jq_reads_every_line(tmp_path: Path) -> None:
    lines = JsonLines(tmp_path)
    lines.append(NAME, [{"global_step": 1, "x": float("nan")}, {"global_step": 2, "x": 0.5}])
    out = subprocess.run(
        ["jq", "-c", "[.global_step, .x]", str(tmp_path / NAME)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.split() == ["[1,null]", "[2,0.5]"]


def test_threads_never_mix_lines(tmp_path: Path) -> None:
    # Lines far longer than any buffer, and a rotation now and then among them.
    lines = JsonLines(tmp_path)
    writers, batches, length = 8, 25, 40_000

    def write(writer: int) -> None:
        for batch in range(batches):
            rows: list[dict[str, Any]] = [
                {"writer": writer, "batch": batch, "x": [writer] * length},
                {"end": batch},
            ]
            lines.append(NAME, rows)
            if writer == 0 and batch % 10 == 5:
                rotation.rotate(lines, NAME)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rotation.compress(tmp_path, NAME)
    rows = list(reader.read_rows(tmp_path, NAME))
    assert len(reader.parts(tmp_path, NAME)) == 2
    assert len(rows) == 2 * writers * batches
    # A batch is one write: its second row follows its first.
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        assert first["x"] == [first["writer"]] * length
        assert second == {"end": first["batch"]}
    seen = {(row["writer"], row["batch"]) for row in rows[::2]}
    assert seen == {(writer, batch) for writer in range(writers) for batch in range(batches)}


def test_parts_are_read_in_order(tmp_path: Path) -> None:
    lines = JsonLines(tmp_path)
    for part in range(12):
        fill(lines, 10 * part, 10 * part + 9)
        rotation.rotate(lines, NAME)
        if part == 5:
            rotation.compress(tmp_path, NAME)
    fill(lines, 120, 124)
    (tmp_path / "metrics-notes.jsonl").write_text("something else\n")
    assert steps(tmp_path) == list(range(125))
    newest = [row["global_step"] for row in reader.read_rows(tmp_path, NAME, last=16)]
    assert newest == list(range(100, 125))  # Whole parts: two are enough for 16 and one is not.
    assert len(list(reader.read_rows(tmp_path, NAME, last=1000))) == 125
    names = [path.name for path in reader.parts(tmp_path, NAME)]
    assert names[5:7] == ["metrics-0006.jsonl.gz", "metrics-0007.jsonl"]


def test_a_crash_while_compressing_loses_and_doubles_nothing(tmp_path: Path) -> None:
    lines = JsonLines(tmp_path)
    fill(lines, 0, 9)
    part = rotation.rotate(lines, NAME)
    fill(lines, 10, 12)
    plain = part.read_bytes()
    rotation.compress(tmp_path, NAME)
    part.write_bytes(plain)  # As if the process had died before it took the plain part away.
    assert steps(tmp_path) == list(range(13))
    rotation.compress(tmp_path, NAME)
    assert not part.exists()
    assert steps(tmp_path) == list(range(13))


@pytest.mark.parametrize("step", [-1, 0, 7, 9, 10, 25, 29, 30, 99])
def test_rows_after_a_checkpoint_go_from_parts_too(tmp_path: Path, step: int) -> None:
    lines = JsonLines(tmp_path)
    for part in range(3):
        fill(lines, 10 * part, 10 * part + 9)
        rotation.rotate(lines, NAME)
        if part < 2:
            rotation.compress(tmp_path, NAME)
    fill(lines, 30, 34)
    with (tmp_path / NAME).open("a") as file:
        file.write('{"global_step": 35, "loss_to')
    expected = [old for old in range(35) if old <= step]
    assert rotation.drop_after(lines, NAME, step) == 35 - len(expected)
    assert steps(tmp_path) == expected
    assert rotation.drop_after(lines, NAME, step) == 0
    fill(lines, step + 1, step + 3)
    assert steps(tmp_path) == [*expected, step + 1, step + 2, step + 3]
    assert not list(tmp_path.glob(".*"))


def test_a_plain_part_that_a_crash_left_does_not_come_back(tmp_path: Path) -> None:
    lines = JsonLines(tmp_path)
    fill(lines, 10, 19)
    part = rotation.rotate(lines, NAME)
    plain = part.read_bytes()
    rotation.compress(tmp_path, NAME)
    part.write_bytes(plain)  # As if the process had died before it took the plain part away.
    assert rotation.drop_after(lines, NAME, 5) == 10
    assert steps(tmp_path) == []


@pytest.mark.parametrize("damage", ["cut", "garbage", "changed"])
def test_a_damaged_part_is_read_as_far_as_it_goes(tmp_path: Path, damage: str) -> None:
    lines = JsonLines(tmp_path)
    for part in range(2):
        fill(lines, 10 * part, 10 * part + 9)
        rotation.rotate(lines, NAME)
    rotation.compress(tmp_path, NAME)
    path = tmp_path / "metrics-0002.jsonl.gz"
    whole = path.read_bytes()
    changed = bytes([*whole[:-6], whole[-6] ^ 1, *whole[-5:]])
    path.write_bytes({"cut": whole[:-9], "garbage": b"no gzip", "changed": changed}[damage])
    left = steps(tmp_path)
    assert left == list(range(len(left)))
    assert len(left) >= 10
    assert rotation.drop_after(lines, NAME, 30) == 0
    assert steps(tmp_path) == left
    for packed in tmp_path.glob("*.gz"):
        assert gzip.decompress(packed.read_bytes())


def test_rows_without_a_step_stay(tmp_path: Path) -> None:
    lines = JsonLines(tmp_path)
    lines.append(NAME, [{"global_step": None}, {"global_step": 9}, {"other": 1}])
    assert rotation.drop_after(lines, NAME, 5) == 1
    assert list(reader.read_rows(tmp_path, NAME)) == [{"global_step": None}, {"other": 1}]


def test_nothing_to_drop(tmp_path: Path) -> None:
    assert rotation.drop_after(JsonLines(tmp_path), NAME, 5) == 0
    assert list(reader.read_rows(tmp_path, NAME)) == []
