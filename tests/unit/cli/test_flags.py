"""From words to a configuration: what is chosen, what is said, what is refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from warpzone import config as configs
from warpzone.cli import older
from warpzone.cli.flags import resolve
from warpzone.cli.main import main
from warpzone.config import ConfigError, TrainConfig

Said = Callable[..., tuple[TrainConfig, list[str]]]


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*older.READ, *older.NOT_READ, "RUN_NAME", "AUTO_MEM"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def asked() -> Said:
    """The configuration that words resolve to, and what is said about it."""

    def ask(*words: str) -> tuple[TrainConfig, list[str]]:
        said: list[str] = []
        return resolve(words, prog="warpzone train", about="", say=said.append), said

    return ask


@pytest.fixture
def presets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The presets there are, and two for all stages."""
    folder = tmp_path / "presets"
    shutil.copytree(configs.PRESETS, folder)
    for name in ("all", "all-cpu"):
        (folder / f"{name}.toml").write_text('stages = "all"\nactions = "complex"\nsize = 84\n')
    monkeypatch.setattr(configs, "PRESETS", folder)
    return folder


def test_the_preset_is_chosen_and_said_in_one_line(asked: Said) -> None:
    config, said = asked("--device", "cpu")
    assert config.size == 42
    assert [line.partition(" (")[0] for line in said] == [
        "preset quick: one stage, and the network runs on the CPU"
    ]


@pytest.mark.usefixtures("presets")
@pytest.mark.parametrize(
    ("words", "preset"),
    [
        (["--stages", "all"], "all-cpu"),
        (["--stages=1-1..1-4"], "all-cpu"),
        (["--stage-span", "4"], "all-cpu"),
        (["--stage_span", "4"], "all-cpu"),
        (["--random-stage"], "all-cpu"),
        (["--whole-game"], "all-cpu"),
        (["--world", "1", "--stage", "1"], "quick"),
    ],
)
def test_many_stages_are_not_played_with_a_preset_of_one(
    asked: Said, words: list[str], preset: str
) -> None:
    config, said = asked("--device", "cpu", *words)
    assert said[0].startswith(f"preset {preset}: ")
    assert config.actions == {"quick": "right", "all-cpu": "complex"}[preset]


