"""What lanes are told between rollouts: annealed rewards, scripts, archive, curriculum."""

from typing import Any

import numpy as np
import pytest
import torch
from learners import compare
from tiny_runs import make_agent, make_collector, tiny

from warpzone import _engine, rom
from warpzone.collect.archive import Archive
from warpzone.collect.collector import Collector
from warpzone.collect.curriculum import Curriculum
from warpzone.collect.episodes import Episode
from warpzone.collect.lanes import lane_options, reward_schedule
from warpzone.collect.starts import probe
from warpzone.config import ConfigError, TrainConfig
from warpzone.data.types import Rollout
from warpzone.env.rewards import RewardWeights
from warpzone.rom import native


def collect(collector: Collector, updates: int, first: int = 0) -> list[Rollout]:
    """Rollouts as a run makes them, copied."""
    rollouts = []
    for update in range(first, first + updates):
        collector.prepare(update * collector.config.steps_per_update)
        rollout = collector.collect()
        rollouts.append(Rollout(*(_copy(part) for part in rollout)))
        collector.episodes.take()
    return rollouts


def _copy(part: Any) -> Any:
    return part.clone() if isinstance(part, torch.Tensor) else tuple(p.clone() for p in part)


def same(first: Rollout, second: Rollout) -> bool:
    """Whether two rollouts are one, bit by bit."""
    pairs = zip(first, second, strict=True)
    return all(
        torch.equal(a, b)
        for a, b in pairs
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
    )


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


ARCHIVED = {
    "num_envs": 8,
    "rollout_steps": 12,
    "minibatch": 48,
    "stagnation_limit": 8,
    "archive_share": 0.5,
    "archive_cell": 16,
    "max_steps": 10**6,
}


def test_archived_starts_lead_through_what_was_seen() -> None:
    config = tiny(**ARCHIVED, frame_stack=3)
    collector = make_collector(config, make_agent(config))
    collect(collector, 12)
    archive = collector.guide.archive
    assert len(archive.moments) > 3
    before = archive.episodes
    rollouts = collect(collector, 12, first=12)
    assert archive.episodes > before
    assert collector.guide.metrics()["archive_size"] == len(archive.moments)
    options = lane_options(config)
    image = rom.find(None)
    vector = options.make_vector(image, 1, autoreset=_engine.Autoreset.SAME_STEP)
    obs = np.zeros((1, *vector.obs_shape), np.uint8)
    info = np.zeros((1, len(_engine.INFO_FIELDS)), np.int32)
    reward, ends = np.zeros(1, np.float32), np.zeros((2, 1), np.bool_)
    last = (np.zeros_like(obs), np.zeros_like(info))
    vector.reset(None, obs, info)
    # Every forced step comes from the archive here: what follows it is what the moment showed.
    seen: dict[bytes, int] = {}
    for number, moment in archive.moments.items():
        vector.load(0, moment.state)
        vector.observe(0, obs[0])
        frames = [obs[0, 0].copy()]
        vector.force([0], moment.masks)
        for _ in range(config.frame_stack - 1):
            vector.step(np.zeros(1, np.int64), obs, reward, ends[0], ends[1], info, *last)
            frames.append(obs[0, 0].copy())
        seen[np.array(frames).tobytes()] = number
    checked = 0
    for rollout in rollouts:
        starts = rollout.forced & (rollout.age[:-1] == 0)
        for step, lane in starts.nonzero().tolist():
            if step + 2 < rollout.length:
                assert rollout.forced[step : step + 2, lane].all()
                row = step + config.frame_stack - 1
                checked += rollout.frames[row : row + 3, lane].numpy().tobytes() in seen
    assert checked > 2
    vector.close()
    collector.close()


def test_resuming_changes_nothing() -> None:
    changes = {**ARCHIVED, "stages": "1-1,1-2", "curriculum": "progress"}
    config = tiny(**changes, reward_scale_final=0.1, reward_scale_anneal_steps=3000)
    agent = make_agent(config)
    first, second = make_collector(config, agent), make_collector(config, agent)
    collect(first, 10)
    assert first.guide.archive.moments
    second.load_state_dict(first.state_dict())
    ours, theirs = collect(first, 4, first=10), collect(second, 4, first=10)
    assert all(same(one, other) for one, other in zip(ours, theirs, strict=True))
    assert first.guide.metrics() == second.guide.metrics()
    first.close()
    second.close()


