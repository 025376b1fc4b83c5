"""`warpzone eval`: how many start delays an agent clears."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpzone.cli import beginning
from warpzone.cli.acting import AGENT, NETWORK

if TYPE_CHECKING:
    from warpzone.eval.weights import Found


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "eval",
        help="evaluate an agent: every start delay, argmax and sampled, one life",
        description="Plays stages from every start delay, one life each, with the argmax and the "
        "sampled policy, and says how many episodes reach the flag. The same weights give the same "
        "numbers every time.",
    )
    parser.add_argument("agent", help=AGENT)
    parser.add_argument("--stages", help="1-1, 1-1..2-4, all (default: what it was trained on)")
    parser.add_argument("--delays", default="0..30", help="frames (default 0..30), up to 0..120")
    parser.add_argument("--policy", choices=("argmax", "sampled", "both"), default="both")
    parser.add_argument(
        "--whole-game", action="store_true", help="from 1-1 with three lives: how far?"
    )
    parser.add_argument(
        "--baselines",
        action="store_true",
        help="also a random and a scripted player, with the agent's actions",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the sampled policy (default 0)")
    parser.add_argument(
        "--stuck-after", type=int, default=400, help="steps without new ground that fail (400)"
    )
    beginning.add_flags(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything as JSON")
    parser.add_argument("--parquet", type=Path, metavar="FILE", help="write episodes as Parquet")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--network", metavar="MODULE:CLASS", help=NETWORK)
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"), help="where runs are")
    parser.add_argument(
        "--rom",
        help="eu, world, lost-levels or a file (default: what it was trained on)",
    )


def run(args: argparse.Namespace) -> int:
    from warpzone.cli.acting import ready
    from warpzone.env.stages import parse_stages
    from warpzone.eval.cases import POLICIES, parse_delays

    if args.whole_game and args.stages is not None:
        raise ValueError("--whole-game starts at 1-1 and takes no --stages")
    if args.whole_game and args.baselines:
        raise ValueError("--baselines are about single stages, not about --whole-game")
    start = beginning.start(args)
    if args.whole_game and args.start_halfway:
        beginning.refuse_game()
    # Checked before minutes of play, not after.
    for file in (args.json, args.parquet):
        if file is not None and not file.parent.is_dir():
            raise FileNotFoundError(f"the folder {file.parent} does not exist")
    if args.stuck_after < 1:
        raise ValueError(f"--stuck-after must be at least 1, and is {args.stuck_after}")
    delays = parse_delays(args.delays)
    if args.stages is not None:
        parse_stages(args.stages)
    policies = POLICIES if args.policy == "both" else (args.policy,)
    found, image, program = ready(args)
    from warpzone import rom as roms
    from warpzone.eval.results import write_json, write_parquet
    from warpzone.run.files import sha256

    about = {
        "weights": found.title,
        "sha256": sha256(found.path),
        "global_step": found.global_step,
        "trained_on": found.config.stages,
        "delays": args.delays,
        "seed": args.seed,
        "rom": roms.identify(image, None).variant,
        "stuck_after": args.stuck_after,
        "start_power": args.start_power,
        "start_halfway": args.start_halfway,
    }
    began = time.perf_counter()
    if args.whole_game:
        from warpzone.eval.whole_game import play_games

        games = play_games(
            found.agent,
            found.config,
            image,
            program,
            policies=policies,
            delays=delays,
            seed=args.seed,
            stuck_after=args.stuck_after,
            start_power=args.start_power,
        )
        rows = [dataclasses.asdict(game) for game in games]
        if args.json:
            write_json(args.json, {**about, "games": rows})
        if args.parquet:
            write_parquet(args.parquet, games, about)
        _show_games(found, rows, time.perf_counter() - began)
        return 0
    from rich.console import Console

    from warpzone.eval.eval_lanes import without_middle
    from warpzone.eval.evaluate import evaluate
    from warpzone.eval.results import as_document, as_table
    from warpzone.eval.summary import overall, summarize

    if args.start_halfway:
        stages = parse_stages(args.stages or found.config.stages) or (0,)
        # Of these the numbers are as ever.
        about["from_the_door"] = without_middle(found.config, image, program, stages)
    # Shown on terminals only.
    with Console(stderr=True).status("playing"):
        outcomes = evaluate(
            found.agent,
            found.config,
            image,
            program,
            stages=args.stages,
            delays=delays,
            policies=policies,
            seed=args.seed,
            stuck_after=args.stuck_after,
            **start,
        )
        if args.baselines:
            from warpzone.eval.baselines import play_baselines
            from warpzone.eval.cases import BASELINES

            policies = (*policies, *BASELINES)
            outcomes += play_baselines(
                found.config,
                image,
                program,
                stages=args.stages,
                delays=delays,
                seed=args.seed,
                stuck_after=args.stuck_after,
                **start,
            )
    seconds = time.perf_counter() - began
    if args.json:
        write_json(args.json, as_document(outcomes, about))
    if args.parquet:
        write_parquet(args.parquet, outcomes, about)
    console = _console()
    begun = "" if args.start_power == "small" else f", starts as {args.start_power}"
    if args.start_halfway:
        begun = ", starts halfway"
        beginning.say_doors(args.command, about["from_the_door"])
    console.print(as_table(summarize(outcomes), found.title + begun, console.width))
    for policy in policies:
        clears, episodes, low, high = overall(outcomes, policy)
        print(
            f"{policy}: {clears} of {episodes} episodes{_from(args)} reach the flag, "
            f"{clears / episodes:.1%} (95 %: {low:.1%} to {high:.1%})"
        )
    steps = sum(outcome.steps for outcome in outcomes)
    print(f"{len(outcomes)} episodes, {steps:,} steps in {seconds:.1f} s")
    return 0


def _from(args: argparse.Namespace) -> str:
    """Where episodes began, if not at the door as small Mario: their sum is of something else."""
    if args.start_halfway:
        return " from halfway"
    return "" if args.start_power == "small" else f" as {args.start_power}"


def _show_games(found: Found, rows: list[dict[str, Any]], seconds: float) -> None:
    from rich.table import Table

    from warpzone.eval.card import different

    table = Table(title=f"{found.title}: the whole game, three lives", title_justify="left")
    for name in ("policy", "delay", "ended at", "x", "stages cleared", "how", "score"):
        table.add_column(name)
    for row in sorted(rows, key=lambda row: -row["stages_cleared"])[:20]:
        table.add_row(
            row["policy"],
            str(row["start_delay"]),
            row["stage"],
            str(row["x"]),
            str(row["stages_cleared"]),
            row["reason"],
            str(row["score"]),
        )
    _console().print(table)
    for policy in dict.fromkeys(row["policy"] for row in rows):
        played = [row for row in rows if row["policy"] == policy]
        counts = [row["stages_cleared"] for row in played]
        print(
            f"{policy}: {sum(counts) / len(counts):.2f} stages cleared on average, at best "
            f"{max(counts)}; {sum(row['won'] for row in played)} of {len(counts)} games won, "
            f"{different(played)} of them different"
        )
    print(f"{len(rows)} games in {seconds:.1f} s")


def _console() -> Any:
    from rich.console import Console

    # A pipe has no width; a truncated table would be useless.
    return Console(width=None if sys.stdout.isatty() else 120)
