"""What is shown from a stage's start on, which has a clear rate of its own."""

import numpy as np
from tiny_runs import make_agent, make_collector, tiny

from warpzone.collect.practice import SHOWN, STRIDE, Practice, Spot
from warpzone.collect.search import Way
from warpzone.collect.ways import FIRST_PLACE
from warpzone.env.stages import parse_stages

MAZE = parse_stages("4-4")[0]


def practice(size: int) -> Practice:
    none = np.zeros(size), np.zeros(size)
    return Practice(Way(MAZE, 0, []), FIRST_PLACE, [Spot(b"", b"")] * size, *none)


def test_from_the_door_its_own_clears_decide() -> None:
    """Attempts clear from every place. As long as none does from the door, what begins there is
    imitated, and practised most."""
    one = practice(30)
    for _ in range(40):
        for index in range(len(one.places)):
            one.count(FIRST_PLACE + index, True)
    from_the_door = [(i + 1) * STRIDE <= SHOWN[i % len(SHOWN)] for i in range(30)]
    assert 1 < sum(from_the_door) < 15
    assert one.taught(0.0).tolist() == from_the_door
    assert not one.taught(0.5).any()
    assert (one.weights(0.0) > 0.9).tolist() == from_the_door
    assert (one.weights(0.5) < 0.1).all()
    # A place from which nothing clears is not worth leading to.
    one.clears[:] = 0.0
    assert one.taught(0.0).all()
    assert (one.weights(0.0) < 0.1).all()


def test_the_clear_rate_of_each_stage_is_its_door() -> None:
    config = tiny(stages="1-1,4-4", archive_share=0.8, search_steps=1000)
    collector = make_collector(config, make_agent(config))
    guide = collector.guide
    state = collector.groups[0].vector.save(0)
    one = practice(30)
    one.places[:] = [Spot(state, b"")] * 30
    one.attempts[:], one.clears[:] = 30.0, 30.0
    guide.ways.practices[FIRST_PLACE] = one
    guide.ways._next += 30
    places = np.arange(one.first, one.first + 30, dtype=np.int32)
    taught = []
    for rate in (0.0, 0.4):
        guide.curriculum.clear_rate[:] = 0.4 - rate
        guide.curriculum.clear_rate[MAZE] = rate
        collector.prepare(0)
        taught.append(int(guide.ways.teaches(places).sum()))
    assert taught[0] > 0 == taught[1]
    collector.close()
