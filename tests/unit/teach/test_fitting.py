"""What blocks teach: losses by the slow and obvious way, and what fitting leaves alone."""

from typing import Any

import numpy as np
import pytest
import torch
from tiny_runs import make_agent, tiny

from warpzone.model import cpu
from warpzone.model.agent import Agent
from warpzone.run.packing import pack, unpack
from warpzone.teach import fitting
from warpzone.teach.blocks import blocks, make_batch, read
from warpzone.teach.fitting import Fitter, losses
from warpzone.teach.lessons import MARGIN, Lesson


def agent_of(memory: str = "gru") -> Agent:
    return make_agent(tiny(memory=memory, previous_action=True, actions="right"))


def played(agent: Agent, length: int, seed: int, shown: tuple[int, ...] = ()) -> Lesson:
    """An episode of an agent that saw noise; some of its actions were shown to it."""
    random = torch.Generator().manual_seed(seed)
    encoded = torch.randn(length, agent.spec.scaled_features, generator=random).half()
    actions = torch.randint(agent.spec.actions, (length,), generator=random)
    logits, values = alone(agent, encoded, actions)
    marks = torch.zeros(length, dtype=torch.bool)
    marks[list(shown)] = True
    return Lesson(0, seed, encoded, actions, marks, logits.half(), values.half())


