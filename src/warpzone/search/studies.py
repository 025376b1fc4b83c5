"""The study of a sweep in its storage: made once, opened by all workers, compared with the file."""

from __future__ import annotations

import json
from typing import Any

import optuna
from optuna.storages import BaseStorage

import warpzone
from warpzone.config import ConfigError
from warpzone.search.address import Address
from warpzone.search.samplers import make_pruner, make_sampler
from warpzone.search.space import Space, differences
from warpzone.search.storage import StorageError, open_storage

#: The key of what is kept with a study, and its version. Another number is another meaning of what
#: trials note (`budget.py`) or of their values (`objective.py`).
KEPT, FORMAT = "warpzone", 1


def open_study(space: Space, address: Address, interval: int) -> optuna.Study:
    """The study of a space; it is made if there is none. ConfigError if there is one of that name
    with another space, StorageError if it cannot be read."""
    storage = open_storage(address, interval)
    names = {study.study_name for study in storage.get_all_studies()}
    settings: dict[str, Any] = {
        "study_name": space.name,
        "storage": storage,
        "sampler": make_sampler(space),
        "pruner": make_pruner(space),
    }
    try:
        if space.name in names:
            require_same(space, _kept(storage, space.name))
            study = optuna.load_study(**settings)
        else:
            direction = space.objective.direction
            study = optuna.create_study(**settings, direction=direction, load_if_exists=True)
    except optuna.exceptions.StorageInternalError as error:
        raise StorageError("the storage refuses to keep the sweep") from error
    if KEPT not in study.user_attrs:
        kept = {"format": FORMAT, "version": warpzone.__version__, "space": space.identity()}
        study.set_user_attr(KEPT, kept)
    # Of two sweeps that were begun at the same moment, the later one looks here.
    require_same(space, study.user_attrs[KEPT])
    return study


def _kept(storage: BaseStorage, name: str) -> Any:
    study_id = storage.get_study_id_from_name(name)
    kept = storage.get_study_user_attrs(study_id).get(KEPT)
    if kept is None and storage.get_all_trials(study_id, deepcopy=False):
        raise ConfigError(f"the storage has a study {name} that is no sweep of warpzone; rename it")
    return kept


def require_same(space: Space, kept: Any) -> None:
    """ConfigError if what a storage keeps under this name is something else."""
    if kept is None:
        return
    if not isinstance(kept, dict) or kept.get("format") != FORMAT:
        found = kept.get("format") if isinstance(kept, dict) else None
        raise ConfigError(
            f"the sweep {space.name} in the storage has format {found!r}, and this version writes "
            f"{FORMAT}; choose another name"
        )
    differing = differences(kept.get("space"), json.loads(json.dumps(space.identity())))
    if differing:
        raise ConfigError(
            f"the storage has a sweep {space.name} of another space ({', '.join(differing)} "
            "differ); choose another name"
        )
