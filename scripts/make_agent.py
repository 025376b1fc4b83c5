"""Makes a shipped agent of a run's weights: packed weights, description and card.

    python scripts/make_agent.py RUN_OR_WEIGHTS --name all
    warpzone eval all --stages all --json a.json
    warpzone eval all --stages all --rom world --policy argmax --json b.json
    warpzone eval all --whole-game --policy argmax --json c.json
    python scripts/make_agent.py RUN_OR_WEIGHTS --name all --evals a.json b.json c.json

The first call packs the weights (half precision, large matrices in 8 bits: `run/packing.py`); the
evaluations are of that file, which is what users load; the second call puts what they measured into
description and card, and refuses evaluations of any other file. What is given beside a run's own
files is what they do not say.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save

from warpzone.eval import card
from warpzone.eval.description import (
    UNKNOWN,
    as_text,
    describe,
    taught_command,
    training_command,
)
from warpzone.run.files import write_atomically, write_text
from warpzone.run.names import BEST, CONFIG, WEIGHTS
from warpzone.run.packing import pack, summary
from warpzone.run.safe import plain_name, read_header
from warpzone.run.versions import read_sessions

#: Of this repository, not of the package that is installed.
AGENTS = Path(__file__).parents[1] / "src" / "warpzone" / "agents"
#: What is multiplied by --sharpen.
POLICY = "heads.policy."


def packed(
    source: Path, target: Path, others: Sequence[Path] = (), sharpen: float = 1.0
) -> dict[str, Any]:
    """Writes the weights as they are shipped, or their mean with others; what is known about
    them."""
    _, notes = read_header(source)
    parts = [
        {plain_name(name): value for name, value in load_file(path).items()}
        for path in (source, *others)
    ]
    for path, part in zip(others, parts[1:], strict=True):
        if {n: v.shape for n, v in part.items()} != {n: v.shape for n, v in parts[0].items()}:
            raise SystemExit(f"{path} is of another network than {source}")
    whole = parts[0]
    if others:
        whole = {n: torch.stack([part[n].float() for part in parts]).mean(0) for n in whole}
    if sharpen != 1:
        whole |= {n: sharpen * v.float() for n, v in whole.items() if n.startswith(POLICY)}
    try:
        tensors = pack(whole)
    except ValueError as error:
        raise SystemExit(f"{source} cannot be packed: {error}") from error
    meta = json.loads(notes.get("meta", "{}"))
    content = save(tensors, metadata={"meta": json.dumps(meta)})
    write_atomically(target, lambda temporary: _write(temporary, content))
    return {
        "sha256": hashlib.sha256(content).hexdigest(),
        "bytes": len(content),
        **summary(tensors),
        "meta": meta,
    }


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def main() -> int:
    """Reads, writes, and says what was made."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path, help="a run's folder or its .safetensors file")
    parser.add_argument(
        "--average",
        type=Path,
        nargs="*",
        default=[],
        metavar="WEIGHTS",
        help="weights of the same network; what is packed is the mean of all of them",
    )
    parser.add_argument(
        "--sharpen",
        type=float,
        default=1.0,
        metavar="F",
        help="multiply the policy's logits by this: powers of 2 leave the likeliest action alone, "
        "to the bit, and drawn ones come nearer to it (1)",
    )
    parser.add_argument("--name", required=True)
    parser.add_argument("--evals", type=Path, nargs="*", default=[], metavar="FILE")
    parser.add_argument("--measured-on", default="a CPU", help="the machine of the evaluations")
    parser.add_argument("--preset", default="all", help="which the command is told against")
    parser.add_argument("--hardware", default="", help="of the training (default: as recorded)")
    parser.add_argument("--commit", default="", help="of the training (default: as recorded)")
    parser.add_argument("--from", dest="origin", default="scratch", help="what it began with")
    parser.add_argument(
        "--before",
        type=float,
        nargs=2,
        default=(0, 0.0),
        metavar=("STEPS", "SECONDS"),
        help="of the run whose weights it began with",
    )
    parser.add_argument("--note", action="append", default=[], help="a sentence for the card")
    parser.add_argument(
        "--out", type=Path, default=AGENTS, help="a folder (src/warpzone/agents of this repository)"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be made, and stop")
    args = parser.parse_args()

    if args.dry_run:
        made_of = f"{args.source} and {len(args.evals)} evaluations"
        print(f"would make {args.name}.safetensors, .json and .md in {args.out} of {made_of}")
        return 0
    source: Path = args.source
    if source.is_dir():
        source = next(path for name in (BEST, WEIGHTS) if (path := source / name).is_file())
    values = json.loads((source.parent / CONFIG).read_text())
    sessions = read_sessions(source.parent)
    recorded = sessions[-1] if sessions else {}
    args.out.mkdir(parents=True, exist_ok=True)
    weights = args.out / f"{args.name}.safetensors"
    made = packed(source, weights, args.average, args.sharpen)
    meta = made.pop("meta")

    documents = [json.loads(path.read_text()) for path in args.evals]
    for path, document in zip(args.evals, documents, strict=True):
        if document.get("sha256") != made["sha256"]:
            raise SystemExit(f"{path} is an evaluation of other weights than {weights}")
        if document["global_step"] != meta.get("global_step"):
            raise SystemExit(f"{path} is of step {document['global_step']}, not of these weights")
    training = {
        "command": taught_command(recorded) or training_command(values, args.preset),
        "from": args.origin,
        "commit": args.commit or recorded.get("commit") or UNKNOWN,
        "seed": values["seed"],
        "start_delay": values["start_delay"],
        "steps": meta["global_step"] + int(args.before[0]),
        "seconds": round(meta["seconds"] + args.before[1], 1),
        "hardware": args.hardware or recorded.get("device") or UNKNOWN,
    }
    about = describe(
        args.name,
        values,
        made,
        training,
        documents,
        notes=args.note,
        measured_on=args.measured_on,
    )
    write_text(args.out / f"{args.name}.json", as_text(about))
    if about["measured"]:
        write_text(args.out / f"{args.name}.md", card.render(about))
    print(f"{args.name}: {made['bytes'] / 2**20:.1f} MiB, {len(documents)} evaluations")
    return 0


if __name__ == "__main__":
    sys.exit(main())
