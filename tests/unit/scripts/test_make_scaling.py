"""The scaling model: its tables are those of the page, and its formulas are what they say."""

import json
import shutil
from pathlib import Path

import make_scaling
import pytest
from scaling import costs
from scaling.parts import FAST, SLOW, Network, Parts

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


def test_actors_of_an_idle_machine_are_compared_by_the_clock_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that is appended is that of the present code from then on."""
    shutil.copytree(ROOT / "benchmarks", tmp_path / "benchmarks")
    monkeypatch.setattr(make_scaling, "ROOT", tmp_path)
    path = tmp_path / "benchmarks" / "fleet.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for load, points in ((0.3, 4), (5.0, 2)):
        rows.append({**rows[-1], "load": load})
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        found = [point for point in make_scaling.points() if point.group == "actors"]
        assert len(found) == points
        assert all(f"fleet.jsonl:{len(rows)}," in point.what for point in found)
        by = "CPU time and by the clock" if points == 4 else "CPU time"
        line = f"| 1 and 2 actors beside one process, {by} (`fleet.jsonl`, line {len(rows)}) |"
        assert line in make_scaling.comparison(make_scaling.PAGES["docs/scaling.md"])


CASE = {"cpu_quartiles": [0.99, 1.004, 1.021], "wall_ratio": 1.013, "rounds": 20}
MACHINE = {"cores": 2, "load": 0.4}
COSTS = make_scaling.PAGES["docs/scaling.md"]["costs"]


def test_what_one_rank_costs() -> None:
    found = {"machine": MACHINE, "preset": "quick", "cases": {"ppo": CASE, "vtrace": CASE}}
    text = " ".join(costs.one_rank(found, COSTS).split())
    assert "takes 0.4 % more CPU time than a plain run: the median of 20 updates" in text
    assert text.endswith(
        "V-trace: +0.4 %, with quartiles of -1.0 % and +2.1 %. By the clock: +1.3 % and +1.3 %."
    )
    busy = {**found, "machine": {"cores": 2, "load": 2.0}, "cases": {"ppo": CASE}}
    text = " ".join(costs.one_rank(busy, COSTS).split())
    assert "V-trace was not measured. The noise" in text
    assert "By the clock" not in text


def test_what_actors_cost() -> None:
    kinds = {"serial": {}, "actors 1": {"cpu_ratio": 0.8, "ratio": 0.9}}
    row = {**MACHINE, "rounds": 5, "kinds": kinds}
    lines = costs.actors([row, row], 1, COSTS).splitlines()
    assert lines[2:4] == [
        "| 1, older code | 2 cores, load 0.4 | 5 | 1 | 1.25 | 0.90 |",
        "| 2 | 2 cores, load 0.4 | 5 | 1 | 1.25 | 0.90 |",
    ]
    assert lines[-1] == "Wanted are 0.8 by the clock."


def test_what_a_lag_costs() -> None:
    """The last row of each kind and seed; a kind that a seed lacks is left out there."""

    def row(
        algo: str, lag: int, seed: int, steps: int, *, anchored: bool = False
    ) -> dict[str, object]:
        known = {"algo": algo, "lag": lag, "anchored": anchored, "seed": seed, "steps": steps}
        return {**known, "avg_return": steps / 1e4, "env_mean_x_pos": 800.4}

    rows = [
        row("ppo", 16, 1, 500_000),
        row("appo", 0, 1, 100_000),
        row("appo", 0, 1, 500_000),
        row("appo", 4, 2, 300_000, anchored=True),
        row("appo", 4, 1, 400_000),
    ]
    assert costs.lags(rows, COSTS).splitlines() == [
        "| updates behind | seed 1 | seed 2 |",
        "|---|---|---|",
        "| 0 | 50, 800 (0.50M) | - |",
        "| 4, change measured from the policy that played | 40, 800 (0.40M) | - |",
        "| 4 | - | 30, 800 (0.30M) |",
        "| 16, PPO: nothing corrected | 50, 800 (0.50M) | - |",
    ]


def test_what_would_be_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["make_scaling.py", "--measure", "--dry-run"])
    assert make_scaling.main() == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[:4] for line in said[:2]] == [
        ["would", "run", "python", "benchmarks/ranks_overhead.py"],
        ["would", "run", "python", "benchmarks/fleet.py"],
    ]


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
