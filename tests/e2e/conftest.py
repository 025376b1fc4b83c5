"""The stand-in for a model hub, which several files of tests talk to."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_agents import small_run


@pytest.fixture(scope="session")
def running_hub() -> Iterator[Any]:
    pytest.importorskip("huggingface_hub")
    from hub_server import serving

    with serving() as hub:
        yield hub


@pytest.fixture
def hub(running_hub: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """An empty hub, a run `small`, and no agent that was pulled before."""
    from hub_server import point_at

    running_hub.forget()
    monkeypatch.setenv("WARPZONE_DATA", str(tmp_path / "data"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    point_at(monkeypatch, running_hub.url)
    small_run(Path("runs/small"), memory="gru", stages="1-1..1-2")
    return running_hub
