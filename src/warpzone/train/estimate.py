"""Estimates memory, counted on meta tensors, and time, from a short measurement of each part.
Nothing of the run's size is allocated here."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import torch
from torch import Tensor, nn

from warpzone.collect.actor import Actor
from warpzone.collect.store import Store
from warpzone.config import ConfigError, TrainConfig
from warpzone.env.actions import action_table
from warpzone.learn.replaying import replay_spec
from warpzone.model.agent import Agent
from warpzone.model.own import make_agent

META = torch.device("meta")
#: Heap of a lane: machine, history and its place in the pool (measured, rounded up).
LANE_BYTES = 16 << 10
#: AdamW's two moments and the gradient, for each parameter.
COPIES_TO_LEARN = 3
#: Networks beyond this size are not run on meta tensors; their weights dominate.
MOST_TO_BUILD = 1 << 30
#: Tensors count their elements in 63 bits.
MOST_ELEMENTS = 1 << 62


@dataclass(frozen=True)
class Memory:
    """Bytes by purpose."""

    parameters: int
    device: dict[str, int] = field(default_factory=dict)
    host: dict[str, int] = field(default_factory=dict)


def count_memory(config: TrainConfig) -> Memory:
    """Memory of a run on the device and on the host. On a machine without CUDA both are one."""
    _refuse_uncountable(config)
    actions = len(action_table(config.actions).masks)
    with META:
        agent = make_agent(config, actions)
        stores = [Store(config, actions, META)] * (2 if config.overlap_collect else 1)
        actor = Actor(config, agent, config.num_envs // config.groups, META)
    weights = _bytes(agent.parameters())
    parameters = sum(parameter.numel() for parameter in agent.parameters())
    # Averaged weights, and the acting copy.
    copies = 1 + COPIES_TO_LEARN + (config.ema > 0) + config.overlap_collect
    on_host = ("rewards", "terminated", "truncated", "forced", "age")
    tensors = [(name, part) for store in stores for name, part in vars(store).items()]
    frame = prod(config.picture)
    device = {
        "rollouts": _bytes(part for name, part in tensors if name not in on_host),
        "acting": config.groups * _bytes(_tensors(vars(actor).values())),
        "network and optimiser": weights * copies,
        "a minibatch": _activations(config, agent),
    }
    host = {
        "rollouts": _bytes(part for name, part in tensors if name in on_host),
        "lanes": config.num_envs * (LANE_BYTES + 2 * frame),
    }
    if config.actors:
        # In Ray's shared memory, and in the actors themselves.
        waiting = (config.actor_rollouts + 2) * _bytes(part for _, part in tensors)
        host["rollouts of actors"] = waiting
    if config.per:
        device["replay"] = replay_spec(config, agent).memory_bytes
    return Memory(parameters, device, host)


def refuse_impossible(config: TrainConfig, device: torch.device) -> Memory:
    """Counts memory and raises ConfigError if the machine does not have it."""
    memory = count_memory(config)
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        _compare(memory.device, free, "the GPU")
        _compare(memory.host, free_host_memory(), "the host")
    else:
        both = dict(memory.host)
        for name, size in memory.device.items():
            both[name] = both.get(name, 0) + size
        _compare(both, free_host_memory(), "this machine")
    return memory


def _compare(parts: dict[str, int], free: int | None, where: str) -> None:
    need = sum(parts.values())
    if free is None or need <= free:
        return
    largest = max(parts, key=lambda name: parts[name])
    advice = {
        "rollouts": "--num-envs, --rollout-steps or --size",
        "rollouts of actors": "--actor-rollouts, --num-envs or --rollout-steps",
        "lanes": "--num-envs",
        "acting": "--num-envs or --size",
        "a minibatch": "--minibatch",
        "replay": "--per-memory-gb",
    }.get(largest, "--hidden-size or --encoder-width")
    raise ConfigError(
        f"this run needs about {_size(need)} on {where}, most of it for {largest}, and "
        f"{_size(free)} are free there; lower {advice}"
    )


def free_host_memory() -> int | None:
    """Free bytes according to kernel and container; None if unknown."""
    found = []
    info = Path("/proc/meminfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 1024)
    group = Path("/sys/fs/cgroup")
    limit, used = group / "memory.max", group / "memory.current"
    if limit.exists() and used.exists() and (text := limit.read_text().strip()).isdecimal():
        found.append(max(0, int(text) - int(used.read_text())))
    if not found and "SC_PHYS_PAGES" in os.sysconf_names:
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(found, default=None)


def describe(config: TrainConfig) -> str:
    """Memory and time in a few lines; refuses what the machine cannot hold."""
    from warpzone.train.device import choose_device
    from warpzone.train.speed import forecast

    device = choose_device(config)
    memory = refuse_impossible(config, device)
    where = "the GPU" if device.type == "cuda" else "the CPU (no CUDA device is used)"
    lines = [
        f"network: {memory.parameters:,} parameters, on {where}",
        f"memory:  {_list(memory.device)} "
        f"({_size(sum(memory.device.values()))}{' on the GPU' if device.type == 'cuda' else ''})",
        f"         {_list(memory.host)} ({_size(sum(memory.host.values()))} on the host)",
        f"updates: {config.updates:,} of {config.steps_per_update:,} steps",
        f"time:    {forecast(config, device)}",
    ]
    return "\n".join(lines)


# --- counting ----------------------------------------------------------------------------------
def _refuse_uncountable(config: TrainConfig) -> None:
    frames = (config.rollout_steps + config.frame_stack) * config.num_envs * prod(config.picture)
    width = config.hidden_size * max(1.0, config.encoder_width)
    wide = width * max(
        width if config.memory != "none" else 0, max((64, *config.channels)) * prod(config.picture)
    )
    if max(frames, wide * max(1.0, config.encoder_width)) > MOST_ELEMENTS:
        raise ConfigError(
            "this run needs more memory than can be counted; lower --num-envs, --rollout-steps, "
            "--hidden-size or --encoder-width"
        )


def _activations(config: TrainConfig, agent: Agent) -> int:
    """Activations and gradients of a minibatch: those of one step (of one lane, with a memory),
    times their number. Of a huge network, the last layer."""
    if _bytes(agent.parameters()) > MOST_TO_BUILD:
        return config.minibatch * config.hidden_size * 8
    held = 0

    def note(_module: nn.Module, _inputs: object, output: object) -> None:
        nonlocal held
        parts = output if isinstance(output, tuple | list) else (output,)
        held += sum(part.numel() for part in _tensors(parts))

    agent.to_empty(device="cpu")
    spec = agent.spec
    for leaf in agent.modules():
        if not list(leaf.children()):
            leaf.register_forward_hook(note)
    steps = (config.rollout_steps + 1 if config.memory != "none" else 1, 1)
    obs = torch.zeros((*steps, spec.stack, *config.picture), dtype=torch.uint8)
    none = torch.zeros(steps, dtype=torch.int64)
    with torch.no_grad():
        agent(obs, none, agent.initial_state(1), none == 1)
    half = config.amp and config.device != "cpu" and torch.cuda.is_available()
    number = 2 if half else 4
    times = -(-config.minibatch // max(1, steps[0] - 1))
    return times * (obs.numel() * (1 + number) + 2 * held * number)


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(part.numel() * part.element_size() for part in tensors)


def _tensors(values: Iterable[object]) -> list[Tensor]:
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, tuple):
            found += _tensors(value)
    return found


# --- words ---------------------------------------------------------------------------------------
def _list(parts: dict[str, int]) -> str:
    return ", ".join(f"{name} {_size(size)}" for name, size in parts.items())


def _size(size: int) -> str:
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20)):
        if size >= scale:
            return f"{size / scale:,.1f} {unit}"
    return f"{size / 1024:,.0f} KiB"
