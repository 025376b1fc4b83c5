"""Losses against the formula step by step, and what masks and weights mean."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from warpzone.algo import losses

T, B, A = 5, 3, 4


@pytest.fixture
def data() -> dict[str, Tensor]:
    torch.manual_seed(0)
    return {
        "logits": torch.randn(T, B, A, requires_grad=True),
        "actions": torch.randint(0, A, (T, B)),
        "old": torch.randn(T, B) * 0.3 - 1.4,
        "advantages": torch.randn(T, B),
        "mask": torch.rand(T, B) < 0.7,
        "weights": torch.rand(B) + 0.5,
    }


def test_log_prob_and_entropy(data: dict[str, Tensor]) -> None:
    distribution: Any = torch.distributions.Categorical(logits=data["logits"])
    torch.testing.assert_close(
        losses.log_prob_of(data["logits"], data["actions"]), distribution.log_prob(data["actions"])
    )
    torch.testing.assert_close(losses.entropy_of(data["logits"]), distribution.entropy())
    never = torch.tensor([0.0, 0.0, -math.inf])
    torch.testing.assert_close(losses.entropy_of(never), torch.tensor(math.log(2.0)))


def test_ppo_step_by_step(data: dict[str, Tensor]) -> None:
    log_prob = losses.log_prob_of(data["logits"], data["actions"]).detach()
    result = losses.ppo_loss(
        log_prob,
        data["old"],
        data["advantages"],
        clip=0.2,
        mask=data["mask"],
        weights=data["weights"],
    )
    total, kl, outside, count = 0.0, 0.0, 0, 0
    for t in range(T):
        for b in range(B):
            if not data["mask"][t, b]:
                continue
            ratio = math.exp(float(log_prob[t, b] - data["old"][t, b]))
            advantage = float(data["advantages"][t, b])
            surrogate = min(ratio * advantage, min(max(ratio, 0.8), 1.2) * advantage)
            total -= float(data["weights"][b]) * surrogate
            kl += ratio - 1.0 - math.log(ratio)
            outside += abs(ratio - 1.0) > 0.2
            count += 1
    assert float(result.loss) == pytest.approx(total / count, rel=1e-4)
    assert float(result.approx_kl) == pytest.approx(kl / count, rel=1e-4)
    assert float(result.clip_fraction) == pytest.approx(outside / count)
    assert 0 < outside < count
    assert not result.approx_kl.requires_grad


def test_steps_outside_the_mask_teach_nothing(data: dict[str, Tensor]) -> None:
    advantages = data["advantages"].clone()
    advantages[~data["mask"]] = math.inf
    for loss in (
        losses.ppo_loss(
            losses.log_prob_of(data["logits"], data["actions"]),
            data["old"],
            advantages,
            clip=0.2,
            mask=data["mask"],
        ).loss,
        losses.policy_gradient_loss(
            losses.log_prob_of(data["logits"], data["actions"]),
            data["old"],
            advantages,
            mask=data["mask"],
        ).loss,
    ):
        (gradient,) = torch.autograd.grad(loss, data["logits"], retain_graph=True)
        assert loss.isfinite()
        assert gradient.isfinite().all()
        assert gradient[~data["mask"]].abs().sum() == 0
        assert gradient[data["mask"]].abs().sum() > 0


def test_an_empty_mask_is_no_loss(data: dict[str, Tensor]) -> None:
    nothing = torch.zeros(T, B, dtype=torch.bool)
    assert float(losses.masked_mean(data["advantages"], nothing)) == 0.0


def test_policy_gradient(data: dict[str, Tensor]) -> None:
    advantages = data["advantages"].requires_grad_()
    log_prob = losses.log_prob_of(data["logits"], data["actions"])
    result = losses.policy_gradient_loss(log_prob, log_prob.detach(), advantages)
    assert float(result.approx_kl) == 0.0
    (gradient,) = torch.autograd.grad(result.loss, data["logits"], retain_graph=True)
    one_hot = torch.nn.functional.one_hot(data["actions"], A)
    expected = (data["logits"].softmax(-1) - one_hot) * advantages.detach()[..., None] / (T * B)
    torch.testing.assert_close(gradient, expected.detach())
    (untouched,) = torch.autograd.grad(result.loss, advantages, allow_unused=True)
    assert untouched is None


def test_value_loss() -> None:
    values = torch.tensor([0.0, 1.0, 5.0])
    targets = torch.tensor([0.5, 1.0, 0.0])
    assert float(losses.value_loss(values, targets)) == pytest.approx((0.125 + 12.5) / 3)


def test_pieces_add_up_to_the_mean_of_all(data: dict[str, Tensor]) -> None:
    log_prob = losses.log_prob_of(data["logits"], data["actions"]).detach()
    count = data["mask"].sum()
    for name, clip in (("ppo_loss", {"clip": 0.2}), ("policy_gradient_loss", {})):
        loss = getattr(losses, name)
        rows = (log_prob, data["old"], data["advantages"])
        all_at_once = loss(*rows, mask=data["mask"], weights=data["weights"], **clip)
        pieces = [
            loss(
                *(row[:, lanes] for row in rows),
                mask=data["mask"][:, lanes],
                weights=data["weights"][lanes],
                count=count,
                **clip,
            )
            for lanes in (slice(0, 1), slice(1, 3))
        ]
        for part in range(3):
            total = sum(float(piece[part]) for piece in pieces)
            assert total == pytest.approx(float(all_at_once[part]), rel=1e-5)


def test_normalised_advantages(data: dict[str, Tensor]) -> None:
    kept = losses.normalised(data["advantages"], data["mask"])[data["mask"]]
    assert float(kept.mean()) == pytest.approx(0.0, abs=1e-6)
    assert float(kept.std(correction=0)) == pytest.approx(1.0, rel=1e-4)


def test_nothing_looks_at_the_numbers() -> None:
    """On the meta device there are none, so a host sync or a boolean index would raise."""
    from warpzone.algo.returns import Steps, vtrace

    def floats(*shape: int) -> Tensor:
        return torch.zeros(shape, device="meta")

    flags = floats(T, B).bool()
    steps = Steps(floats(T, B), floats(T, B), floats(B), floats(T, B), flags, flags)
    result = vtrace(steps, floats(T, B), gamma=0.9)
    log_prob = losses.log_prob_of(floats(T, B, A), floats(T, B).long())
    advantages = losses.normalised(result.advantages, flags)
    loss = losses.ppo_loss(log_prob, floats(T, B), advantages, clip=0.2, mask=flags).loss
    loss = loss + losses.value_loss(floats(T, B), result.targets)
    assert (loss + losses.entropy_of(floats(T, B, A)).mean()).shape == ()
