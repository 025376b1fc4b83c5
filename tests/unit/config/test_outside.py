"""Which code plug-ins may load: what is agreed to, unchanged, or installed."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from warpzone.config import ConfigError, TrainConfig
from warpzone.config.outside import agree, check_backend, load_plugin, plugins_of
from warpzone.env import outside

SOURCE = "def reward(step):\n    return step.reward\n"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with a plug-in, and nothing agreed to yet."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(outside, "agreed_folder", lambda: tmp_path / "agreed")
    monkeypatch.setattr(outside, "_agreed", set[str]())
    monkeypatch.setattr(outside, "_loaded", {})
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    (here / "wz_plug.py").write_text(SOURCE)
    return here


def config(**fields: str) -> TrainConfig:
    return TrainConfig(**fields)  # type: ignore[arg-type]


def load(given: TrainConfig) -> object:
    return load_plugin("reward", given.own_reward, given)


def test_names_are_checked_when_a_configuration_is_made() -> None:
    for field in ("reward", "network", "observer"):
        with pytest.raises(ConfigError, match=f"--{field} must be .*module:.*not 'fame'"):
            config(**{field: "fame"})
    with pytest.raises(ConfigError, match="module:name=SHA-256 for each plug-in, not a:b=12"):
        config(plugins_sha256="a:b=12")
    all_three = config(reward="a:b", network="c:D", observer="e:F, g:H")
    assert list(plugins_of(all_three)) == [
        ("reward", "a:b"),
        ("network", "c:D"),
        ("observer", "e:F"),
        ("observer", "g:H"),
    ]
    assert all_three.base_reward == "progress"
    assert config(reward="gym").base_reward == "gym"
    assert list(plugins_of(config(reward="gym"))) == []
    played = TrainConfig(backend="i:j", num_envs=4, minibatch=16, rollout_steps=8)
    assert list(plugins_of(played.replace(backend="nes-py"))) == []
    assert list(plugins_of(played)) == [("backend", "i:j")]
    # Whoever makes it says that it is not there.
    check_backend(played)


def test_what_the_user_named_is_loaded_and_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    given = agree(config(reward="wz_plug:reward"))
    assert given.recorded == {"wz_plug:reward": hashlib.sha256(SOURCE.encode()).hexdigest()}
    assert callable(load(given))
    # Another process knows it as well, by its content.
    monkeypatch.setattr(outside, "_agreed", set[str]())
    assert load(given) is load(given)


def test_code_that_nobody_agreed_to_does_not_run(own_folder: Path) -> None:
    (own_folder / "wz_plug.py").write_text("raise SystemExit('it ran')\n")
    digest = hashlib.sha256(b"raise SystemExit('it ran')\n").hexdigest()
    for recorded in ("", f"wz_plug:reward={digest}"):
        with pytest.raises(ConfigError, match=r"you have not used yet.*--reward wz_plug:reward"):
            load(config(reward="wz_plug:reward", plugins_sha256=recorded))
    # Neither by a package of the current folder, nor by what it is below.
    (own_folder / "wz_pack").mkdir()
    (own_folder / "wz_pack" / "__init__.py").write_text("raise SystemExit('it ran')\n")
    for path in ([], [str(own_folder)], [""]):
        sys.path[:0] = path
        try:
            for name in ("wz_pack:reward", "wz_pack.inner:reward"):
                with pytest.raises(ConfigError, match="is missing: there is no module wz_pack"):
                    load(config(reward=name))
        finally:
            del sys.path[: len(path)]


def test_agreeing_to_one_kind_is_not_agreeing_to_others() -> None:
    mixed = config(reward="wz_plug:reward", network="wz_plug:Net")
    assert agree(mixed, ()).plugins_sha256 == ""
    with pytest.raises(ConfigError, match="have not used yet"):
        load(agree(mixed, ()))


def test_a_changed_file_is_refused_until_it_is_named_again(own_folder: Path) -> None:
    given = agree(config(reward="wz_plug:reward"))
    first = load(given)
    (own_folder / "wz_plug.py").write_text(SOURCE + "# Another\n")
    with pytest.raises(ConfigError, match=r"has changed: .*wz_plug\.py is not the file .*--reward"):
        load(given)
    again = agree(given)
    assert again.plugins_sha256 != given.plugins_sha256
    assert load(again) is not first
    # A digest that was given is not replaced.
    with pytest.raises(ConfigError, match="has changed"):
        load(agree(given, pinned=True))


def test_what_is_missing_is_named(own_folder: Path) -> None:
    given = agree(config(reward="wz_plug:reward"))
    with pytest.raises(ConfigError, match=r"wz_plug\.py has no 'fame'"):
        load(agree(config(reward="wz_plug:fame")))
    (own_folder / "wz_plug.py").unlink()
    with pytest.raises(ConfigError, match=r"is missing: .* wz_plug on .*wz_plug\.py"):
        load(given)


def test_installed_modules_need_no_agreement() -> None:
    assert load(config(reward="warpzone.env.rewards:RewardWeights")) is not None
    assert load(config(reward="hashlib:sha256")) is hashlib.sha256
