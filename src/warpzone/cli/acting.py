"""Shared by the commands that play a trained agent."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warpzone import _engine
    from warpzone.eval.performance import Performance
    from warpzone.eval.weights import Found
    from warpzone.media.pictures import Image

#: Default number of frames in a step.
FRAMES_PER_STEP = 4
#: What `agent` is, for the commands' help.
AGENT = "a shipped or pulled agent (see `warpzone agents`), a run, a .safetensors file, or `latest`"
#: What `--network` is, for the commands' help.
NETWORK = "the network's code, where it is not what the run recorded"


def ready(args: argparse.Namespace) -> tuple[Found, bytes, _engine.NativeProgram | None]:
    """The agent that the arguments name, where it is to run, and the game it plays."""
    from warpzone import rom

    # Before the agent, which takes PyTorch to load.
    image = rom.find(args.rom) if args.rom else None
    found = named(args)
    from warpzone.rom import native

    found.agent.to(_device(args.device))
    image = rom.find(found.config.rom) if image is None else image
    return found, image, native.load(image)


def named(args: argparse.Namespace) -> Found:
    """The agent that the arguments name; what is to be known about it is said."""
    if importlib.util.find_spec("torch") is None:
        raise OSError("an agent needs PyTorch; install it with: pip install 'warpzone[train]'")
    from warpzone.eval.weights import find_agent
    from warpzone.run.shipped import agent_names, has_name, shipped_names

    found = find_agent(args.agent, args.runs_dir, args.network or "")
    if args.agent in agent_names() and not has_name(found.path):
        kind = "shipped" if args.agent in shipped_names() else "pulled"
        print(
            f"warpzone {args.command}: {args.agent} is {found.path} here; the agent of that name "
            f"that is {kind} is {kind}:{args.agent}",
            file=sys.stderr,
        )
    if found.guessed:
        print(
            f"warpzone {args.command}: {found.path} has no configuration beside it; its network "
            f"fits {found.config.size}x{found.config.size} pictures and the action set "
            f"{found.config.actions}, all other settings use their defaults",
            file=sys.stderr,
        )
    return found


def _device(name: str) -> str:
    import torch

    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ValueError("--device cuda: PyTorch sees no CUDA device here; use --device cpu")
    return "cuda" if available and name != "cpu" else "cpu"


def performance(args: argparse.Namespace) -> tuple[Performance, Iterator[Image]]:
    """One episode to be watched: the screen, and in a file also the network's outputs."""
    from warpzone.cli import beginning
    from warpzone.env.stages import LONGEST_DELAY, parse_stages
    from warpzone.eval.cases import Case

    start = beginning.start(args)
    if not 0 <= args.delay <= LONGEST_DELAY:
        raise ValueError(f"--delay must be in 0..{LONGEST_DELAY}, and is {args.delay}")
    if args.stage and len(parse_stages(args.stage)) > 1:
        raise ValueError(f"--stage {args.stage} is not one stage")
    found, image, program = ready(args)
    from warpzone.env.actions import action_table
    from warpzone.eval.overlay import PARTS, Panel
    from warpzone.eval.performance import Performance
    from warpzone.eval.video_frames import single

    stages = parse_stages(args.stage or found.config.stages)
    if args.start_halfway and not stages:
        beginning.refuse_game()
    # An agent of the whole game plays the whole game.
    case = Case(stages[0] if stages else -1, args.policy, args.delay)
    played = Performance(found.agent, found.config, image, program, [case], seed=args.seed, **start)
    frames = played.frames()
    if args.steps:
        frames = islice(frames, args.steps * FRAMES_PER_STEP)
    if args.out is None:
        return played, (shot.screen for (shot,) in frames)
    panel = Panel(action_table(found.config.actions).names, PARTS, args.scale or 3)
    return played, single(frames, panel)


def has_window() -> bool:
    """Whether a window can be opened here."""
    shown = sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    return shown and importlib.util.find_spec("pygame") is not None
