"""What is written down about an agent: its command, its network, its results."""

import dataclasses
import json
import shlex

from small_agents import evaluation

from warpzone.cli.flags import resolve
from warpzone.config import TrainConfig, load_preset
from warpzone.eval.description import (
    as_text,
    describe,
    network_words,
    shortest_command,
    taught_command,
    training_command,
)

FILE = {"sha256": "0" * 64, "bytes": 10, "parameters": 2}


def test_the_command_is_told_against_the_nearest_preset() -> None:
    values = dataclasses.asdict(load_preset("all").replace(seed=9, runs_dir="/home/me", size=42))
    command = shortest_command(values)
    assert command == "warpzone train --preset all --size 42 --seed 9"
    again = resolve(shlex.split(command)[2:], prog="warpzone train", about="")
    assert (again.seed, again.size, again.stages) == (9, 42, "all")


def test_a_command_says_what_ways_are_called_and_not_where_they_were() -> None:
    values = dataclasses.asdict(load_preset("all").replace(ways="/home/me/ways", runs_dir="/home"))
    assert training_command(values, "all") == "warpzone train --preset all --ways ways"


def test_a_description_of_defaults() -> None:
    about = describe("mine", {"stages": "1-1"}, FILE, {"steps": 3}, [evaluation({"1-1": "11"})])
    assert about["config"]["stages"] == "1-1"
    assert about["config"]["size"] == TrainConfig().size
    assert about["measured"][0]["clears"] == {"argmax": {"1-1": "11"}}
    assert about["sample"] == [{"stage": "1-1", "start_delay": 0, "cleared": True}]
    assert json.loads(as_text(about)) == about
    assert describe("mine", {}, FILE, {"steps": 3}, [])["measured"] == []


def test_networks_in_words() -> None:
    values = dataclasses.asdict(TrainConfig(memory="lstm", encoder="impala", size=64))
    words = network_words(values)
    assert words == "impala encoder of width 1, lstm of 512; 4 x 64x64, simple actions"


def test_a_taught_agent_names_its_course() -> None:
    """What is no such command is not put on a card, whoever wrote it into the folder."""
    course = "warpzone teach all --stages 4-3"
    assert taught_command({"taught": course}) == course
    for other in (None, 7, "", "rm -r x", course + "\n", "warpzone train", course + 500 * "x"):
        assert taught_command({"taught": other}) is None
    assert taught_command({}) is None
