"""Single lanes: saving, cloning, looking inside; and asynchronous batches."""

from typing import Any

import numpy as np
import pytest

from warpzone.env.vector import MarioVectorEnv

#: A saved lane starts with magic, version, fingerprint, size and checksum of what follows: where
#: each ends, and how a changed bit in it is refused.
DAMAGED = "the saved lane is damaged"
HEADER = {
    8: "these bytes are not a saved lane",
    12: "the saved lane has format version",
    20: "belongs to another ROM or other options",
    28: "bytes after its header",
    36: DAMAGED,
}


@pytest.fixture
def env(rom: bytes) -> Any:
    made = MarioVectorEnv(4, rom=rom, stages="1-1..1-4")
    made.reset(seed=0)
    yield made
    made.close()


def advance(env: MarioVectorEnv, steps: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        env.step(rng.integers(0, 7, env.num_envs))


def test_ram_copy_and_view(env: MarioVectorEnv) -> None:
    copy, view = env.ram(2), env.ram_view(2)
    assert copy.shape == view.shape == (2048,)
    assert np.array_equal(copy, view)
    assert np.array_equal(env.rams()[2], copy)
    assert env.rams([3, 2]).shape == (2, 2048)
    advance(env, 3, 0)
    assert not np.array_equal(copy, view)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1


def test_ram_view_outlives_the_environment_safely(rom: bytes) -> None:
    env = MarioVectorEnv(2, rom=rom)
    env.reset(seed=0)
    view = env.ram_view(1)
    before = view.copy()
    env.close()
    del env
    assert view.sum() == before.sum()


def test_save_and_load_bring_back_everything(env: MarioVectorEnv) -> None:
    advance(env, 20, 1)
    state, obs, info = env.save(0), env.observation(0), env.info(0)
    advance(env, 20, 2)
    env.load(3, state)
    assert np.array_equal(env.observation(3), obs)
    assert env.info(3)["x_pos"] == info["x_pos"]
    assert env.info(3)["steps"] == info["steps"] == 20


def test_clone_makes_a_twin(env: MarioVectorEnv) -> None:
    advance(env, 10, 1)
    env.clone(1, 2)
    for action in (3, 4, 1, 0, 6, 3, 3):
        obs, reward, *_ = env.step(np.full(4, action))
        assert np.array_equal(obs[1], obs[2])
        assert reward[1] == reward[2]
    assert np.array_equal(env.ram(1), env.ram(2))


def test_foreign_and_damaged_states_are_refused(env: MarioVectorEnv, rom: bytes) -> None:
    state = env.save(0)
    before = env.ram(1)
    other = MarioVectorEnv(1, rom=rom, frame_stack=2)
    other.reset(seed=0)
    with pytest.raises(ValueError, match="belongs to another ROM or other options"):
        env.load(1, other.save(0))
    other.close()
    rng = np.random.default_rng(0)
    header = list(HEADER)[-1]
    for position in [*range(header), *rng.integers(header, len(state), 50)]:
        broken = bytearray(state)
        broken[position] ^= 1 << int(rng.integers(8))
        refusal = next((said for end, said in HEADER.items() if position < end), DAMAGED)
        with pytest.raises(ValueError, match=refusal):
            env.load(1, bytes(broken))
    for size in [*range(header), *rng.integers(header, len(state), 50)]:
        short = "ends too early" if size < header else "bytes after its header"
        with pytest.raises(ValueError, match=short if size >= 8 else "not a saved lane"):
            env.load(1, state[:size])
    assert np.array_equal(env.ram(1), before)
    with pytest.raises(TypeError, match="bytes"):
        env.load(1, "state")  # type: ignore[arg-type]


@pytest.mark.parametrize("lane", [-1, 4, 10**9])
def test_lanes_out_of_range(env: MarioVectorEnv, lane: int) -> None:
    for call in (env.ram, env.ram_view, env.screen, env.save, env.info, env.observation):
        with pytest.raises(IndexError, match=str(lane)):
            call(lane)
    with pytest.raises(IndexError, match=str(lane)):
        env.clone(0, lane)
    with pytest.raises(IndexError, match=str(lane)):
        env.set_stages(lane, "1-1")


def test_lanes_are_whole_numbers(env: MarioVectorEnv) -> None:
    for lane in (0.0, "0", True, None):
        with pytest.raises(TypeError, match="lane"):
            env.ram(lane)  # type: ignore[arg-type]
    assert env.ram(np.int64(1)).shape == (2048,)  # type: ignore[arg-type]


def test_async_batches_equal_synchronous_steps(rom: bytes) -> None:
    """Every lane gets the same actions through send/recv as through step."""
    lanes, steps = 6, 25
    plan = np.random.default_rng(4).integers(0, 7, (steps, lanes))
    sync = MarioVectorEnv(lanes, rom=rom, stages="all")
    sync.reset(seed=9)
    expected = [sync.step(actions) for actions in plan]
    sync.close()

    env = MarioVectorEnv(lanes, rom=rom, stages="all", num_threads=2, batch_size=2)
    env.reset(seed=9)
    env.send(plan[0])
    taken = np.zeros(lanes, int)
    while (taken < steps).any():
        obs, reward, terminated, truncated, infos = env.recv()
        assert obs.shape == (2, 4, 84, 84)
        for row, lane in enumerate(infos["lane"]):
            if taken[lane] < steps:
                want = expected[taken[lane]]
                assert np.array_equal(obs[row], want[0][lane])
                assert reward[row] == want[1][lane]
                assert (terminated[row], truncated[row]) == (want[2][lane], want[3][lane])
                assert infos["x_pos"][row] == want[4]["x_pos"][lane]
            taken[lane] += 1
        # Lanes that have shown enough play on, so that a batch can always be filled.
        env.send(plan[taken[infos["lane"]] % steps, infos["lane"]], infos["lane"])
    env.close()


def test_async_misuse_is_refused_and_never_hangs(rom: bytes) -> None:
    env = MarioVectorEnv(4, rom=rom, batch_size=2)
    env.reset(seed=0)
    with pytest.raises(RuntimeError, match="asked for 2 lanes, but 0 are under way"):
        env.recv()
    env.send(np.array([0, 1]), np.array([1, 3]))
    with pytest.raises(RuntimeError, match="lane 3 is under way; receive it first"):
        env.send(np.array([0]), np.array([3]))
    with pytest.raises(RuntimeError, match="step needs all lanes, but 2 are under way"):
        env.step(np.zeros(4, np.int64))
    infos = env.recv()[-1]
    assert sorted(infos["lane"].tolist()) == [1, 3]
    with pytest.raises(IndexError, match=r"lane 4 is outside 0\.\.3"):
        env.send(np.array([0]), np.array([4]))
    with pytest.raises(ValueError, match="shape"):
        env.send(np.array([0, 1]), np.array([1]))
    with pytest.raises(ValueError, match="lane 2 is named twice"):
        env.send(np.array([0, 0]), np.array([2, 2]))
    env.step(np.zeros(4, np.int64))
    env.send(np.zeros(4, np.int64))
    env.close()


def test_async_final_observations(rom: bytes) -> None:
    env = MarioVectorEnv(3, rom=rom, time_limit=2, autoreset_mode="SAME_STEP", batch_size=3)
    env.reset(seed=0)
    for _ in range(2):
        env.send(np.full(3, 3))
        obs, _, _, truncated, infos = env.recv()
    assert truncated.all()
    assert infos["_final_obs"].all()
    assert not np.array_equal(infos["final_obs"][0], obs[0])
    assert infos["final_info"]["steps"].tolist() == [2, 2, 2]
    assert infos["steps"].tolist() == [0, 0, 0]
    env.close()
