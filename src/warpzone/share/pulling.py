"""Getting an agent from a hub. What comes is taken for hostile: only files of known names are
fetched, each up to a bound; weights must be the safetensors that description and card name by their
hash; nothing is unpickled, imported or run; and no link is followed."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from warpzone.config import ConfigError
from warpzone.eval import card
from warpzone.eval.description import as_text
from warpzone.eval.weights import find_agent
from warpzone.rom.paths import data_dir, make_private, publish
from warpzone.run.files import own_folder
from warpzone.run.names import CARD_SUFFIX, DESCRIPTION_SUFFIX, WEIGHTS_SUFFIX
from warpzone.run.opening import MOST_JSON, parse_json
from warpzone.run.reader import LATEST
from warpzone.run.shipped import MOST_CARD, pulled_folder, pulled_names, shipped_names
from warpzone.share.checking import checked
from warpzone.share.hub import SILENCE, check_repo, explained, hub_utils, open_hub
from warpzone.share.parcel import CARD, DESCRIPTION, WEIGHTS

#: Bytes of weights; the largest network here has some hundred MB.
MOST_WEIGHTS = 1 << 30
MOST = {WEIGHTS: MOST_WEIGHTS, DESCRIPTION: MOST_JSON, CARD: MOST_CARD}
#: Files of a repository.
MOST_FILES = 1000
#: What may lie beside them; it is not fetched.
HARMLESS = {".md", ".json", ".txt", ".png", ".jpg", ".gif", ".svg", ".mp4", ".webm", ".onnx"}
HARMLESS_NAMES = {".gitattributes", ".gitignore", "LICENSE"}
#: What an agent may be called.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,95}")
#: Read at a time.
BLOCK = 1 << 16


def pull(repo: str, *, name: str = "", revision: str = "", force: bool = False) -> Path:
    """Fetches the agent of a repository and keeps it under a name; its weights. ValueError if the
    name cannot be, OSError if the Hub does not give it or it is not what it says."""
    check_repo(repo, owner=True)
    name = name or repo.rpartition("/")[2]
    check_name(name, force=force)
    folder = _folder()
    with tempfile.TemporaryDirectory(dir=folder, prefix=".pull-") as place:
        weights = Path(place) / f"{name}{WEIGHTS_SUFFIX}"
        with explained(repo):
            commit, files = fetch(repo, revision, weights)
        try:
            about = _verified(files, weights)
        except ValueError as error:
            raise OSError(f"{repo} cannot be used: {error}") from error
        about |= {"name": name, "hub": {"repo": repo, "commit": commit}}
        weights.with_suffix(DESCRIPTION_SUFFIX).write_text(as_text(about))
        weights.with_suffix(CARD_SUFFIX).write_text(card.render(about))
        try:
            # Whoever plays it does the same: a network is made only of weights that are its own.
            find_agent(weights)
        except ValueError as error:
            reason = str(error).replace(str(weights), WEIGHTS)
            raise OSError(f"{repo} cannot be used: {reason}") from error
        # The weights come last: an agent is there once they are.
        for suffix in (CARD_SUFFIX, DESCRIPTION_SUFFIX, WEIGHTS_SUFFIX):
            publish(weights.with_suffix(suffix), folder / f"{name}{suffix}")
    return folder / weights.name


def check_name(name: str, *, force: bool) -> None:
    """ValueError if an agent cannot be kept under this name."""
    # Names are completed by shells and shown by terminals.
    if name == LATEST or not NAME.fullmatch(name):
        raise ConfigError(f"an agent cannot be called {name!r}; choose another --name")
    if name in shipped_names():
        raise ConfigError(f"an agent {name} comes with the package; choose another --name")
    if name in pulled_names() and not force:
        raise ConfigError(
            f"an agent {name} was pulled before; choose another --name, or replace it with --force"
        )


def _folder() -> Path:
    make_private(data_dir())
    own_folder(pulled_folder())
    return pulled_folder()


def fetch(repo: str, revision: str, weights: Path) -> tuple[str, dict[str, bytes]]:
    """The commit, and the small files; the weights are written to their place."""
    hub = open_hub()
    found = hub.model_info(repo, revision=revision or None, files_metadata=True, timeout=SILENCE)
    commit = str(found.sha)
    check_listing(repo, [(one.rfilename, one.size) for one in found.siblings or ()])
    files = {}
    for file in (DESCRIPTION, CARD):
        files[file] = b"".join(_blocks(repo, commit, file))
    with weights.open("xb") as out:
        for block in _blocks(repo, commit, WEIGHTS):
            out.write(block)
    return commit, files


def check_listing(repo: str, listing: list[tuple[str, int | None]]) -> None:
    """OSError for a repository that an agent's is not: files that are missing, too large, of other
    kinds (pickles and programs among them), or named so that they would lie elsewhere."""
    if len(listing) > MOST_FILES:
        raise OSError(f"{repo} has {len(listing):,} files, which is no repository of an agent")
    for file, size in listing:
        path = PurePosixPath(file)
        odd = not file.isprintable() or "\\" in file or path.is_absolute() or ".." in path.parts
        if odd:
            raise OSError(f"{repo} has a file called {file[:80]!r}, which is refused")
        known = file in MOST or path.suffix.lower() in HARMLESS or path.name in HARMLESS_NAMES
        if not known:
            raise OSError(f"{repo} has a file {file[:80]!r} that no agent needs, and is refused")
        if file in MOST and (size is None or size > MOST[file]):
            stated = "no size" if size is None else f"{size:,} bytes"
            raise OSError(f"{repo}: {file} has {stated}; at most {MOST[file]:,} are taken")
    for file in MOST:
        if file not in {name for name, _ in listing}:
            raise OSError(f"{repo} is not an agent of warpzone: it has no {file}")


def _blocks(repo: str, commit: str, file: str) -> Iterable[bytes]:
    """The content of a file, as it comes; OSError once it is larger than it may be, whatever the
    server has said about its size."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    utils = hub_utils()
    url = hf_hub_url(repo, file, revision=commit)
    stated = get_hf_file_metadata(url, timeout=SILENCE)
    if stated.commit_hash != commit:
        raise OSError(f"{repo}: {file} is of another commit than asked for")
    if stated.size is None or stated.size > MOST[file]:
        raise OSError(f"{repo}: {file} is too large; at most {MOST[file]:,} bytes are taken")
    headers = utils.build_hf_headers(library_name="warpzone")
    # Compressed, a few bytes could become many.
    headers["Accept-Encoding"] = "identity"
    got = 0
    with utils.get_session().stream("GET", url, headers=headers) as response:
        utils.hf_raise_for_status(response)
        for block in response.iter_raw(BLOCK):
            got += len(block)
            if got > stated.size:
                raise OSError(f"{repo}: {file} is larger than the {stated.size:,} bytes stated")
            yield block
    if got != stated.size:
        raise OSError(f"{repo}: {file} ended after {got:,} of {stated.size:,} bytes")


def _verified(files: dict[str, bytes], weights: Path) -> dict[str, Any]:
    """The description, if it, the card and the weights belong together; ValueError otherwise."""
    try:
        said, text = parse_json(files[DESCRIPTION]), files[CARD].decode()
    except ValueError as error:
        raise ValueError(f"{DESCRIPTION} or {CARD} is no text that can be read") from error
    about = checked(said)
    with weights.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != about["sha256"] or os.path.getsize(weights) != about["bytes"]:
        raise ValueError(f"{WEIGHTS} is not the file that {DESCRIPTION} was made for")
    if about["sha256"] not in text:
        raise ValueError(f"{CARD} does not name the SHA-256 of {WEIGHTS}")
    return about
