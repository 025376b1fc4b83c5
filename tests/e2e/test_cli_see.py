"""Looking at an agent from the command line: eval, video, map, report and play."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import make_agent, tiny

from warpzone.cli.main import main
from warpzone.run.folder import RunFolder
from warpzone.run.names import BEST

OUT = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with weights and a little history; its agent runs right into the first enemy."""
    config = tiny(actions="right", num_threads=1)
    agent = make_agent(config)
    with torch.no_grad():
        agent.heads.policy.weight.zero_()
        agent.heads.policy.bias.copy_(torch.tensor([0.0, 0.0, 0.0, 9.0, 0.0]))
    path = tmp_path / "runs" / "one"
    path.mkdir(parents=True)
    (path / "config.json").write_text(config.to_json())
    RunFolder(path).save_weights(BEST, agent, {"global_step": 64})
    row = {
        "global_step": 64, "stage": "1-1", "policy": "argmax", "start_delay": 0, "cleared": False,
        "furthest_x": 300, "steps": 40, "reason": "death", "seconds": 1.0,
    }  # fmt: skip
    (path / "evals.jsonl").write_text(json.dumps(row) + "\n")
    return path


def test_eval_writes_and_tells(capsys: OUT, run: Path, tmp_path: Path) -> None:
    words = ["eval", "latest", "--runs-dir", str(run.parent), "--stages", "1-1,1-3"]
    files = ["--json", str(tmp_path / "e.json"), "--parquet", str(tmp_path / "e.parquet")]
    assert main([*words, "--delays", "0,5", *files]) == 0
    said = capsys.readouterr().out
    assert "argmax: 0 of 4 episodes reach the flag" in said
    first = json.loads((tmp_path / "e.json").read_text())
    assert len(first["episodes"]) == 8
    assert first["global_step"] == 64
    assert (tmp_path / "e.parquet").stat().st_size > 500
    again = tmp_path / "again.json"
    assert main([*words, "--delays", "0,5", "--json", str(again)]) == 0
    assert json.loads(again.read_text()) == first


def test_eval_from_halfway_is_marked(capsys: OUT, run: Path, tmp_path: Path) -> None:
    """1-4 has no middle; 1-1 from there is not 1-1 from the door."""
    parquet = pytest.importorskip("pyarrow.parquet")
    words = ["eval", str(run), "--stages", "1-1,1-4", "--delays", "0", "--policy", "argmax"]
    documents = {}
    for name, flags in {"door": [], "middle": ["--start-halfway", "--baselines"]}.items():
        out = tmp_path / f"{name}.json"
        table = ["--parquet", str(tmp_path / f"{name}.parquet")]
        assert main([*words, *flags, "--json", str(out), *table]) == 0
        documents[name] = json.loads(out.read_text())
        said = capsys.readouterr()
        halfway = name == "middle"
        assert documents[name]["start_halfway"] is halfway
        assert (", starts halfway" in " ".join(said.out.split())) is halfway
        assert f"0 of 2 episodes{' from halfway' if halfway else ''} reach the flag" in said.out
        assert ("1-4 has no halfway page; the game begins at the door" in said.err) is halfway
    assert documents["middle"]["from_the_door"] == ["1-4"]
    about = json.loads(parquet.read_metadata(tmp_path / "middle.parquet").metadata[b"warpzone"])
    assert about["start_halfway"] is True
    door, middle = (
        {row["stage"]: row["x"] for row in document["episodes"] if row["policy"] == "argmax"}
        for document in documents.values()
    )
    assert door["1-1"] < 1000 < middle["1-1"]
    others = {
        row["policy"]: row["x"]
        for row in documents["middle"]["episodes"]
        if row["stage"] == "1-1" and row["policy"] != "argmax"
    }
    assert others.keys() == {"random", "scripted"}
    assert min(others.values()) > 1000


