"""RLlib's own sampler on our environments."""

from typing import Any

import pytest

import warpzone

WHY = "RLlib is not installed"
ppo = pytest.importorskip("ray.rllib.algorithms.ppo", reason=WHY, exc_type=ImportError)
modules = pytest.importorskip("ray.rllib.core.rl_module.default_model_config", reason=WHY)
runners = pytest.importorskip("ray.rllib.env.single_agent_env_runner", reason=WHY)
registry = pytest.importorskip("ray.tune.registry", reason=WHY)

pytestmark = pytest.mark.filterwarnings("ignore")


def test_sampling_with_its_default_network() -> None:
    """Its networks want `[height, width, channels]`, as floats."""
    options: dict[str, Any] = {"rom": "eu", "layout": "channels_last", "dtype": "float32"}
    registry.register_env("mario", lambda config: warpzone.MarioEnv(**config))
    config = (
        ppo.PPOConfig()
        .environment("mario", env_config={**options, "size": 42, "time_limit": 8})
        .env_runners(num_env_runners=0, num_envs_per_env_runner=1)
        .rl_module(model_config=modules.DefaultModelConfig(conv_filters=[[8, 8, 4], [16, 4, 2]]))
    )
    runner = runners.SingleAgentEnvRunner(config=config)
    episodes = runner.sample(num_timesteps=20)
    assert sum(len(episode) for episode in episodes) == 20
    assert [episode.is_truncated for episode in episodes] == [True, True, False]
    first = episodes[0].get_observations(0)
    assert first.shape == (42, 42, 4)
    assert first.max() <= 1.0
    runner.stop()
