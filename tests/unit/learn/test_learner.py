"""What an update does to the weights."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tiny_runs import CPU, make_agent, make_collector, same, tiny

from warpzone.config import ConfigError, TrainConfig
from warpzone.data.types import Rollout
from warpzone.learn import graphs
from warpzone.learn.learner import Learner, LearningError
from warpzone.model.agent import Agent
from warpzone.model.compiling import check_compiler, compiled


def rollout_of(config: TrainConfig, agent: Agent) -> Rollout:
    collector = make_collector(config, agent)
    try:
        return collector.collect()
    finally:
        collector.close()


def updated(rollout: Rollout, config: TrainConfig) -> tuple[Agent, dict[str, float]]:
    agent = make_agent(config)
    return agent, Learner(config, agent, CPU).update(rollout, 0.0)


def with_forced(rollout: Rollout) -> Rollout:
    """Some steps were forced, in each lane more than in the one before it."""
    share = torch.linspace(0.0, 0.9, rollout.lanes)
    random = torch.Generator().manual_seed(3)
    forced = torch.rand(rollout.length, rollout.lanes, generator=random) < share
    return rollout._replace(forced=forced, log_prob=rollout.log_prob.masked_fill(forced, 0.0))


@pytest.mark.parametrize("forced", [False, True], ids=["free", "forced"])
@pytest.mark.parametrize("normalize", [False, True], ids=["plain", "normalised"])
@pytest.mark.parametrize(
    "changes",
    [{}, {"memory": "gru"}, {"algo": "a2c"}, {"algo": "vtrace"}],
    ids=str,
)
def test_accumulated_gradients_are_those_of_a_larger_minibatch(
    changes: dict[str, Any], normalize: bool, forced: bool
) -> None:
    whole = tiny(num_envs=8, minibatch=64, normalize_advantages=normalize, **changes)
    rollout = rollout_of(whole, make_agent(whole))
    if forced:
        rollout = with_forced(rollout)
    pieces = whole.replace(minibatch=16, grad_accum=4)
    large, report_large = updated(rollout, whole)
    small, report_small = updated(rollout, pieces)
    assert not same(large, make_agent(whole))
    for a, b in zip(large.parameters(), small.parameters(), strict=True):
        # Adam's first step is as long as the rate wherever the gradient is not tiny.
        torch.testing.assert_close(a, b, rtol=0, atol=whole.lr / 50)
    names = ("loss_total", "loss_policy", "loss_value", "entropy", "approx_kl", "grad_norm")
    for name in names:
        assert report_small[name] == pytest.approx(report_large[name], rel=1e-4, abs=1e-5)


def test_the_first_update_of_a_warm_up_teaches() -> None:
    config = tiny(max_steps=10 * 32, warmup=0.4, lr_final=1.0)
    rollout = rollout_of(config, make_agent(config))
    learner = Learner(config, make_agent(config), CPU)
    rates = [learner.update(rollout, k / 10)["learning_rate"] for k in range(6)]
    assert rates == pytest.approx([config.lr * share for share in (0.25, 0.5, 0.75, 1, 1, 1)])
    agent, _ = updated(rollout, config)
    assert not same(agent, make_agent(config))


def test_without_accumulation_there_are_more_steps() -> None:
    config = tiny(num_envs=8, minibatch=16)
    rollout = rollout_of(config, make_agent(config))
    agent = make_agent(config)
    learner = Learner(config, agent, CPU)
    learner.update(rollout, 0.0)
    assert learner.updater.report().steps == 4
    accumulating = Learner(config.replace(grad_accum=4), make_agent(config), CPU)
    accumulating.update(rollout, 0.0)
    assert accumulating.updater.report().steps == 1


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_the_policy_has_not_moved_at_the_first_minibatch(memory: str) -> None:
    config = tiny(memory=memory, minibatch=32)
    rollout = rollout_of(config, make_agent(config))
    _, report = updated(rollout, config)
    assert abs(report["approx_kl"]) < 1e-9
    assert report["clip_fraction"] == 0.0


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_target_kl_ends_the_passes(memory: str) -> None:
    config = tiny(memory=memory, minibatch=16, epochs=4, lr=0.01)
    rollout = rollout_of(config, make_agent(config))
    # The first step moves the policy; the second finds it too far away, and nothing after counts.
    stopped, report = updated(rollout, config.replace(target_kl=1e-9))
    assert report["updates_vetoed"] == 1.0
    longer, _ = updated(rollout, config.replace(target_kl=1e-9, epochs=8))
    assert same(stopped, longer)
    assert not same(stopped, make_agent(config))
    free, free_report = updated(rollout, config)
    assert free_report["updates_vetoed"] == 0.0
    assert not same(free, stopped)


def test_the_average_follows_the_weights() -> None:
    """Closely at first: after n updates it keeps (1 + n) / (10 + n) of itself, 0.15 at most."""
    config = tiny(ema=0.15, lr=0.01)
    agent = make_agent(config)
    rollout = rollout_of(config, agent)
    learner = Learner(config, agent, CPU)
    expected = {name: part.clone() for name, part in agent.state_dict().items()}
    for kept in (1 / 10, 0.15, 0.15):
        learner.update(rollout, 0.0)
        now = agent.state_dict()
        expected = {name: kept * part + (1 - kept) * now[name] for name, part in expected.items()}
    average = make_agent(config, seed=1)
    assert learner.ema is not None
    learner.ema.copy_to(average)
    for name, part in average.state_dict().items():
        torch.testing.assert_close(part, expected[name], rtol=1e-5, atol=1e-6)
    assert not same(average, agent)


def test_numbers_that_are_not_finite_stop_the_run() -> None:
    config = tiny(minibatch=16, epochs=4)
    rollout = rollout_of(config, make_agent(config))
    broken = rollout._replace(rewards=rollout.rewards * float("nan"))
    agent = make_agent(config)
    with pytest.raises(LearningError, match="not finite 8 times in a row"):
        Learner(config, agent, CPU).update(broken, 0.0)
    assert same(agent, make_agent(config))


def test_compile_is_used_for_acting_and_learning(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []

    def compile_(function: Any) -> Any:
        names.append(function.__name__)
        return function

    monkeypatch.setattr(torch, "compile", compile_)
    config = tiny(compile=True)
    agent = make_agent(config)
    rollout = rollout_of(config, agent)
    assert names == ["act", "act"]  # One actor for each group.
    Learner(config, agent, CPU).update(rollout, 0.0)
    assert names[2:] == ["act", "forward"]
    assert compiled(tiny, tiny()) is tiny


def test_a_compiler_that_does_not_work_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_(function: Any) -> Any:
        raise RuntimeError("no C++ compiler\nand much more")

    monkeypatch.setattr(torch, "compile", compile_)
    check_compiler(tiny(), CPU)
    with pytest.raises(ConfigError, match=r"does not work here \(no C\+\+ compiler\)"):
        check_compiler(tiny(compile=True), CPU)


@pytest.mark.parametrize(
    "changes",
    [{"epochs": 2, "target_kl": 0.5}, {"algo": "vtrace"}, {"memory": "gru", "epochs": 2}],
    ids=["steps", "vtrace", "gru"],
)
def test_recording_leaves_no_trace(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    # What comes before a CUDA graph is the same on the CPU: the updates that make the optimiser's
    # state and warm up are undone.
    def record(function: Callable[[], None], tensors: list[torch.Tensor]) -> Callable[[], None]:
        saved = [tensor.clone() for tensor in tensors]
        function()
        for tensor, value in zip(tensors, saved, strict=True):
            tensor.copy_(value)
        return function

    monkeypatch.setattr(graphs, "record", record)
    config = tiny(grad_accum=2, **changes)
    rollout = rollout_of(config, make_agent(config))
    plain, expected = updated(rollout, config)
    recorded = Learner(config, make_agent(config), CPU)
    recorded._graphs = recorded._steps.enabled = True
    report = recorded.update(rollout, 0.0)
    assert same(recorded.agent, plain)
    assert report == expected
    assert recorded.updater.report().steps == config.epochs
