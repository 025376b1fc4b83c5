"""The return estimators against the papers' sums, and what must hold between them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import reference_returns as slow
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from warpzone.algo import returns
from warpzone.algo.returns import Steps

PROPERTY = settings(max_examples=60, deadline=None)
#: float64 on both sides: what is left is the order of additions.
CLOSE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-9}


@dataclass(frozen=True)
class Case:
    steps: Steps
    log_rho: Tensor
    gamma: float
    lam: float

    def lane(self, b: int) -> slow.Lane:
        numbers = {name: value.numpy() for name, value in self.steps._asdict().items()}
        last = float(numbers.pop("last_value")[b])
        return slow.Lane(**{name: v[:, b] for name, v in numbers.items()}, last_value=last)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    length, lanes = draw(st.integers(1, 13)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    ends = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))

    def floats(*shape: int) -> Tensor:
        return torch.from_numpy(rng.normal(0.0, 3.0, shape))

    def flags() -> Tensor:
        return torch.from_numpy(rng.random((length, lanes)) < ends)

    both = (length, lanes)
    steps = Steps(floats(*both), floats(*both), floats(lanes), floats(*both), flags(), flags())
    gamma = draw(st.sampled_from([0.0, 0.5, 0.9, 0.997, 1.0]))
    lam = draw(st.sampled_from([0.0, 0.3, 0.95, 1.0]))
    return Case(steps, 0.3 * floats(*both), gamma, lam)


clips = st.sampled_from([0.5, 1.0, 2.0, 1e9])


@PROPERTY
@given(case=cases())
def test_gae_is_the_papers_sum(case: Case) -> None:
    result = returns.gae(case.steps, gamma=case.gamma, lam=case.lam)
    for b in range(case.log_rho.shape[1]):
        expected = slow.gae(case.lane(b), case.gamma, case.lam)
        np.testing.assert_allclose(result.advantages[:, b].numpy(), expected, **CLOSE)
    torch.testing.assert_close(result.targets, case.steps.values + result.advantages)


@PROPERTY
@given(case=cases(), rho_bar=clips, c_bar=clips)
def test_vtrace_is_the_papers_sum(case: Case, rho_bar: float, c_bar: float) -> None:
    result = returns.vtrace(
        case.steps, case.log_rho, gamma=case.gamma, lam=case.lam, rho_bar=rho_bar, c_bar=c_bar
    )
    for b in range(case.log_rho.shape[1]):
        log_rho = case.log_rho[:, b].numpy()
        expected = slow.vtrace(case.lane(b), log_rho, case.gamma, case.lam, rho_bar, c_bar)
        np.testing.assert_allclose(result.targets[:, b].numpy(), expected[0], **CLOSE)
        np.testing.assert_allclose(result.advantages[:, b].numpy(), expected[1], **CLOSE)


@PROPERTY
@given(case=cases())
def test_on_policy_vtrace_is_the_n_step_return(case: Case) -> None:
    result = returns.vtrace(case.steps, torch.zeros_like(case.log_rho), gamma=case.gamma)
    for b in range(case.log_rho.shape[1]):
        expected = slow.n_step_return(case.lane(b), case.gamma)
        np.testing.assert_allclose(result.targets[:, b].numpy(), expected, **CLOSE)


@PROPERTY
@given(case=cases())
def test_on_policy_vtrace_is_gae(case: Case) -> None:
    on_policy = torch.zeros_like(case.log_rho)
    ours = returns.vtrace(case.steps, on_policy, gamma=case.gamma, lam=case.lam)
    other = returns.gae(case.steps, gamma=case.gamma, lam=case.lam)
    torch.testing.assert_close(ours.targets, other.targets)
    torch.testing.assert_close(ours.advantages, other.advantages)


@PROPERTY
@given(case=cases(), seed=st.integers(0, 1000))
def test_permuting_lanes_permutes_results(case: Case, seed: int) -> None:
    order = torch.randperm(case.log_rho.shape[1], generator=torch.Generator().manual_seed(seed))
    moved = Steps(*(value[..., order] for value in case.steps))
    for one, other in zip(
        returns.vtrace(moved, case.log_rho[:, order], gamma=case.gamma, lam=case.lam),
        returns.vtrace(case.steps, case.log_rho, gamma=case.gamma, lam=case.lam),
        strict=True,
    ):
        assert torch.equal(one, other[:, order])


@PROPERTY
@given(case=cases(), data=st.data())
def test_terminated_and_truncated_differ_by_the_bootstrap(case: Case, data: st.DataObject) -> None:
    length, lanes = case.log_rho.shape
    t, b = data.draw(st.integers(0, length - 1)), data.draw(st.integers(0, lanes - 1))
    here = torch.zeros(length, lanes, dtype=torch.bool)
    here[t, b] = True
    steps = case.steps
    ended = steps._replace(terminated=steps.terminated | here, truncated=steps.truncated & ~here)
    cut = steps._replace(terminated=steps.terminated & ~here, truncated=steps.truncated | here)
    difference = (
        returns.gae(cut, gamma=case.gamma, lam=case.lam).advantages
        - returns.gae(ended, gamma=case.gamma, lam=case.lam).advantages
    )
    expected = torch.zeros_like(difference)
    for s in range(t, -1, -1):
        if s < t and bool(steps.terminated[s, b] | steps.truncated[s, b]):
            break
        reach = (case.gamma * case.lam) ** (t - s)
        expected[s, b] = reach * case.gamma * steps.final_value[t, b]
    torch.testing.assert_close(difference, expected, **CLOSE)


@PROPERTY
@given(case=cases(), data=st.data())
def test_nothing_flows_back_across_an_end(case: Case, data: st.DataObject) -> None:
    t = data.draw(st.integers(0, case.log_rho.shape[0] - 1))
    steps = case.steps
    cut = torch.zeros_like(steps.truncated)
    cut[t] = True
    steps = steps._replace(truncated=steps.truncated | cut)
    values, rewards = steps.values.clone(), steps.rewards.clone()
    values[t + 1 :] = 1e6
    rewards[t + 1 :] = -1e6
    other = steps._replace(values=values, rewards=rewards, last_value=steps.last_value + 1e6)
    for one, two in zip(
        returns.vtrace(steps, case.log_rho, gamma=case.gamma, lam=case.lam),
        returns.vtrace(other, case.log_rho, gamma=case.gamma, lam=case.lam),
        strict=True,
    ):
        assert torch.equal(one[: t + 1], two[: t + 1])


def test_a_discount_for_each_lane() -> None:
    torch.manual_seed(0)
    flags = torch.rand(6, 2) < 0.5
    steps = Steps(
        torch.randn(6, 2),
        torch.randn(6, 2),
        torch.randn(2),
        torch.randn(6, 2),
        flags,
        ~flags & False,
    )
    together = returns.gae(steps, gamma=torch.tensor([0.9, 0.99]), lam=0.95).advantages
    for b, gamma in enumerate((0.9, 0.99)):
        alone = returns.gae(steps, gamma=gamma, lam=0.95).advantages[:, b]
        torch.testing.assert_close(together[:, b], alone)
