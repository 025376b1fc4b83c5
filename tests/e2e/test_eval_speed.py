"""How long an evaluation of everything takes."""

import time

import pytest
import torch

from warpzone import rom
from warpzone.config import TrainConfig
from warpzone.env.actions import action_table
from warpzone.eval.evaluate import evaluate
from warpzone.model.agent import Agent
from warpzone.model.spec import model_spec
from warpzone.rom import native


@pytest.mark.perf
def test_all_stages_in_two_minutes() -> None:
    """32 stages x 31 start delays x 2 policies with the default network, on two idle cores."""
    config = TrainConfig(stages="all")
    torch.manual_seed(0)
    agent = Agent(model_spec(config, len(action_table(config.actions).masks)))
    with torch.no_grad():
        # A policy that goes right most of the time, as trained ones do.
        agent.heads.policy.bias[1:5] += 2.0
    image = rom.find()
    began = time.perf_counter()
    outcomes = evaluate(agent, config, image, native.load(image))
    seconds = time.perf_counter() - began
    assert len(outcomes) == 32 * 31 * 2
    assert seconds < 120, f"{sum(o.steps for o in outcomes):,} steps took {seconds:.0f} s"
