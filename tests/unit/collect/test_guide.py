"""What lanes are told between rollouts: annealed rewards, scripts, archive, curriculum."""

from typing import Any

import pytest
import torch
from learners import compare
from tiny_runs import collect, make_agent, make_collector, tiny

from warpzone import rom
from warpzone.collect.lanes import reward_schedule
from warpzone.collect.starts import Starts, probe
from warpzone.config import ConfigError, TrainConfig
from warpzone.env.rewards import RewardWeights
from warpzone.rom import native


def walker(config: TrainConfig, action: int) -> Any:
    """An agent that nearly always takes one action."""
    agent = make_agent(config)
    with torch.no_grad():
        agent.heads.policy.weight.zero_()
        agent.heads.policy.bias.zero_()
        agent.heads.policy.bias[action] = 20.0
    return agent


def test_default_rewards_are_constant() -> None:
    schedule = reward_schedule(tiny())
    assert schedule.at(10**9) == RewardWeights(pixel=0.1, step=-0.04, flag=5.0, death=-2.5)


def test_rewards_anneal_with_the_runs_steps() -> None:
    config = tiny(reward_scale_start=1.0, reward_scale_final=0.0, reward_scale_anneal_steps=64)
    collector = make_collector(config, walker(config, 3))
    scales = []
    for update in range(3):
        (rollout,) = collect(collector, 1, first=update)
        metrics = collector.guide.metrics()
        scales.append(metrics["env_shaping_last_scale"])
        raw, scaled = metrics["env_shaping_raw_sum"], metrics["env_shaping_scaled_sum"]
        assert raw > 0.0
        assert scaled == pytest.approx(raw * scales[-1], abs=1e-4)
        assert (rollout.rewards != 0.0).any() == (scales[-1] > 0)
    assert scales == [1.0, 0.5, 0.0]
    collector.close()


def test_scripted_steps_are_forced() -> None:
    """Ten frames are three steps at the start of each episode, and not the policy's choice."""
    config = tiny(scripted_sequence="START:2,RIGHT+B:8", scripted_steps=64)
    collector = make_collector(config, make_agent(config))
    rollouts = collect(collector, 2)
    for rollout in rollouts:
        assert torch.equal(rollout.forced, rollout.age[:-1] < 3)
        assert (rollout.actions[rollout.forced] == 3).all()
        assert (rollout.log_prob[rollout.forced] == 0.0).all()
        assert (rollout.log_prob[~rollout.forced] < 0.0).all()
        after = rollout.previous_actions[1:][rollout.forced & (rollout.age[1:] > 0)]
        assert (after == 3).all()
    assert rollouts[0].forced.any()
    later = collect(collector, 3, first=2)
    assert not later[-1].forced.any()
    collector.close()


def test_a_step_that_ends_an_episode_is_forced_by_the_script_of_that_episode() -> None:
    """Mario runs into the first enemy while the script still presses; the info beside such a step
    is that of the next episode."""
    config = tiny(
        stages="1-1",
        scripted_sequence="RIGHT+B:400",
        scripted_share=1.0,
        stagnation_limit=0,
        start_delay=0,
        rollout_steps=32,
        max_steps=128 * 9,
    )
    collector = make_collector(config, make_agent(config))
    ends = 0
    for rollout in collect(collector, 2):
        assert rollout.forced.all()
        assert (rollout.actions == 3).all()
        ends += int(rollout.terminated.sum())
    assert ends >= config.num_envs
    collector.close()


def test_a_script_is_taken_away_before_the_first_rollout_without_it() -> None:
    config = tiny(scripted_sequence="RIGHT+B:8", scripted_steps=64)
    told: list[tuple[int, bytes]] = []

    class Vector:
        def set_script(self, script: bytes) -> None:
            told.append((at, script))

        def force(self, lanes: range, script: bytes) -> None:
            assert (at, list(lanes), script) == (0, [0, 1], starts.script)

    class Group:
        vector, count = Vector(), 2

    starts = Starts(config, rom.find(None), None)
    for at in range(0, 160, 32):
        starts.before([Group()], at)  # type: ignore[list-item]
    assert told == [(0, starts.script), (64, b"")]


def test_scripts_end_by_default() -> None:
    """After a tenth of the run, so that no run is forced to its end; what was forced is counted."""
    config = tiny(scripted_sequence="RIGHT+B:60", max_steps=64 * 32)
    assert config.script_ends == pytest.approx(6.4 * 32)
    collector = make_collector(config, make_agent(config))
    shares = []
    for rollout in (collect(collector, 1, first=update)[0] for update in range(12)):
        shares.append(collector.guide.metrics()["forced_share"])
        assert shares[-1] == pytest.approx(rollout.forced.float().mean().item())
    assert shares[0] == 1.0
    assert shares[-1] == 0.0
    collector.close()


@pytest.mark.parametrize("saved", [True, False])
def test_games_that_start_anew_get_their_script(saved: bool) -> None:
    config = tiny(scripted_sequence="RIGHT+B:8", scripted_share=1.0, stagnation_limit=0)
    before, after = (make_collector(config, make_agent(config)) for _ in range(2))
    collect(before, 1)
    after.load_state_dict(before.state_dict(lanes=saved))
    (rollout,) = collect(after, 1, first=1)
    assert rollout.forced[0].all() == (not saved)
    before.close()
    after.close()


