"""The ids of gym-super-mario-bros under Gymnasium."""

import warnings
from typing import Any

import gymnasium
from gymnasium.envs import registration

from warpzone.compat.environments import ROMS
from warpzone.compat.wrappers import FourTuple

_GAME = "warpzone.compat.environments:SuperMarioBrosEnv"
_RANDOM = "warpzone.compat.environments:SuperMarioBrosRandomStagesEnv"


def environments() -> dict[str, tuple[str, dict[str, Any]]]:
    """Every id, its class, and the arguments behind it."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for version, mode in enumerate(ROMS[False]):
        found[f"SuperMarioBros-v{version}"] = (_GAME, {"rom_mode": mode})
        found[f"SuperMarioBrosRandomStages-v{version}"] = (_RANDOM, {"rom_mode": mode})
        for world in range(1, 9):
            for stage in range(1, 5):
                name = f"SuperMarioBros-{world}-{stage}-v{version}"
                found[name] = (_GAME, {"rom_mode": mode, "target": (world, stage)})
    for version, mode in enumerate(ROMS[True]):
        found[f"SuperMarioBros2-v{version}"] = (_GAME, {"rom_mode": mode, "lost_levels": True})
    return found


def register() -> None:
    """Tells Gymnasium about all of them, once."""
    for name, (entry_point, arguments) in environments().items():
        if name not in registration.registry:
            registration.register(
                name,
                entry_point=entry_point,
                kwargs=arguments,
                reward_threshold=9999999,
                nondeterministic=True,
            )


def make(id: str, **options: Any) -> FourTuple:
    """The environment with the interface of old gym; for Gymnasium's, call `gymnasium.make`."""
    with warnings.catch_warnings():
        # Versions are ROMs here: an older one is not out of date.
        warnings.filterwarnings("ignore", message=".*is out of date")
        return FourTuple(gymnasium.make(id, disable_env_checker=True, **options))
