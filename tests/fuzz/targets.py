"""What is fuzzed: every parser of files that a user may get from somebody else. A target makes an
input out of good ones and gives it to everybody who reads such files; the errors that the parser
documents are passed over, and everything else is a bug."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from agent_files import agent_files
from mutate import Mutator

from warpzone.cli.flags import preset_config
from warpzone.config import PRESETS, ConfigError, TrainConfig
from warpzone.dashboard.catalogue import Catalogue
from warpzone.dashboard.hub import _locked_part
from warpzone.dashboard.messages import Part, parse
from warpzone.dashboard.rundata import RunData
from warpzone.dashboard.wall_file import WallFile
from warpzone.env.actions import action_table
from warpzone.eval import card
from warpzone.eval.description import as_text
from warpzone.eval.weights import find_agent
from warpzone.maps.events import Event, read_events
from warpzone.maps.flight import AreaPicture
from warpzone.maps.heat import draw_heat
from warpzone.model.agent import Agent
from warpzone.model.spec import model_spec
from warpzone.play.movie import MovieError, parse_movie
from warpzone.report.data import read_run
from warpzone.report.page import make_page
from warpzone.rom import RomError
from warpzone.rom.rom import _FOLDER_IN_WHEEL, _install_from
from warpzone.run import control, names
from warpzone.run.checkpoints import Checkpoint, Checkpoints, Snapshot
from warpzone.run.folder import load_config
from warpzone.run.jsonl import JsonLines
from warpzone.run.loading import find_weights
from warpzone.run.migrate import backfill
from warpzone.run.opening import parse_json
from warpzone.run.rotation import drop_after
from warpzone.run.safe import read_state, read_weights
from warpzone.run.shipped import ACTING, FORMAT, KIND, read_description
from warpzone.run.sidecar import CheckpointError, encode, read_sidecar
from warpzone.run.versions import read_sessions
from warpzone.share.checking import checked

Target = Callable[[Mutator, Path], None]
TARGETS: dict[str, Target] = {}
#: Targets that put their folder in order themselves; for all others it has no file.
KEEPING: set[str] = set()

CONFIG = json.loads(TrainConfig().to_json())
GOOD_CONFIG = TrainConfig().to_json().encode()
EXPECTED = {"encoder.weight": torch.zeros(2, 3), "heads.bias": torch.zeros(2)}
METRIC: dict[str, Any] = {
    "update": 3,
    "global_step": 96,
    "seconds": 1.5,
    "timestamp": 1.7e9,
    "entropy": 1.2,
}
METRIC |= {"env_steps_per_sec": 5e3, "clear_rate": 0.5, "time_learn": 0.4, "time_engine": None}
END: dict[str, Any] = {
    "lane": 1,
    "stage": 0,
    "start_delay": 3,
    "episode_return": 2.5,
    "steps": 40,
    "x": 300,
    "y": 90,
}
END |= {"furthest_x": 320, "reason": "death", "global_step": 96, "area_type": 1, "area_index": 2}
EVAL: dict[str, Any] = {
    **END,
    "stage": "1-1",
    "policy": "argmax",
    "cleared": True,
    "seconds": 2.0,
    "time_left": 300,
}
BEAT: dict[str, Any] = {"timestamp": 1.7e9, "phase": "learn", "update": 3, "global_step": 96}
ANSWER: dict[str, Any] = {
    "id": "0" * 32,
    "who": "me",
    "when": 1.0,
    "what": "lr",
    "value": 1e-4,
    "result": "done",
}
STATE: dict[str, Any] = {"doing": "paused", "paused": True, "reason": "", "overrides": {"lr": 1e-4}}
ROWS = {names.METRICS: METRIC, names.EPISODES: END, names.EVALS: EVAL}
ROWS |= {names.HEARTBEAT: BEAT, names.ANSWERS: ANSWER}
HEADER: dict[str, Any] = {"shape": [1, 2, 2, 2], "lanes": [{"lane": 0}], "actions": [[1, 2]]}
HEADER |= {"number": 1}
AREA = AreaPicture(1, 2, 0, np.zeros((208, 640, 3), np.uint8))


def target(function: Target) -> Target:
    TARGETS[function.__name__] = function
    return function


def keeping(function: Target) -> Target:
    """A target most of whose files are the same in every input."""
    KEEPING.add(function.__name__)
    return function


def _put(path: str, content: bytes) -> None:
    """A file with this content; many times as quick as `Path.write_bytes`."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(handle, content)
    finally:
        os.close(handle)