@pytest.mark.parametrize(
    ("changes", "reason", "kept"),
    [
        ({"num_envs": 4}, "", True),
        ({"num_envs": 12}, "there are 8 saved lanes, and 12 are needed", True),
        ({"sticky": 0.5}, "other options; the archive starts empty", False),
        ({"backend": "backend_games:walk", "archive_share": 0.0}, "cannot be saved", False),
    ],
)
def test_an_archive_goes_on_with_other_settings(
    changes: dict[str, Any], reason: str, kept: bool
) -> None:
    """Moments stay as long as the lanes can play them; those that were still to prove themselves
    stay only if the lane that they are of goes on."""
    config = tiny(**ARCHIVED)
    first = make_collector(config, make_agent(config))
    collect(first, 10)
    archive = first.guide.archive
    while not any(found.lane >= 4 for found in archive._candidates):
        collect(first, 1, first=10)
    other = config.replace(force_sync=True, **changes)
    second = make_collector(other, make_agent(other))
    said = second.load_state_dict(first.state_dict())
    assert said.endswith(reason)
    assert bool(said) == bool(reason)
    again = second.guide.archive
    assert list(again.moments) == (list(archive.moments) if kept else [])
    lanes = [found.lane for found in archive._candidates if not said and found.lane < 4]
    assert [found.lane for found in again._candidates] == lanes
    collect(second, 2, first=12)
    first.close()
    second.close()


def episode(stage: int, reason: str, x: int = 100, restart: int = 0) -> Episode:
    """One that ended."""
    return Episode(0, stage, 0, 0.0, 10, x, reason, restart)


def test_archive_counts_its_own() -> None:
    config = tiny(**ARCHIVED)
    collector = make_collector(config, make_agent(config))
    collect(collector, 20)
    recent, restarted = collector.episodes.recent, collector.episodes.restarted
    assert restarted
    assert all(e.restart for e in restarted)
    assert not any(e.restart for e in recent)
    assert "archive_clear_rate" in collector.episodes.summary()
    archive: Archive = collector.guide.archive
    number, moment = next(iter(archive.moments.items()))
    clears, attempts = archive.clears, moment.attempts
    archive.learn([episode(0, "flag", restart=number), episode(0, "flag")])
    assert (archive.clears, moment.attempts) == (clears + 1, attempts + 1)
    archive.learn([episode(0, "death", x=0, restart=number)] * 40)
    assert moment.clears
    assert number in archive.moments
    # A place from which nobody gets anywhere is given up, here and in the engine.
    hopeless = next(one for one in archive.moments.values() if not one.gains)
    archive.learn([episode(0, "death", x=0, restart=hopeless.number)] * 16)
    assert hopeless.number not in archive.moments
    archive.apply(collector.groups)
    for group in collector.groups:
        assert group.vector.num_restarts() == len(archive.moments)
    collector.close()


def test_curriculum_weighs_stages() -> None:
    config = tiny(stages="1-1,1-2,1-3", curriculum="clear-rate", curriculum_floor=0.3)
    curriculum = Curriculum(config)
    assert curriculum.weights()[:3] == pytest.approx([1 / 3] * 3)
    curriculum.learn([episode(0, "flag")] * 50 + [episode(1, "death")] * 50)
    weights = curriculum.weights()
    assert weights.sum() == pytest.approx(1.0)
    assert weights[0] == pytest.approx(0.1)
    assert weights[1] == weights[2] == pytest.approx(0.45)
    # Starts from the archive say nothing about the way from the door.
    curriculum.learn([episode(1, "flag", restart=3)] * 50)
    assert (curriculum.weights() == weights).all()
    again = Curriculum(config)
    again.load_state_dict(curriculum.state_dict())
    assert (again.weights() == weights).all()


def test_curriculum_follows_learning() -> None:
    curriculum = Curriculum(tiny(stages="1-1,1-2", curriculum="progress", curriculum_floor=0.0))
    curriculum.learn([episode(0, "death", x=100)] * 300 + [episode(1, "death", x=100)] * 300)
    curriculum.learn([episode(1, "flag", x=3000)] * 10)
    assert curriculum.weights()[1] > 0.9


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
