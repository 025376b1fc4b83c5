"""The network as others call it: named tensors in, named tensors out, one step of any number of
lanes. Inputs that a network does not look at are left out."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from warpzone.model.agent import Agent

#: What is carried from step to step, by memory; networks of the user's own may carry other parts.
STATES = {"gru": ("hidden",), "lstm": ("hidden", "carried"), "gtrxl": ("memory", "filled")}
#: Before the name of a part of the memory: the same after the step.
NEW = "new_"


class Playing(nn.Module):
    """`Agent.act` with the inputs that the network needs, in the order of `inputs`."""

    def __init__(self, agent: Agent) -> None:
        super().__init__()
        self.agent = agent
        state = agent.initial_state(1)
        known = STATES.get(agent.spec.memory, ())
        #: Parts of the memory.
        self.state = (
            known if len(known) == len(state) else tuple(f"state_{i}" for i in range(len(state)))
        )
        # A network of the user's own may look at anything.
        own = type(agent) is not Agent
        self.sees_previous = own or agent.previous is not None
        self.sees_starts = self.sees_previous or bool(state)
        #: Names of inputs and outputs.
        self.inputs = (
            "obs",
            *(("previous_action",) if self.sees_previous else ()),
            *(("starts",) if self.sees_starts else ()),
            *self.state,
        )
        self.outputs = ("logits", "value", *(NEW + name for name in self.state))

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Logits, value, and the memory after the step."""
        given = dict(zip(self.inputs, tensors, strict=True))
        obs = given["obs"]
        lanes = obs.shape[0]
        previous = given.get("previous_action", torch.zeros(lanes, dtype=torch.int64))
        starts = given.get("starts", torch.zeros(lanes, dtype=torch.bool))
        state = tuple(given[name] for name in self.state)
        output = self.agent.act(obs, previous, state, starts)
        return (output.logits, output.value, *output.state)

    def first(self, lanes: int) -> dict[str, Tensor]:
        """Inputs of an episode's first step, with black pictures."""
        spec = self.agent.spec
        shape = (lanes, spec.stack, spec.height * spec.colors, spec.width)
        found = {
            "obs": torch.zeros(shape, dtype=torch.uint8),
            "previous_action": torch.zeros(lanes, dtype=torch.int64),
            "starts": torch.ones(lanes, dtype=torch.bool),
            **dict(zip(self.state, self.agent.initial_state(lanes), strict=True)),
        }
        return {name: found[name] for name in self.inputs}
