"""`warpzone checkpoints`: list, inspect, verify, prune and migrate the checkpoints of runs."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpzone.run.checkpoints import Checkpoint, Checkpoints

ROLLOUT_STEPS = 64
RUN = "a run: its folder, its name, or `latest`"


def add_parser(subparsers: Any) -> None:
    """list, inspect, verify, prune, migrate."""
    parser = subparsers.add_parser(
        "checkpoints", help="list, inspect, verify, prune and migrate checkpoints"
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="the checkpoints of a run, or of all below a folder")
    listing.add_argument("path", type=Path, nargs="?", help=f"{RUN}, or all below --runs-dir")
    listing.add_argument("--json", action="store_true", help="one JSON object for each")
    inspect = actions.add_parser("inspect", help="what is in a checkpoint, as JSON")
    inspect.add_argument("path", type=Path, help=f"any of its files; {RUN} for its newest")
    verify = actions.add_parser("verify", help="read every byte; exit code 1 if any is wrong")
    verify.add_argument("path", type=Path, nargs="?", help=f"{RUN}, or all below --runs-dir")
    prune = actions.add_parser("prune", help="remove old checkpoints of a run")
    prune.add_argument("path", type=Path, help=RUN)
    prune.add_argument("--keep-last", type=int, default=3, help="newest ones to keep (3)")
    prune.add_argument("--keep-every", type=int, default=0, help="keep every this many updates")
    prune.add_argument("--dry-run", action="store_true", help="only say what would go")
    migrate = actions.add_parser("migrate", help="side-cars that are lost, or have no step")
    _migration_flags(migrate, "path")
    for action in (listing, inspect, verify, prune, migrate):
        action.add_argument("--runs-dir", type=Path, default=Path("runs"), help="where runs are")


def run(args: argparse.Namespace) -> int:
    """Runs the chosen action."""
    from warpzone.run.reader import named_run
    from warpzone.run.sidecar import CheckpointError

    args.path = args.runs_dir if args.path is None else named_run(args.path, args.runs_dir)
    if not args.path.exists() and args.action != "inspect":
        print(f"warpzone checkpoints: there is no {args.path}.", file=sys.stderr)
        return 2
    if args.path.is_file() and args.action != "inspect":
        print(f"warpzone checkpoints: {args.path} is not a folder.", file=sys.stderr)
        return 2
    try:
        return int(ACTIONS[args.action](args))
    except CheckpointError as error:
        print(f"warpzone checkpoints: {args.path}: {error}.", file=sys.stderr)
        return 1


def _stores(path: Path) -> list[Checkpoints]:
    """The folders with checkpoints at or below a path."""
    from warpzone.run.checkpoints import Checkpoints
    from warpzone.run.reader import folders

    found = [Checkpoints(folder) for folder in folders(path, most=sys.maxsize)]
    return [store for store in found if store.stems()]


def _list(args: argparse.Namespace) -> int:
    from warpzone.run.sidecar import CheckpointError

    for store in _stores(args.path):
        for stem in reversed(store.stems()):
            try:
                row = _row(store.open(stem))
            except CheckpointError as error:
                row = {"path": str(store.folder / stem), "broken": str(error)}
            if args.json:
                print(json.dumps(row))
            elif "broken" in row:
                print(f"{row['path']}  cannot be used: {row['broken']}")
            else:
                print(
                    f"{row['path']}  update {row['global_update']:,}  step "
                    f"{row['global_step']:,}  {row['bytes'] / 2**20:.1f} MiB  "
                    f"{row['timestamp']}  {row['reason']}"
                )
    return 0


def _row(checkpoint: Checkpoint) -> dict[str, Any]:
    sidecar = checkpoint.sidecar
    return {
        "path": str(checkpoint.path),
        "global_update": sidecar.global_update,
        "global_step": sidecar.global_step,
        "reason": sidecar.reason,
        "timestamp": sidecar.timestamp,
        "bytes": sidecar.weights.bytes + sidecar.state.bytes,
        "best": sidecar.best,
    }


def _inspect(args: argparse.Namespace) -> int:
    """The side-car, and the structure of the state."""
    from warpzone.config import ConfigError
    from warpzone.run.resume import best_of, named
    from warpzone.run.sidecar import CheckpointError

    if args.path.is_dir():
        inner = args.path / "checkpoints"
        found = best_of(inner if inner.is_dir() else args.path, None, _say)
        if found is None:
            raise CheckpointError("there is no checkpoint that can be used")
    else:
        try:
            found = named(args.path)
        except ConfigError as error:
            sentence = str(error).removeprefix("--resume ")
            print(f"warpzone checkpoints: {sentence}.", file=sys.stderr)
            return 1
    values = json.loads(found.sidecar.to_json())
    numbers = sum(_numbers(shape) for shape in found.sidecar.shapes.values())
    print(json.dumps(values | {"parameters": numbers, "state": _outline(found.read_state())}))
    return 0


def _numbers(shape: Sequence[int]) -> int:
    count = 1
    for side in shape:
        count *= side
    return count


def _outline(value: Any, depth: int = 3) -> Any:
    """Tensors as their shapes, long lists as their lengths."""
    from torch import Tensor

    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    if isinstance(value, dict) and depth:
        return {str(name): _outline(part, depth - 1) for name, part in value.items()}
    if isinstance(value, dict | list | tuple):
        return f"{type(value).__name__} of {len(value)}"
    return value


def _verify(args: argparse.Namespace) -> int:
    from warpzone.run.sidecar import CheckpointError

    good = bad = 0
    for store in _stores(args.path):
        for stem in store.stems():
            try:
                checkpoint = store.open(stem)
                checkpoint.verify()
                checkpoint.read_state()
            except CheckpointError as error:
                bad += 1
                print(f"{store.folder / stem}: {error}")
            else:
                good += 1
    print(f"{good} checkpoints are intact, {bad} are not")
    return 1 if bad else 0


def _prune(args: argparse.Namespace) -> int:
    if args.keep_last < 1 or args.keep_every < 0:
        print("warpzone checkpoints: --keep-last must be at least 1.", file=sys.stderr)
        return 2
    from warpzone.run.checkpoints import update_of

    for store in _stores(args.path):
        stems = store.stems()
        gone = store.prune(
            last=args.keep_last,
            every=args.keep_every,
            best=_best(store, stems),
            newest=update_of(stems[0]),
            dry_run=args.dry_run,
        )
        for stem in gone:
            print(f"{'would remove' if args.dry_run else 'removed'} {store.folder / stem}")
    return 0


def _best(store: Checkpoints, stems: Sequence[str]) -> int:
    """The update of the best evaluation, from the newest checkpoint."""
    from warpzone.run.sidecar import CheckpointError

    for stem in stems:
        try:
            return store.open(stem).sidecar.best.get("update", -1)
        except CheckpointError:
            continue
    return -1


def _migrate(args: argparse.Namespace) -> int:
    """Lost side-cars are written again, then steps are filled in."""
    from warpzone.run.sidecar import SIDECAR_SUFFIX, CheckpointError

    for store in _stores(args.path):
        for stem in store.stems():
            if (store.folder / (stem + SIDECAR_SUFFIX)).exists():
                continue
            try:
                sidecar = store.rebuild(stem)
            except CheckpointError as error:
                print(f"[migrate] {store.folder / stem}: {error}")
                continue
            if not args.dry_run:
                store.write_sidecar(sidecar)
            print(f"[migrate] {'would rebuild' if args.dry_run else 'rebuilt'} {stem}")
    return _backfill(args.path, args)


# --- scripts/backfill_global_step.py -------------------------------------------------------------
def _migration_flags(parser: argparse.ArgumentParser, root: str) -> None:
    parser.add_argument(root, type=Path, default=Path("runs"), help="folder to look below")
    parser.add_argument(
        "--assume-rollout-steps",
        type=int,
        default=ROLLOUT_STEPS,
        help=f"steps of a rollout where the side-car does not say ({ROLLOUT_STEPS})",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would change")
    parser.add_argument("--no-backup", action="store_true", help="keep no .bak of what changes")


def backfill_main(argv: Sequence[str] | None = None) -> int:
    """Exit codes: 0 success, 1 a side-car that cannot be read or written, 2 wrong usage."""
    parser = argparse.ArgumentParser(
        prog="backfill_global_step.py",
        description="Computes global_step = global_update * num_envs * rollout_steps for side-cars "
        "of checkpoints in which it is 0. Running it again changes nothing.",
    )
    _migration_flags(parser, "--root")
    args = parser.parse_args(argv)
    if not args.root.is_dir():
        print(f"[migrate] there is no folder {args.root}", file=sys.stderr)
        return 2
    try:
        return _backfill(args.root, args)
    except OSError as error:
        print(f"[migrate] {error}", file=sys.stderr)
        return 1


def _backfill(root: Path, args: argparse.Namespace) -> int:
    from warpzone.run.migrate import backfill, sidecars

    if args.assume_rollout_steps < 1:
        print("[migrate] --assume-rollout-steps must be at least 1", file=sys.stderr)
        return 2
    counts: Counter[str] = Counter()
    for path in sidecars(root):
        outcome = backfill(
            path,
            rollout_steps=args.assume_rollout_steps,
            dry_run=args.dry_run,
            backup=not args.no_backup,
        )
        if outcome is None:
            continue
        counts[outcome.status] += 1
        if outcome.status != "already_has_step":
            print(f"[migrate] {outcome.status} {path} global_step={outcome.global_step}")
    summary = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    print(f"[migrate] {summary or 'no side-cars'}")
    return 1 if counts["unreadable"] else 0


def _say(text: str) -> None:
    print(text, file=sys.stderr)


ACTIONS = {
    "list": _list,
    "inspect": _inspect,
    "verify": _verify,
    "prune": _prune,
    "migrate": _migrate,
}
