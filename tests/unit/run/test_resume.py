"""Which checkpoint is chosen, and what is said about the others."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from snapshots import snapshot
from tiny_runs import make_agent, same, tiny

from warpzone.cli.main import main
from warpzone.config import ConfigError, TrainConfig, from_dict
from warpzone.eval.weights import find_agent
from warpzone.run import reader
from warpzone.run.checkpoints import Checkpoints
from warpzone.run.files import sha256
from warpzone.run.folder import RunFolder, load_config
from warpzone.run.loading import find_weights
from warpzone.run.matching import FREE, NETWORK, compare
from warpzone.run.reader import latest_run
from warpzone.run.resume import find_start


def run_with(root: Path, name: str, *updates: int, **changes: Any) -> Path:
    config = tiny(runs_dir=str(root), run_name=name, **changes)
    folder = RunFolder.create(config)
    folder.write_config(config)
    folder.close()
    for update in updates:
        Checkpoints(folder.checkpoints).write(snapshot(update, config=config))
    return folder.path


def start(root: Path, mode: str, name: str = "", **changes: Any) -> tuple[Any, list[str]]:
    said: list[str] = []
    config = tiny(runs_dir=str(root), run_name=name, resume=mode, **changes)
    found = find_start(config, said.append)
    return found, said


def test_own_folder_first(tmp_path: Path) -> None:
    mine = run_with(tmp_path, "mine", 2, 1)
    run_with(tmp_path, "other", 2)
    found, said = start(tmp_path, "auto", "mine")
    assert found.folder == mine
    assert found.checkpoint.sidecar.global_update == 2
    assert said == [f"[train] resuming from {found.checkpoint.path}: update 2, step 64, written "
                    f"{found.checkpoint.sidecar.timestamp} (normal)"]  # fmt: skip


def test_auto_looks_below_the_root_for_what_fits(tmp_path: Path) -> None:
    run_with(tmp_path, "network", 1, hidden_size=32)
    run_with(tmp_path, "settings", 1, lr=0.5)
    over = run_with(tmp_path, "over", 3)
    deep = run_with(tmp_path / "deep" / "er", "fits", 1)
    found, said = start(tmp_path, "auto", "new")
    assert found.folder is None  # Its own folder will be a new one.
    assert found.checkpoint.folder == deep / "checkpoints"
    text = "\n".join(said)
    for name in ("network", "settings"):
        if str(tmp_path / name) in text:
            assert f"skipped {tmp_path / name}" in text
    # Without a name, the run that was found goes on where it is.
    found, _ = start(tmp_path, "auto")
    assert found.folder == deep
    # Nothing is left to do for a run that is over: it is not what was meant.
    (deep / "checkpoints").rename(tmp_path / "elsewhere")
    found, said = start(tmp_path / "over", "auto", max_steps=96)
    assert found.checkpoint is None
    assert any("its run has ended" in line for line in said)
    # One more update fits.
    found, _ = start(tmp_path / "over", "auto", max_steps=128)
    assert found.checkpoint.sidecar.global_update == 3
    assert over.exists()


def test_everything_passed_over_is_named(tmp_path: Path) -> None:
    run_with(tmp_path, "network", 1, hidden_size=32)
    run_with(tmp_path, "settings", 1, lr=0.5)
    found, said = start(tmp_path, "auto", "new")
    assert found.checkpoint is None
    text = "\n".join(said)
    assert "network mismatch (--hidden-size 32 there, 16 here)" in text
    assert "settings mismatch (--lr 0.5 there, 0.00025 here)" in text
    assert said[-1] == f"[train] no checkpoint below {tmp_path} fits: a new run starts"
    relaxed, _ = start(tmp_path, "auto", "new", resume_relax_match=True)
    assert relaxed.checkpoint.sidecar.config["lr"] == 0.5


def test_the_search_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_with(tmp_path, "far", 1)
    for index in range(30):
        (tmp_path / f"file{index}").write_text("")
    monkeypatch.setattr(reader, "MOST_FILES", 20)
    found, said = start(tmp_path, "auto")
    assert found.checkpoint is None
    assert f"[train][warn] stopped after 20 files below {tmp_path}" in said
    assert main(["checkpoints", "verify", str(tmp_path)]) == 0
    assert "1 checkpoints are intact" in capsys.readouterr().out  # Whoever asks for all gets all.
    monkeypatch.setattr(reader, "MOST_FILES", 200)
    found, said = start(tmp_path, "auto")
    assert found.checkpoint is not None
    assert not any("no further" in line for line in said)


def test_links_are_not_followed(tmp_path: Path) -> None:
    run_with(tmp_path / "far", "away", 1)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "link").symlink_to(tmp_path / "far")
    found, _ = start(tmp_path / "runs", "auto")
    assert found.checkpoint is None


def test_never_means_never(tmp_path: Path) -> None:
    run_with(tmp_path, "mine", 1)
    found, said = start(tmp_path, "never", "mine")
    assert found.checkpoint is None
    assert found.folder is None
    assert said == []


def test_latest_is_the_run_that_wrote_last(tmp_path: Path) -> None:
    run_with(tmp_path, "first", 9)
    second = run_with(tmp_path, "second", 1)
    assert latest_run(tmp_path) == second
    found, _ = start(tmp_path, "latest")
    assert found.folder == second
    with pytest.raises(ConfigError, match="there is no run"):
        start(tmp_path, "latest", "third")
    broken = tmp_path / "fourth" / "checkpoints"
    broken.mkdir(parents=True)
    (broken / "ppo_world1_stage1_latest.json").symlink_to(tmp_path / "nothing")
    assert latest_run(tmp_path) == second


def test_a_file_that_cannot_be_read_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bad sector, another user's file, or one that its run took away just now."""
    run = run_with(tmp_path, "mine", 1, 2)

    def read(path: Path) -> str:
        if path.name.endswith("2.state.pt"):
            raise OSError(5, "Input/output error")
        return sha256(path)

    monkeypatch.setattr("warpzone.run.checkpoints.sha256", read)
    found, said = start(tmp_path, "auto", "mine")
    assert found.checkpoint.sidecar.global_update == 1
    stem = run / "checkpoints" / "ppo_world1_stage1_0000002"
    assert said[0] == (f"[train][warn] skipped {stem}: it cannot be read: Input/output error")


