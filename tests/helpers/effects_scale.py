"""What the configuration of ranks and actors changes, seen without starting any."""

from __future__ import annotations

from typing import Any, cast

import pytest
from effects import config_of
from tiny_runs import CPU

from warpzone.dist.launch import Group
from warpzone.dist.place import Place, find_place


def placed(**changes: Any) -> Any:
    """Where a process is among the ranks of a run."""
    return find_place(config_of(**changes), {})


def waited_for(**changes: Any) -> Any:
    """How long a rank waits for another."""
    config = config_of(**changes)
    return Group(Place("torchrun", 0, 1, 0, 1), config, CPU, None, print).timeout


def asked_for(**changes: Any) -> Any:
    """What an actor asks Ray for."""
    pytest.importorskip("ray")
    from warpzone.dist.cluster import Cluster
    from warpzone.dist.crew import Crew

    return Crew(config_of(**changes), Cluster(remote=False), "", 1, 0).options(0)


def outstanding(**changes: Any) -> int:
    """Rollouts that actors play before the learner takes the first."""
    pytest.importorskip("ray")
    from warpzone.dist.cluster import Cluster
    from warpzone.dist.crew import Crew

    config = config_of(**changes)
    queue = Crew(config, Cluster(remote=False), "", 1, 0).queue
    for actor in range(config.actors):
        queue.join(actor)
    queue.publish(0)
    while able := [actor for actor in range(config.actors) if queue.may_begin(actor)]:
        queue.arrive(queue.begin(able[0]), cast("Any", None))
    return queue.waiting
