"""The shapes of a network without its memory: right ones, and quickly."""

import subprocess
import sys

import pytest

from warpzone.config import TrainConfig
from warpzone.model.agent import Agent
from warpzone.model.shapes import fits, shapes_of
from warpzone.model.spec import model_spec

SMALL = TrainConfig(size=36, encoder_width=0.125, hidden_size=16, previous_action=True)
PROGRAM = """
import sys
from warpzone.config import TrainConfig
from warpzone.model.shapes import shapes_of
from warpzone.model.spec import model_spec
shapes_of(model_spec(TrainConfig(memory=sys.argv[1], previous_action=True, noisy=True), 5))
print(sorted({"sympy", "torch._dynamo"} & set(sys.modules)))
"""


@pytest.mark.parametrize("memory", ["none", "gru", "lstm", "gtrxl"])
@pytest.mark.parametrize("encoder", ["nature", "impala"])
@pytest.mark.parametrize("noisy", [True, False])
def test_shapes_are_those_of_the_network(memory: str, encoder: str, noisy: bool) -> None:
    config = SMALL.replace(memory=memory, encoder=encoder, noisy=noisy)
    spec = model_spec(config, 5)
    made = {name: tuple(value.shape) for name, value in Agent(spec).state_dict().items()}
    assert shapes_of(spec) == made
    assert fits(spec, made)
    made.pop(next(iter(made)))
    assert not fits(spec, made)


def test_nothing_that_takes_seconds_is_imported() -> None:
    """Whoever loads an agent would wait for it: PyTorch's compiler and what it needs."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "gru"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
