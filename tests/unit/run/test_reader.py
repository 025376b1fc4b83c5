"""One reader of run folders: one spelling of names, one way to open a file, one `latest`."""

import ast
import gzip
import inspect
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from snapshots import snapshot
from tiny_runs import make_agent, tiny

import warpzone
from warpzone.cli.main import main
from warpzone.config import ConfigError
from warpzone.dashboard import tail
from warpzone.dashboard.catalogue import Catalogue
from warpzone.dashboard.rundata import RunData
from warpzone.dashboard.wall_file import WallFile
from warpzone.eval.weights import find_agent
from warpzone.maps.events import read_events
from warpzone.report.data import read_run
from warpzone.report.page import make_page
from warpzone.run import names, reader, rotation
from warpzone.run.checkpoints import Checkpoints
from warpzone.run.control import read_state
from warpzone.run.folder import RunFolder, load_config
from warpzone.run.jsonl import JsonLines
from warpzone.run.opening import listing, open_file, open_folder, parse_json, read_file
from warpzone.run.reader import RunReader, latest_run, named_run, read_rows, runs_in
from warpzone.run.resume import find_start

PACKAGE = Path(warpzone.__file__).parent
#: Names that mean a file of a run wherever they stand.
SPELLED_ONCE = {
    *(names.CONFIG, names.METRICS, names.EPISODES, names.EVALS, names.HEARTBEAT, names.VERSIONS),
    *(names.EVALUATION, names.WEIGHTS, names.BEST, names.BEST_VIDEO, names.LOG, names.ANSWERS),
    *(names.STATE, names.WALL_PICTURES),
}


def make_run(root: Path, name: str) -> Path:
    """A run with something of everything in it."""
    config = tiny(runs_dir=str(root), run_name=name)
    folder = RunFolder.create(config)
    folder.write_config(config)
    folder.append(names.METRICS, [{"update": 1, "global_step": 32}, {"update": 2}])
    row = {"stage": "1-1", "policy": "argmax", "reason": "death", "furthest_x": 5, "cleared": False}
    folder.append(names.EVALS, [row])
    folder.append(names.EPISODES, [{"stage": 0, "reason": "death", "furthest_x": 5}])
    folder.append(names.HEARTBEAT, [{"phase": "collect"}])
    folder.append(names.ANSWERS, [{"what": "save"}])
    folder.save_weights(names.WEIGHTS, make_agent(config), {"global_step": 32})
    folder.close()
    for below in (names.VIDEOS, names.LOGS, names.CONTROL, names.WALL):
        (folder.path / below).mkdir()
    (folder.path / names.VIDEOS / "one.mp4").write_bytes(b"video")
    (folder.path / names.BEST_VIDEO).write_bytes(b"best")
    (folder.path / names.LOGS / names.LOG).write_text("said\n")
    (folder.path / names.CONTROL / names.STATE).write_text('{"doing": "running"}')
    (folder.path / names.WALL / names.WALL_PICTURES).write_bytes(b'{"shape": [1, 1, 1, 1]}\n0')
    Checkpoints(folder.checkpoints).write(snapshot(3, config=config))
    return folder.path


