"""A time is a number in the unit of its flag, or says its own."""

import dataclasses
import re
from pathlib import Path

import pytest

from warpzone.cli import durations
from warpzone.cli.flags import resolve
from warpzone.cli.main import main
from warpzone.config import ConfigError, TrainConfig

SOURCES = Path(__file__).parents[3] / "src" / "warpzone" / "config"


def resolved(*words: str) -> TrainConfig:
    flags = ["--preset", "quick", "--device", "cpu", *words]
    return resolve(flags, prog="warpzone train", about="", say=lambda _: None)


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["--max-time", "1m"], "max_time", 1.0),
        (["--max-time=90s"], "max_time", 1.5),
        (["--max_time", ".5h"], "max_time", 30.0),
        (["--max-time", "7"], "max_time", 7.0),
        (["--checkpoint-minutes", "30s"], "checkpoint_minutes", 0.5),
        (["--heartbeat-interval", "2m"], "heartbeat_interval", 120.0),
        (["--max-cost-gpu-hours", "90m"], "max_cost_gpu_hours", 1.5),
        (["--run-name", "5m"], "run_name", "5m"),
    ],
)
def test_a_time_may_say_its_unit(words: list[str], name: str, value: object) -> None:
    assert getattr(resolved(*words), name) == value


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--max-time", "1x"],
            "--max-time must be a number of minutes, or a time such as 90s, 5m or 2h, not '1x'",
        ),
        (
            ["--stall-timeout", "soon"],
            "--stall-timeout must be a number of seconds, or a time such as 90s, 5m or 2h, "
            "not 'soon'",
        ),
        (["--lr", "1m"], "--lr must be a number, not '1m'"),
        (["--max-time", "-1m"], "--max-time must be at least 0, and is -1.0"),
    ],
)
def test_a_refused_time_hears_of_its_unit(words: list[str], sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        resolved(*words)
    assert str(refused.value) == sentence


def test_sweeps_take_times_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert durations.minutes("2h") == 120.0
    with pytest.raises(SystemExit) as stop:
        main(["sweep", "space.toml", "--trials", "1", "--max-time", "1x"])
    assert stop.value.code == 2
    assert capsys.readouterr().err.endswith(
        "argument --max-time: must be a number of minutes, or a time such as 90s, 5m or 2h, "
        "not '1x'\n"
    )


def test_every_flag_that_is_a_time_is_known() -> None:
    """By the words of its description in the source."""
    told = {}
    for path in SOURCES.glob("*.py"):
        for name, text in re.findall(
            r'    (\w+): Annotated\[float.*\n    """(.*)"""', path.read_text()
        ):
            if unit := re.search(r"\b(second|minute|hour)s\b", text.lower()):
                told["--" + name.replace("_", "-")] = unit[0]
    assert told == durations.units()
    assert {"--max-time", "--rank-timeout"} <= told.keys()
    assert len(told) < len(dataclasses.fields(TrainConfig))