@pytest.mark.parametrize("words", [["--stages", "game"], ["--whole-game"]])
@pytest.mark.parametrize("cuda", [True, False])
def test_the_whole_game_is_played_with_the_chosen_preset(
    asked: Said, monkeypatch: pytest.MonkeyPatch, words: list[str], cuda: bool
) -> None:
    """The presets for all stages choose among them; a game is one after the other."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    config, said = asked(*words)
    assert said[0].startswith(f"preset {'all' if cuda else 'all-cpu'}: the whole game")
    assert config.curriculum == "none"
    assert asked("--stages", "all")[0].curriculum == "clear-rate"


def test_a_gpu_is_used(asked: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert asked()[1][0].startswith("preset fast-1-1: one stage, and the network runs on a GPU")
    assert asked("--device", "cpu")[1][0].startswith("preset quick: ")


def test_a_preset_by_name_says_when_it_is_used_for_other_stages(asked: Said) -> None:
    assert asked("--preset", "quick")[1] == []
    (line,) = asked("--preset", "quick", "--stages", "all")[1]
    assert line.startswith("[warn] preset quick was made for 1-1 and is used for all")


def test_all_stages_do_not_end_at_24_clears(asked: Said) -> None:
    config, _ = asked("--preset", "quick", "--stages", "all")
    assert config.clears_to_stop == 768


def test_a_number_of_clears_is_noted(asked: Said) -> None:
    config, said = asked("--preset", "quick", "--stop-at-clears", "31")
    assert config.stop_at == 1.0
    assert said == ["--stop-at-clears 31 is --stop-at 1 here: 31 of 31 start delays"]
    assert asked("--preset", "quick", "--stop-at-clears", "0")[0].stop_at == 0.0
    config, said = asked("--preset", "quick", "--stop-at", "0.5")
    assert (config.clears_to_stop, said) == (16, [])


def test_a_resumed_run_says_what_its_number_of_clears_means(asked: Said, tmp_path: Path) -> None:
    saved = Path(__file__).parents[1] / "config" / "saved" / "2026-11-15.json"
    values = json.loads(saved.read_text())
    assert values["stop_at_clears"] == 31
    run = tmp_path / "old"
    run.mkdir()
    (run / "config.json").write_text(saved.read_text())
    config, said = asked("--resume", str(run))
    assert config.stop_at == 0.5
    assert said == ["the run stops once 31 of 62 start delays are cleared (--stop-at)"]


@pytest.mark.parametrize(
    "words",
    [
        ["--stop-at", "0.5", "--stop-at-clears", "3"],
        ["--stop_at=0.5", "--stop_at_clears=3"],
        ["--compile", "--cuda-graphs"],
    ],
)
def test_flags_that_exclude_each_other(asked: Said, words: list[str]) -> None:
    with pytest.raises(ConfigError, match="exclude each other; give one of them"):
        asked("--preset", "quick", *words)


def test_compile_needs_no_other_flag(asked: Said) -> None:
    config, _ = asked("--device", "cpu", "--compile")
    assert config.compile
    assert not config.graphs


def test_x_is_always_read(asked: Said) -> None:
    _, said = asked("--preset", "quick", "--enable-ram-x-parse", "--ram-x-high-addr", "0x006D")
    (line,) = said
    assert line.startswith("--enable-ram-x-parse changes nothing with --backend native")
    assert line.endswith("x is always read")
    words = ("--backend", "backend_games:walk", "--num-envs", "8", "--rollout-steps", "64")
    assert asked("--preset", "quick", *words, "--enable-ram-x-parse")[1] == []


def test_variables_of_a_launcher_are_read(asked: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {
        "ACTION_TYPE": "extended",
        "REWARD_DISTANCE_WEIGHT": "0.05",
        "REWARD_SCALE_START": "0.2",
        "REWARD_SCALE_FINAL": "0.1",
        "REWARD_SCALE_ANNEAL_STEPS": "50000",
        "SCRIPTED_SEQUENCE": "START:8,RIGHT+B:180",
        "SCRIPTED_FORWARD_FRAMES": "60",
        "PROBE_FORWARD": "24",
        "ENABLE_RAM_X_PARSE": "1",
        "RAM_X_HIGH": "0x006D",
        "RAM_X_LOW": "0x0086",
        "MARIO_PER_MAX_MEM_GB": "2.5",
    }
    for name, text in values.items():
        monkeypatch.setenv(name, text)
    config, said = asked("--preset", "quick")
    assert config.actions == "extended"
    assert config.reward_distance_weight == 0.05
    assert (config.reward_scale_start, config.reward_scale_final) == (0.2, 0.1)
    assert config.reward_scale_anneal_steps == 50_000
    assert config.scripted_sequence == "START:8,RIGHT+B:180"
    assert (config.scripted_forward_frames, config.probe_forward_actions) == (60, 24)
    assert config.per_memory_gb == 2.5
    assert config.enable_ram_x_parse
    for name in values:
        assert any(line.startswith(f"the variable {name} is read as --") for line in said), name
    assert "the variable ACTION_TYPE is read as --actions extended" in said
    # A flag comes first.
    assert asked("--preset", "quick", "--actions", "complex")[0].actions == "complex"
    monkeypatch.delenv("PROBE_FORWARD")
    monkeypatch.setenv("FORWARD_ACTION_ID", "3")
    assert asked("--preset", "quick")[0].forward_action_id == 3


@pytest.mark.parametrize("name", older.NOT_READ)
def test_variables_without_a_flag_are_named(
    asked: Said, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "1")
    (line,) = asked("--preset", "quick")[1]
    assert line.startswith(f"the variable {name} is not read: ")


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("REWARD_DISTANCE_WEIGHT", "much", "a number"),
        ("PROBE_FORWARD", "1.5", "a whole number"),
        ("FORWARD_ACTION_ID", "x", "a whole number"),
        ("ENABLE_RAM_X_PARSE", "maybe", "0 or 1"),
    ],
)
def test_a_variable_that_makes_no_sense(
    asked: Said, monkeypatch: pytest.MonkeyPatch, name: str, text: str, wanted: str
) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(ConfigError) as refused:
        asked("--preset", "quick")
    assert str(refused.value) == f"the variable {name} must be {wanted}, not {text!r}"


def test_notes_are_printed_beside_the_output(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("warpzone.train.estimate.describe", lambda _: "")
    out = tmp_path / "config.json"
    words = ["train", "--device", "cpu", "--stages", "1-2", "--dry-run", "--config-out", str(out)]
    assert main(words) == 0
    said = capsys.readouterr()
    first, second = said.err.splitlines()
    assert first.startswith("[train] preset quick: one stage, and the network runs on the CPU")
    assert second.startswith("[train][warn] preset quick was made for 1-1 and is used for 1-2")
    assert json.loads(said.out)["stages"] == "1-2"
