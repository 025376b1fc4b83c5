"""`warpzone dashboard`: a page about runs, live ones and old ones."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from warpzone.config.dashboard import LEAST_TOKEN, TOKEN, missing

PROG = "warpzone dashboard"


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "dashboard",
        help="look at runs in a browser",
        description="Serves a page about runs, live ones and old ones, from their folders alone. "
        "Commands, and looking from other machines, need the token that it prints.",
    )
    parser.add_argument(
        "folder", nargs="?", help="folder of all runs, or one run or its name (default: runs)"
    )
    parser.add_argument("--runs-dir", metavar="FOLDER", help="where runs are (default: runs)")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)"
    )
    parser.add_argument("--port", type=int, default=8765, help="port to listen on (default 8765)")
    parser.add_argument(
        "--control", action="store_true", help="allow commands to live runs, with the token"
    )
    parser.add_argument(
        "--metrics", action="store_true", help="serve /metrics for Prometheus as well"
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="another name that browsers reach this server by, behind a proxy say",
    )
    # For `train --dashboard`: the server ends when standard input is closed.
    parser.add_argument("--with-parent", action="store_true", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    from warpzone.run.reader import is_run, named_run

    if sentence := missing():
        return _fail(sentence, 1)
    if not 1 <= args.port <= 65535:
        return _fail(f"--port must be in 1..65535, and is {args.port}", 2)
    given = args.folder or args.runs_dir
    folder = named_run(args.folder, Path(args.runs_dir or "runs")) if args.folder else None
    if folder is not None and args.runs_dir is not None and not is_run(folder):
        return _fail("the folder of runs is given twice; give it once", 2)
    folder = folder or Path(given or "runs")
    if not folder.is_dir():
        if given not in (None, "runs"):
            return _fail(f"there is no folder {folder}", 2)
        folder.mkdir()
    if 0 < len(os.environ.get(TOKEN, "")) < LEAST_TOKEN:
        return _fail(f"{TOKEN} needs at least {LEAST_TOKEN} characters", 2)
    from warpzone.dashboard.serve import Settings, serve

    settings = Settings(
        folder=folder,
        host=args.host,
        port=args.port,
        control=args.control,
        metrics=args.metrics,
        names=tuple(args.allow_host),
        with_parent=args.with_parent,
    )
    try:
        return serve(settings)
    except OSError as error:
        return _fail(f"cannot listen on {args.host}:{args.port}: {error.strerror or error}", 1)


def _fail(sentence: str, code: int) -> int:
    print(f"{PROG}: {sentence}.", file=sys.stderr)
    return code
