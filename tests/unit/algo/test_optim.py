"""Updates, skipped updates, and averages of weights."""

import copy
import math

import pytest
import torch
from torch import nn

from warpzone.algo.ema import Ema
from warpzone.algo.optim import (
    SCALE_PATIENCE,
    Updater,
    make_optimizer,
    parameter_groups,
    set_learning_rate,
)
from warpzone.model.agent import Agent
from warpzone.model.spec import ModelSpec


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))


def weights(module: nn.Module) -> list[torch.Tensor]:
    return [value.detach().clone() for value in module.state_dict().values()]


def same(ours: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(ours, others, strict=True))


def test_only_matrices_decay() -> None:
    spec = ModelSpec(
        actions=3, height=36, width=36, previous_action=True, noisy=True, memory="gtrxl"
    )
    agent = Agent(spec)
    decayed, kept = (
        {id(p) for p in group["params"]} for group in parameter_groups(agent, weight_decay=0.1)
    )
    names = dict(agent.named_parameters())
    assert len(decayed) + len(kept) == len(names)
    for name, parameter in names.items():
        matrix = name.endswith("weight") and "norm" not in name and not name.startswith("previous")
        assert (id(parameter) in decayed) == matrix, name


def test_an_update_is_adamw_after_the_clip() -> None:
    ours, other = network(), network()
    updater = Updater(make_optimizer(ours, learning_rate=0.1, weight_decay=0.01), max_norm=0.5)
    plain = torch.optim.AdamW(parameter_groups(other, 0.01), lr=0.1, eps=1e-5)
    x = torch.randn(16, 4)
    for _ in range(3):
        # Two pieces of half the loss accumulate to one.
        for half in x.chunk(2):
            updater.backward(10.0 * ours(half).square().mean() / 2)
        norm = updater.step()
        plain.zero_grad()
        (10.0 * other(x).square().mean()).backward()
        wanted = nn.utils.clip_grad_norm_(other.parameters(), 0.5)
        plain.step()
        torch.testing.assert_close(norm, wanted)
        assert wanted > 0.5
    for one, two in zip(ours.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one, two)
        assert one.grad is None


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_an_update_that_is_not_finite_is_skipped_and_counted(bad: float) -> None:
    module, twin = network(), network()
    updater = Updater(make_optimizer(module, learning_rate=0.1))
    other = Updater(make_optimizer(twin, learning_rate=0.1))
    x = torch.randn(16, 4)
    in_a_row = []
    for factor in (1.0, bad, bad, 1.0, bad):
        before = weights(module)
        updater.backward(module(x).square().mean() * factor)
        updater.step()
        in_a_row.append(updater.report().skipped_in_a_row)
        assert same(weights(module), before) == (not math.isfinite(factor))
        if factor == 1.0:
            other.backward(twin(x).square().mean())
            other.step()
    report = updater.report()
    assert (report.steps, report.skipped, report.skipped_in_a_row) == (5, 3, 1)
    assert in_a_row == [0, 1, 2, 0, 1]
    assert not math.isfinite(report.grad_norm)
    # Skipping left no trace in the moments or the step count either.
    assert same(weights(module), weights(twin))
    assert other.report().skipped == 0


def test_a_loss_that_is_not_finite_counts_even_if_its_gradient_is() -> None:
    module = network()
    updater = Updater(make_optimizer(module, learning_rate=0.1))
    before = weights(module)
    updater.backward(module(torch.randn(2, 4)).mean() + torch.tensor(math.inf))
    assert all(p.grad is not None and p.grad.isfinite().all() for p in module.parameters())
    updater.step()
    assert same(weights(module), before)
    updater.backward(module(torch.randn(2, 4)).mean())
    updater.step()
    assert (updater.report().skipped, updater.report().skipped_in_a_row) == (1, 0)


def test_a_veto_leaves_an_update_out() -> None:
    module = network()
    updater = Updater(make_optimizer(module, learning_rate=0.1))
    for veto in (True, False):
        before = weights(module)
        updater.backward(module(torch.ones(2, 4)).mean())
        updater.step(veto=torch.tensor(veto))
        assert same(weights(module), before) == veto
    report = updater.report()
    assert (report.steps, report.vetoed, report.skipped) == (2, 1, 0)