@torch.no_grad()
def alone(
    agent: Agent, encoded: torch.Tensor, actions: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """One step after the other, as the agent acts."""
    state, before = agent.initial_state(1), torch.zeros(1, dtype=torch.int64)
    logits, values = [], []
    for index, row in enumerate(encoded):
        output = agent.act_on(row[None].float(), before, state, torch.tensor([index == 0]))
        state, before = output.state, actions[index : index + 1]
        logits.append(output.logits[0])
        values.append(output.value[0])
    return torch.stack(logits), torch.stack(values)


def fitter(agent: Agent, **changes: Any) -> Fitter:
    return Fitter(agent, **{"learning_rate": 0.01, "shown_weight": 1.0, "seed": 0, **changes})


@pytest.mark.parametrize("memory", ["gru", "lstm", "gtrxl", "none"])
def test_losses(memory: str) -> None:
    """Against episodes taken one by one, step by step."""
    before, now = agent_of(memory), agent_of(memory)
    with torch.no_grad():
        for parameter in now.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    lessons = [played(before, 7, 1, (2, 3)), played(before, 4, 2), played(before, 90, 3, (0, 80))]
    wanted = np.zeros(5)
    for lesson in lessons:
        logits, values = alone(now, lesson.encoded, lesson.actions)
        for index in range(lesson.length):
            new = torch.log_softmax(logits[index], -1)
            old = torch.log_softmax(lesson.logits[index].float(), -1)
            action = int(lesson.actions[index])
            if lesson.shown[index]:
                others = [float(x) for a, x in enumerate(logits[index]) if a != action]
                lacking = max(0.0, MARGIN - (float(logits[index][action]) - max(others)))
                # The fewer of a block's steps are shown, the more each counts, up to 4 times.
                block = lesson.shown[index // 64 * 64 :][:64]
                weight = min(4.0, 8.0 / int(block.sum()))
                leads = float(logits[index][action]) > max(others)
                wanted += [weight * lacking, lacking, leads, 0, 0]
            else:
                change = float(values[index] - lesson.values[index]) ** 2
                wanted += [0, 0, 0, float((old.exp() * (old - new)).sum()), change]
    shown, kept = blocks(read(now, lessons))
    found = losses(now, make_batch(shown + kept))
    np.testing.assert_allclose([float(one.detach()) for one in found], wanted, rtol=2e-3)


def test_an_agent_that_plays_as_before_has_not_drifted() -> None:
    agent = agent_of()
    shown, kept = blocks(read(agent, [played(agent, 6, 1), played(agent, 9, 2)]))
    found = losses(agent, make_batch(kept))
    assert not shown
    assert float(found.drift.detach()) < 1e-4
    assert float(found.lacking.detach()) == 0.0


def test_what_is_shown_is_learned_and_the_rest_is_kept() -> None:
    agent = agent_of()
    whole = {name: value.clone() for name, value in agent.state_dict().items()}
    lessons = [played(agent, 12, 1, (4, 5)), *(played(agent, 12, seed) for seed in (2, 3, 4))]
    one = fitter(agent)
    first = one.fit(lessons, [1.0] * 4, 1)
    assert first.agreed < 1.0
    assert first.lacking > MARGIN / 2
    one.fit(lessons, [1.0] * 4, 200)
    last = one.fit(lessons, [1.0] * 4, 1)
    assert last.agreed == 1.0
    assert last.lacking < 0.1
    assert last.drift < 0.2
    changed = {name for name, value in agent.state_dict().items() if not value.equal(whole[name])}
    assert all(name.startswith("encoder.") for name in whole.keys() - changed)
    assert not any(name.startswith("encoder.") for name in changed)


def test_shown_steps_count_as_much_as_they_are_told_to() -> None:
    """A thousand times the weight, and what is kept hardly matters beside it."""
    ends = []
    for weight in (1e-3, 1.0, 1e3):
        agent = agent_of()
        lesson = played(agent, 20, 1, tuple(range(0, 20, 2)))
        one = fitter(agent, shown_weight=weight)
        one.fit([lesson], [1.0], 100)
        ends.append(one.fit([lesson], [1.0], 1))
    assert ends[0].lacking > ends[1].lacking >= ends[2].lacking
    assert ends[0].drift < ends[1].drift < ends[2].drift


def test_the_average_follows_and_leaves_what_learns_alone() -> None:
    agent = agent_of()
    lessons = [played(agent, 12, 1, (4, 5))]
    start = agent.heads.policy.weight.detach().clone()
    one = fitter(agent)
    one.fit(lessons, [1.0], 30)
    raw = agent.heads.policy.weight.detach().clone()
    with one.averaged():
        mean = agent.heads.policy.weight.detach().clone()
        # As a file of agents keeps them.
        for name, kept in unpack(pack(agent.state_dict())).items():
            assert torch.equal(agent.state_dict()[name], kept.float()), name
    assert torch.equal(agent.heads.policy.weight, raw)
    assert not torch.equal(raw, raw.half().float())
    assert 0.0 < float((mean - start).norm()) < float((raw - start).norm())
    # Whatever happens meanwhile.
    with pytest.raises(KeyboardInterrupt), one.averaged():
        raise KeyboardInterrupt
    assert torch.equal(agent.heads.policy.weight, raw)


@pytest.mark.parametrize("memory", ["gru", "lstm", "gtrxl", "none"])
def test_fitting_in_bfloat16(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It teaches what single precision teaches, up to rounding; weights are in the latter."""
    found: dict[bool, torch.Tensor] = {}
    for fast in (False, True):
        monkeypatch.setattr(fitting, "has_bfloat16", lambda fast=fast: fast)
        agent = agent_of(memory)
        start = torch.nn.utils.parameters_to_vector(agent.parameters()).detach().clone()
        lessons = [played(agent, 40, seed, (3, 4, 5)) for seed in range(4)]
        one = fitter(agent, learning_rate=0.001)
        one.fit(lessons, [1.0] * 4, 30)
        found[fast] = torch.nn.utils.parameters_to_vector(agent.parameters()).detach() - start
        assert found[fast].dtype == torch.float32
    alike = torch.nn.functional.cosine_similarity(found[False], found[True], dim=0)
    assert float(alike) > 0.95
    assert torch.equal(found[False], found[True]) == (memory == "none")


def test_who_does_not_say_has_no_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions of PyTorch from 2.6 on are taken; not all of them can be asked."""
    for there, wanted in (({"avx512_bf16": True}, True), ({"amx_bf16": True}, True), ({}, False)):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda there=there: there, raising=False)
        assert cpu.has_bfloat16() is wanted
    monkeypatch.delattr(torch.cpu, "get_capabilities")
    assert cpu.has_bfloat16() is False


def test_blocks_are_drawn_by_their_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "SHOWN_BLOCKS", 1)
    monkeypatch.setattr(fitting, "KEPT_BLOCKS", 2)
    agent = agent_of()
    lessons = [played(agent, 3, seed, (1,) if seed < 2 else ()) for seed in range(6)]
    drawn: list[list[int]] = []

    def note(parts: Any) -> Any:
        drawn.append([block.read.lesson.start_delay for block in parts])
        return make_batch(parts)

    monkeypatch.setattr(fitting, "make_batch", note)
    one = fitter(agent, learning_rate=1e-9)
    one.fit(lessons, [1.0, 3.0, 1.0, 1.0, 1.0, 1.0], 400)
    assert all(len(set(parts)) == 3 and parts[0] < 2 <= min(parts[1:]) for parts in drawn)
    assert sum(parts[0] for parts in drawn) / 400 == pytest.approx(0.75, abs=0.06)
    others = np.bincount([delay for parts in drawn for delay in parts[1:]], minlength=6)
    np.testing.assert_allclose(others[2:] / 400, 0.5, atol=0.08)


def test_a_stage_counts_by_the_root_of_its_blocks() -> None:
    agent = agent_of("none")
    lessons = [played(agent, 64 * count, count)._replace(stage=count) for count in (1, 4)]
    reads = read(agent, lessons)
    _, kept = blocks(reads)
    chances = fitting._chances(kept, {id(reads[0]): 1.0, id(reads[1]): 3.0})
    np.testing.assert_allclose(chances, np.array([1.0, 1.5, 1.5, 1.5, 1.5]) / 7.0)


def test_the_learning_rate_rises_and_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = agent_of()
    rates: list[float] = []
    take = torch.optim.Adam.step

    def step(self: torch.optim.Adam, *args: Any) -> Any:
        rates.append(self.param_groups[0]["lr"])
        return take(self, *args)

    monkeypatch.setattr(torch.optim.Adam, "step", step)
    one = fitter(agent, learning_rate=0.02)
    for _ in range(2):
        one.fit([played(agent, 3, 1, (1,))], [1.0], 60)
    assert rates[:2] == pytest.approx([0.0002, 0.0004])
    assert rates[49] == pytest.approx(0.01)
    # The second fit goes on where the first has ended.
    assert rates[60] == pytest.approx(0.0122)
    assert rates[-1] == 0.02
