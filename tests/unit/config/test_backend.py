"""The flags of back-ends: what is refused, and with which sentence."""

from typing import Any

import pytest

from warpzone.config import ConfigError, TrainConfig, from_dict
from warpzone.config.backend import ram_address
from warpzone.env.backends import retro
from warpzone.env.backends.interface import BackendError


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"backend": "snes"}, "native, nes-py, retro or module:factory"),
        ({"backend": "retro", "force_sync": True}, "one game in a process"),
        ({"backend": "nes-py", "archive_share": 0.5}, "--archive-share saves lanes"),
        ({"backend": "nes-py", "observation": "tiles"}, "made by the native engine"),
        ({"backend": "nes-py", "observation": "ram"}, "--observation ram is made by the native"),
        ({"backend": "nes-py", "num_envs": 256}, "a process for each lane"),
        ({"backend": "a:b", "ram_x_high_addr": "0x0800"}, r"0x0000\.\.0x07FF"),
        ({"backend": "a:b", "ram_x_low_addr": "six"}, "--ram-x-low-addr .* not 'six'"),
        ({"env_reset_timeout": 0.0}, "--env-reset-timeout must be above 0"),
        ({"worker_start_delay": -1.0}, "--worker-start-delay must be at least 0"),
    ],
)
def test_refusals(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        TrainConfig(**{"num_envs": 16, **changes})


def test_reading_x_from_ram_is_accepted_where_x_is_always_read() -> None:
    """Old command lines carry the flag; `cli/older.py` says what becomes of it."""
    assert TrainConfig(enable_ram_x_parse=True).backend == "native"


def test_old_configurations_load() -> None:
    config = from_dict({"stages": "1-1"})
    assert config.backend == "native"
    assert not config.force_sync


def test_addresses() -> None:
    assert ram_address("0x006D") == ram_address("109") == 0x6D
    for backend in ("nes-py", "retro", "some.module:factory"):
        assert TrainConfig(backend=backend, num_envs=16).backend == backend


def test_missing_retro_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(BackendError, match=r"needs stable-retro, .* 'warpzone\[retro\]'"):
        retro.check()
