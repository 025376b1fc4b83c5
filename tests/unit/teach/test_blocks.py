"""Blocks: every step of a lesson once, with the memory that the network has there."""

import pytest
import torch
from tiny_runs import make_agent, tiny

from warpzone.model.agent import Agent
from warpzone.teach import blocks
from warpzone.teach.blocks import LEARNED, WARM_UP, Read, make_batch, read
from warpzone.teach.lessons import Lesson

LENGTHS = (5, WARM_UP, LEARNED, LEARNED + 1, 3 * LEARNED + 7)


def agent_of(memory: str = "gru") -> Agent:
    return make_agent(tiny(memory=memory, previous_action=True, actions="right"))


def noise(agent: Agent, length: int, shown: tuple[int, ...] = ()) -> Lesson:
    """An episode of nothing in particular; all steps differ."""
    random = torch.Generator().manual_seed(length)
    encoded = torch.randn(length, agent.spec.scaled_features, generator=random).half()
    actions = torch.randint(agent.spec.actions, (length,), generator=random)
    marks = torch.zeros(length, dtype=torch.bool)
    marks[list(shown)] = True
    logits = torch.randn(length, agent.spec.actions, generator=random).half()
    return Lesson(0, length, encoded, actions, marks, logits, logits[:, 0].clone())


def unread(lesson: Lesson) -> Read:
    """Without a memory; all that is not shown stays as it is."""
    return Read(lesson, (), torch.zeros_like(lesson.shown))


def whole(agent: Agent, lesson: Lesson) -> torch.Tensor:
    """Logits of all steps, one after the other from the door on, as the agent acts."""
    state, before, found = agent.initial_state(1), torch.zeros(1, dtype=torch.int64), []
    for index, row in enumerate(lesson.encoded):
        output = agent.act_on(row[None].float(), before, state, torch.tensor([index == 0]))
        state, before = output.state, lesson.actions[index : index + 1]
        found.append(output.logits[0])
    return torch.stack(found)


@pytest.mark.parametrize("memory", ["gru", "lstm", "gtrxl", "none"])
@torch.no_grad()
def test_a_block_is_seen_as_in_its_lesson(memory: str) -> None:
    agent = agent_of(memory)
    lessons = [noise(agent, length, (0,)) for length in LENGTHS]
    reads = read(agent, lessons)
    assert [one.lesson for one in reads] == lessons
    shown, kept = blocks.blocks(reads)
    parts = shown + kept
    batch = make_batch(parts)
    output = agent.forward_on(batch.encoded, batch.previous, batch.state, batch.starts)
    seen = {lesson.length: torch.zeros(lesson.length, dtype=torch.int64) for lesson in lessons}
    for lane, block in enumerate(parts):
        lesson = block.read.lesson
        wanted = whole(agent, lesson)[block.begin : block.end]
        count = block.end - block.begin
        torch.testing.assert_close(output.logits[:count, lane], wanted, atol=1e-5, rtol=1e-5)
        learned = batch.shown[:, lane] | batch.kept[:, lane]
        assert learned.sum() == block.end - block.first
        assert not learned[: block.first - block.begin].any()
        seen[lesson.length][block.first : block.end] += 1
        part = slice(block.first - block.begin, count)
        for name, column in (("actions", lesson.actions), ("logits", lesson.logits)):
            got = getattr(batch, name)[part, lane]
            assert torch.equal(got, column[block.first : block.end].to(got.dtype))
        assert torch.equal(batch.shown[part, lane], lesson.shown[block.first : block.end])
    for times in seen.values():
        assert (times == 1).all()


@pytest.mark.parametrize("memory", ["gru", "gtrxl"])
@torch.no_grad()
def test_a_part_of_a_game_begins_with_what_was_remembered(memory: str) -> None:
    """Cut in two, an episode is seen as in one."""
    agent = agent_of(memory)
    lesson = noise(agent, 2 * LEARNED + 9)
    cut = LEARNED - 5
    state, before = agent.initial_state(1), 0
    for index in range(cut):
        output = agent.act_on(
            lesson.encoded[index][None].float(),
            torch.tensor([before]),
            state,
            torch.tensor([index == 0]),
        )
        state, before = output.state, int(lesson.actions[index])
    names = ("encoded", "actions", "shown", "logits", "values")
    rest = lesson._replace(
        **{name: getattr(lesson, name)[cut:] for name in names},
        memory=tuple(part[0] for part in state),
        previous=before,
    )
    shown, kept = blocks.blocks(read(agent, [rest]))
    batch = make_batch(shown + kept)
    assert not batch.starts.any()
    output = agent.forward_on(batch.encoded, batch.previous, batch.state, batch.starts)
    for lane, block in enumerate(shown + kept):
        wanted = whole(agent, lesson)[cut:][block.begin : block.end]
        got = output.logits[: block.end - block.begin, lane]
        torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)


def test_memory_is_that_of_the_agent_as_it_is_now() -> None:
    agent = agent_of()
    lesson = noise(agent, 2 * WARM_UP)
    (before,) = read(agent, [lesson])
    with torch.no_grad():
        for parameter in agent.memory.parameters():
            parameter.add_(0.05)
    (after,) = read(agent, [lesson])
    assert torch.equal(before.memory[0][0], after.memory[0][0])
    assert not torch.allclose(before.memory[0][1], after.memory[0][1])


def test_blocks_with_something_to_learn_are_told_apart() -> None:
    agent = agent_of()
    lesson = noise(agent, 4 * LEARNED, (LEARNED, 3 * LEARNED + 5))
    shown, kept = blocks.blocks([unread(lesson)])
    assert [block.first for block in shown] == [LEARNED, 3 * LEARNED]
    assert [block.first for block in kept] == [0, 2 * LEARNED]


def test_what_is_shown_goes_before_what_is_kept_for_the_same_pictures() -> None:
    agent = agent_of("none")
    first, second, other = (noise(agent, length, (2, 9)) for length in (40, 41, 42))
    other = other._replace(stage=1)
    # The second lesson sees at step 7 what the first is shown something for; the shown steps that
    # two have in common are taught twice.
    second.encoded[7] = first.encoded[2]
    second.encoded[9] = first.encoded[9]
    other.encoded[7] = first.encoded[2]
    # One number is another picture.
    second.encoded[20] = first.encoded[2]
    second.encoded[20, 0] += 1
    reads = read(agent, [first, second, other])
    assert [one.free.nonzero().flatten().tolist() for one in reads] == [[], [7], []]
    batch = make_batch([blocks.Block(one, 0) for one in reads])
    assert not batch.kept[7, 1]
    assert not batch.shown[7, 1]
    assert batch.kept[7, [0, 2]].all()
    assert batch.kept[:, 1].sum() == 41 - 3
    assert batch.shown[[2, 9], 1].all()


def test_short_detours_count_as_much_as_long_ones() -> None:
    agent = agent_of("none")
    lessons = [noise(agent, LEARNED, tuple(range(count))) for count in (0, 1, 4, 32)]
    weights = make_batch([blocks.Block(unread(lesson), 0) for lesson in lessons]).weights
    assert weights.sum(0).tolist() == [0, 4, 8, 32]
    assert weights.amax(0).tolist() == [0, 4, 2, 1]


def test_what_is_shown_while_the_memory_warms_up_is_another_blocks() -> None:
    agent = agent_of("none")
    lesson = noise(agent, 2 * LEARNED, (LEARNED - 1,))
    batch = make_batch([blocks.Block(unread(lesson), LEARNED)])
    assert not batch.shown.any()
    assert batch.weights.sum() == 0