def _checkpoint(folder: Path) -> Checkpoint:
    state = {"counters": {"update": 1}, "moments": torch.ones(3), "names": ["a", None, 1.5]}
    config = TrainConfig(stages="2-3,4-1")
    return Checkpoints(folder).write(Snapshot(config, 32, 1, "normal", EXPECTED, state, {"x": 1}))


class Seeds:
    """Good files, made once."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.checkpoint = _checkpoint(folder)
        self.files = {path.name: path.read_bytes() for path in folder.iterdir()}
        self.stem = self.checkpoint.sidecar.stem
        self.sidecar = json.loads(self.files[f"{self.stem}.json"])
        acting = TrainConfig(size=36, encoder_width=0.125, hidden_size=8)
        network = Agent(model_spec(acting, len(action_table(acting.actions).masks)))
        self.agents = agent_files(network.state_dict())
        values = json.loads(acting.to_json())
        config = {name: values[name] for name in ACTING}
        self.description = {KIND: FORMAT, "name": "one", "config": config}
        self.shipped = read_description("all")
        self.presets = [file.read_bytes() for file in sorted(PRESETS.glob("*.toml"))]
        self.presets += [b'[a]\nb = "c"\nd = 1979-05-27\n']
        self.wheels = [self._wheel(method) for method in (0, 8, 12, 14)]

    @staticmethod
    def _wheel(method: int) -> bytes:
        held = io.BytesIO()
        with zipfile.ZipFile(held, "w", method) as archive:
            archive.writestr(_FOLDER_IN_WHEEL + "super-mario-bros.nes", b"NES\x1a" + bytes(4000))
            archive.writestr(_FOLDER_IN_WHEEL + "super-mario-bros-rectangle.nes", bytes(3000))
        return held.getvalue()


_seeds: list[Seeds] = []


def prepare(folder: Path) -> None:
    _seeds[:] = [Seeds(folder)]


@target
def sidecar(mutator: Mutator, folder: Path) -> None:
    """The side-car of a checkpoint, its own hash right or wrong."""
    good = _seeds[0].sidecar
    draw = mutator.random.random()
    if draw < 0.5:
        changed = mutator.document(good)
        text = encode(changed).encode() if isinstance(changed, dict) else b"[]"
    elif draw < 0.75:
        text = mutator.text({**good, "version": 1})
    else:
        text = mutator.content([_seeds[0].files[f"{_seeds[0].stem}.json"]])
    path = folder / f"{_seeds[0].stem}.json"
    path.write_bytes(text)
    with contextlib.suppress(CheckpointError):
        found = read_sidecar(path)
        assert found.timestamp.isprintable()
        assert found.stem.isprintable()
        with contextlib.suppress(CheckpointError):
            found.train_config()
    backfill(path, rollout_steps=64, dry_run=True, backup=False)


#: The good files of the last input, by the identity that they had when they were written.
_unharmed: dict[str, tuple[int, int, int]] = {}


def _identity(path: str) -> tuple[int, int, int] | None:
    """What changes if anybody writes or replaces the file."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _damage(folder: Path, files: dict[str, bytes], name: str, content: bytes) -> None:
    """All files, good but for one. Those that are there and untouched are not written again."""
    for other in os.listdir(folder):
        if other not in files:
            raise AssertionError(f"a reader has written {other}")
    for other, good in files.items():
        path = f"{folder}/{other}"
        if other == name:
            _put(path, content)
            _unharmed.pop(path, None)
        elif path not in _unharmed or _unharmed[path] != _identity(path):
            _put(path, good)
            _unharmed[path] = cast(tuple[int, int, int], _identity(path))


