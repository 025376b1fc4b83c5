"""Back-ends by their names: what is tried before workers start."""

from types import SimpleNamespace
from typing import Any

import pytest

from warpzone.env.backends import select


@pytest.mark.parametrize(("every_stage", "tried"), [(False, [1]), (True, [1, 2, 5])])
def test_one_stage_is_tried_beforehand_or_each_once(
    every_stage: bool, tried: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def machine(_spec: Any, stage: int, _log: Any) -> Any:
        return SimpleNamespace(
            start=lambda started: said.append(f"{stage} starts {started}"),
            close=lambda: said.append(f"{stage} closes"),
        )

    monkeypatch.setattr(select, "check_installed", lambda *_: None)
    monkeypatch.setattr(select, "_machine", machine)
    spec: Any = SimpleNamespace(backend=select.NES_PY, digest="", stages=[(5, 1), (2,), (1,)])
    select.prewarm(spec, every_stage)
    assert said == [text for n in tried for text in (f"{n} starts {n}", f"{n} closes")]
