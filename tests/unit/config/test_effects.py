"""Every field of the configuration has an effect: a setting in which changing it changes what is
seen, and, where that makes sense, one in which it does not. A field without a row fails."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import effects_health as health
import effects_parts as parts
import effects_scale as scale
import pytest
from effects import BASE, of, row, whole
from kept_ways import KEPT, PRACTISED

from warpzone.config import TrainConfig


@dataclass(frozen=True)
class Effect:
    """What `see` shows changes with the field, from what `given` makes it to `to`."""

    to: Any
    see: Callable[..., Any]
    given: dict[str, Any] = field(default_factory=dict)
    #: Here it must stay the same.
    but: dict[str, Any] | None = None

    def unless(self, **other: Any) -> Effect:
        return dataclasses.replace(self, but={**self.given, **other})


def to(value: Any, see: Callable[..., Any], **given: Any) -> Effect:
    return Effect(value, see, given)


FRAMES, REWARDS, ENDS, FORCED = of("frames"), of("rewards"), of("ends"), of("forced")
WEIGHTS, SHAPES, TOLD, FILES = of("weights"), of("shapes"), of("told"), of("files")
episodes = of("episodes")
WHOLE_FILES = of("files", whole)
PIXELS: dict[str, Any] = {"observation": "pixels", "size": 36}
NOOP: dict[str, Any] = {"actions": "NOOP;NOOP"}
STEER: dict[str, Any] = {"actions": "NOOP;LEFT;RIGHT+B"}
#: Buttons that clear 1-1, twice.
FLAG: dict[str, Any] = {"scripted_sequence": "demo-eu", "rom": "eu", "frame_skip": 8}
FLAG |= {"num_envs": 1, "rollout_steps": 140, "minibatch": 140, "max_steps": 140}
SCRIPTED: dict[str, Any] = {"scripted_sequence": "RIGHT:20"}
#: A wrong turn in 4-4.
MAZE: dict[str, Any] = {
    "stages": "4-4",
    "scripted_sequence": parts.wrong_way("eu 4-4"),
    "rom": "eu",
}
MAZE |= {"num_envs": 1, "rollout_steps": 140, "minibatch": 140, "max_steps": 140}
VTRACE: dict[str, Any] = {"algo": "vtrace"}
PER: dict[str, Any] = {"algo": "vtrace", "per": True, "per_memory_gb": 0.01, "per_segments": 3}
PER |= {"max_steps": 400}
FAST: dict[str, Any] = {"epochs": 4, "lr": 0.05}
GTRXL: dict[str, Any] = {"memory": "gtrxl"}
ADAPT: dict[str, Any] = {"adaptive": True, "adaptive_window": 2, "adaptive_cooldown": 0}
RISING, STILL = (1.0, 9.0, 90.0, 900.0, 9000.0, 9e4, 9e5), (1.0,) * 7
STAGES: dict[str, Any] = {"stages": "1-1,1-2", "curriculum": "clear-rate"}
ARCHIVE: dict[str, Any] = {"archive_share": 0.5, "rollout_steps": 8, "minibatch": 16}
ARCHIVE |= {"max_steps": 320, "actions": "RIGHT;RIGHT", "archive_cell": 16}
SAVED: dict[str, Any] = {"checkpoint_interval": 1, "max_steps": 480}
WALKS: dict[str, Any] = {"backend": "backend_games:walk", **PIXELS}
RAM: dict[str, Any] = {"backend": "backend_games:with_ram", **PIXELS, "force_sync": True}
RAM |= {"enable_ram_x_parse": True, "actions": "simple"}
SHOWN: dict[str, Any] = {"dashboard": True}
SLOW: dict[str, Any] = {"slow_step_trace_threshold": 2, "slow_step_trace_window": 100.0}
PUSHED: dict[str, Any] = {"actions": "LEFT;LEFT", "forward_action_id": 0, "max_steps": 320}
PUSHED |= {"auto_bootstrap_threshold": 1, "auto_bootstrap_frames": 20}

PLAY = {
    "stages": to("1-2", FRAMES),
    "actions": to("NOOP;NOOP", REWARDS),
    "rom": to("world", FRAMES, rom="eu", **PIXELS),
    "num_envs": to(4, of("lengths")),
    "num_threads": to(2, of("threads")).unless(num_envs=1),
    "frame_skip": to(2, REWARDS),
    "frame_stack": to(2, SHAPES),
    "size": to(40, SHAPES, **PIXELS).unless(observation="tiles"),
    "mask_status_bar": to(False, FRAMES, **PIXELS).unless(observation="tiles"),
    "start_delay": to(30, of("delays")),
    "start_power": to("big", FRAMES, **PIXELS).unless(start_halfway=1.0),
    "start_halfway": to(1.0, FRAMES).unless(stages="1-4"),
    "sticky": to(0.9, REWARDS, **STEER).unless(**NOOP),
    "episode_timeout_steps": to(10, of("reasons")),
    "stagnation_limit": to(5, of("reasons"), **NOOP).unless(actions="RIGHT+B;RIGHT+B"),
    "end_on_setback": to(True, of("reasons"), **MAZE),
    "world": to(2, FRAMES),
    "stage": to(2, FRAMES),
    "stage_span": to(2, of("stages")),
    "random_stage": to(True, of("stages"), episode_timeout_steps=5),
    "whole_game": to(True, ENDS),
    "observation": to("pixels", SHAPES, size=36),
    "color": to(True, SHAPES, **PIXELS),
    "crop_status_bar": to(True, FRAMES, **PIXELS),
    "max_last_two": to(True, FRAMES, **PIXELS),
    "augment_shift": to(4, WEIGHTS),
    "augment_brightness": to(0.5, WEIGHTS, **PIXELS),
}
REWARD = {
    "reward": to("gym", REWARDS),
    "reward_distance_weight": to(0.3, REWARDS).unless(reward="gym"),
    "reward_step": to(-1.0, REWARDS).unless(reward="gym"),
    "reward_flag": to(9.0, REWARDS, **FLAG).unless(**BASE),
    "reward_death": to(-9.0, REWARDS).unless(**FLAG),
    "reward_clip": to(0.5, REWARDS),
    "reward_distance_weight_final": to(0.5, REWARDS),
    "reward_distance_weight_anneal_steps": to(800, REWARDS, reward_distance_weight_final=0.5),
    "reward_score_weight": to(0.01, REWARDS, **FLAG).unless(**NOOP, scripted_sequence=""),
    "reward_scale_start": to(3.0, REWARDS),
    "reward_scale_final": to(3.0, REWARDS),
    "reward_scale_anneal_steps": to(800, REWARDS, reward_scale_final=3.0),
    "death_penalty_start": to(-9.0, REWARDS),
    "death_penalty_final": to(-9.0, REWARDS),
    "death_penalty_anneal_steps": to(800, REWARDS, death_penalty_final=-9.0),
    "milestone_interval": to(99, REWARDS, milestone_interval=50, milestone_bonus=1.0),
    "milestone_bonus": to(2.0, REWARDS, milestone_interval=50, milestone_bonus=1.0),
}
NETWORK = {
    "encoder": to("impala", SHAPES, **PIXELS).unless(observation="tiles"),
    "encoder_width": to(0.25, SHAPES),
    "encoder_channels": to("2,3,4", SHAPES, **PIXELS),
    "impala_blocks": to(1, SHAPES, encoder="impala", **PIXELS).unless(encoder="nature"),
    "hidden_size": to(8, SHAPES),
    "memory": to("gru", SHAPES),
    "memory_length": to(2, WEIGHTS, **GTRXL).unless(memory="gru"),
    "memory_layers": to(2, SHAPES, **GTRXL).unless(memory="gru"),
    "memory_heads": to(4, WEIGHTS, **GTRXL).unless(memory="gru"),
    "previous_action": to(True, SHAPES),
    "noisy": to(True, SHAPES),
    "network": to("plug_ins:Flat", SHAPES),
}
ALGORITHM = {
    "algo": to("a2c", WEIGHTS),
    "rollout_steps": to(20, of("lengths")),
    "minibatch": to(20, WEIGHTS),
    "epochs": to(2, WEIGHTS),
    "gamma": to(0.5, WEIGHTS),
    "gae_lambda": to(0.5, WEIGHTS),
    "clip": to(0.01, WEIGHTS, **FAST).unless(algo="a2c", epochs=1),
    "target_kl": to(1e-9, WEIGHTS, **FAST),
    "normalize_advantages": to(True, WEIGHTS),
    "value_coef": to(0.1, WEIGHTS),
    "entropy": to(0.5, WEIGHTS),
    "entropy_final": to(0.5, WEIGHTS),
    "imitation": to(0.5, parts.imitated).unless(shown=False),
    "rho_clip": to(0.5, WEIGHTS, **VTRACE).unless(algo="ppo"),
    "c_clip": to(0.5, WEIGHTS, **VTRACE).unless(algo="ppo"),
}
REPLAY = {
    "per": to(True, WEIGHTS, **{**PER, "per": False}),
    "per_alpha": to(0.0, WEIGHTS, **PER).unless(per=False),
    "per_beta": to(1.0, WEIGHTS, **PER).unless(per=False),
    "per_beta_final": to(0.0, WEIGHTS, **PER).unless(per=False),
    "per_sample_interval": to(2, WEIGHTS, **PER).unless(per=False),
    "per_interval_max": to(4, WEIGHTS, **PER, rollout_steps=8, minibatch=8).unless(per=False),
    "per_memory_gb": to(0.02, row("replay_fill_rate"), **PER).unless(per=False),
    "per_segments": to(2, WEIGHTS, **PER).unless(per=False),
    "per_burn_in": to(8, WEIGHTS, **PER).unless(per=False),
    "per_gpu_sample": to(True, row("replay_gpu_sample"), **PER).unless(per=False),
    "per_gpu_sample_fallback_ms": to(
        1e-9, row("replay_gpu_sample"), **PER, per_gpu_sample=True
    ).unless(per_gpu_sample=False),
}
OPTIMISATION = {
    "lr": to(0.001, WEIGHTS),
    "lr_final": to(1.0, WEIGHTS),
    "warmup": to(0.9, WEIGHTS),
    "weight_decay": to(1.0, WEIGHTS),
    "clip_grad": to(1e-4, WEIGHTS),
    "grad_accum": to(2, WEIGHTS),
    "ema": to(0.9, of("evaluated")),
    "amp": to(False, parts.autocasts),
    "amp_dtype": to("float16", parts.autocasts).unless(amp=False),
    "cuda_graphs": to(False, parts.graphs),
    "compile": to(True, parts.compiled),
}
RUN = {
    "max_steps": to(240, row("global_step")),
    "max_time": to(1e-9, row("global_step")),
    "overlap_collect": to(True, row("policy_lag")),
    "groups": to(2, of("groups")),
    "seed": to(8, WEIGHTS),
    "device": to("auto", parts.chosen_device),
    "run_name": to("two", of("place")),
    "runs_dir": to("elsewhere", of("place")),
    "eval_interval": to(80, of("evals")),
    "stop_at": to(0.09, parts.stopped, eval_interval=80, max_steps=400).unless(eval_interval=0),
    "stop_at_clears": to(3, parts.stopped, eval_interval=80, max_steps=400).unless(eval_interval=0),
    "log_interval": to(2, row("global_step")),
}
SCALE = {
    "devices": to(2, scale.placed),
    "nodes": to(2, scale.placed),
    "rank_timeout": to(9.0, scale.waited_for),
    "actors": to(2, scale.outstanding, algo="vtrace"),
    "max_lag": to(0, scale.outstanding, algo="vtrace", actors=1),
    "actor_rollouts": to(3, scale.outstanding, algo="vtrace", actors=1).unless(max_lag=0),
    "actor_gpus": to(0.5, scale.asked_for, algo="vtrace", actors=1),
}
DASHBOARD = {
    "dashboard": to(True, parts.dashboard),
    "dashboard_host": to("127.0.0.2", parts.dashboard, **SHOWN).unless(dashboard=False),
    "dashboard_port": to(parts.free_port(), parts.dashboard, **SHOWN).unless(dashboard=False),
    "control": to(True, parts.dashboard, **SHOWN),
    "dashboard_metrics": to(True, parts.dashboard, **SHOWN),
    "wall_lanes": to(1, parts.wall, wall_lanes=2),
    "wall_rate": to(3.0, parts.wall, wall_lanes=2).unless(wall_lanes=0),
}
CHECKPOINT = {
    "checkpoint_minutes": to(1e-9, FILES),
    "checkpoint_interval": to(2, FILES, checkpoint_interval=1, keep_last=9),
    "keep_last": to(1, FILES, **SAVED).unless(checkpoint_interval=0),
    "keep_every": to(2, FILES, **SAVED, keep_last=1).unless(checkpoint_interval=0),
    "checkpoint_replay_gb": to(0.0, parts.notes, **PER).unless(algo="ppo", per=False),
    "resume": to("auto", parts.began, resume="never", run_name="two"),
    "resume_relax_match": to(True, parts.began, resume="auto", run_name="one", gamma=0.5).unless(
        gamma=0.9
    ),
    "checkpoint_root": to("OLD", parts.began, resume="auto", place="new").unless(resume="never"),
    "init": to("one", parts.first_weights),
    "auto_mem": to(True, parts.given_up),
    "max_cost_gpu_hours": to(1.0, parts.paid_hours),
}
ADAPTIVE = {
    "adaptive": to(True, partial(parts.adapted, STILL), **{**ADAPT, "adaptive": False}),
    "adaptive_window": to(12, partial(parts.adapted, STILL), **ADAPT).unless(adaptive=False),
    "adaptive_cooldown": to(4, partial(parts.adapted, STILL), **ADAPT).unless(adaptive=False),
    "adaptive_step": to(1.5, partial(parts.adapted, STILL), **ADAPT).unless(adaptive=False),
    "adaptive_entropy_min": to(0.9, partial(parts.adapted, RISING), **ADAPT),
    "adaptive_entropy_max": to(1.1, partial(parts.adapted, STILL), **ADAPT),
    "adaptive_lr_min": to(0.9, partial(parts.adapted, RISING), **ADAPT),
    "adaptive_lr_max": to(1.1, partial(parts.adapted, STILL), **ADAPT),
}
METRICS = {
    "enable_tensorboard": to(True, WHOLE_FILES),
    "wandb_project": to("mario", parts.sinks),
    "parquet_interval": to(60.0, WHOLE_FILES),
    "episode_window": to(1, row("recent_return_std"), episode_timeout_steps=5, **STEER),
    "metrics_rotate_mb": to(1e-6, WHOLE_FILES),
}
HEALTH = {
    "monitor_interval": to(9.0, row("proc_threads", see=whole)),
    "gpu_window": to(2, health.gpu_use).unless(monitor_interval=0.0),
    "heartbeat_interval": to(9.0, WHOLE_FILES),
    "stall_timeout": to(25.0, parts.stalled, stall_timeout=35.0),
    "fail_on_stall": to(True, parts.stalled, stall_timeout=5.0).unless(stall_timeout=500.0),
    "step_timeout": to(30.0, parts.slow_steps, **SLOW),
    "slow_step_trace_threshold": to(3, parts.slow_steps, **SLOW),
    "slow_step_trace_window": to(20.0, parts.slow_steps, **SLOW).unless(step_timeout=30.0),
    "hint_cooldown_updates": to(5, parts.hints),
    "alert_cooldown": to(3.0, health.alerts),
    "alert_skipped": to(2, health.alerts).unless(alert_cooldown=0.0),
    "alert_clear_drop": to(0.6, health.alerts).unless(alert_cooldown=0.0),
    "alert_disk_gb": to(0.4, health.alerts).unless(alert_cooldown=0.0),
    "alert_gpu_idle": to(4.0, health.alerts).unless(alert_cooldown=0.0),
}
START = {
    "scripted_sequence": to("RIGHT+B:20", FORCED, **NOOP),
    "scripted_forward_frames": to(20, FORCED, **STEER),
    "scripted_share": to(1.0, FORCED, **SCRIPTED).unless(scripted_sequence=""),
    "scripted_steps": to(80, FORCED, scripted_share=1.0, **SCRIPTED).unless(scripted_sequence=""),
    "forward_action_id": to(1, REWARDS, **STEER, scripted_forward_frames=60).unless(
        scripted_forward_frames=0
    ),
    "probe_forward_actions": to(3, row("probe_forward_action_selected"), **STEER),
    "auto_bootstrap_threshold": to(2, FORCED, **PUSHED),
    "auto_bootstrap_frames": to(40, FORCED, **PUSHED),
}
CURRICULUM = {
    "curriculum": to("clear-rate", TOLD, stages="1-1,1-2"),
    "curriculum_floor": to(1.0, parts.shares, **STAGES),
    "curriculum_window": to(2, parts.shares, **STAGES).unless(curriculum="progress"),
    "archive_share": to(0.0, of("restarts"), **ARCHIVE),
    "archive_explore": to(0.9, FORCED, **ARCHIVE),
    "archive_cell": to(512, row("archive_size"), **ARCHIVE).unless(archive_share=0.0),
    "archive_size": to(1, row("archive_size"), **ARCHIVE).unless(archive_share=0.0),
    "search_steps": to(1, row("searched_steps"), **ARCHIVE),
    "ways": to(str(KEPT), row("ways"), **{**ARCHIVE, **PRACTISED, "ways": "", "max_steps": 16}),
}
BACKEND = {
    "backend": to("backend_games:walk", FRAMES, **PIXELS, force_sync=True, actions="simple"),
    "force_sync": to(True, parts.opened, **WALKS),
    "env_start_method": to("spawn", parts.opened, **WALKS),
    "worker_start_delay": to(0.5, parts.opened, **WALKS),
    "env_reset_timeout": to(9.0, parts.opened, **WALKS),
    "env_step_timeout": to(9.0, parts.opened, **WALKS),
    "parent_prewarm": to(True, parts.opened, **WALKS),
    "parent_prewarm_all": to(True, parts.opened, **WALKS),
    "env_diag_dir": to("here", parts.opened, **WALKS),
    "enable_ram_x_parse": to(False, row("env_distance_delta_sum"), **RAM),
    "ram_x_high_addr": to("0x0001", row("env_distance_delta_sum"), **RAM),
    "ram_x_low_addr": to("0x0001", row("env_distance_delta_sum"), **RAM),
}
PLUGINS = {
    "observer": to("plug_ins:Halt", row("global_step", see=whole)),
    "plugins_sha256": to(
        "plug_ins:Flat=" + 64 * "0", parts.refused, network="plug_ins:Flat"
    ).unless(network=""),
}
VIDEO = {
    "video_interval": to(80, parts.videos),
    "video_overlay": to("value", parts.videos, video_interval=80).unless(video_interval=0),
}
EFFECTS: dict[str, Effect] = {
    **PLAY,
    **REWARD,
    **NETWORK,
    **ALGORITHM,
    **REPLAY,
    **OPTIMISATION,
    **RUN,
    **SCALE,
    **DASHBOARD,
    **CHECKPOINT,
    **ADAPTIVE,
    **METRICS,
    **HEALTH,
    **START,
    **CURRICULUM,
    **BACKEND,
    **VIDEO,
    **PLUGINS,
}
FIELDS = [field.name for field in dataclasses.fields(TrainConfig)]


def test_every_field_has_a_row_and_every_row_a_field() -> None:
    assert sorted(EFFECTS) == sorted(FIELDS)


@pytest.mark.parametrize("name", EFFECTS)
def test_it_has_an_effect(name: str) -> None:
    effect = EFFECTS[name]
    assert effect.see(**effect.given) != effect.see(**{**effect.given, name: effect.to})


@pytest.mark.parametrize("name", [name for name, effect in EFFECTS.items() if effect.but])
def test_it_has_none_where_it_means_nothing(name: str) -> None:
    effect = EFFECTS[name]
    assert effect.but is not None
    assert effect.see(**effect.but) == effect.see(**{**effect.but, name: effect.to})


@pytest.mark.parametrize("groups", [1, 4])
def test_lanes_have_random_numbers_of_their_own(groups: int) -> None:
    """Eight lanes that draw one of 31 start delays do not all draw the same."""
    lanes = {"num_envs": 8, "groups": groups, "start_delay": 30, "max_steps": 320}
    first = {episode["lane"]: episode["start_delay"] for episode in reversed(episodes(**lanes))}
    assert len(first) == 8
    assert len(set(first.values())) > 4


def test_the_same_run_twice_is_the_same() -> None:
    """What is seen depends on the configuration alone, or any change would be an effect."""
    for see in (FRAMES, REWARDS, WEIGHTS, TOLD, of("episodes"), of("rows")):
        assert see(hint_cooldown_updates=1) == see(hint_cooldown_updates=2)