@keeping
@target
def checkpoint(mutator: Mutator, folder: Path) -> None:
    """All files of a checkpoint, one of them damaged."""
    stem, files = _seeds[0].stem, _seeds[0].files
    damaged = mutator.random.choice(list(files))
    _damage(folder, files, damaged, mutator.content([files[damaged]]))
    checkpoints = Checkpoints(folder)
    checkpoints.prune(last=1, every=0, best=0, newest=9, dry_run=True)
    with contextlib.suppress(CheckpointError):
        found = checkpoints.open(stem)
        found.verify()
    with contextlib.suppress(ConfigError):
        find_weights(folder)
    with contextlib.suppress(CheckpointError, OSError):
        read_weights(folder / f"{stem}.safetensors", EXPECTED)
    with contextlib.suppress(CheckpointError):
        read_state(folder / f"{stem}.state.pt")


@target
def agent(mutator: Mutator, folder: Path) -> None:
    """An agent as somebody shares it: weights, packed or not, and beside them a description or
    nothing."""
    seeds, draw = _seeds[0], mutator.random
    kind = draw.randrange(4)
    good = draw.choice(seeds.agents)
    content = good.content
    if kind < 2 and draw.random() < 0.4:
        content = good.twisted(draw)
    elif kind == 0:
        content = mutator.content([one.content for one in seeds.agents])
    elif kind == 1:
        content = good.headed(mutator.text(good.header))
    _put(f"{folder}/one.safetensors", content)
    if kind > 1 or draw.random() < 0.5:
        _put(f"{folder}/one.json", mutator.text(seeds.description))
    with contextlib.suppress(ConfigError, OSError):
        find_agent(folder / "one.safetensors")


@target
def run_folder(mutator: Mutator, folder: Path) -> None:
    """Everything that the dashboard reads of a run, and what it sends to browsers."""
    run = _run(mutator, folder)
    data = RunData(run)
    for _ in range(2):
        data.refresh()
    catalogue = Catalogue(folder)
    listing = catalogue.scan()
    catalogue.adopt(listing)
    sent: list[Any] = [listing.rows, data.heartbeat, data.metrics.last(), data.reader.state()]
    for what in ("names", "config", "stages", "ends", "episodes", "log", "checkpoints", "answers"):
        values = {"type": "part", "request": 1, "run": "0" * 16, "what": what}
        sent.append(_locked_part(data, Part.model_validate(values), catalogue))
    wall = WallFile(run)
    wall.read()
    # As strict as a browser.
    json.dumps(sent, allow_nan=False)
    for name in data.metrics.names():
        data.metrics.curve(name, "global_step", 1.0, 50.0, 20)
    control.take(run)
    read_sessions(run)


@target
def report(mutator: Mutator, folder: Path) -> None:
    """A report of a run, and the events of its maps."""
    run = _run(mutator, folder)
    with contextlib.suppress(OSError, ConfigError):
        page = make_page([read_run(run)], folder / "page.html", rom=None, embed=100_000)
        (folder / "page.html").write_text(page)
    events: list[Event] = []
    for source in (names.EVALS, names.EPISODES):
        events += read_events(run, "1-1", source)
    draw_heat(AREA, events, first=True)


@target
def resume(mutator: Mutator, folder: Path) -> None:
    """The files of a run that goes on from a checkpoint."""
    run = _run(mutator, folder)
    with contextlib.suppress(ConfigError):
        load_config(run)
    for name in (names.METRICS, names.EPISODES, names.EVALS):
        drop_after(JsonLines(run), name, 64)


