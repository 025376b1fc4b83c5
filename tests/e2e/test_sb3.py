"""The real Stable-Baselines3, and a CleanRL-style loop, on our environments."""

import copy
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest

import warpzone
from warpzone.env.vector import MarioVectorEnv

#: The default ROM is enough here; exactness on both is proved elsewhere.
VARIANT = "eu"
STEPS = 128


@pytest.fixture(autouse=True)
def one_torch_thread() -> Iterator[None]:
    """Tests run side by side; torch's own threads would only fight over the cores."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_ppo_learns_on_the_single_environment() -> None:
    sb3 = pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.env_checker import check_env
    from stable_baselines3.common.monitor import Monitor

    env = warpzone.MarioEnv(rom=VARIANT, time_limit=20)
    check_env(env)
    model = sb3.PPO("CnnPolicy", Monitor(env), n_steps=32, batch_size=32, n_epochs=1, seed=0)
    before = _weights(model)
    model.learn(STEPS)
    assert model.num_timesteps == STEPS
    assert len(model.ep_info_buffer) >= 3
    assert _moved(before, _weights(model))
    env.close()


@pytest.mark.parametrize("lanes", [3, np.int64(3)])
def test_the_number_of_lanes_may_stand_alone(lanes: int) -> None:
    pytest.importorskip("stable_baselines3")
    from warpzone.env.sb3 import Sb3VecEnv

    env = Sb3VecEnv(lanes, rom=VARIANT)
    assert env.reset().shape == (3, 4, 84, 84)
    env.close()
    with pytest.raises(TypeError, match="an environment or a number of lanes, not 'sixteen'"):
        Sb3VecEnv("sixteen")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"not <.*MarioEnv"):
        Sb3VecEnv(warpzone.MarioEnv(rom=VARIANT))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="num_envs"):
        Sb3VecEnv(3, num_envs=3, rom=VARIANT)


def test_worker_processes_that_are_spawned_find_the_environment() -> None:
    """A spawned worker imports nothing of ours by itself: the id names the package."""
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import SubprocVecEnv

    env = make_vec_env(
        "warpzone:warpzone/SuperMarioBros-1-1-v0",
        n_envs=1,
        vec_env_cls=SubprocVecEnv,
        vec_env_kwargs={"start_method": "spawn"},
        env_kwargs={"rom": VARIANT},
    )
    try:
        assert np.shape(env.reset()) == (1, 4, 84, 84)  # type: ignore[arg-type]
    finally:
        env.close()


def test_ppo_learns_on_the_native_vector_environment() -> None:
    sb3 = pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import VecMonitor

    from warpzone.env.sb3 import Sb3VecEnv

    env = Sb3VecEnv(num_envs=8, rom=VARIANT, time_limit=12)
    monitored = VecMonitor(env)
    model = sb3.PPO("CnnPolicy", monitored, n_steps=16, batch_size=64, n_epochs=1, seed=0)
    before = _weights(model)
    model.learn(2 * STEPS)
    assert model.num_timesteps == 2 * STEPS
    assert _moved(before, _weights(model))
    assert len(model.ep_info_buffer) > 8
    action, _ = model.predict(monitored.reset(), deterministic=True)
    assert action.shape == (8,)
    monitored.close()


@pytest.mark.parametrize("layout", ["channels_last", "channels_first"])
def test_ppo_learns_from_colours(layout: str) -> None:
    sb3 = pytest.importorskip("stable_baselines3")
    from warpzone.env.sb3 import Sb3VecEnv

    env = Sb3VecEnv(2, rom=VARIANT, time_limit=12, gray=False, layout=layout)
    model = sb3.PPO("CnnPolicy", env, n_steps=16, batch_size=32, n_epochs=1, seed=0)
    before = _weights(model)
    model.learn(32)
    assert _moved(before, _weights(model))
    assert model.policy.features_extractor.cnn[0].in_channels == 12
    env.close()


def test_colours_that_sb3_cannot_take_are_refused() -> None:
    """Its policies take three axes; those of a stack of colour pictures are four."""
    pytest.importorskip("stable_baselines3")
    from warpzone.env.sb3 import Sb3VecEnv

    with pytest.raises(ValueError, match="layout='channels_last'"):
        Sb3VecEnv(2, rom=VARIANT, gray=False)
    env = Sb3VecEnv(2, rom=VARIANT, gray=False, planar=True)
    assert env.reset().shape == (2, 4, 252, 84)
    env.close()


def test_an_adapter_can_be_copied() -> None:
    pytest.importorskip("stable_baselines3")
    from warpzone.env.sb3 import Sb3VecEnv

    env = Sb3VecEnv(2, rom=VARIANT, size=16)
    env.reset()
    twin = copy.deepcopy(env)
    mine: Any = env.step(np.array([3, 4]))
    theirs: Any = twin.step(np.array([3, 4]))
    assert all(map(np.array_equal, mine, theirs))
    env.close()
    twin.close()


def test_terminal_observation_is_the_last_of_the_old_episode() -> None:
    pytest.importorskip("stable_baselines3")
    from warpzone.env.sb3 import Sb3VecEnv

    options: dict[str, Any] = {"num_envs": 2, "rom": VARIANT, "time_limit": 3}
    env = Sb3VecEnv(**options, info_keys=("x_pos", "enemies"))
    env.seed(4)
    plain = MarioVectorEnv(**{**options, "time_limit": 0})
    plain.reset(seed=env._seeds)
    first = env.reset()
    for step in range(3):
        actions = np.array([3, 4])
        obs, _, done, infos = env.step(actions)
        wanted = plain.step(actions)
        assert done.tolist() == [step == 2] * 2
    for lane, info in enumerate(infos):
        assert np.array_equal(info["terminal_observation"], wanted[0][lane])
        assert info["TimeLimit.truncated"] is True
        assert info["x_pos"] == wanted[4]["x_pos"][lane]
        assert np.array_equal(info["enemies"], wanted[4]["enemies"][lane])
    assert isinstance(obs, np.ndarray)
    assert isinstance(first, np.ndarray)
    assert np.array_equal(obs, first)
    assert env.get_images()[0].shape == (240, 256, 3)  # type: ignore[union-attr]
    assert env.env_method("ram", indices=[1])[0].shape == (2048,)
    assert env.get_attr("num_envs") == [2, 2]
    env.close()
    plain.close()


def test_the_adapter_wants_same_step_autoreset() -> None:
    pytest.importorskip("stable_baselines3")
    from warpzone.env.sb3 import Sb3VecEnv

    plain = MarioVectorEnv(1, rom=VARIANT)
    with pytest.raises(ValueError, match="SAME_STEP"):
        Sb3VecEnv(plain)
    plain.close()


def test_cleanrl_style_loop() -> None:
    """PPO's data collection as CleanRL writes it, with torch and `make_vec`."""
    torch = pytest.importorskip("torch")
    envs = gymnasium.make_vec(
        "warpzone/SuperMarioBros-1-1-v0", num_envs=4, rom=VARIANT, time_limit=25
    )
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(envs)
    shape, steps = envs.single_observation_space.shape, 60
    assert shape is not None
    assert isinstance(envs.single_action_space, gymnasium.spaces.Discrete)
    policy = torch.nn.Sequential(
        torch.nn.Conv2d(shape[0], 8, 8, stride=4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.LazyLinear(int(envs.single_action_space.n)),
    )
    stored = torch.zeros((steps, 4, *shape), dtype=torch.uint8)
    dones = torch.zeros((steps, 4))
    episodes = 0
    obs, _ = envs.reset(seed=1)
    for step in range(steps):
        stored[step] = torch.as_tensor(obs)
        with torch.no_grad():
            logits = policy(torch.as_tensor(obs).float() / 255)
        action = torch.distributions.Categorical(logits=logits).sample().numpy()
        obs, reward, terminated, truncated, infos = envs.step(action)
        dones[step] = torch.as_tensor(np.logical_or(terminated, truncated))
        assert torch.as_tensor(reward).shape == (4,)
        if "episode" in infos:
            episodes += int(infos["_episode"].sum())
    assert episodes >= 4
    assert int(dones.sum()) >= 4
    assert stored[1:].float().std() > 1
    envs.close()


def _weights(model: Any) -> list[Any]:
    return [parameter.detach().clone() for parameter in model.policy.parameters()]


def _moved(before: list[Any], after: list[Any]) -> bool:
    return any(bool((a != b).any()) for a, b in zip(before, after, strict=True))
