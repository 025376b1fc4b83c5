"""What can be changed while lanes play: rewards, stages, scripts, restarts; and tiles."""

import numpy as np
import pytest

from warpzone import MarioEnv, MarioVectorEnv
from warpzone.env.rewards import Annealed, RewardSchedule, RewardWeights
from warpzone.env.script import parse_start

RIGHT_B = 3
NOTHING = {"pixel": 0.0, "step": 0.0, "flag": 0.0, "death": 0.0, "clip": 0.0}


def forward(env: MarioVectorEnv, steps: int, action: int = RIGHT_B) -> np.ndarray:
    """The rewards of some steps of one action, [steps, lanes]."""
    return np.array([env.step(np.full(env.num_envs, action))[1] for _ in range(steps)])


def test_weights_change_between_steps(rom: bytes) -> None:
    with_default = MarioVectorEnv(2, rom=rom, num_threads=1)
    changed = MarioVectorEnv(2, rom=rom, num_threads=1)
    for env in (with_default, changed):
        env.reset(seed=0)
    changed.set_reward_weights({"pixel": 0.2, "step": -0.02, "scale": 0.5})
    first, second = forward(with_default, 12), forward(changed, 12)
    np.testing.assert_allclose(first, second, rtol=1e-5)
    changed.set_reward_weights(RewardWeights(pixel=0.0, step=1.0))
    assert (forward(changed, 2) == 1.0).all()
    with pytest.raises(TypeError, match="coin"):
        changed.set_reward_weights({"coin": 1.0})


def test_shaped_is_gym_and_more(rom: bytes) -> None:
    gym = MarioVectorEnv(1, rom=rom, reward="gym")
    same = MarioVectorEnv(1, rom=rom, reward="shaped", reward_weights=NOTHING)
    more = MarioVectorEnv(1, rom=rom, reward="shaped", reward_weights={**NOTHING, "pixel": 1.0})
    for env in (gym, same, more):
        env.reset(seed=0)
    rewards = [forward(env, 20) for env in (gym, same, more)]
    np.testing.assert_array_equal(rewards[0], rewards[1])
    pixels = more.info(0)["furthest_x"] - 40
    assert rewards[2].sum() - rewards[1].sum() == pixels > 0


def test_milestones_are_paid(rom: bytes) -> None:
    weights = {**NOTHING, "milestone": 3.0, "milestone_interval": 50}
    env = MarioVectorEnv(1, rom=rom, reward_weights=weights)
    _, infos = env.reset(seed=0)
    start = int(infos["furthest_x"][0])
    rewards = forward(env, 22)
    passed = (env.info(0)["furthest_x"] - start) // 50
    assert passed >= 3
    assert rewards.sum() == 3.0 * passed


def test_scores_are_paid(rom: bytes) -> None:
    env = MarioVectorEnv(1, rom=rom, reward_weights={**NOTHING, "score": 0.5}, end="game_over")
    _, infos = env.reset(seed=0)
    rewards, points = 0.0, 0
    rng = np.random.default_rng(1)
    for _ in range(400):
        before = int(infos["score"][0])
        _, reward, terminated, _, infos = env.step(rng.choice([3, 4], 1))
        rewards += float(reward[0])
        points += int(infos["score"][0]) - before
        if terminated[0] or points > 0:
            break
    assert points > 0
    assert rewards == 0.5 * points


def test_a_scripted_episode_is_shaped(rom: bytes) -> None:
    """The smoke test of shaping: nobody acts, and there is distance all the same."""
    env = MarioEnv(rom=rom, start_script="START:8,RIGHT+B:180")
    env.reset(seed=0)
    assert env.shaping()["env_shaping_raw_sum"] == 0.0
    forced, over = 0, False
    while not over and forced < 200:
        _, _, terminated, truncated, info = env.step(0)
        forced += info["forced"]
        over = terminated or truncated or not info["forced"]
    sums = env.shaping()
    assert sums["env_shaping_raw_sum"] > 0.0
    assert sums["env_shaping_scaled_sum"] == sums["env_shaping_raw_sum"]
    assert sums["env_distance_delta_sum"] == pytest.approx(10 * sums["env_shaping_raw_sum"])
    assert sums["env_shaping_parse_fail"] == 0.0
    assert env.shaping()["env_distance_delta_sum"] == 0.0


def test_scripts_take_over_and_give_back(rom: bytes) -> None:
    env = MarioVectorEnv(2, rom=rom, start_script="RIGHT:6,A:2", num_threads=1)
    env.reset(seed=0)
    seen = [env.step(np.zeros(2, np.int64))[4] for _ in range(3)]
    assert [infos["forced"].tolist() for infos in seen] == [[1, 1], [1, 1], [0, 0]]
    assert [int(infos["buttons"][0]) for infos in seen] == [128, 1, 0]
    env.force("LEFT:4", [1])
    infos = env.step(np.zeros(2, np.int64))[4]
    assert infos["forced"].tolist() == [0, 1]
    env.set_start_script("")
    env.reset()
    assert env.step(np.zeros(2, np.int64))[4]["forced"].tolist() == [0, 0]


def test_starts_leave_the_game_running() -> None:
    assert parse_start("START:3,START+RIGHT:1") == bytes([0, 0, 0, 128])


@pytest.mark.parametrize(
    ("script", "token"), [("RIGHT:4,RIGTH:3", "RIGTH"), ("RIGHT:x", "RIGHT:x"), ("A:0", "A:0")]
)
def test_bad_tokens_are_named(script: str, token: str) -> None:
    with pytest.raises(ValueError, match=token):
        parse_start(script)


