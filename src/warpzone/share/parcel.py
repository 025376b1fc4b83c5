"""What is put on a hub: weights, description, card and evaluations of one agent. Nothing of the
machine it was trained on goes along: no paths, no addresses, no name of the machine."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load, save

from warpzone.eval import card
from warpzone.eval.cases import Outcome, usual_start
from warpzone.eval.description import UNKNOWN, as_text, describe, shortest_command, taught_command
from warpzone.eval.results import as_document
from warpzone.eval.weights import MOST_WEIGHTS, Found
from warpzone.rom import KNOWN
from warpzone.run.names import CHECKPOINTS, CONFIG, EVALS, EVALUATION
from warpzone.run.opening import parse_json, read_file, read_object
from warpzone.run.packing import summary
from warpzone.run.reader import read_rows
from warpzone.run.safe import read_header
from warpzone.run.shipped import description_beside
from warpzone.run.versions import read_sessions

#: Names in a repository.
WEIGHTS, DESCRIPTION, CARD = "model.safetensors", CONFIG, "README.md"
#: Bytes of an evaluation: one episode has about 300, of all stages and delays there are 7,744.
MOST_EVALUATION = 64 << 20
#: What the notes in a file of weights may say to others.
PUBLIC = ("global_step", "clears", "seconds")


@dataclass(frozen=True)
class Parcel:
    """An agent as it goes to a hub."""

    weights: bytes
    about: dict[str, Any]
    documents: tuple[dict[str, Any], ...]

    def files(self, front: str, repo: str) -> dict[str, bytes]:
        """Name in the repository -> content. front: the card's metadata, as YAML."""
        name = self.about["name"]
        text = (
            f"---\n{front}\n---\n\n{card.render(self.about)}\n## How to get it\n\n"
            f"```sh\npip install 'warpzone[train,export]'\nwarpzone hub pull {repo}\n"
            f"warpzone play {name}\n```\n"
        )
        found = {
            WEIGHTS: self.weights,
            DESCRIPTION: as_text(self.about).encode(),
            CARD: text.encode(),
        }
        for number, document in enumerate(self.documents):
            file = f"evaluation-{number + 1}.json" if number else "evaluation.json"
            found[file] = (json.dumps(document, indent=1) + "\n").encode()
        return found


def pack(found: Found, name: str, evals: Sequence[Path] = ()) -> Parcel:
    """The agent under a new name. evals: files of `warpzone eval --json` of these weights; without
    any, what a run has beside its weights. ValueError if others could not use it."""
    if found.guessed:
        raise ValueError(f"{found.path} has no configuration; push a run, or a checkpoint of one")
    if found.config.network:
        raise ValueError(
            f"the network of {found.path} is code of your own ({found.config.network}), which is "
            "not pushed; nobody could load the weights"
        )
    content = read_file(found.path.parent, found.path.name, MOST_WEIGHTS)
    source = hashlib.sha256(content).hexdigest()
    _, notes = read_header(found.path)
    meta = _public(notes)
    # As they are in the file: what is packed stays packed.
    tensors = load(content)
    if notes.keys() - {"meta"} or json.loads(notes.get("meta", "{}")) != meta:
        # Checkpoints hold the whole configuration, addresses and places included.
        content = save(dict(sorted(tensors.items())), metadata={"meta": json.dumps(meta)})
    digest = hashlib.sha256(content).hexdigest()
    file = {"sha256": digest, "bytes": len(content), **summary(tensors)}
    documents = _documents(found, source, evals)
    about = description_beside(found.path)
    if about:
        about = {**about, **file, "name": name}
        about.pop("hub", None)
        if documents:
            played = [document for document in documents if "episodes" in document]
            about |= {"measured": card.measured(played), "measured_on": ""}
            about["games"] = card.games([one for one in documents if "games" in one])
    else:
        about = _of_run(found, name, file, meta, documents)
    for document in documents:
        document |= {"weights": name, "sha256": file["sha256"]}
    return Parcel(content, about, tuple(documents))


