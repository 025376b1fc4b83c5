"""The scaling model: its tables are those of the page, and its formulas are what they say."""

import json
import shutil
from pathlib import Path

import make_scaling
import pytest
from make_scaling import FAST, SLOW, Network, Parts

ROOT = Path(__file__).parents[3]


def test_pages_say_what_the_model_says() -> None:
    for page, words in make_scaling.PAGES.items():
        text = (ROOT / page).read_text()
        for name, block in make_scaling.blocks(words).items():
            assert f"<!-- {name} -->\n{block}\n<!-- /{name} -->" in text, (page, name)


def test_another_measurement_is_noticed_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "benchmarks", tmp_path / "benchmarks")
    (tmp_path / "docs").mkdir()
    for page in make_scaling.PAGES:
        shutil.copy(ROOT / page, tmp_path / page)
    path = tmp_path / "benchmarks" / "evaluation.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["seconds"] /= 2
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr(make_scaling, "ROOT", tmp_path)
    monkeypatch.setattr("sys.argv", ["make_scaling.py", "--check"])
    assert make_scaling.main() == 1
    assert capsys.readouterr().out.count("is not up to date") == 2
    monkeypatch.setattr("sys.argv", ["make_scaling.py"])
    assert make_scaling.main() == 0
    assert "4,600 steps/s" in (tmp_path / "docs/scaling.md").read_text()
    monkeypatch.setattr("sys.argv", ["make_scaling.py", "--check"])
    assert make_scaling.main() == 0


#: Round numbers: a second has 65,536 steps of a part that is not named.
SECOND = float(make_scaling.STEPS)
ROUND = Parts(engine=SECOND, threads=15, inference=SECOND, learner=SECOND, optimiser_steps=10)


def test_one_resource_adds_up_and_several_work_at_once() -> None:
    assert make_scaling.on_cores(ROUND) == pytest.approx(SECOND / 3)
    assert make_scaling.overlapped(ROUND) == pytest.approx(SECOND / 2)
    assert make_scaling.in_turns(ROUND) == pytest.approx(SECOND / 2)
    slow_engine = Parts(SECOND / 4, 15, SECOND, SECOND)
    assert make_scaling.overlapped(slow_engine) == pytest.approx(SECOND / 4)
    assert make_scaling.in_turns(slow_engine) == pytest.approx(SECOND / 5)


def test_the_engine_grows_by_machines() -> None:
    one = make_scaling.engine(ROUND, 16)
    assert make_scaling.engine(ROUND, 15) == pytest.approx(SECOND)
    assert make_scaling.engine(ROUND, 48) == pytest.approx(3 * one)
    assert make_scaling.engine(ROUND, 17) == pytest.approx(one + make_scaling.engine(ROUND, 1))
    assert make_scaling.speed_up(1) == 1
    # What it is fitted to.
    times = make_scaling.threads_rate(4, 1024, 16) / make_scaling.threads_rate(4, 1024, 1)
    assert make_scaling.speed_up(16) == pytest.approx(times)


def test_a_ring_sends_twice_what_the_others_hold() -> None:
    network = Network(bandwidth=1000.0, latency=0.5)
    assert make_scaling.all_reduce(100, 1, network) == 0
    assert make_scaling.all_reduce(100, 2, network) == pytest.approx(0.5 + 0.1)
    assert make_scaling.all_reduce(100, 4, network) == pytest.approx(1.0 + 0.15)


def test_what_limits_is_what_takes_longest() -> None:
    many = 10 * 16
    assert make_scaling.ranks(ROUND, 1, many, FAST).rate == pytest.approx(SECOND / 2)
    assert make_scaling.ranks(ROUND, 1, 2, FAST).limit == "engine"
    slow = make_scaling.ranks(ROUND, 8, many, Network(1e6, 1e-4))
    assert slow.limit == "all-reduce"
    exchange = sum(make_scaling.all_reduce(s, 8, Network(1e6, 1e-4)) for s in (24, _gradient()))
    assert slow.rate == pytest.approx(8 * SECOND / (2 + 10 * exchange))
    limits = [make_scaling.fleet(ROUND, cores, SLOW).limit for cores in (16, 10_000)]
    assert limits == ["actors", "learner"]
    fast = Parts(1e9, 15, 1e9, 1e9)
    assert make_scaling.fleet(fast, 10_000, SLOW).limit == "rollouts"
    assert make_scaling.fleet(fast, 10_000, SLOW).rate == pytest.approx(1.25e9 / 84**2)


def _gradient() -> int:
    return make_scaling.gradient()


def test_every_kind_of_point_is_compared() -> None:
    groups = {point.group for point in make_scaling.points()}
    for words in make_scaling.PAGES.values():
        assert set(words["groups"]) == groups
    # One GPU and two cores, with the present code: within a fifth.
    near = [p for p in make_scaling.points() if p.group in ("engine", "collecting", "gpu", "cores")]
    assert len(near) > 30
    assert max(abs(point.error) for point in near) < 0.2
