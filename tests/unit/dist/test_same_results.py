"""Two ranks with half of the lanes each learn what one process with all of them learns."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from kept_ways import PRACTISED
from rank_pool import RankPool
from rank_runs import alone, learned
from tiny_runs import Recorder, tiny

from warpzone.algo.algorithm import Batch, Losses
from warpzone.algo.ppo import Ppo
from warpzone.collect import ways
from warpzone.collect.ranks import ALONE, Ranks
from warpzone.collect.search import find_way
from warpzone.config import ConfigError, TrainConfig
from warpzone.dist.group import GroupRanks
from warpzone.learn.learner import Learner
from warpzone.run.reader import read_rows
from warpzone.train import fitting, ladder
from warpzone.train.ladder import out_of_memory
from warpzone.train.loop import Result, Run
from warpzone.train.session import train
from warpzone.train.stopping import Stop

UPDATES = 20
#: Sums of gradients are added up in another order, and Adam divides small numbers by small ones.
CLOSE: Any = {"rtol": 1e-3, "atol": 1e-5}
KINDS: dict[str, dict[str, Any]] = {
    "ppo": {"epochs": 2, "target_kl": 0.02, "sticky": 0.2},
    "stopped": {"epochs": 3, "target_kl": 0.002, "lr": 3e-3, "minibatch": 8},
    "accumulated": {"minibatch": 8, "grad_accum": 2, "augment_shift": 2, "weight_decay": 0.01},
    "vtrace": {"algo": "vtrace", "normalize_advantages": True},
    "memory": {"memory": "gru", "ema": 0.9, "previous_action": True, "minibatch": 8},
    "noisy": {"algo": "a2c", "noisy": True, "augment_brightness": 0.3},
    "guided": {
        "stages": "1-1,1-2",
        "curriculum": "clear-rate",
        "archive_share": 0.5,
        "archive_explore": 0.3,
        "archive_cell": 16,
        "adaptive": True,
        "adaptive_window": 4,
        "adaptive_cooldown": 2,
        "scripted_sequence": "RIGHT+B:20",
        "scripted_share": 1.0,
        "memory": "lstm",
        "algo": "vtrace",
        "grad_accum": 2,
        "minibatch": 8,
        "normalize_advantages": True,
    },
    "ways": PRACTISED,
    # Ten segments of four lanes fit, and a sample is three minibatches, the last a smaller one.
    "replay": {
        "algo": "vtrace",
        "per": True,
        "per_memory_gb": 10.5 * 16001 / 2**30,
        "per_segments": 5,
        "per_burn_in": 2,
        "per_interval_max": 2,
        "memory": "gru",
        "normalize_advantages": True,
        "augment_shift": 2,
    },
    "behind": {"algo": "appo", "epochs": 2, "overlap_collect": True, "minibatch": 8},
    "overlap": {"overlap_collect": True, "curriculum": "progress", "stages": "1-1,1-2"},
}


@pytest.fixture(scope="module")
def pool() -> Iterator[RankPool]:
    made = RankPool()
    yield made
    made.close()


def settings(folder: Path, **changes: Any) -> TrainConfig:
    values = {"max_steps": UPDATES * 32, "checkpoint_minutes": 0.0, "run_name": "one"}
    return tiny(runs_dir=str(folder), **{**values, **changes})


@pytest.mark.parametrize("kind", KINDS)
def test_two_ranks_learn_what_one_process_learns(pool: RankPool, tmp_path: Path, kind: str) -> None:
    whole = alone(settings(tmp_path / "one", **KINDS[kind]))
    first, second = pool.call(learned, settings(tmp_path / "two", **KINDS[kind]))
    assert len(whole["rows"]) == UPDATES
    # Lane by lane, bit by bit.
    assert first["episodes"] == whole["episodes"] == second["episodes"]
    assert whole["episodes"]
    actions = torch.cat([first["actions"], second["actions"]], 2)
    assert torch.equal(actions, whole["actions"])
    for name, part in whole["weights"].items():
        torch.testing.assert_close(first["weights"][name], part, **CLOSE)
        assert torch.equal(first["weights"][name], second["weights"][name])
    ours, theirs = first["state"], whole["state"]
    assert ours["collector"]["guide"]["curriculum"] == theirs["collector"]["guide"]["curriculum"]
    for part in ("age", "history"):
        assert torch.equal(ours["collector"][part], theirs["collector"][part])
    assert ours["collector"]["guide"]["ways"] == theirs["collector"]["guide"]["ways"]
    assert len(ours["collector"]["guide"]["ways"]["ways"]) == (2 if kind == "ways" else 0)
    assert (ours["learner"]["ema"] is None) == (theirs["learner"]["ema"] is None)
    if ours["learner"]["ema"] is not None:
        for name, part in theirs["learner"]["ema"]["averages"].items():
            torch.testing.assert_close(ours["learner"]["ema"]["averages"][name], part, **CLOSE)
    for mine, yours in zip(first["rows"], whole["rows"], strict=True):
        for name in ("loss_total", "entropy", "approx_kl", "updates_vetoed", "archive_size"):
            assert mine.get(name, 0) == pytest.approx(yours.get(name, 0), rel=1e-3, abs=1e-4), name
        assert "communication_time_share" in mine
        assert "communication_time_share" not in yours
        # Drawn from the segments of all ranks, by the priorities of all.
        timeless = [name for name in yours if name.startswith("replay_") and "_ms" not in name]
        for name in timeless:
            assert mine[name] == pytest.approx(yours[name], rel=1e-3, abs=1e-4), name
    # Divergences that some ranks alone would not have seen end passes.
    assert (whole["rows"][-1]["updates_vetoed"] > 0) == (kind == "stopped")
    if kind == "replay":
        assert whole["rows"][-1]["replay_sample_total"] > 8
        require_same_replay(ours["replay"], theirs["replay"])


def require_same_replay(mine: dict[str, Any], yours: dict[str, Any]) -> None:
    """The checkpoint of all ranks has the segments, draws and priorities of one process."""
    for name in ("capacity", "written"):
        assert mine["storage"][name] == yours["storage"][name]
    assert yours["storage"]["capacity"] == 10
    assert torch.equal(mine["storage"]["serials"], yours["storage"]["serials"])
    assert list(mine["storage"]["arrays"]) == list(yours["storage"]["arrays"])
    for name, part in yours["storage"]["arrays"].items():
        assert mine["storage"]["arrays"][name].dtype == part.dtype
        torch.testing.assert_close(mine["storage"]["arrays"][name], part, **CLOSE)
    torch.testing.assert_close(mine["sampler"]["weights"], yours["sampler"]["weights"], **CLOSE)
    assert torch.equal(mine["sampler"]["generator"], yours["sampler"]["generator"])


def one_loss_is_not_finite(ranks: Ranks, config: TrainConfig) -> dict[str, Any]:
    """A run whose first loss is infinite on the second rank, while its gradient is not."""
    whole = Ppo.loss
    calls: list[int] = []

    def loss(self: Ppo, batch: Batch, entropy_bonus: torch.Tensor) -> Losses:
        calls.append(1)
        found = whole(self, batch, entropy_bonus)
        bad = ranks.rank == 1 and len(calls) == 1
        return found._replace(total=found.total + torch.inf) if bad else found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ppo, "loss", loss)
        return learned(ranks, config, updates=2)


def test_a_loss_that_is_not_finite_is_skipped_by_all_ranks(pool: RankPool, tmp_path: Path) -> None:
    first, second = pool.call(one_loss_is_not_finite, settings(tmp_path))
    for name, part in first["weights"].items():
        assert torch.equal(part, second["weights"][name]), name
    for found in (first, second):
        assert [row["updates_skipped"] for row in found["rows"]] == [1.0, 1.0]


def searching(ranks: Ranks, config: TrainConfig) -> tuple[dict[str, Any], int]:
    """A run whose stages are searched soon, and how often this rank did."""
    searches = []

    def counted(*words: Any, **named: Any) -> Any:
        searches.append(named["stage"])
        return find_way(*words, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ways, "EPISODES", 2)
        patch.setattr(ways, "find_way", counted)
        found = learned(ranks, config, updates=8) if ranks.grouped else alone(config, updates=8)
    return found, len(searches)


def test_one_rank_searches_for_all(pool: RankPool, tmp_path: Path) -> None:
    kind = {**KINDS["guided"], "search_steps": 100_000, "scripted_sequence": ""}
    whole, searches = searching(ALONE, settings(tmp_path / "one", **kind))
    found = pool.call(searching, settings(tmp_path / "two", **kind))
    assert [count for _, count in found] == [searches, 0]
    assert searches > 0
    for run, _ in found:
        assert run["episodes"] == whole["episodes"]
        guides = [one["state"]["collector"]["guide"]["ways"] for one in (run, whole)]
        assert guides[0] == guides[1]
    # Of a way that was found every rank has the places.
    assert whole["rows"][-1]["searched_steps"] == found[0][0]["rows"][-1]["searched_steps"] > 0


def found_to_fit(ranks: Ranks, config: TrainConfig, most: int) -> tuple[TrainConfig, int, str]:
    """The sizes found where rank 1 has memory for minibatches of so many steps only, how often a
    rank tried, and what it said."""
    tried: list[int] = []
    update = Learner.update

    def tight(learner: Learner, *words: Any) -> Any:
        tried.append(learner.config.minibatch)
        if ranks.rank == 1 and learner.config.minibatch > most:
            raise MemoryError
        return update(learner, *words)

    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Learner, "update", tight)
        patch.setattr(fitting, "say", said.append)
        patch.setattr(ladder, "LEAST_MINIBATCH", 4)
        found = fitting.fitted_to_memory(config, ranks)
    return found, len(set(tried)), "".join(said)


def test_ranks_agree_on_what_fits_on_all_of_them(pool: RankPool, tmp_path: Path) -> None:
    config = settings(tmp_path, auto_mem=True, minibatch=32)
    (first, tries, said), (second, others, unsaid) = pool.call(found_to_fit, config, 8)
    assert first == second == config.replace(minibatch=8, grad_accum=4)
    assert tries == others == 3
    assert said.startswith(
        "[train][warn] memory ran out (the system gives no more) on 1 of 2 ranks"
    )
    assert "; smaller minibatches: --minibatch 32 -> 16, --grad-accum 1 -> 2" in said
    assert unsaid == ""


def test_no_size_that_fits_is_everyones_failure(pool: RankPool, tmp_path: Path) -> None:
    said = pool.call(hopeless, settings(tmp_path, auto_mem=True, minibatch=32))
    assert said == ["memory ran out (the system gives no more)"] * 2


def hopeless(ranks: Ranks, config: TrainConfig) -> str:
    with pytest.raises(MemoryError) as error:
        found_to_fit(ranks, config, 0)
    assert out_of_memory(error.value)
    return str(error.value)


def test_trying_changes_nothing(pool: RankPool, tmp_path: Path) -> None:
    """A run that fits is the same run, through all of `train`; what it does is not repeated by a
    rank alone when memory runs out later."""
    kind = {**KINDS["replay"], "noisy": True, "auto_mem": True, "max_steps": 160}
    plain, _ = pool.call(learned, settings(tmp_path / "plain", **kind))
    first, second = pool.call(session, settings(tmp_path / "tried", **kind))
    for name, part in plain["weights"].items():
        assert torch.equal(first[name], part), name
        assert torch.equal(second[name], part), name
    assert pool.call(late_shortage, settings(tmp_path / "late", **kind)) == [1, 1]


def session(ranks: Ranks, config: TrainConfig) -> dict[str, torch.Tensor]:
    """The weights that a whole session ends with."""
    kept: dict[str, torch.Tensor] = {}

    def learn(run: Run) -> Result:
        run.learn(Recorder())  # type: ignore[arg-type]
        kept.update({name: part.clone() for name, part in run.agent.state_dict().items()})
        run.close()
        return Result(Path(), 0, 0.0, 0, [])

    train(config, lambda made: [], Stop(), learn, ranks)
    return kept


def late_shortage(ranks: Ranks, config: TrainConfig) -> int:
    begun: list[int] = []

    def learn(run: Run) -> Result:
        begun.append(run.config.minibatch)
        run.close()
        raise MemoryError

    with pytest.raises(MemoryError):
        train(config, lambda made: [], Stop(), learn, ranks)
    return len(begun)


def test_ranks_wait_for_one_that_works_for_all(pool: RankPool) -> None:
    """Longer than they wait for each other: they hear of it meanwhile."""
    assert pool.call(late) == [("found", True), ("found", True)]
    assert pool.call(failing) == ["nothing found", "nothing found"]


def late(ranks: GroupRanks) -> tuple[str, bool]:
    heard, enough = [], threading.Event()

    class Counted(GroupRanks):
        def told(self, work: Any) -> Any:
            answer = super().told(work)
            heard.append(answer)
            if len(heard) > 3:
                enough.set()
            return answer

    def work() -> str:
        enough.wait()
        return "found"

    counted = Counted(120.0, 2)
    counted._timeout = 0.01
    return counted.told_late(work), heard[:4] == [False] * 4


def failing(ranks: GroupRanks) -> str:
    def work() -> str:
        raise ValueError("nothing found")

    with pytest.raises(ValueError, match="nothing found") as error:
        ranks.told_late(work)
    return str(error.value)


@pytest.mark.parametrize("replay", [{}, KINDS["replay"]], ids=["plain", "replay"])
def test_one_checkpoint_holds_all_ranks_and_goes_on_bit_by_bit(
    pool: RankPool, tmp_path: Path, replay: dict[str, Any]
) -> None:
    kind = {**KINDS["memory"], "curriculum": "progress", "stages": "1-1,1-2", "noisy": True}
    kind |= replay
    whole, _ = pool.call(learned, settings(tmp_path / "whole", **kind), updates=6)
    broken = settings(tmp_path / "broken", **kind, resume="auto")
    pool.call(learned, broken, updates=3)
    again, other = pool.call(learned, broken, updates=6)
    assert again["notes"] == other["notes"] == []
    for name, part in whole["weights"].items():
        assert torch.equal(again["weights"][name], part)
        assert torch.equal(other["weights"][name], part)
    assert again["episodes"] == whole["episodes"][-len(again["episodes"]) :]
    assert torch.equal(again["actions"], whole["actions"][3:])


def test_other_numbers_of_ranks_deal_the_lanes_anew(pool: RankPool, tmp_path: Path) -> None:
    whole = alone(settings(tmp_path / "whole"), updates=6)
    shared = settings(tmp_path / "shared", resume="auto")
    pool.call(learned, shared, updates=3)
    again = alone(shared, updates=6)
    assert again["notes"] == ["the 4 lanes of 2 ranks are dealt anew to one rank"]
    assert again["episodes"] == whole["episodes"][-len(again["episodes"]) :]
    assert torch.equal(again["actions"], whole["actions"][3:])
    for name, part in whole["weights"].items():
        torch.testing.assert_close(again["weights"][name], part, **CLOSE)
    back, _ = pool.call(learned, shared, updates=7)
    assert back["notes"] == ["the 4 lanes of one rank are dealt anew to 2 ranks"]


def test_evaluations_are_spread_and_the_same(pool: RankPool, tmp_path: Path) -> None:
    whole = alone(settings(tmp_path / "one"), updates=1, evaluate=True)
    first, second = pool.call(learned, settings(tmp_path / "two"), updates=1, evaluate=True)
    assert len(whole["outcomes"]) == 62
    assert first["outcomes"] == second["outcomes"] == whole["outcomes"]


def test_only_the_first_rank_writes(pool: RankPool, tmp_path: Path) -> None:
    first, second = pool.call(learned, settings(tmp_path / "runs"), updates=2)
    assert first["folder"] == second["folder"] == tmp_path / "runs" / "one"
    rows = list(read_rows(first["folder"], "metrics.jsonl"))
    assert [row["update"] for row in rows] == [1, 2]
    assert not [path for path in first["folder"].rglob(".*") if "tmp" in path.name]


def test_a_failure_of_the_first_rank_is_everyones(pool: RankPool, tmp_path: Path) -> None:
    exists = settings(tmp_path / "runs")
    pool.call(learned, exists, updates=1)
    said = pool.call(refused, exists)
    assert said == ["the run", "the run"]


def refused(ranks: Ranks, config: TrainConfig) -> str:
    with pytest.raises(ConfigError) as error:
        learned(ranks, config)
    return str(error.value)[:7]


@pytest.mark.parametrize("kind", [{"epochs": 2}, {"algo": "vtrace", "normalize_advantages": True}])
def test_even_shares_learn_the_same_from_whole_rollouts(
    pool: RankPool, tmp_path: Path, kind: dict[str, Any]
) -> None:
    """What CUDA graphs need, without CUDA. Where a rollout is one minibatch, the order in which it
    is dealt does not matter."""
    changes = {**kind, "minibatch": 32}
    whole = alone(settings(tmp_path / "one", **changes), updates=6)
    first, second = pool.call(learned, settings(tmp_path / "two", **changes), updates=6, even=True)
    assert first["episodes"] == whole["episodes"]
    for name, part in whole["weights"].items():
        torch.testing.assert_close(first["weights"][name], part, **CLOSE)
        assert torch.equal(first["weights"][name], second["weights"][name])


def test_even_shares_must_divide(pool: RankPool, tmp_path: Path) -> None:
    changes = {"memory": "gru", "minibatch": 8}
    said = pool.call(uneven, settings(tmp_path, **changes))
    assert said == ["minibatches of 1 lanes do not divide among 2 ranks"] * 2


def uneven(ranks: Ranks, config: TrainConfig) -> str:
    with pytest.raises(ConfigError) as error:
        learned(ranks, config, even=True)
    return str(error.value).partition(",")[0]
