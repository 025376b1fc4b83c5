"""The overlapped driver on a GPU, without one: what it waits for and when it begins to overlap."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from warpzone.train.drivers import Overlapped


def run_on(device: str, *, graphs: bool, said: list[str]) -> Any:
    def play(version: int) -> str:
        said.append(f"play {version}")
        return f"rollout of {version}"

    collector = SimpleNamespace(play=play, prepare=lambda step: said.append(f"prepare {step}"))
    policies = SimpleNamespace(
        hand_over=lambda: said.append("hand over"), take_noise=lambda: said.append("noise")
    )
    return SimpleNamespace(
        device=torch.device(device),
        config=SimpleNamespace(graphs=graphs, steps_per_update=10),
        global_update=5,
        global_step=50,
        collector=collector,
        policies=policies,
        evaluator=SimpleNamespace(due=lambda step: False),
        saver=SimpleNamespace(due=lambda update: False),
        rest_wanted=False,
        done=lambda ahead=0: False,
    )


@pytest.mark.parametrize(
    ("device", "graphs", "alone"), [("cuda", True, 2), ("cuda", False, 0), ("cpu", False, 0)]
)
def test_nothing_overlaps_while_graphs_are_recorded(
    device: str, graphs: bool, alone: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The learner records one graph for each of the collector's two stores."""
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    run = run_on(device, graphs=graphs, said=[])
    driver = Overlapped(run)
    with ThreadPoolExecutor(1) as thread:
        for update in range(alone):
            assert str(driver._take(thread)) == f"rollout of {5 + update}"
            assert not driver.ahead
            run.global_update += 1
        assert str(driver._take(thread)) == f"rollout of {5 + alone}"
        assert driver.ahead
        run.global_update += 1
        # Played before this update was learned from.
        assert str(driver._take(thread)) == f"rollout of {5 + alone}"


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_the_collectors_stream_sees_complete_weights(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: said.append("synchronize"))
    driver = Overlapped(run_on(device, graphs=False, said=said))
    assert driver.hand_over() == 5
    assert said == ["hand over", "prepare 50"] + ["synchronize"] * (device == "cuda")