def _public(notes: Mapping[str, str]) -> dict[str, Any]:
    """Steps and results of the notes."""
    try:
        meta = parse_json(notes.get("meta", "{}"))
    except ValueError:
        return {}
    if not isinstance(meta, dict):
        return {}
    return {name: meta[name] for name in PUBLIC if isinstance(meta.get(name), int | float)}


def run_folder(weights: Path) -> Path:
    """The folder of the run that weights belong to."""
    folder = weights.parent
    return folder.parent if folder.name == CHECKPOINTS else folder


def _of_run(
    found: Found,
    name: str,
    file: Mapping[str, Any],
    meta: Mapping[str, Any],
    documents: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    sessions = read_sessions(run_folder(found.path))
    recorded = sessions[-1] if sessions else {}
    values = dataclasses.asdict(found.config)
    if values["rom"] not in KNOWN:
        # A file of the user's.
        values["rom"] = None
    if ":" in values["reward"]:
        # Code of the user's own, which only training needs.
        values["reward"] = "progress"
    training = {
        "command": taught_command(recorded) or shortest_command(dataclasses.asdict(found.config)),
        "from": f"the agent {Path(values['init']).stem}" if values["init"] else "scratch",
        "commit": recorded.get("commit") or UNKNOWN,
        "seed": values["seed"],
        "start_delay": values["start_delay"],
        "steps": found.global_step if found.global_step is not None else 0,
        "seconds": meta.get("seconds"),
        "hardware": recorded.get("device") or UNKNOWN,
    }
    return describe(name, values, file, training, documents)


# --- evaluations ----------------------------------------------------------------------------------
def _documents(found: Found, source: str, evals: Sequence[Path]) -> list[dict[str, Any]]:
    """Evaluations of these weights: those named, that of the run, or the last of training."""
    if evals:
        return [_document(path, source, required=True) for path in evals]
    folder = run_folder(found.path)
    if (folder / EVALUATION).is_file() and (whole := _document(folder / EVALUATION, source)):
        return [whole]
    if (folder / EVALS).is_file() and (trained := _of_training(found, folder)):
        return [trained]
    return []


def _document(path: Path, source: str, required: bool = False) -> dict[str, Any]:
    """An evaluation; empty if it is of other weights and need not be of these."""
    try:
        document = read_object(path.parent, path.name, MOST_EVALUATION)
        # What the card needs of it.
        if "games" in document:
            card.games([document])
        else:
            card.measured([document])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not what `warpzone eval --json` writes") from error
    if not usual_start(document):
        wrong = "of episodes that did not begin at the door as small Mario"
    elif document.get("sha256") != source:
        wrong = "of other weights"
    else:
        return document
    if required:
        raise ValueError(f"{path} is an evaluation {wrong}")
    print(f"warpzone hub: {path} is {wrong}, and is left out", file=sys.stderr)
    return {}


def _of_training(found: Found, folder: Path) -> dict[str, Any]:
    """The evaluation that training made of these weights; empty if there is none."""
    names = {field.name for field in dataclasses.fields(Outcome)}
    rows = [row for row in read_rows(folder, EVALS) if row.get("global_step") == found.global_step]
    if not rows or not all(names <= row.keys() for row in rows):
        return {}
    outcomes = [Outcome(**{name: row[name] for name in names}) for row in rows]
    delays = sorted({outcome.start_delay for outcome in outcomes})
    whole = delays == list(range(delays[0], delays[-1] + 1))
    rom = found.config.rom
    return as_document(
        outcomes,
        {
            "global_step": found.global_step,
            "delays": f"{delays[0]}..{delays[-1]}" if whole else ",".join(map(str, delays)),
            "seed": 0,
            "rom": rom if rom in KNOWN else "eu",
        },
    )
