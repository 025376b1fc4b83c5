"""What is fuzzed: every parser of files that a user may get from somebody else. A target makes an
input out of good ones and gives it to everybody who reads such files; the errors that the parser
documents are passed over, and everything else is a bug."""

from __future__ import annotations

import contextlib
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
from run_files import MADE, make_run, put
from search_files import (
    POPULATION,
    SCRIPTS,
    SPACES,
    STABILITY,
    SWEEP,
    WORKER_LOG,
)

from warpzone.cli.flags import preset_config
from warpzone.config import PRESETS, ConfigError, TrainConfig
from warpzone.dashboard.catalogue import Catalogue
from warpzone.dashboard.exposition import Exposition
from warpzone.dashboard.hub import _locked_part
from warpzone.dashboard.messages import Part, parse
from warpzone.dashboard.rundata import RunData
from warpzone.dashboard.wall_file import WallFile
from warpzone.env.actions import action_table
from warpzone.env.backends.events import EVENTS
from warpzone.env.script import parse_start
from warpzone.eval import card
from warpzone.eval.description import as_text
from warpzone.eval.weights import find_agent
from warpzone.maps.events import Event, read_events, read_restarts
from warpzone.maps.flight import AreaPicture
from warpzone.maps.heat import draw_heat
from warpzone.model.agent import Agent
from warpzone.model.spec import model_spec
from warpzone.play.movie import MovieError, parse_movie
from warpzone.report.data import read_run
from warpzone.report.page import make_page
from warpzone.report.search import search_sections
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
from warpzone.search.space import read_space
from warpzone.share.checking import checked
from warpzone.stability.digest import describe, digest
from warpzone.stability.report import read, summary
from warpzone.teach.ways import read_ways

Target = Callable[[Mutator, Path], None]
TARGETS: dict[str, Target] = {}
#: Inputs of a target that take as long as one of a whole run's folder, where that is more than one.
CHEAP = {"sidecar": 8, "checkpoint": 2, "agent": 2, "resume": 2, "pulled": 30, "preset": 24}
CHEAP |= {"space": 10, "ways": 4, "search": 6, "diagnostics": 14, "script": 35, "wheel": 15}
CHEAP |= {"movie": 150, "message": 150}
#: Targets that put their folder in order themselves; for all others it has no file.
KEEPING: set[str] = set()

EXPECTED = {"encoder.weight": torch.zeros(2, 3), "heads.bias": torch.zeros(2)}
PARTS = ("names", "config", "stages", "ends", "episodes", "log", "checkpoints", "answers", "events")
AREA = AreaPicture(1, 2, 0, np.zeros((208, 640, 3), np.uint8))


def target(function: Target) -> Target:
    TARGETS[function.__name__] = function
    return function


def keeping(function: Target) -> Target:
    """A target most of whose files are the same in every input."""
    KEEPING.add(function.__name__)
    return function


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
            put(path, content)
            _unharmed.pop(path, None)
        elif path not in _unharmed or _unharmed[path] != _identity(path):
            put(path, good)
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
    put(f"{folder}/one.safetensors", content)
    if kind > 1 or draw.random() < 0.5:
        put(f"{folder}/one.json", mutator.text(seeds.description))
    with contextlib.suppress(ConfigError, OSError):
        find_agent(folder / "one.safetensors")


@target
def run_folder(mutator: Mutator, folder: Path) -> None:
    """Everything that the dashboard reads of a run, and what it sends to browsers."""
    run = make_run(mutator, folder, _seeds[0].stem, _seeds[0].sidecar)
    data = RunData(run)
    for _ in range(2):
        data.refresh()
    catalogue = Catalogue(folder)
    listing = catalogue.scan()
    catalogue.adopt(listing)
    sent: list[Any] = [listing.rows, data.heartbeat, data.metrics.last(), data.reader.state()]
    for what in PARTS:
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
    told = Exposition()
    told.add(run, catalogue.config(run))
    told.text()


@target
def report(mutator: Mutator, folder: Path) -> None:
    """A report of a run, and the events of its maps."""
    run = make_run(mutator, folder, _seeds[0].stem, _seeds[0].sidecar)
    with contextlib.suppress(OSError, ConfigError):
        page = make_page([read_run(run)], folder / "page.html", rom=None, embed=100_000)
        (folder / "page.html").write_text(page)
    events: list[Event] = []
    for source in (names.EVALS, names.EPISODES):
        events += read_events(run, "1-1", source)
    draw_heat(AREA, events, first=True)
    for restart in read_restarts(run, "1-1"):
        assert restart.share is None or 0.0 <= restart.share <= 1.0


@target
def resume(mutator: Mutator, folder: Path) -> None:
    """The files of a run that goes on from a checkpoint."""
    run = make_run(mutator, folder, _seeds[0].stem, _seeds[0].sidecar)
    with contextlib.suppress(ConfigError):
        load_config(run)
    for name in (names.METRICS, names.EPISODES, names.EVALS):
        drop_after(JsonLines(run), name, 64)


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
def space(mutator: Mutator, folder: Path) -> None:
    """A search space, as TOML."""
    put(f"{folder}/space.toml", mutator.content(SPACES))
    with contextlib.suppress(ConfigError, OSError):
        read_space(folder / "space.toml").identity()


@target
def ways(mutator: Mutator, folder: Path) -> None:
    """What a course found, for a later one."""
    rows = [{"stage": "8-4", "start_delay": 7, "actions": [1, 5, 0]}, {"stage": "1-1"}]
    config = TrainConfig()
    put(f"{folder}/{names.CONFIG}", mutator.text(json.loads(config.to_json())))
    put(f"{folder}/{names.WAYS}", mutator.lines(rows))
    with contextlib.suppress(ValueError, OSError):
        read_ways(folder, config, [31], 12)


@target
def search(mutator: Mutator, folder: Path) -> None:
    """The reports of a sweep and of a population."""
    for name, good in ((names.SWEEP, SWEEP), (names.POPULATION, POPULATION)):
        put(f"{folder}/{name}", mutator.text(good))
        with contextlib.suppress(ConfigError, OSError):
            _, parts = search_sections(folder)
            "".join(parts).encode()


@target
def diagnostics(mutator: Mutator, folder: Path) -> None:
    """What trials of back-ends leave: their report, events and the files of workers."""
    draw = mutator.random
    put(f"{folder}/report.jsonl", mutator.lines([STABILITY]))
    rows: list[dict[str, Any]] = []
    with contextlib.suppress(ValueError):
        rows = read(folder / "report.jsonl")
    said = summary(rows)
    if draw.random() < 0.7:
        put(f"{folder}/{EVENTS}", mutator.lines([MADE, {**MADE, "kind": "lost"}]))
    put(f"{folder}/env_init_idx{draw.randrange(3)}_pid7.log", mutator.content([WORKER_LOG]))
    found = digest(folder)
    # As strict as a browser.
    json.dumps(found, allow_nan=False)
    said += describe(found)
    if not all(line.isprintable() for line in said.splitlines()):
        raise AssertionError("a summary has characters that cannot be printed")


@target
def script(mutator: Mutator, folder: Path) -> None:
    """Buttons that an episode starts with, in a file or as text."""
    content = mutator.content(SCRIPTS)
    path = f"{folder}/script.txt"
    put(path, content)
    for text in (path, content.decode(errors="replace")):
        with contextlib.suppress(ValueError):
            parse_start(text)


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