def test_stages_are_drawn_by_weight(rom: bytes) -> None:
    env = MarioVectorEnv(16, rom=rom, stages="all", num_threads=1)
    env.set_stage_weights({"1-2": 1.0, "8-4": 1.0})
    assert set(env.reset(seed=3)[1]["start_stage"].tolist()) == {1, 31}
    env.set_stage_weights(None)
    assert len(set(env.reset(seed=3)[1]["start_stage"].tolist())) > 5
    for bad in ([1.0, 2.0], [-1.0] * 32):
        with pytest.raises(ValueError, match="stage weights"):
            env.set_stage_weights(bad)


def test_restarts_show_what_was_seen(rom: bytes) -> None:
    env = MarioVectorEnv(2, rom=rom, num_threads=1)
    env.reset(seed=0)
    forward(env, 15)
    state, stack = env.save(0), env.observation(0)
    env.add_restart(5, state)
    env.set_restart_share(1.0)
    obs, infos = env.reset()
    assert infos["restart"].tolist() == [5, 5]
    np.testing.assert_array_equal(obs[1], stack)
    env.remove_restart(5)
    assert env.reset()[1]["restart"].tolist() == [0, 0]
    with pytest.raises(ValueError, match="no restart point 5"):
        env.remove_restart(5)
    with pytest.raises(TypeError, match="bytes"):
        env.add_restart(1, "state")  # type: ignore[arg-type]


def test_a_single_game_restarts_too(rom: bytes) -> None:
    env = MarioEnv(rom=rom)
    env.reset(seed=0)
    for _ in range(10):
        env.step(RIGHT_B)
    env.add_restart(1, env.save())
    env.set_restart_share(1.0)
    assert env.reset()[1]["x_pos"] > 60


def test_tiles(rom: bytes) -> None:
    env = MarioVectorEnv(3, rom=rom, obs="tiles", stages="1-1,2-2,8-4", num_threads=1)
    obs, _ = env.reset(seed=0)
    assert env.single_observation_space.shape == obs.shape[1:] == (4, 13, 16)
    assert set(np.unique(obs)) <= {0, 48, 96, 144, 192, 255}
    assert ((obs == 144).sum((2, 3)) == 1).all()


def test_ram(rom: bytes) -> None:
    env = MarioVectorEnv(2, rom=rom, obs="ram", frame_stack=2, num_threads=1)
    before, _ = env.reset(seed=0)
    assert env.single_observation_space.shape == before.shape[1:] == (2, 1, 2048)
    first = env.rams()
    obs = env.step(np.ones(2, np.int64))[0]
    np.testing.assert_array_equal(obs[:, 0, 0], first)
    np.testing.assert_array_equal(obs[:, 1, 0], env.rams())
    assert not np.array_equal(obs[:, 0], obs[:, 1])
    # Saved and put back, the bytes of earlier frames included.
    state = env.save(0)
    env.step(np.ones(2, np.int64))
    env.load(0, state)
    np.testing.assert_array_equal(env.observation(0), obs[0])


def test_planar_colours(rom: bytes) -> None:
    usual = MarioVectorEnv(1, rom=rom, gray=False, size=40)
    planar = MarioVectorEnv(1, rom=rom, gray=False, size=40, planar=True)
    first, second = usual.reset(seed=0)[0], planar.reset(seed=0)[0]
    assert second.shape == (1, 4, 120, 40)
    np.testing.assert_array_equal(np.moveaxis(first, -1, 2).reshape(second.shape), second)


def test_annealing_counts_global_steps() -> None:
    schedule = RewardSchedule(
        RewardWeights(),
        pixel=Annealed(0.1, 0.0, 1000),
        scale=Annealed(0.2, 0.1, 0),
        death=Annealed(-5.0),
    )
    assert schedule.at(0).pixel == 0.1
    assert schedule.at(500).pixel == pytest.approx(0.05)
    assert schedule.at(5000).pixel == 0.0
    assert schedule.at(0).scale == 0.1
    assert schedule.at(10**9).death == -5.0


def test_threads_change_nothing(rom: bytes) -> None:
    """Weighted stages, scripts and restarts draw from the lanes' own streams."""
    results = []
    for threads in (1, 3):
        env = MarioVectorEnv(
            6, rom=rom, stages="1-1,1-2", start_script="RIGHT+B:9", num_threads=threads, sticky=0.2
        )
        env.set_stage_weights({"1-1": 1.0, "1-2": 2.0})
        env.reset(seed=5)
        forward(env, 6)
        for lane in range(6):
            env.add_restart(6 - lane, env.save(lane), weight=1.0 + lane, script="RIGHT:5")
        env.set_restart_share(0.7)
        obs, infos = env.reset()
        rewards = forward(env, 10, action=4)
        results.append((obs.copy(), rewards, infos["restart"].copy(), env.rams()))
        env.close()
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(set(results[0][2].tolist())) > 2


def test_the_other_timing_has_all_of_it(rom: bytes) -> None:
    env = MarioVectorEnv(
        1, rom=rom, timing="nes-py", obs="tiles", start_script="RIGHT+B:8", num_threads=1
    )
    env.reset(seed=0)
    assert [int(env.step(np.zeros(1, np.int64))[4]["forced"][0]) for _ in range(3)] == [1, 1, 0]
    assert forward(env, 6).sum() > 0.0
    seen, ram = env.observation(0), env.ram(0)
    env.add_restart(2, env.save(0))
    env.set_restart_share(1.0)
    obs, infos = env.reset()
    assert infos["restart"].tolist() == [2]
    np.testing.assert_array_equal(obs[0], seen)
    np.testing.assert_array_equal(env.ram(0), ram)
    assert env.shaping()["env_distance_delta_sum"] > 0.0