def test_eval_of_whole_games_and_of_weights_alone(capsys: OUT, run: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    alone = tmp_path / "old.safetensors"
    (run / BEST).rename(alone)
    out = tmp_path / "games.json"
    words = ["eval", str(alone), "--whole-game", "--delays", "3", "--policy", "argmax"]
    table = tmp_path / "games.parquet"
    assert main([*words, "--json", str(out), "--parquet", str(table)]) == 0
    said = capsys.readouterr()
    assert "no configuration beside it" in said.err
    assert "0 of 1 games won, 1 of them different" in said.out
    (game,) = json.loads(out.read_text())["games"]
    assert (game["stage"], game["reason"]) == ("1-1", "game over")
    assert parquet.read_table(table).to_pylist() == [game]
    assert main([*words, "--stuck-after", "1"]) == 0
    assert "stuck" in capsys.readouterr().out


def test_videos(capsys: OUT, run: Path, tmp_path: Path) -> None:
    imageio = pytest.importorskip("imageio.v3")
    out = tmp_path / "v.mp4"
    assert main(["video", str(run), "--out", str(out), "--scale", "1", "--slow", "1"]) == 0
    assert "dies at x=" in capsys.readouterr().out
    assert imageio.imread(out, index=0).shape[:2] == (240, 368)
    wall = tmp_path / "w.gif"
    words = ["--stage", "1-1,1-3", "--mosaic", "2x1", "--overlay", "none", "--slow", "1"]
    assert main(["video", str(run), "--out", str(wall), *words]) == 0
    assert imageio.imread(wall, index=0).shape[:2] == (240, 514)


def test_map_and_report(capsys: OUT, run: Path, tmp_path: Path) -> None:
    imageio = pytest.importorskip("imageio.v3")
    picture, page = tmp_path / "m.png", tmp_path / "r.html"
    assert main(["map", "1-1", "--out", str(picture)]) == 0
    assert imageio.imread(picture).shape[:2] == (208, 3392)
    assert main(["map", "1-1", "--out", str(picture), "--run", str(run)]) == 0
    assert imageio.imread(picture).shape[0] > 208
    heat = picture.read_bytes()
    words = ["--run", "latest", "--runs-dir", str(run.parent)]
    assert main(["map", "1-1", "--out", str(picture), *words]) == 0
    assert picture.read_bytes() == heat
    assert main(["map", "1-2", "--out", str(picture), "--rooms"]) == 0
    assert main(["report", str(run), "--out", str(page)]) == 0
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert "data:image/png;base64," in text
    assert "argmax clears: 0 of 1" in text


def test_play_an_agent(capsys: OUT, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.png"
    assert main(["play", str(run), "--out", str(out), "--json", "--stage", "1-1"]) == 0
    ended = json.loads(capsys.readouterr().out)
    assert (ended["end"], ended["stage"], ended["written"]) == ("death", "1-1", 1)
    assert main(["play", str(run), "--steps", "2", "--terminal"]) == 0
    assert "stopped at x=" in capsys.readouterr().out


def test_an_agent_begins_as_it_is_told(capsys: OUT, run: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "b.gif")
    words = [str(run), "--out", out, "--scale", "1"]
    assert main(["play", *words, "--start-power", "fire", "--steps", "2", "--stage", "1-2"]) == 0
    assert "1-2 from start delay 0, as fire: stopped at x=" in capsys.readouterr().out
    few = ["--stuck-after", "1", "--slow", "1", "--mosaic", "2x1", "--stage", "1-1,1-4"]
    assert main(["video", *words, *few, "--start-halfway"]) == 0
    said = capsys.readouterr()
    assert said.err == (
        "warpzone video: 1-4 has no halfway page; the game begins at the door there\n"
    )
    assert "1-1, start delay 0, from halfway: dies at x=" in said.out
    assert "1-4, start delay 0: " in said.out


def test_training_films(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: OUT) -> None:
    """A video is made while the run goes on, and is there when it is over."""
    from functools import partial

    from warpzone.eval import evaluate
    from warpzone.observers import video_maker

    few = partial(evaluate.evaluate, delays=(0,), stuck_after=3)
    monkeypatch.setattr("warpzone.train.evaluator.evaluate", few)
    monkeypatch.setattr(evaluate, "STUCK_AFTER", 3)
    monkeypatch.setattr("warpzone.observers.video.STUCK_AFTER", 5)
    # At the lowest priority it would take minutes beside other tests.
    monkeypatch.setattr(video_maker, "MAKER", (sys.executable, "-m", *video_maker.MAKER[3:]))
    monkeypatch.setattr(video_maker, "LONGEST_AT_END", 900.0)
    words = (
        "train --num-envs 4 --groups 1 --rollout-steps 8 --minibatch 32 --epochs 1 --size 36 "
        "--encoder-width 0.125 --hidden-size 16 --max-steps 64 --device cpu --run-name videos "
        f"--runs-dir {tmp_path} --video-interval 64 --video-overlay none --num-threads 1"
    )
    assert main(words.split()) == 0
    names = sorted(path.name for path in (tmp_path / "videos" / "videos").iterdir())
    assert names == ["step_0000000064.mp4"]
    line = "[video] step_0000000064.mp4: 1-1, start delay 0: "
    assert line in capsys.readouterr().err
    assert line in (tmp_path / "videos" / "logs" / "train.log").read_text()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["eval", "no-such-run"], "no-such-run"),
        (["eval", "RUN", "--stages", "9-9"], "9-9"),
        (["eval", "RUN", "--delays", "0..500"], "0..500"),
        (["eval", "RUN", "--stuck-after", "0"], "--stuck-after"),
        (["eval", "RUN", "--whole-game", "--stages", "1-2"], "--stages"),
        (["eval", "RUN", "--whole-game", "--start-halfway"], "the whole game begins"),
        (["eval", "RUN", "--start-halfway", "--start-power", "big"], "leave out --start-power"),
        (["eval", "latest", "--runs-dir", "no-such-folder"], "no-such-folder"),
        (["video", "RUN", "--out", "x.avi"], "avi"),
        (["video", "RUN", "--out", "x.mp4", "--stuck-after", "0"], "--stuck-after"),
        (["video", "RUN", "--out", "x.mp4", "--overlay", "hat"], "hat"),
        (["video", "RUN", "--out", "x.mp4", "--mosaic", "99x99"], "99x99"),
        (["video", "RUN", "--out", "x.mp4", "--stage", "all"], "one stage"),
        (["video", "RUN", "--out", "x.mp4", "--delay", "999"], "999"),
        (["map", "9-1", "--out", "x.png"], "9-1"),
        (["map", "1-1", "--out", "x.jpg"], "x.jpg"),
        (["map", "1-1", "--out", "x.png", "--run", "no-such-run"], "no-such-run"),
        (["report", "no-such-run", "--out", "x.html"], "no-such-run"),
        (["report", "RUN", "--out", "x.pdf"], "x.pdf"),
        (["play", "RUN", "--random"], "no other source"),
        (["play", "RUN", "--stage", "game", "--start-halfway"], "the whole game begins"),
        (["video", "RUN", "--start-halfway", "--start-power", "big"], "leave out --start-power"),
    ],
)
def test_bad_input_is_one_sentence(capsys: OUT, run: Path, words: list[str], text: str) -> None:
    assert main([str(run) if word == "RUN" else word for word in words]) == 2
    error = capsys.readouterr().err
    assert text in error
    assert len(error.strip().splitlines()) == 1
    assert not list(Path.cwd().glob("x.*"))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["eval", "RUN", "--json", "no/such/folder/x.json"], "the folder no/such/folder"),
        (["eval", "RUN", "--parquet", "no/such/folder/x.parquet"], "the folder no/such/folder"),
        (["eval", "x.safetensors"], "x.safetensors cannot be read"),
        (["eval", "RUN", "--rom", "no-such-rom.nes"], "no-such-rom.nes"),
        (["video", "RUN", "--out", "no/such/folder/x.mp4"], "no/such/folder"),
        (["map", "1-1", "--out", "no/such/folder/x.png"], "no/such/folder"),
        (["report", "RUN", "--out", "no/such/folder/x.html"], "no/such/folder"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    capsys: OUT, run: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], text: str
) -> None:
    monkeypatch.chdir(run)
    Path("x.safetensors").write_bytes(b"not weights")
    assert main([str(run) if word == "RUN" else word for word in words]) == 1
    error = capsys.readouterr().err
    assert text in error
    assert len(error.strip().splitlines()) == 1
