"""Whatever is seen is learned from, and as the papers say."""

from typing import Any

import pytest
from learners import compare
from tiny_runs import make_agent, make_collector, tiny

from warpzone.env.actions import action_table


@pytest.mark.parametrize(
    ("changes", "picture"),
    [
        ({"observation": "tiles", "memory": "gru", "minibatch": 16}, (13, 16)),
        ({"observation": "ram"}, (1, 2048)),
        ({"color": True}, (108, 36)),
        ({"color": True, "augment_shift": 3, "augment_brightness": 0.2}, (108, 36)),
        ({"crop_status_bar": True, "max_last_two": True, "augment_shift": 2}, (36, 36)),
        ({"whole_game": True, "actions": "NOOP;RIGHT;RIGHT+A"}, (36, 36)),
    ],
)
def test_other_observations_are_learned_from(
    changes: dict[str, Any], picture: tuple[int, int]
) -> None:
    config = tiny(**changes)
    agent = make_agent(config)
    assert agent.spec.actions == len(action_table(config.actions).masks)
    collector = make_collector(config, agent)
    rollout = collector.collect()
    assert rollout.frames.shape[2:] == picture
    compare(config, agent, [rollout], [0.0])
    collector.close()
