"""Bounds stand in the annotations of fields, and rules in the section they are about."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import pytest
from tiny_runs import tiny

from warpzone.config import (
    ConfigError,
    TrainConfig,
    adaptive,
    algorithm,
    backend,
    dashboard,
    health,
    network,
    play,
    reward,
    starts,
)
from warpzone.config.adaptive import AdaptiveConfig
from warpzone.config.algorithm import AlgorithmConfig
from warpzone.config.backend import BackendConfig
from warpzone.config.bounds import (
    Above,
    AtLeast,
    AtMost,
    BelowOne,
    Field,
    Refusal,
    Share,
    annotated,
    out_of_bounds,
)
from warpzone.config.budget import BudgetConfig
from warpzone.config.dashboard import DashboardConfig
from warpzone.config.health import HealthConfig
from warpzone.config.network import NetworkConfig
from warpzone.config.play import PlayConfig
from warpzone.config.reward import RewardConfig
from warpzone.config.starts import StartConfig
from warpzone.health.slow_steps import SlowSteps
from warpzone.learn.adaptive import Adaptive

BOUNDS = AtLeast | AtMost | Above | Share | BelowOne


def edges(bound: BOUNDS) -> list[tuple[float, bool]]:
    """Values at and beyond a bound, and whether they are allowed."""
    match bound:
        case AtLeast(least):
            return [(least, True), (least - 1, False)]
        case AtMost(most):
            return [(most, True), (most + 1, False)]
        case Above(least):
            return [(least + 1, True), (least, False)]
        case Share():
            return [(0, True), (1, True), (-1, False), (2, False)]
        case BelowOne():
            return [(0, True), (-1, False), (1, False)]


BOUNDED = [(field.name, bound) for field in annotated(TrainConfig) for bound in field.bounds]


@pytest.mark.parametrize(("name", "bound"), BOUNDED, ids=lambda value: str(value)[:40])
def test_every_bound_of_every_field_holds(name: str, bound: BOUNDS) -> None:
    config = tiny()
    for value, allowed in edges(bound):
        object.__setattr__(config, name, value)
        wrong = [text for refused, text in out_of_bounds(config) if refused]
        flag = "--" + name.replace("_", "-")
        assert any(text.startswith(f"{flag} must be") for text in wrong) == (not allowed), wrong


@pytest.mark.parametrize("field", annotated(TrainConfig), ids=lambda field: field.name)
def test_every_default_is_right(field: Field) -> None:
    """Values that are their defaults are not looked at again."""
    assert field.problem(getattr(TrainConfig, field.name)) == ""


def test_what_is_equal_to_a_default_and_of_another_type_is_looked_at() -> None:
    for name, value in (("seed", 1.0), ("per", 0), ("stages", None)):
        config = tiny()
        object.__setattr__(config, name, value)
        assert [text for refused, text in out_of_bounds(config) if refused], name


def test_numbers_are_bounded() -> None:
    """Numbers that may be anything are few, and known."""
    free = {
        field.name
        for field in annotated(TrainConfig)
        if field.kind in (int, float) and not field.bounds
    }
    assert free == {
        *("reward_distance_weight", "reward_step", "reward_flag", "reward_death"),
        *("reward_score_weight", "reward_scale_start", "milestone_bonus"),
        *("adaptive_step", "adaptive_entropy_max", "adaptive_lr_max"),
    }


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"num_envs": "x"}, "--num-envs must be a whole number, not 'x'"),
        ({"num_envs": True}, "--num-envs must be a whole number, not True"),
        ({"num_envs": 4.0}, "--num-envs must be a whole number, not 4.0"),
        ({"lr": float("nan")}, "--lr must be finite, not nan"),
        ({"reward_flag": float("inf")}, "--reward-flag must be finite, not inf"),
        ({"amp": 1}, "--amp must be true or false, not 1"),
        ({"rom": 3}, "--rom must be text, not 3"),
        ({"algo": "dqn"}, "--algo must be one of ppo, vtrace, appo, a2c, not 'dqn'"),
        ({"death_penalty_final": "no"}, "--death-penalty-final must be a number, not 'no'"),
        ({"stages": 11}, "--stages must be text, not 11"),
        ({"warmup": 1.0}, "--warmup must be in 0..1 and not 1, not 1.0: a longer warm-up"),
    ],
)
def test_types_are_checked_wherever_a_configuration_is_made(
    changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        tiny(**changes)
    assert str(refused.value).startswith(reason)


def test_a_bound_may_be_added_to_any_section() -> None:
    @dataclasses.dataclass(frozen=True)
    class Own:
        count: Annotated[int, AtLeast(2)] = 2
        maybe: Annotated[float | None, Above(0)] = None

    Own.__annotations__ = {
        "count": Annotated[int, AtLeast(2)],
        "maybe": Annotated[float | None, Above(0)],
    }
    assert not any(refused for refused, _ in out_of_bounds(Own()))
    wrong = [text for refused, text in out_of_bounds(Own(1, -1.0)) if refused]
    assert wrong == ["--count must be at least 2, and is 1", "--maybe must be above 0, and is -1.0"]


@pytest.mark.parametrize(
    ("refusals", "section", "reason"),
    [
        (play.refusals, PlayConfig(whole_game=True, stage_span=2), "leave out --stage-span"),
        (reward.refusals, RewardConfig(milestone_interval=5), "need each other"),
        (network.refusals, NetworkConfig(encoder_channels="1,2"), "has 3 convolutions"),
        (algorithm.refusals, AlgorithmConfig(algo="a2c"), "add --epochs 1"),
        (dashboard.refusals, DashboardConfig(control=True), "add --dashboard"),
        (adaptive.refusals, AdaptiveConfig(adaptive_lr_min=2.0), "must have 1"),
        (health.refusals, HealthConfig(fail_on_stall=True, stall_timeout=0.0), "--stall-timeout"),
        (starts.refusals, StartConfig(auto_bootstrap_frames=3), "need each other"),
        (backend.refusals, BackendConfig(ram_x_low_addr="six"), "must be an address"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_section_refuses_what_is_wrong_with_it(
    refusals: Callable[[Any], Iterable[Refusal]], section: Any, reason: str
) -> None:
    """Without the other sections: its rules are about its own fields."""
    (wrong,) = [text for refused, text in refusals(section) if refused]
    assert reason in wrong
    assert not any(refused for refused, _ in refusals(type(section)()))


def test_budgets_stand_together() -> None:
    names = {field.name for field in dataclasses.fields(BudgetConfig)}
    assert names >= {"max_steps", "max_time", "max_cost_gpu_hours"}


def test_components_take_their_section() -> None:
    """No lanes, network or folder are needed to make them."""
    assert Adaptive(AdaptiveConfig(adaptive=True)).lr_scale == 1.0
    said: list[str] = []
    slow = SlowSteps(
        HealthConfig(step_timeout=1.0, slow_step_trace_threshold=1), said.append, now=lambda: 0.0
    )
    slow.add(2.0)
    slow.add(2.0)
    assert len(said) == 1