def test_a_script_without_an_action_of_its_own() -> None:
    config = tiny(actions="right", scripted_sequence="LEFT:8")
    collector = make_collector(config, make_agent(config))
    (rollout,) = collect(collector, 1)
    assert (rollout.actions[:2] == 0).all()
    assert rollout.forced[:2].all()
    compare(config, collector.agent, [rollout], [0.0])
    collector.close()


def test_probing_finds_the_way() -> None:
    config = tiny(actions="NOOP;LEFT;RIGHT+B;DOWN")
    image = rom.find(None)
    found = probe(config, image, native.load(image), 6)
    assert found.action == 2
    assert found.distances[2] > 15 > found.distances[0] == 0


def test_actions_are_probed_each_in_its_own_lane() -> None:
    """Also after some lanes have met an enemy, in whatever order actions stand."""
    names = ["RIGHT+B", "NOOP", "RIGHT", "LEFT", "RIGHT+A+B"]
    image = rom.find(None)
    code = native.load(image)
    first = probe(tiny(actions=";".join(names)), image, code, 70)
    second = probe(tiny(actions=";".join(reversed(names))), image, code, 70)
    assert first.distances == second.distances[::-1]
    assert len(set(first.distances)) >= 4
    assert first.action == 4 - second.action


def test_a_run_that_stands_still_is_pushed_once() -> None:
    config = tiny(
        auto_bootstrap_threshold=2, auto_bootstrap_frames=16, stagnation_limit=0, stages="1-1"
    )
    collector = make_collector(config, walker(config, 0))
    forced, rows = [], []
    for update in range(5):
        (rollout,) = collect(collector, 1, first=update)
        forced.append(int(rollout.forced.sum()))
        rows.append(collector.guide.metrics()["auto_bootstrap_triggered"])
    assert forced == [0, 0, 4 * config.num_envs, 0, 0]
    assert rows == [0.0, 1.0, 1.0, 1.0, 1.0]
    # Nor again by a run that goes on from here.
    resumed = make_collector(config, walker(config, 0))
    resumed.load_state_dict(collector.state_dict())
    for update in range(5, 8):
        (rollout,) = collect(resumed, 1, first=update)
        assert not rollout.forced.any()
    resumed.close()
    collector.close()


def test_a_push_that_did_not_help_is_not_repeated() -> None:
    """Forward is to the left here, where there is a wall: nobody ever gains any ground."""
    config = tiny(
        actions="NOOP;LEFT",
        forward_action_id=1,
        auto_bootstrap_threshold=2,
        auto_bootstrap_frames=16,
        stagnation_limit=0,
    )
    collector = make_collector(config, make_agent(config))
    forced = []
    for update in range(6):
        (rollout,) = collect(collector, 1, first=update)
        assert collector.guide.metrics()["env_distance_delta_sum"] == 0
        forced.append(int(rollout.forced.sum()))
    assert forced == [0, 0, 4 * config.num_envs, 0, 0, 0]
    collector.close()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"reward_scale_anneal_steps": 5}, "--reward-scale-final"),
        ({"death_penalty_start": 1.0}, "negative"),
        ({"milestone_interval": 5}, "--milestone-bonus"),
        ({"reward": "gym", "reward_score_weight": 1.0}, "--reward shaped"),
        ({"reward": "gym", "death_penalty_start": -1.0}, "--reward shaped"),
        ({"reward": "gym", "reward_distance_weight_final": 0.0}, "--reward shaped"),
        ({"whole_game": True, "stage_span": 2}, "--whole-game"),
        ({"curriculum": "progress"}, "only one"),
        ({"world": 1, "stage_span": 4, "curriculum": "progress"}, "--random-stage"),
        ({"stages": "8-3", "stage_span": 4}, "past 8-4"),
        ({"world": 9}, "--world must be at most 8"),
        ({"scripted_sequence": "RIGTH:3"}, "RIGTH"),
        ({"forward_action_id": 7}, "0..6"),
        ({"auto_bootstrap_threshold": 7}, "--auto-bootstrap-frames"),
        ({"actions": "NOOP;LEFT", "scripted_forward_frames": 7}, "RIGHT"),
        ({"observation": "tiles", "color": True}, "no picture"),
        ({"observation": "ram", "crop_status_bar": True}, "--observation ram has no picture"),
        ({"observation": "ram", "augment_shift": 2}, "have no place to be moved to"),
        ({"archive_share": 1.5}, "0..1"),
        ({"archive_explore": 0.5}, "--archive-share"),
        ({"archive_share": 0.5, "archive_explore": 1.0}, "not 1"),
        ({"end_on_setback": True, "whole_game": True}, "--end-on-setback"),
    ],
)
def test_nonsense_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        tiny(**changes)


@pytest.mark.parametrize(
    ("changes", "stages"),
    [
        ({"world": 2, "stage": 3}, "2-3"),
        ({"stage_span": 6}, "1-1..2-2"),
        ({"world": 3, "stage_span": 1}, "3-1"),
        ({"random_stage": True}, "all"),
        ({"random_stage": True, "stages": "1-1,1-3"}, "1-1,1-3"),
        ({"random_stage": True, "world": 4, "stage_span": 2}, "4-1..4-2"),
        ({"whole_game": True}, "game"),
    ],
)
def test_stage_flags_become_stages(changes: dict[str, Any], stages: str) -> None:
    config = tiny(**changes)
    assert config.stages == stages
    assert config.replace().stages == stages


def test_a_span_gives_each_lane_a_stage() -> None:
    config = tiny(stage_span=3)
    collector = make_collector(config, make_agent(config))
    started = [int(row) for group in collector.groups for row in group.info[:, -4]]
    assert started == [0, 1, 2, 0]
    collector.close()
