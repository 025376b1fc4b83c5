"""The agent of a configuration, whose network may be the user's own."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from torch import nn

from warpzone.config import ConfigError, TrainConfig
from warpzone.config.outside import load_plugin
from warpzone.model.agent import Agent
from warpzone.model.spec import ModelSpec, model_spec


def make_agent(config: TrainConfig, actions: int) -> Agent:
    """A new agent for so many actions. With `--network` its class makes the encoder, or, if it is
    a subclass of `Agent`, all of it."""
    spec = model_spec(config, actions)
    if not config.network:
        return Agent(spec)
    name = config.network
    found = load_plugin("network", name, config)
    if not (isinstance(found, type) and issubclass(found, nn.Module)):
        raise ConfigError(f"the network {name} is no class of torch.nn.Module")
    wanted = torch.get_default_device()
    try:
        # Code of others need not work on meta tensors, which memory is counted on.
        with torch.device("cpu") if wanted.type == "meta" else nullcontext():
            agent = found(spec) if issubclass(found, Agent) else Agent(spec, encoder=found(spec))
            problem = _problem(agent, spec)
    except (TypeError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"the network {name} does not work: {reason}") from error
    if problem:
        raise ConfigError(f"the network {name} {problem}")
    return agent.to(wanted)


@torch.no_grad()
def _problem(agent: Agent, spec: ModelSpec) -> str:
    """Shows the network two empty observations; what is wrong with its answer, or nothing."""
    batch = 2
    obs = torch.zeros((batch, spec.stack, spec.height * spec.colors, spec.width), dtype=torch.uint8)
    nothing = torch.zeros(batch, dtype=torch.int64)
    if agent.encoder is not None and type(agent) is Agent:
        planes = obs.reshape(batch, spec.planes, spec.height, spec.width)
        features = agent.encoder(planes)
        if tuple(features.shape) != (batch, spec.scaled_features):
            return (
                f"must turn uint8 {list(planes.shape)} into {[batch, spec.scaled_features]} "
                f"features, and makes {list(features.shape)}"
            )
    output = agent.act(obs, nothing, agent.initial_state(batch), nothing == 0)
    if tuple(output.logits.shape) != (batch, spec.actions) or output.value.shape != (batch,):
        return f"must give {spec.actions} logits and one value for each observation"
    return ""
