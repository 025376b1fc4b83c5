"""Noise that changes only when drawn, and actions drawn as the policy says."""

import torch

from warpzone.model.agent import Agent
from warpzone.model.heads import NoisyLinear, sample_action
from warpzone.model.spec import ModelSpec

SPEC = ModelSpec(
    actions=4, stack=1, height=36, width=36, channels=(4, 4, 4), features=16, noisy=True
)


def logits(agent: Agent) -> torch.Tensor:
    obs = torch.arange(2 * 36 * 36).view(2, 1, 36, 36).to(torch.uint8)
    with torch.no_grad():
        output = agent.act(obs, torch.zeros(2, dtype=torch.int64), (), torch.ones(2).bool())
    return output.logits


def test_noise_is_the_same_until_drawn_again() -> None:
    torch.manual_seed(0)
    learner = Agent(SPEC)
    quiet = logits(learner)
    learner.resample_noise(torch.Generator().manual_seed(1))
    noisy = logits(learner)
    assert not torch.allclose(noisy, quiet)
    assert torch.equal(logits(learner), noisy)

    actor = Agent(SPEC)
    actor.load_state_dict(learner.state_dict())
    assert torch.equal(logits(actor), noisy)

    learner.resample_noise(torch.Generator().manual_seed(2))
    assert not torch.allclose(logits(learner), noisy)
    actor.resample_noise(torch.Generator().manual_seed(2))
    assert torch.equal(logits(actor), logits(learner))
    learner.zero_noise()
    assert torch.equal(logits(learner), quiet)


def test_noise_is_factorised_and_scaled_as_in_the_paper() -> None:
    layer = NoisyLinear(400, 300, sigma=0.5)
    layer.weight.data.zero_()
    layer.bias.data.zero_()
    layer.resample_noise(torch.Generator().manual_seed(0))
    noise = layer(torch.eye(400)).detach() - layer(torch.zeros(400)).detach()
    assert int(torch.linalg.matrix_rank(noise)) == 1
    # E[f(e)^2] = E|e| = sqrt(2 / pi), for each of the two factors.
    expected = 0.5 / 20.0 * (2.0 / torch.pi) ** 0.5
    torch.testing.assert_close(float(noise.std()), expected, rtol=0.15, atol=0.0)


def test_noise_learns() -> None:
    layer = NoisyLinear(6, 3, sigma=0.5)
    layer.resample_noise(torch.Generator().manual_seed(0))
    layer(torch.ones(2, 6)).sum().backward()
    assert layer.weight_sigma.grad is not None
    assert layer.weight_sigma.grad.abs().sum() > 0
    assert set(layer.state_dict()) >= {"noise_in", "noise_out"}


def test_actions_are_drawn_as_the_policy_says() -> None:
    probability = torch.tensor([0.5, 0.25, 0.2, 0.05, 0.0])
    rows = probability.log().expand(40_000, 5)
    uniform = torch.rand(rows.shape, generator=torch.Generator().manual_seed(0))
    actions, log_prob = sample_action(rows, uniform)
    share = actions.bincount(minlength=5) / 40_000
    torch.testing.assert_close(share, probability, rtol=0.0, atol=0.01)
    torch.testing.assert_close(log_prob, probability.log()[actions])
    edges = sample_action(rows[:2], torch.tensor([[0.0] * 5, [1.0] * 5]))
    assert edges[0].tolist() == [0, 0]