@pytest.mark.parametrize(
    "text", [b"", b"[1, 2]", b"\xff\xfe", b"[" * 100_000, b'{"num_envs": "x"}']
)
def test_a_configuration_that_is_none_is_refused(tmp_path: Path, text: bytes) -> None:
    run = run_with(tmp_path, "mine", 1)
    (run / "config.json").write_bytes(text)
    with pytest.raises(ConfigError, match=r"config\.json cannot be used"):
        load_config(run)


def test_a_first_checkpoint_that_was_never_finished(tmp_path: Path) -> None:
    run = run_with(tmp_path, "mine", 1)
    for path in (run / "checkpoints").glob("*"):
        if path.suffix != ".pt":
            path.unlink()
    found, said = start(tmp_path, "auto", "mine")
    assert (found.checkpoint, found.folder) == (None, run)
    assert "it starts again" in said[-1]
    with pytest.raises(ConfigError, match="no checkpoint that can be used"):
        start(tmp_path, "latest", "mine")


def test_every_setting_is_free_or_compared() -> None:
    """A new setting is compared unless somebody says that it is free."""
    names = {field.name for field in dataclasses.fields(TrainConfig)}
    assert set(NETWORK) <= names
    assert names >= FREE
    assert not FREE & set(NETWORK)
    config = tiny()
    moved = config.replace(runs_dir="elsewhere", max_steps=10**6, num_threads=7, keep_last=9)
    assert compare(config, moved).refusal(relaxed=False) is None
    changed = compare(config, config.replace(num_envs=8, seed=3))
    assert changed.refusal(relaxed=True) is None
    assert "--num-envs" in str(changed.refusal(relaxed=False))


def test_old_configurations_load() -> None:
    """Without the fields that came later."""
    values = dataclasses.asdict(tiny())
    for name in ("resume", "keep_last", "checkpoint_minutes", "auto_mem"):
        del values[name]
    assert from_dict(values) == tiny()


def test_agents_load_from_every_kind_of_file(tmp_path: Path) -> None:
    config = tiny(runs_dir=str(tmp_path), run_name="one")
    folder = RunFolder.create(config)
    folder.write_config(config)
    agent = make_agent(config)
    with pytest.raises(ConfigError, match="no weights yet"):
        find_agent(folder.path)
    compiled = {f"_orig_mod.{name}": part for name, part in agent.state_dict().items()}
    written = Checkpoints(folder.checkpoints).write(snapshot(4, config=config, weights=compiled))
    stem = folder.checkpoints / written.sidecar.stem
    for path in (
        folder.path,
        folder.checkpoints,
        stem,
        written.path,
        stem.with_name(stem.name + ".safetensors"),
        folder.checkpoints / written.sidecar.latest,
    ):
        found = find_agent(path)
        assert same(found.agent, agent)
        assert found.config.hidden_size == config.hidden_size
    for path in folder.checkpoints.glob("*.json"):
        path.unlink()
    assert same(find_agent(stem).agent, agent)
    # Old weights of a compiled network, with nothing beside them but the run's configuration.
    from safetensors.torch import save_file

    save_file(
        {name: part.clone() for name, part in compiled.items()}, folder.path / "old.safetensors"
    )
    found = find_agent(folder.path / "old.safetensors")
    assert same(found.agent, agent)
    assert not found.guessed
    alone = tmp_path / "alone.safetensors"
    save_file({"a": torch.zeros(1)}, alone)
    with pytest.raises(ConfigError, match="its network is unknown"):
        find_weights(alone)
    with pytest.raises(ConfigError, match="there are no weights"):
        find_agent(tmp_path / "nothing")


def test_a_run_that_goes_on_takes_away_half_files(tmp_path: Path) -> None:
    run = run_with(tmp_path, "mine", 1)
    for place in (run, run / "checkpoints", run / "metrics"):
        place.mkdir(exist_ok=True)
        (place / ".latest.parquet.4711-0123abcd").write_bytes(b"half")
    folder = RunFolder.reopen(run)
    folder.rewind(tiny(), 0)
    folder.close()
    assert list(run.rglob("*.4711-*")) == []
