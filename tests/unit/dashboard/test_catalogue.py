"""The list of runs, whatever their folders hold."""

import asyncio
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from dashboard_server import write_rows

from warpzone.dashboard.access import Access
from warpzone.dashboard.app import make_app
from warpzone.dashboard.catalogue import Catalogue
from warpzone.dashboard.hub import Hub
from warpzone.dashboard.messages import Part
from warpzone.dashboard.rundata import MOST_EVENTS
from warpzone.dashboard.wall_file import WallFile

DEEP = "[" * 12_000


def test_nonsense_in_one_run_hides_no_other(tmp_path: Path) -> None:
    for name in ("good", "deep"):
        (tmp_path / name / "control").mkdir(parents=True)
        (tmp_path / name / "config.json").write_text('{"stages": "1-1"}')
    (tmp_path / "good" / "metrics.jsonl").write_text('{"update": 1, "global_step": 5}\n')
    (tmp_path / "deep" / "metrics.jsonl").write_text(DEEP + "\n")
    (tmp_path / "deep" / "control" / "state.json").write_text(DEEP)
    rows = {row["name"]: row["step"] for row in Catalogue(tmp_path).scan().rows}
    assert rows == {"good": 5, "deep": None}


def test_a_page_is_told_what_keeps_a_run_from_learning(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    write_rows(tmp_path / "metrics.jsonl", [{"update": 7, "forced_share": 1.0}])
    beats = [{"update": 6, "message": "hint: all were forced"}, {"update": 7, "message": ""}]
    write_rows(tmp_path / "heartbeat.jsonl", beats)
    alerts = [
        {"timestamp": float(n), "kind": "nan", "text": str(n)} for n in range(MOST_EVENTS + 5)
    ]
    write_rows(tmp_path / "alerts.jsonl", [*alerts, {"kind": "disk", "text": "x" * 10_000}])
    write_rows(tmp_path / "env.jsonl", [{"timestamp": 0.0, "kind": "ready", "text": "env 1/1"}])
    catalogue = Catalogue(tmp_path)
    hub = Hub(catalogue)

    async def look() -> tuple[dict[str, Any], dict[str, Any] | None]:
        catalogue.adopt(catalogue.scan())
        (run,) = catalogue.paths
        await hub.refresh({run})
        news: dict[str, Any] = (await hub.news((run,)))["watched"][0]
        return news, await hub.part(Part(type="part", request=1, run=run, what="events", after=0))

    with ThreadPoolExecutor(1) as other:
        watched, events = other.submit(lambda: asyncio.run(look())).result()
    assert watched["hint"] == {"text": "hint: all were forced", "update": 6}
    assert watched["last"]["forced_share"] == 1.0
    # The newest ones, and no text that is too long.
    assert events is not None
    assert [row.get("text") for row in events["events"]][-2:] == [str(MOST_EVENTS + 4), None]
    assert len(events["events"]) == MOST_EVENTS + 1
    assert events["events"][0]["kind"] == "ready"
    assert watched["alert"] == {"kind": "disk"}
    assert watched["versions"]["events"] == 2


def test_a_wall_of_nonsense_is_no_wall(tmp_path: Path) -> None:
    (tmp_path / "wall").mkdir()
    (tmp_path / "wall" / "latest.bin").write_text(DEEP + "\n")
    wall = WallFile(tmp_path)
    wall.read()
    assert wall.message == b""


def test_a_server_that_cannot_read_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would go on to show what was, and look well."""
    raised: list[int] = []

    async def fail(_: Hub) -> None:
        raise RuntimeError("lost")

    async def start() -> None:
        said = asyncio.Queue[str]()
        app = make_app(tmp_path, Access("127.0.0.1", control=False, token="t" * 20))

        async def receive() -> dict[str, str]:
            return {"type": f"lifespan.{await said.get()}"}

        async def send(_: object) -> None:
            await asyncio.sleep(0)

        said.put_nowait("startup")
        running = asyncio.ensure_future(app({"type": "lifespan"}, receive, send))
        while not raised:
            await asyncio.sleep(0.01)
        said.put_nowait("shutdown")
        await running

    monkeypatch.setattr(Hub, "work", fail)
    monkeypatch.setattr(signal, "raise_signal", raised.append)
    # In a thread: where browsers are tested too, this one has a loop already.
    with ThreadPoolExecutor(1) as other:
        other.submit(lambda: asyncio.run(asyncio.wait_for(start(), 60))).result()
    assert raised == [signal.SIGTERM]
