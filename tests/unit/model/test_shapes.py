"""The shapes of a network without its memory: right ones, and quickly."""

import subprocess
import sys

import pytest

from warpzone.config import TrainConfig
from warpzone.model.agent import Agent
from warpzone.model.shapes import fits, shapes_of
from warpzone.model.spec import ModelSpec, model_spec

SMALL = TrainConfig(size=36, encoder_width=0.125, hidden_size=16, previous_action=True)
PROGRAM = """
import sys
from warpzone.config import TrainConfig
from warpzone.model.shapes import shapes_of
from warpzone.model.spec import ModelSpec, model_spec
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


def test_a_picture_too_large_for_any_weights_does_not_fit() -> None:
    """A description may say any size: nothing is made for it, not even without memory."""
    shapes = shapes_of(model_spec(SMALL, 5))
    spec = ModelSpec(5, height=1 << 53, width=1 << 53, features=16, width_multiplier=0.125)
    assert not fits(spec, shapes)


@pytest.mark.parametrize("width", [1e308, 1e10])
def test_a_width_that_cannot_be_counted_is_refused(width: float) -> None:
    with pytest.raises(ValueError, match="above 1e"):
        ModelSpec(5, width_multiplier=width)


def test_nothing_that_takes_seconds_is_imported() -> None:
    """Whoever loads an agent would wait for it: PyTorch's compiler and what it needs."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "gru"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
