"""Files that grow, are cut, replaced and rotated while somebody reads them."""

import gzip
import json
from pathlib import Path

from dashboard_server import write_rows

from warpzone.dashboard.tail import RowsTail, TextTail


def numbers(tail: RowsTail) -> list[int]:
    return [row["n"] for row in tail.read()]


def test_only_what_is_new(tmp_path: Path) -> None:
    path, tail = tmp_path / "metrics.jsonl", RowsTail(tmp_path, "metrics.jsonl")
    assert numbers(tail) == []
    write_rows(path, [{"n": 1}, {"n": 2}])
    assert numbers(tail) == [1, 2]
    assert numbers(tail) == []
    write_rows(path, [{"n": 3}])
    assert numbers(tail) == [3]
    assert tail.resets == 0


def test_a_torn_line_waits_and_a_damaged_one_is_passed_over(tmp_path: Path) -> None:
    path, tail = tmp_path / "metrics.jsonl", RowsTail(tmp_path, "metrics.jsonl")
    path.write_text('{"n": 1}\n{"n": 2')
    assert numbers(tail) == [1]
    with path.open("a") as file:
        file.write('2}\nnonsense\n[3]\n{"n": 4, "bad": NaN}\n')
    assert tail.read() == [{"n": 22}, {"n": 4, "bad": None}]


def test_rotation_loses_and_repeats_nothing(tmp_path: Path) -> None:
    path, tail = tmp_path / "metrics.jsonl", RowsTail(tmp_path, "metrics.jsonl")
    write_rows(path, [{"n": 1}, {"n": 2}])
    assert numbers(tail) == [1, 2]
    write_rows(path, [{"n": 3}])
    path.rename(tmp_path / "metrics-0001.jsonl")
    write_rows(path, [{"n": 4}])
    assert numbers(tail) == [3, 4]
    plain = (tmp_path / "metrics-0001.jsonl").read_bytes()
    (tmp_path / "metrics-0001.jsonl.gz").write_bytes(gzip.compress(plain))
    (tmp_path / "metrics-0001.jsonl").unlink()
    write_rows(path, [{"n": 5}])
    assert numbers(tail) == [5]
    assert numbers(RowsTail(tmp_path, "metrics.jsonl")) == [1, 2, 3, 4, 5]
    assert tail.resets == 0


def test_a_damaged_part_is_read_up_to_the_damage_and_once(tmp_path: Path) -> None:
    write_rows(tmp_path / "metrics.jsonl", [{"n": 9999}])
    whole = gzip.compress("".join(f'{{"n": {n}}}\n' for n in range(5000)).encode(), 1)
    (tmp_path / "metrics-0001.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "metrics-0002.jsonl.gz").write_bytes(whole[:100] + b"\xff" * 100 + whole[200:])
    (tmp_path / "metrics-0003.jsonl.gz").write_bytes(b"nothing like it")
    tail = RowsTail(tmp_path, "metrics.jsonl")
    found = numbers(tail)
    assert found[-1] == 9999
    assert found[:1000] == list(range(1000))
    assert numbers(tail) == []


def test_the_moment_between_two_parts(tmp_path: Path) -> None:
    path, tail = tmp_path / "metrics.jsonl", RowsTail(tmp_path, "metrics.jsonl")
    write_rows(path, [{"n": 1}])
    assert numbers(tail) == [1]
    write_rows(path, [{"n": 2}])
    path.rename(tmp_path / "metrics-0001.jsonl")
    assert numbers(tail) == []
    write_rows(path, [{"n": 3}])
    assert numbers(tail) == [2, 3]


def test_a_file_that_was_cut_is_read_anew(tmp_path: Path) -> None:
    path, tail = tmp_path / "metrics.jsonl", RowsTail(tmp_path, "metrics.jsonl")
    write_rows(path, [{"n": 1}, {"n": 2}, {"n": 3}])
    assert numbers(tail) == [1, 2, 3]
    other = tmp_path / "other"
    write_rows(other, [{"n": 1}])
    other.replace(path)
    tail.read()
    assert tail.resets == 1
    assert numbers(tail) == [1]


def test_a_run_that_vanishes(tmp_path: Path) -> None:
    path, tail = tmp_path / "metrics.jsonl", RowsTail(tmp_path, "metrics.jsonl")
    write_rows(path, [{"n": 1}])
    assert numbers(tail) == [1]
    path.unlink()
    assert numbers(tail) == []
    assert tail.resets == 1
    write_rows(path, [{"n": 7}])
    assert numbers(tail) == [7]


def test_large_files_come_in_pieces(tmp_path: Path) -> None:
    write_rows(tmp_path / "episodes.jsonl", [{"n": n, "pad": "x" * 400} for n in range(8000)])
    tail = RowsTail(tmp_path, "episodes.jsonl")
    pieces = []
    while rows := tail.read(limit=1000):
        pieces.append([row["n"] for row in rows])
    assert len(pieces) > 1
    assert [n for piece in pieces for n in piece] == list(range(8000))


def test_the_end_of_a_log(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    tail = TextTail(tmp_path, path.name, keep=3, first=40)
    assert not tail.read()
    path.write_text("".join(f"line number {n}\n" for n in range(10)) + "torn")
    assert tail.read()
    assert tail.lines == ["line number 8", "line number 9"]
    with path.open("a") as file:
        file.write(" no more\nlast \xff\nand\n")
    assert tail.read()
    assert tail.lines == ["torn no more", "last \xff", "and"]
    assert tail.start == 2
    assert not tail.read()


def test_rows_are_json_objects_only(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("[" * 3000 + "\n" + json.dumps({"n": 1}) + "\n")
    assert numbers(RowsTail(tmp_path, "metrics.jsonl")) == [1]