def strings(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {node.value for node in found if isinstance(node.value, str)}


def test_names_are_spelled_once() -> None:
    spelled = {
        str(path.relative_to(PACKAGE)): strings(path) & SPELLED_ONCE
        for path in PACKAGE.rglob("*.py")
        if path != Path(names.__file__)
    }
    assert {path: found for path, found in spelled.items() if found} == {}


class Watch:
    """Files below a folder that were opened, and whether `open_file` was on the way there. Folders
    that `open_folder` opens are left out."""

    def __init__(self, below: Path) -> None:
        self.below = str(below)
        self.active = False
        self.through: set[str] = set()
        self.past: set[str] = set()
        sys.addaudithook(self._look)

    def _look(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.active or event != "open" or not isinstance(arguments[0], str | Path):
            return
        path = str(arguments[0])
        if path.startswith(self.below):
            ours = self._ours()
            if ours == Path():
                return
            (self.past if ours is None else self.through).add(
                os.path.relpath(ours or path, self.below)
            )

    @staticmethod
    def _ours() -> Path | None:
        """What `open_file` was asked for; empty for a folder alone. It opens the folder by its
        path, and the file from there."""
        frame = sys._getframe(2)
        while frame is not None:
            if frame.f_code is inspect.unwrap(open_folder).__code__:
                return Path()
            if frame.f_code is open_file.__code__:
                run: Path = frame.f_locals["run"]
                return run / str(frame.f_locals["name"])
            frame = frame.f_back  # type: ignore[assignment]
        return None

    def during(self, act: Callable[[], object]) -> set[str]:
        """What was opened through `open_file`; nothing may be opened past it."""
        self.through.clear()
        self.active = True
        try:
            act()
        finally:
            self.active = False
        assert self.past == set()
        return set(self.through)


def look_at_everything(run: Path) -> None:
    data = RunData(run)
    data.refresh()
    Catalogue(run.parent).scan()
    WallFile(run).read()


def test_every_reader_opens_files_in_one_place(tmp_path: Path) -> None:
    run = make_run(tmp_path, "a")
    watch = Watch(run)
    jsonl = {names.METRICS, names.EPISODES, names.EVALS}
    seen = watch.during(lambda: look_at_everything(run))
    rest = {names.HEARTBEAT, names.ANSWERS, names.CONFIG}
    assert seen >= jsonl | rest
    assert seen >= {f"{names.LOGS}/{names.LOG}", f"{names.WALL}/{names.WALL_PICTURES}"}
    page = tmp_path / "page.html"
    seen = watch.during(lambda: make_page([read_run(run)], page, rom=None))
    assert seen >= {*jsonl, names.CONFIG, names.BEST_VIDEO, f"{names.VIDEOS}/one.mp4"}
    assert watch.during(lambda: read_events(run, "1-1")) == {names.EVALS}
    assert watch.during(lambda: find_agent(run)) == {names.CONFIG, names.WEIGHTS}
    assert watch.during(lambda: load_config(run)) == {names.CONFIG}
    assert watch.during(lambda: read_state(run)) == {f"{names.CONTROL}/{names.STATE}"}


def test_latest_means_the_same_to_everybody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run with a newer checkpoint, and one whose newer weights come from an evaluation."""
    saved, evaluated = make_run(tmp_path, "saved"), make_run(tmp_path, "evaluated")
    for file in RunReader(evaluated).weights():
        os.utime(evaluated / file.name, (1000, 1000))
    for file in RunReader(saved).weights():
        os.utime(saved / file.name, (2000, 2000))
    os.utime(evaluated / names.WEIGHTS, (3000, 3000))
    assert latest_run(tmp_path) == evaluated
    assert find_agent("latest", tmp_path).path.parent == evaluated
    config = tiny(runs_dir=str(tmp_path), resume="latest")
    assert find_start(config, lambda _: None).folder == evaluated
    out = tmp_path / "a.html"
    report = ["report", "latest", "--runs-dir", str(tmp_path), "--out", str(out), "--no-maps"]
    assert main(report) == 0
    assert "warpzone: evaluated" in out.read_text()
    capsys.readouterr()


def test_no_run_is_one_sentence(tmp_path: Path) -> None:
    assert latest_run(tmp_path) is None
    assert latest_run(tmp_path / "nothing") is None
    assert named_run("some/run", tmp_path) == Path("some/run")
    with pytest.raises(ConfigError, match="there is no run with weights in"):
        named_run("latest", tmp_path)
    with pytest.raises(ConfigError, match=r"is not a run: it has no config\.json"):
        RunReader(tmp_path).require()
    assert runs_in(tmp_path) == []
    run = make_run(tmp_path, "a")
    assert runs_in(tmp_path) == runs_in(run) == [run]


def test_what_there_is_in_a_run(tmp_path: Path) -> None:
    reader = RunReader(make_run(tmp_path, "a")).require()
    stem = "ppo_world1_stage1_0000003"
    assert [file.name for file in reader.weights()] == [
        names.WEIGHTS,
        f"checkpoints/{stem}.safetensors",
    ]
    assert [file.name for file in reader.sidecars()] == [f"checkpoints/{stem}.json"]
    assert [(file.name, file.bytes) for file in reader.videos()] == [
        ("best.mp4", 4),
        ("videos/one.mp4", 5),
    ]
    assert reader.last_row(names.METRICS, "global_step") == {"update": 1, "global_step": 32}
    assert reader.last_row(names.METRICS, "nothing") == {}
    assert reader.state()["doing"] == "running"
    assert reader.document("nothing.json") == {}
    os.utime(reader.path / names.METRICS, (1, 1))
    os.utime(reader.path / names.HEARTBEAT, (1, 1))
    os.utime(reader.path / names.CONTROL / names.STATE, (1, 1))
    assert reader.state()["doing"] == "silent"


def test_damaged_files_are_said_or_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[" * 100_000)
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "long.json").write_text('{"a": ' + "9" * 5000 + "}")
    for name in ("a.json", "list.json", "long.json"):
        with pytest.raises(OSError, match="cannot be read"):
            RunReader(tmp_path).document(name)
    rows = ['{"n": 1}', "nonsense", "[2]", '{"n": NaN}', '{"n": ' + "9" * 5000 + "}", '{"n": 3}']
    (tmp_path / "rows.jsonl").write_text("\n".join(rows) + '\n{"n": 4}')
    assert list(read_rows(tmp_path, "rows.jsonl")) == [{"n": 1}, {"n": None}, {"n": 3}]
    assert RunReader(tmp_path).last_row("rows.jsonl", "n") == {"n": 3}
    assert parse_json('{"a": [-Infinity]}') == {"a": [None]}
    json.dumps(parse_json('{"a": NaN}'), allow_nan=False)


def test_reads_are_bounded_and_lists_show_files_only(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"12345")
    assert read_file(tmp_path, "a.mp4", 5) == b"12345"
    with pytest.raises(OSError, match="more than 4 bytes"):
        read_file(tmp_path, "a.mp4", 4)
    (tmp_path / "b.mp4").symlink_to(tmp_path / "a.mp4")
    (tmp_path / "c.mp4").mkdir()
    (tmp_path / ".d.mp4").write_bytes(b"")
    assert [file.name for file in listing(tmp_path, "", (".mp4",))] == ["a.mp4"]
    assert listing(tmp_path, "nothing", (".mp4",)) == []


@pytest.mark.parametrize("line", ["\n", '.5, "time"}\n', b"[1]\n", b"\xff\n", "1\n", ""])
def test_a_line_that_cannot_be_a_row_is_not_parsed(
    monkeypatch: pytest.MonkeyPatch, line: str | bytes
) -> None:
    """An error of the parser is slow, and a packed part may have millions of such lines."""
    for good in ('{"a": 1}\n', b' {"a": 1}\n', b'\xef\xbb\xbf{"a": 1}\n'):
        assert reader.parse_row(good) == {"a": 1}
    monkeypatch.delattr(reader, "parse_json")
    assert reader.parse_row(line) is None


@pytest.mark.parametrize("line", [b"{", b"{}", b'{"a"'])
def test_a_packed_part_of_lines_alone_is_not_read_to_its_end(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    line: bytes,
) -> None:
    """Each would cost the parser as much as a row: a part of some KiB half a minute."""
    parsed = 0
    parse = reader.parse_row

    def counted(text: str | bytes) -> dict[str, Any] | None:
        nonlocal parsed
        parsed += 1
        return parse(text)

    modules = (reader, rotation, tail)
    for module in modules:
        monkeypatch.setattr(module, "parse_row", counted)
    monkeypatch.setattr(reader, "_said", set())
    part = tmp_path / "metrics-0001.jsonl.gz"
    part.write_bytes(gzip.compress(b'{"n": 1}\n' + 1_000_000 * (line + b"\n")))
    (tmp_path / names.METRICS).write_text('{"n": 2}\n')
    rows = list(read_rows(tmp_path, names.METRICS))
    assert (rows[0], rows[-1]) == ({"n": 1}, {"n": 2})
    most = reader.LINES + reader.AT_ONCE
    assert parsed < most
    parsed = 0
    followed = tail.RowsTail(tmp_path, names.METRICS)
    rows = followed.read() + followed.read()
    assert (rows[0], rows[-1]) == ({"n": 1}, {"n": 2})
    assert parsed < most
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"the rest of {part.name} of {tmp_path.name!r} is left out: it has far more" in said
    parsed = 0
    rotation.drop_after(JsonLines(tmp_path), names.METRICS, 5)
    assert parsed < most


def test_a_packed_part_of_a_long_run_is_read_to_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Short rows, and more of them than any part may have whatever its size."""
    random, count = Random(1), 3 * reader.LINES
    steps = range(count)
    text = "".join(
        f'{{"global_step": {64 * step}, "lane": {step % 64}, "episode_return": '
        f'{random.gauss(0, 50):.2f}, "steps": {random.randrange(900)}, "reason": "death"}}\n'
        for step in steps
    )
    (tmp_path / "episodes-0001.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    assert sum(1 for _ in read_rows(tmp_path, names.EPISODES)) == count
    assert capsys.readouterr().err == ""
