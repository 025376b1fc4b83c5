"""`warpzone teach`: teaches an agent stages that it fails, without a GPU."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from warpzone.cli.acting import AGENT
from warpzone.cli.counts import positive
from warpzone.env.options import POWERS

if TYPE_CHECKING:
    from warpzone.teach.course import Plan


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "teach",
        help="teach an agent what it fails at: trials find episodes, its memory imitates them",
        description="Plays an agent from many start delays. Where it fails, trials look for a "
        "detour after which it reaches the flag; then its memory and heads imitate the detours "
        "and keep the rest of what it does. The encoder stays as it is, so two cores are enough. "
        "The result is a run like those of `warpzone train`.",
    )
    parser.add_argument("agent", help=AGENT)
    parser.add_argument("--stages", help="1-1, 1-1..2-4, all (default: what it was trained on)")
    parser.add_argument(
        "--keep",
        metavar="STAGES",
        help="stages in which what it clears is kept, and nothing more is tried (none)",
    )
    parser.add_argument("--rounds", type=positive, default=10, metavar="N", help="(default 10)")
    parser.add_argument(
        "--episodes",
        type=positive,
        default=16,
        metavar="N",
        help="start delays for each stage and round, 8 times as many in the first one and up to 4 "
        "times where it fails (16)",
    )
    parser.add_argument(
        "--start-power",
        choices=POWERS,
        default="small",
        help="what Mario begins these as, as in games; any draws one of the three (small)",
    )
    parser.add_argument(
        "--trial-steps",
        type=positive,
        default=6_000,
        metavar="N",
        help="steps of trials for each start that it fails (6000)",
    )
    parser.add_argument(
        "--patience",
        type=positive,
        default=60,
        metavar="N",
        help="how many times as many the first four starts get of a stage of which nothing is "
        "known (60)",
    )
    parser.add_argument(
        "--search-steps",
        type=int,
        default=10_000_000,
        metavar="N",
        help="steps of a search without the network where trials find nothing; 0 = none (10000000)",
    )
    parser.add_argument(
        "--games",
        type=int,
        default=0,
        metavar="N",
        help="also play and teach so many whole games each round, stage by stage (0)",
    )
    parser.add_argument(
        "--judge",
        choices=("stages", "games"),
        default="stages",
        help="which agent of the rounds is the best: by episodes cleared, or by stages in a row of "
        "whole games (stages)",
    )
    parser.add_argument(
        "--fit-steps", type=positive, default=300, metavar="N", help="optimiser steps a round (300)"
    )
    parser.add_argument("--lr", type=float, default=1e-4, help="learning rate (1e-4)")
    parser.add_argument(
        "--shown-weight",
        type=float,
        default=0.5,
        metavar="W",
        help="how much a step of a detour counts beside one of the agent's own (0.5)",
    )
    parser.add_argument(
        "--sharpen",
        type=float,
        default=1.0,
        metavar="F",
        help="multiply the policy's logits by this before the first round: drawn actions come "
        "nearer to the likeliest ones (1)",
    )
    parser.add_argument(
        "--ways",
        metavar="RUN",
        help="try first what this earlier course found, as its folder or name says; `shipped` "
        "are the ways of the package (none)",
    )
    parser.add_argument("--seed", type=int, default=0, help="(default 0)")
    parser.add_argument("--run-name", default="", help="of the result (default: the time)")
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"), help="where runs are")
    parser.add_argument("--rom", help="eu, world or a file (default: what it was trained on)")


def run(args: argparse.Namespace) -> int:
    from warpzone import rom
    from warpzone.cli.acting import named
    from warpzone.env.stages import parse_stages

    for name in ("search_steps", "games"):
        if getattr(args, name) < 0:
            flag = name.replace("_", "-")
            raise ValueError(f"--{flag} must not be negative, and is {getattr(args, name)}")
    for name in ("lr", "shown_weight", "sharpen"):
        value = getattr(args, name)
        if not 0 < value < float("inf"):
            raise ValueError(f"--{name.replace('_', '-')} must be above 0, and is {value}")
    if args.judge == "games" and not args.games:
        raise ValueError("--judge games needs --games, which are played and taught each round")
    if args.seed < 0:
        raise ValueError(f"--seed must not be negative, and is {args.seed}")
    if args.stages is not None and not parse_stages(args.stages):
        raise ValueError("single stages are taught, not the whole game; name them with --stages")
    args.network = None
    # Before the agent, which takes PyTorch to load.
    image = rom.find(args.rom) if args.rom else None
    found = named(args)
    import torch

    from warpzone.env.stages import LONGEST_DELAY
    from warpzone.model.agent import Agent
    from warpzone.rom import native
    from warpzone.run.folder import RunFolder
    from warpzone.run.names import WEIGHTS
    from warpzone.run.recorded_ways import named_ways
    from warpzone.run.versions import add_session
    from warpzone.teach.course import Course, Plan
    from warpzone.teach.ways import meet_ways, read_ways
    from warpzone.train.initial import initial

    stages = parse_stages(args.stages or found.config.stages)
    if not stages:
        raise ValueError("single stages are taught, not the whole game; name them with --stages")
    if type(found.agent) is not Agent:
        raise ValueError(
            f"the network of {args.agent} is code of your own; only what lies behind the encoder "
            "of the networks here can be taught"
        )
    image = rom.find(found.config.rom) if image is None else image
    keep = parse_stages(args.keep) if args.keep is not None else ()
    if args.keep is not None and not (keep and set(keep) <= set(stages)):
        raise ValueError(f"--keep takes some of the stages that are taught, and is {args.keep}")
    known = None
    if args.ways is not None:
        earlier = named_ways(args.ways, args.runs_dir)
        known = read_ways(earlier, found.config, stages, found.agent.spec.actions)
    plan = Plan(
        stages=stages,
        keep=keep,
        rounds=args.rounds,
        episodes=args.episodes,
        start_power=args.start_power,
        trial_steps=args.trial_steps,
        patience=args.patience,
        search_steps=args.search_steps,
        games=args.games,
        judge=args.judge,
        fit_steps=args.fit_steps,
        lr=args.lr,
        shown_weight=args.shown_weight,
        sharpen=args.sharpen,
        seed=args.seed,
    )
    config = found.config.replace(
        run_name=args.run_name,
        runs_dir=str(args.runs_dir),
        init=args.agent,
        seed=args.seed,
        start_delay=LONGEST_DELAY,
    )
    folder = RunFolder.create(config)
    try:
        folder.write_config(config)
        taught = {"taught": _command(args, plan), "init": initial(found, args.agent)}
        add_session(folder.path, torch.device("cpu"), image, taught)
        program = native.load(image)
        if known is not None:
            meet_ways(known, config, image, program)
        course = Course(
            plan,
            found.agent,
            config,
            image,
            program,
            folder,
            known=known,
            say=_say,
        )
        course.run()
    finally:
        if not (folder.path / WEIGHTS).is_file():
            # Stopped before there was an agent in it.
            folder.discard()
        folder.close()
    _say(f"{folder.path}: {course.best}; watch it: warpzone play {folder.path}")
    return 0


def _command(args: argparse.Namespace, plan: Plan) -> str:
    """What was asked for, without places and machines."""
    from warpzone.run.names import BEST, WEIGHTS
    from warpzone.run.shipped import agent_names

    agent = args.agent
    if agent not in agent_names():
        path = Path(agent)
        agent = path.parent.name if path.name in (BEST, WEIGHTS) else path.stem
    words = ["warpzone", "teach", agent]
    if args.stages is not None:
        words += ["--stages", args.stages]
    if args.keep is not None:
        words += ["--keep", args.keep]
    if args.ways is not None:
        words += ["--ways", Path(args.ways).name]
    usual = {field.name: field.default for field in dataclasses.fields(plan)}
    for name, value in dataclasses.asdict(plan).items():
        if name not in ("stages", "keep") and value != usual[name]:
            words += [f"--{name.replace('_', '-')}", f"{value}"]
    return shlex.join(words)


def _say(text: str) -> None:
    print(text, flush=True)
