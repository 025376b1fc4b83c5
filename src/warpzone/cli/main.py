"""Entry point: picks the subcommand, loads only its file, turns expected errors into exit codes."""

import argparse
import atexit
import difflib
import gc
import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Sequence

from warpzone.cli.suggest import Parser

#: Subcommand -> its line in the overview. The file of the same name in this folder has
#: `add_parser(subparsers)` and `run(args) -> exit code`.
COMMANDS = {
    "train": "train an agent",
    "teach": "teach an agent what it fails at: trials find episodes, its memory imitates them",
    "sweep": "search for settings: many runs, drawn and pruned by Optuna",
    "population": "population based training: members that exchange weights and change settings",
    "checkpoints": "list, inspect, verify, prune and migrate checkpoints",
    "dashboard": "look at runs in a browser",
    "agents": "list the agents of the package and those pulled from a hub, and show their cards",
    "eval": "evaluate an agent: every start delay, argmax and sampled, one life",
    "video": "a video of an agent at play: overlays, mosaic, slow motion",
    "map": "a full-length picture of a stage, and where agents die on it",
    "export": "write an agent as ONNX or as an exported program of PyTorch",
    "hub": "put an agent on the Hugging Face Hub, or get one from there",
    "report": "one self-contained HTML file about one or more runs",
    "rom": "install and verify the ROM, and say what is installed",
    "play": "play a stage or a movie: an agent, scripted, random or by keyboard",
    "bench": "measure speed, as JSON",
    "doctor": "check this installation and say what to do about each problem",
    "completion": "a script that completes commands, flags and values in your shell",
}
#: Commands that need PyTorch for whatever they do. The others load it once their words are known
#: to be right.
WITH_TORCH = ("checkpoints", "hub")
#: Commands that load it or the ROM before they can say anything.
SLOW_TO_START = (
    *(*WITH_TORCH, "train", "eval", "video", "export", "map", "report", "play", "bench"),
    *("doctor", "rom", "dashboard", "sweep", "population", "teach"),
)


def build_parser(command: str | None) -> argparse.ArgumentParser:
    """The parser for `command`; the others appear with their one line only, so that `--help`
    loads as little as possible."""
    parser = Parser(
        prog="warpzone", description="Super Mario Bros as a native, exact, batched engine."
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        if name == command:
            importlib.import_module(f"warpzone.cli.{name}").add_parser(subparsers)
        else:
            subparsers.add_parser(name, help=summary, add_help=False)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Exit codes: 0 success, 1 failure (one sentence on stderr), 2 wrong usage."""
    # Read once, when PyTorch loads its OpenMP runtime. By default its threads wait for each other
    # in busy loops, which beside other busy processes takes the cores from the thread waited for.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    words = list(sys.argv[1:] if argv is None else argv)
    command = next((word for word in words if not word.startswith("-")), None)
    if command is not None and command not in COMMANDS:
        meant = difflib.get_close_matches(command, COMMANDS, n=1, cutoff=0.5)
        end = f", did you mean {meant[0]}?" if meant else ";"
        print(
            f"warpzone: there is no command {command}{end} `warpzone --help` lists them.",
            file=sys.stderr,
        )
        return 2
    parser = build_parser(command)
    args = parser.parse_args(words)
    if args.version:
        import warpzone

        print(f"warpzone {warpzone.__version__}")
        return 0
    if args.command is None:
        parser.print_help(sys.stderr)
        return 2
    return _run(args)


def _run(args: argparse.Namespace) -> int:
    from warpzone.rom import RomError
    from warpzone.rom.waiting import load_torch

    # The interpreter looks for garbage when it ends, which among the objects of PyTorch takes a
    # second in which everything has been said and the prompt does not come back.
    atexit.register(gc.freeze)
    if args.command in SLOW_TO_START and sys.stderr.isatty():
        print(f"warpzone {args.command}: starting", file=sys.stderr, flush=True)
        if args.command in WITH_TORCH and importlib.util.find_spec("torch") is not None:
            load_torch()
    # Users need the sentence, not the source line that issued it.
    warnings.formatwarning = lambda message, *_, **__: f"warpzone {args.command}: {message}\n"
    try:
        return int(importlib.import_module(f"warpzone.cli.{args.command}").run(args))
    except (RomError, OSError, ValueError) as error:
        print(f"warpzone {args.command}: {_sentence(error)}", file=sys.stderr)
        # Wrong usage, or a failure of correct usage.
        return 2 if isinstance(error, ValueError) else 1
    except MemoryError as error:
        text = f" ({error})" if str(error) else ""
        print(f"warpzone {args.command}: memory ran out{text}.", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        from warpzone.cli.extras import missing

        if (sentence := missing(error.name)) is None:
            raise
        print(f"warpzone {args.command}: {sentence}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _sentence(error: Exception) -> str:
    """A system error without its number."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}."
    return str(error)


if __name__ == "__main__":
    sys.exit(main())
