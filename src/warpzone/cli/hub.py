"""`warpzone hub`: agents on the Hugging Face Hub."""

from __future__ import annotations

import argparse
from pathlib import Path

from warpzone.cli.acting import AGENT


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "hub",
        help="put an agent on the Hugging Face Hub, or get one from there",
        description="Weights, settings, card and evaluation of an agent as a repository of the "
        "Hub. Pushing needs a token: `hf auth login`, or HF_TOKEN. What is pulled is verified, "
        "and then played by its name.",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    push = actions.add_parser("push", help="put an agent into a repository")
    push.add_argument("agent", help=AGENT)
    push.add_argument("repo", help="OWNER/NAME, or NAME for one of your own; made if not there")
    push.add_argument(
        "--evals",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="files of `warpzone eval --json` for the card (default: those of the run)",
    )
    push.add_argument("--private", action="store_true", help="a new repository that only you see")
    push.add_argument("--license", default="", metavar="ID", help="such as mit, for the card")
    push.add_argument("--message", default="", help="of the commit")
    push.add_argument("--runs-dir", type=Path, default=Path("runs"), help="where runs are")
    pull = actions.add_parser("pull", help="get the agent of a repository")
    pull.add_argument("repo", help="OWNER/NAME")
    pull.add_argument("--name", default="", help="what it is called here (default: the repository)")
    pull.add_argument(
        "--revision", default="", help="a branch, tag or commit (default: the newest)"
    )
    pull.add_argument(
        "--force", action="store_true", help="replace an agent that was pulled before"
    )


def run(args: argparse.Namespace) -> int:
    import importlib

    # Said before anything is loaded or played.
    importlib.import_module("huggingface_hub")
    return _push(args) if args.action == "push" else _pull(args)


def _push(args: argparse.Namespace) -> int:
    from warpzone.cli.acting import named
    from warpzone.share.hub import push

    args.network = ""
    found = named(args)
    address, evaluations = push(
        found,
        args.repo,
        evals=tuple(args.evals),
        private=args.private,
        license=args.license,
        message=args.message,
    )
    print(f"{found.title}: {address}")
    if not evaluations and not _described(found.path):
        print("The card has no results; `warpzone eval RUN --json RUN/eval.json` measures some.")
    return 0


def _described(weights: Path) -> bool:
    from warpzone.run.shipped import description_beside

    return bool(description_beside(weights).get("measured"))


def _pull(args: argparse.Namespace) -> int:
    import importlib

    importlib.import_module("torch")
    from warpzone.share.pulling import pull

    weights = pull(args.repo, name=args.name, revision=args.revision, force=args.force)
    print(f"{weights.stem}: {weights}")
    print(
        f"`warpzone agents {weights.stem}` shows its card, `warpzone play {weights.stem}` plays it."
    )
    return 0
