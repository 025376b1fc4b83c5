"""The real TorchRL on our environments: single, vector, and what it reads from infos."""

from typing import Any

import numpy as np
import pytest
import torch

import warpzone

envs = pytest.importorskip("torchrl.envs")

ID = "warpzone/SuperMarioBros-1-1-v0"
pytestmark = pytest.mark.filterwarnings("ignore")


def test_single() -> None:
    env = envs.GymEnv(ID, rom="eu", time_limit=4)
    envs.check_env_specs(env)
    steps = env.rollout(9, break_when_any_done=False)
    assert steps["observation"].shape == (9, 4, 84, 84)
    assert steps["next", "truncated"].squeeze(-1).nonzero().flatten().tolist() == [3, 7]
    env.close()


def test_infos() -> None:
    plain = warpzone.MarioEnv(rom="eu")
    plain.reset(seed=0)
    single = warpzone.MarioEnv(rom="eu", numpy_infos=True)
    env = envs.GymWrapper(single, categorical_action_encoding=True).auto_register_info_dict()
    env.set_seed(0)

    def run_right(tensordict: Any) -> Any:
        return tensordict.set("action", torch.tensor(3))

    steps = env.rollout(6, run_right)
    infos = [plain.step(np.int64(3))[4] for _ in range(6)]
    assert steps["next", "x_pos"].tolist() == [info["x_pos"] for info in infos]
    assert steps["next", "enemies"].tolist() == [info["enemies"].tolist() for info in infos]
    assert steps["next", "flag_get"].dtype == torch.bool
    env.close()
    plain.close()


@pytest.mark.parametrize("mode", ["SAME_STEP", "DISABLED"])
def test_vector(mode: str) -> None:
    lanes: Any = warpzone.MarioVectorEnv(3, rom="eu", autoreset_mode=mode, time_limit=4)
    env = envs.GymWrapper(lanes)
    if not env.info_dict_reader:
        env = env.auto_register_info_dict()
    envs.check_env_specs(env)
    steps: Any = env.rollout(9, break_when_any_done=False)
    assert steps["next", "done"].squeeze(-1).sum(1).tolist() == [2, 2, 2]
    assert steps["next", "x_pos"].shape == (3, 9)
    env.close()