def _run(mutator: Mutator, folder: Path) -> Path:
    run = folder / "run"
    place = str(run)
    for below in ("", names.CONTROL, names.LOGS, names.CHECKPOINTS, names.WALL):
        # Folders of the last input may be there, without files.
        with contextlib.suppress(FileExistsError):
            os.mkdir(f"{place}/{below}")
    # A damaged configuration keeps many readers from the rest.
    text = mutator.text(CONFIG) if mutator.random.random() < 0.5 else GOOD_CONFIG
    _put(f"{place}/{names.CONFIG}", text)
    for name, row in ROWS.items():
        _put(f"{place}/{name}", mutator.lines([row]))
    # With a time of its own the same number would be another input every second.
    packed = gzip.compress(mutator.lines([METRIC]), 1, mtime=1)
    _put(f"{place}/metrics-0001.jsonl.gz", mutator.content([packed]))
    _put(f"{place}/{names.CONTROL}/{names.STATE}", mutator.text(STATE))
    _put(f"{place}/{names.CONTROL}/{'0' * 32}.json", mutator.text(ANSWER))
    _put(f"{place}/{names.LOGS}/{names.LOG}", mutator.content([b"[train] one\n[eval] two\n"]))
    _put(f"{place}/{names.CHECKPOINTS}/{_seeds[0].stem}.json", mutator.text(_seeds[0].sidecar))
    _put(f"{place}/{names.VERSIONS}", mutator.text({"sessions": [{"python": "3.12"}]}))
    _put(f"{place}/{names.EVALUATION}", mutator.text({"episodes": [EVAL, EVAL]}))
    _put(f"{place}/{names.WALL}/{names.WALL_PICTURES}", mutator.text(HEADER) + b"\n" + bytes(8))
    # Drawn last: everything else of an input stays what it was.
    if mutator.random.random() < 0.01:
        line = mutator.random.choice((b"{", b"{}", b'{"a":', mutator.text(METRIC)[:20]))
        many = gzip.compress(1_000_000 * (line + b"\n"), 1, mtime=1)
        _put(f"{place}/metrics-0002.jsonl.gz", many)
    return run


@target
def pulled(mutator: Mutator, folder: Path) -> None:
    """The description of an agent on a hub: what is kept of it, its card, and what is listed."""
    with contextlib.suppress(ValueError):
        about = checked(parse_json(mutator.text(_seeds[0].shipped)))
        text = card.render({**about, "name": "one"}) + as_text(about)
        # Nothing that steers a terminal has passed; a lone surrogate could not be printed at all.
        if not all(line.isprintable() for line in text.splitlines()):
            raise AssertionError("a card has characters that cannot be printed")


@target
def preset(mutator: Mutator, folder: Path) -> None:
    """A preset, as TOML."""
    path = folder / "preset.toml"
    path.write_bytes(mutator.content(_seeds[0].presets))
    with contextlib.suppress(ConfigError):
        preset_config(str(path))


@target
def movie(mutator: Mutator, folder: Path) -> None:
    """A movie, FM2 or plain."""
    fm2 = b"version 3\nport0 1\nport1 1\nromChecksum base64:AAAA\n|0|R.....BA|........||\n|1||||\n"
    plain = b"# masks\n0\n0x81\n255\n"
    with contextlib.suppress(MovieError):
        parse_movie(mutator.content([fm2, plain]))


@target
def wheel(mutator: Mutator, folder: Path) -> None:
    """A wheel, or a ROM."""
    path = folder / "file.whl"
    path.write_bytes(mutator.content([*_seeds[0].wheels, b"NES\x1a\x02\x01" + bytes(40_970)]))
    for variant in ("eu", "world", None):
        with contextlib.suppress(RomError):
            _install_from(path, variant)


@target
def message(mutator: Mutator, folder: Path) -> None:
    """What a browser sends."""
    seeds: list[Any] = [
        {"type": "hello", "token": "x"},
        {"type": "watch", "runs": ["0" * 16], "wall": True},
        {"type": "curves", "request": 1, "runs": ["0" * 16], "names": ["entropy"], "low": 1.0},
        {"type": "do", "request": 1, "run": "0" * 16, "what": "lr", "value": 1e-4, "name": "me"},
    ]
    with contextlib.suppress(ValueError):
        parse(mutator.text(mutator.random.choice(seeds)).decode(errors="replace"))