def test_the_loss_scale_follows_overflow() -> None:
    module, twin = network(), network()
    scaled = Updater(make_optimizer(module, learning_rate=0.1), loss_scale=1024.0)
    plain = Updater(make_optimizer(twin, learning_rate=0.1))
    for _ in range(3):
        for updater, net in ((scaled, module), (plain, twin)):
            updater.backward(net(torch.ones(2, 4)).square().mean())
            updater.step()
    assert scaled.report().grad_norm == pytest.approx(plain.report().grad_norm, rel=1e-4)
    for one, two in zip(module.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(one, two)
    scaled.backward(module(torch.ones(2, 4)).mean() * math.inf)
    scaled.step()
    assert scaled.report().loss_scale == 512.0
    scaled.load_state_dict(scaled.state_dict() | {"good": torch.tensor(SCALE_PATIENCE - 1)})
    scaled.backward(module(torch.ones(2, 4)).mean())
    scaled.step()
    assert scaled.report().loss_scale == 1024.0


def test_resuming_goes_on_with_the_same_bits() -> None:
    module = network()
    updater = Updater(make_optimizer(module, learning_rate=0.1))
    x = torch.randn(8, 4)

    def train(net: nn.Module, its: Updater) -> list[torch.Tensor]:
        for _ in range(3):
            its.backward(net(x).square().mean())
            its.step()
        return weights(net)

    train(module, updater)
    twin = network()
    other = Updater(make_optimizer(twin, learning_rate=0.1))
    twin.load_state_dict(module.state_dict())
    other.load_state_dict(copy.deepcopy(updater.state_dict()))
    assert same(train(module, updater), train(twin, other))
    assert updater.report() == other.report()


def test_a_step_can_be_undone() -> None:
    module = network()
    updater = Updater(make_optimizer(module, learning_rate=0.1), loss_scale=4.0)

    def step() -> list[torch.Tensor]:
        updater.backward(module(torch.ones(2, 4)).mean())
        updater.step()
        return weights(module)

    step()
    before = [value.clone() for value in updater.tensors()]
    after, report = step(), updater.report()
    for value, old in zip(updater.tensors(), before, strict=True):
        value.copy_(old)
    assert updater.report().steps == 1
    assert same(step(), after)
    assert updater.report() == report


def test_the_learning_rate_is_set_in_place_where_it_is_a_tensor() -> None:
    module = network()
    rate = torch.tensor(0.1)
    optimizer = torch.optim.AdamW(module.parameters(), lr=rate, fused=True)
    set_learning_rate(optimizer, 0.5)
    assert float(rate) == 0.5
    optimizer = make_optimizer(module, learning_rate=0.1)
    set_learning_rate(optimizer, 0.5)
    assert {group["lr"] for group in optimizer.param_groups} == {0.5}


def test_bad_optimisers_are_refused() -> None:
    module = network()
    with pytest.raises(ValueError, match="needs a fused optimiser"):
        Updater(torch.optim.AdamW(module.parameters()))
    with pytest.raises(ValueError, match="must be above 0, and is 0"):
        Updater(make_optimizer(module, learning_rate=0.1), max_norm=0.0)
    with pytest.raises(ValueError, match="call backward first"):
        Updater(make_optimizer(module, learning_rate=0.1)).step()


def test_the_average_follows_and_can_be_saved() -> None:
    module = nn.BatchNorm1d(2)  # has parameters, buffers and a whole number
    ema = Ema(module, decay=0.5)
    expected = module.weight.detach().clone()
    for n in range(4):
        module.weight.data.add_(1.0)
        module.running_mean.add_(1.0)  # type: ignore[union-attr]
        module.num_batches_tracked.add_(1)  # type: ignore[union-attr]
        ema.update(module)
        decay = min(0.5, (1 + n) / (10 + n))
        expected = decay * expected + (1 - decay) * module.weight.detach()
    other = nn.BatchNorm1d(2)
    ema.copy_to(other)
    torch.testing.assert_close(other.weight.detach(), expected)
    assert torch.equal(other.running_mean, module.running_mean)  # type: ignore[arg-type]
    assert int(other.num_batches_tracked) == 4  # type: ignore[arg-type]

    again = Ema(nn.BatchNorm1d(2), decay=0.5)
    again.load_state_dict(copy.deepcopy(ema.state_dict()))
    module.weight.data.add_(1.0)
    for average in (ema, again):
        average.update(module)
    restored = nn.BatchNorm1d(2)
    again.copy_to(restored)
    ema.copy_to(other)
    assert same(weights(restored), weights(other))


def test_a_bad_average_is_refused() -> None:
    with pytest.raises(ValueError, match="decay must be in"):
        Ema(network(), decay=1.0)
    with pytest.raises(ValueError, match=r"another network: .*0\.bias"):
        Ema(network()).load_state_dict({"updates": 0, "averages": {}})
