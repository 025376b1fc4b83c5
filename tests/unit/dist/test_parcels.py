"""What actors send, and what the learner makes of it; no Ray is needed for that."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from tiny_runs import CPU, make_agent, tiny

from warpzone import rom
from warpzone.collect.collector import Collector
from warpzone.collect.lanes import make_groups
from warpzone.collect.packing import unpack
from warpzone.collect.ranks import ALONE, Ranks
from warpzone.config import ConfigError, TrainConfig
from warpzone.data.types import Rollout
from warpzone.dist.cluster import Cluster
from warpzone.dist.parcels import Landing, Parcel, Tallies, mean_owners, pack_rollout, parcel_bytes
from warpzone.dist.remote import Part, RemoteActor, tensors_of
from warpzone.rom import native

SETTINGS: dict[str, Any] = {"memory": "lstm", "algo": "vtrace", "minibatch": 16, "noisy": True}


def collector_of(config: TrainConfig, ranks: Ranks = ALONE) -> Collector:
    image = rom.find(config.rom)
    groups = make_groups(config, image, native.load(image), CPU, ranks)
    return Collector(config, make_agent(config), groups, CPU, ranks)


def parcel_of(rollout: Rollout, **parts: Any) -> Parcel:
    values: dict[str, Any] = {"owners": {}, "ended": [], "metrics": {}, "info": np.zeros((2, 1))}
    return Parcel(*pack_rollout(rollout), **{**values, **parts})


def played(config: TrainConfig, ranks: Ranks) -> Rollout:
    collector = collector_of(config, ranks)
    try:
        collector.prepare(0)
        rollout = collector.collect()
        state = tuple(part.clone() for part in rollout.state)
        copies = {
            name: part.clone()
            for name, part in rollout._asdict().items()
            if isinstance(part, torch.Tensor)
        }
        return Rollout(**copies, state=state)
    finally:
        collector.close()


def test_rollouts_of_actors_are_those_of_one_process() -> None:
    config = tiny(**SETTINGS)
    whole = played(config, ALONE)
    parts = [Part(number, 2) for number in range(2)]
    parcels = [parcel_of(played(config, part)) for part in parts]
    landing = Landing(config.num_envs, CPU)
    landed = landing.put(parcels)
    for name, mine, yours in zip(Rollout._fields[:-1], landed, whole, strict=False):
        torch.testing.assert_close(mine, yours, rtol=1e-4, atol=1e-5, msg=name)
    for mine, yours in zip(landed.state, whole.state, strict=True):
        assert torch.equal(mine, yours)
    assert torch.equal(landed.actions, whole.actions)
    # The episodes, too, each with the step that ended it.
    assert all(part.news is not None for part in parts)
    # In the same memory again.
    again = landing.put(parcels[::-1])
    assert again.frames.data_ptr() == landed.frames.data_ptr()
    assert torch.equal(again.actions[:, 2:], whole.actions[:, :2])


def test_the_learner_reserves_enough_memory() -> None:
    config = tiny(**SETTINGS)
    arrays, state = pack_rollout(played(config, ALONE))
    sent = sum(part.nbytes for part in [*arrays.values(), *state])
    assert sent <= parcel_bytes(config, arrays["logits"].shape[-1]) <= 2 * sent


def test_numbers_of_actors_are_added_up_or_averaged() -> None:
    tallies = Tallies()
    first = {"env_shaping_raw_sum": 1.0, "env_shaping_parse_fail": 3.0, "forced_share": 0.5}
    second = {"env_shaping_raw_sum": 2.0, "env_shaping_parse_fail": 4.0, "forced_share": 0.0}
    row = tallies.add([((0, 0), first), ((1, 0), second)])
    assert row == {
        "env_shaping_raw_sum": 3.0,
        "env_shaping_parse_fail": 7.0,
        "forced_share": 0.25,
    }
    # Failures are counted since an actor began, and those of a lost one stay.
    later = {**first, "env_shaping_parse_fail": 1.0}
    assert tallies.add([((0, 1), later), ((0, 1), later)])["env_shaping_parse_fail"] == 8.0
    owners = [{"engine": 1.0}, {"engine": 3.0, "copy": 1.0}]
    rollout = played(tiny(), ALONE)
    assert mean_owners([parcel_of(rollout, owners=one) for one in owners]) == {
        "copy": 0.5,
        "engine": 2.0,
    }


def test_weights_travel_with_their_noise() -> None:
    config = tiny(**SETTINGS)
    agent, other = make_agent(config), make_agent(config, seed=1)
    agent.resample_noise(torch.Generator().manual_seed(3))
    for name, place in tensors_of(other).items():
        place.copy_(tensors_of(agent)[name])
    pairs = zip(agent.state_dict().items(), other.state_dict().items(), strict=True)
    assert all(mine == yours and torch.equal(a, b) for (mine, a), (yours, b) in pairs)
    buffers = zip(agent.buffers(), other.buffers(), strict=True)
    assert all(torch.equal(a, b) for a, b in buffers)


def test_old_weights_need_a_correction() -> None:
    with pytest.raises(ConfigError, match="up to 2 updates old, and only --algo vtrace"):
        tiny(actors=2, algo="ppo")
    assert tiny(actors=2, algo="ppo", max_lag=0).collects_beside


class Crew:
    """Actors that tell their state."""

    def __init__(self, states: list[Any]) -> None:
        self._states = states

    def states(self, told: Any, *, lanes: bool) -> tuple[list[Any], int]:
        return self._states, 1


def test_lanes_of_an_actor_that_is_missing_start_again() -> None:
    pytest.importorskip("ray")
    from warpzone.dist.fleet import FleetCollector

    config = tiny(**SETTINGS, actors=2)
    alone = config.replace(actors=0)
    agent = make_agent(config)
    image = rom.find(config.rom)
    run: Any = SimpleNamespace(
        config=config,
        policies=SimpleNamespace(acting=agent),
        device=CPU,
        rom=image,
        native=native.load(image),
    )
    made = FleetCollector(run, Cluster(remote=False))
    collectors = [collector_of(alone, Part(number, 2)) for number in range(2)]
    try:
        made._crew = cast("Any", Crew([None, collectors[1].state_dict()]))
        made.episodes.total = 7
        state = made.state_dict()
        assert state["episodes"]["total"] == 7
        assert [bool(lane) for lane in unpack(state["lanes"])] == [False, False, True, True]
        assert state["fleet"]["waiting"] == 1
        assert collectors[0].load_state_dict(state)
        assert not collectors[1].load_state_dict(state)
        made._crew = cast("Any", Crew([None, None]))
        with pytest.raises(RuntimeError, match="no actor is there"):
            made.state_dict()
        assert "lanes" not in made.state_dict(lanes=False)
    finally:
        for collector in collectors:
            collector.close()


def test_learner_and_actors_share_the_cores_of_a_machine() -> None:
    """With more threads than cores, those of one operation would wait for each other."""
    pytest.importorskip("ray")
    from warpzone.dist.fleet import threads_of

    lagging, turns = tiny(algo="vtrace", actors=2, max_lag=1), tiny(actors=2, max_lag=0)
    gpu = torch.device("cuda")
    assert threads_of(lagging, 16, CPU, remote=False) == (6, 5)
    assert threads_of(lagging, 2, CPU, remote=False) == (1, 1)
    # A GPU learns, or they play and learn in turns: then the actors have all cores.
    assert threads_of(lagging, 16, gpu, remote=False) == (16, 8)
    assert threads_of(turns, 16, CPU, remote=False) == (16, 8)
    assert threads_of(lagging, 16, CPU, remote=True) == (16, 1)


@pytest.mark.parametrize(
    ("actors", "threads", "groups"), [(1, 1, 2), (2, 1, 1), (2, 2, 2)], ids=str
)
def test_an_actor_with_one_thread_decides_for_all_its_lanes_at_once(
    actors: int, threads: int, groups: int
) -> None:
    config = tiny(algo="vtrace", num_envs=8, minibatch=32, num_threads=0)
    actor = RemoteActor()
    before = torch.get_num_threads()
    try:
        actor.begin(config, (0, actors), 0, threads)
        assert [group.count for group in actor._groups] == [8 // actors // groups] * groups
        actor._groups.close()
    finally:
        torch.set_num_threads(before)
