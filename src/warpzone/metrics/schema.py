"""Every field of `metrics.jsonl`: what it means, and what a bad value looks like. The reference
in `docs/metrics.md`, the columns of the Parquet file and TensorBoard's tags are made from this
table; a test fails for a field of a run that is missing here."""

# ruff: noqa: E501 - a field is a line of the table.

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

STAGE = "{W}_{S}"


@dataclass(frozen=True)
class Field:
    """One field of a row. A name with `{W}_{S}` stands for one field for each stage."""

    group: str
    name: str
    meaning: str
    bad: str = ""
    #: Counts and switches; everything else is a float.
    whole: bool = False


def _group(group: str, *rows: tuple[str, str, str], whole: tuple[str, ...] = ()) -> list[Field]:
    return [Field(group, name, meaning, bad, name in whole) for name, meaning, bad in rows]


# fmt: off
FIELDS: tuple[Field, ...] = (
    *_group(
        "run",
        ("timestamp", "Unix time in seconds when the update was done.", "Goes back: the clock of the machine was set."),
        ("update", "Updates so far; a rollout and all learning from it is one.", "Missing numbers: lines were lost (or `--log-interval` is above 1)."),
        ("global_step", "Steps so far, over all lanes.", "0 or falling."),
        ("seconds", "Seconds since the run was started; pauses not counted.", ""),
        ("eta", "Seconds until `--max-steps`, at the speed of this update.", "Rises for long: the run gets slower."),
        ("env_steps_per_sec", "Steps a second, learning and writing included.", "Falls by half without a change of settings: another program, heat, or a stall."),
        ("env_frames_per_sec", "The same in frames: steps a second times `--frame-skip`.", ""),
        ("updates_per_sec", "Updates a second.", ""),
        ("policy_lag", "Updates between the policy that played and the one that learns from it.", "Above 1 with `--overlap-collect`, above `--max-lag` with `--actors`, above 0 without."),
        ("communication_time_share", "Share of the update that rank 0 spent in exchanges with other ranks, its waits for them included.", "Above 0.3: the ranks are uneven, the network between them is slow, or there is too little to learn on each."),
        ("lag_p50", "Of the rollouts of actors in this update: updates between the weights that played and those that learn, median (`--actors`).", "At `--max-lag` for long: the learner is slower than the actors, which wait for it."),
        ("lag_max", "The largest of them; never above `--max-lag`.", ""),
        ("actors_present", "Actors that are there.", "Below `--actors` for long: the cluster has no room for another."),
        ("actors_lost", "Actors lost and replaced since the learner was started.", "Rises: machines go away, memory runs out, or `--rank-timeout` is too short."),
        ("rollouts_lost", "Rollouts that were lost with them.", "Rises."),
        ("model_compiled", "1 if `torch.compile` is in use.", "0 with `--compile`."),
        whole=(
            *("update", "global_step", "policy_lag", "lag_max", "actors_present", "actors_lost"),
            *("rollouts_lost", "model_compiled"),
        ),
    ),
    *_group(
        "loss",
        ("loss_total", "Policy loss + value loss x `--value-coef` - entropy x bonus + imitation loss x `--imitation`; mean of the update's minibatches.", "Null (not finite), or growing for many updates."),
        ("loss_policy", "Policy loss.", "Far from 0 (beyond 1)."),
        ("loss_value", "Value loss.", "Grows without end: lower `--lr`, or rewards are too large."),
        ("loss_imitation", "How unlikely the policy finds what a search showed (-log of the probability), summed over these steps and divided by all.", "Stays up while `forced_share` is above 0: nothing is learned from the way."),
        ("entropy", "Entropy of the policy in nats; a uniform policy has ln(actions).", "Stays at ln(actions): nothing is learned. Falls to 0 early: exploration is over."),
        ("entropy_bonus", "Weight of the entropy in the loss, schedule and adaptive factor included.", ""),
        ("approx_kl", "How far the policy moved in the update (KL).", "Above about 0.05 for long: steps are too large."),
        ("clip_fraction", "Share of steps that PPO's clip cut off.", "Above about 0.3: steps are too large. 0 for long: too small."),
        ("grad_norm", "Global norm of the gradient before clipping; mean of the update.", "Always far above `--clip-grad`, or null."),
        ("learning_rate", "Learning rate in use, schedule and adaptive factor included.", "0."),
        ("updates_skipped", "Optimiser steps left out so far because loss or gradient was not finite.", "Rises: lower `--lr`."),
        ("updates_vetoed", "Optimiser steps left out so far because `--target-kl` was reached.", ""),
        whole=("updates_skipped", "updates_vetoed"),
    ),
    *_group(
        "episode",
        ("avg_return", "Mean return of the last `--episode-window` episodes.", "Falls, or stays where a random policy is."),
        ("recent_return_std", "Standard deviation of those returns.", "0: every episode is the same."),
        ("recent_return_min", "Smallest of those returns.", ""),
        ("recent_return_max", "Largest of those returns.", ""),
        ("recent_return_p50", "Median of those returns.", ""),
        ("recent_return_p90", "90th percentile of those returns.", "Rises while the median does not: a lucky few."),
        ("recent_return_p99", "99th percentile of those returns.", ""),
        ("episodes_completed", "Episodes finished so far.", "Stays: episodes do not end."),
        ("clear_rate", "Share of the last `--episode-window` episodes that reached the flag.", "Falls for long after it had risen."),
        ("clear_rate_{W}_{S}", "The same for the last 100 episodes of stage W-S; `clear_rate_game` for the whole game.", "0 on one stage while others rise."),
        ("episode_end_flag_ratio", "Share of the last `--episode-window` episodes that ended at the flag.", ""),
        ("episode_end_death_ratio", "Share that ended with a death.", "Rises while the mean x does not."),
        ("episode_end_setback_ratio", "Share that ended because the game sent Mario back (`--end-on-setback`).", "Stays high: a maze is not understood."),
        ("episode_end_timeout_ratio", "Share cut off after `--episode-timeout-steps`.", "Above a few percent: the limit is too low, or Mario waits."),
        ("episode_end_stagnation_ratio", "Share cut off after `--stagnation-limit` steps without new ground.", "Near 1: Mario is stuck at one place."),
        ("episode_length_mean", "Mean length in steps of the last `--episode-window` episodes.", "At a limit."),
        ("episode_length_p50", "Median length in steps.", ""),
        ("episode_length_p90", "90th percentile of the length.", ""),
        ("episode_length_p99", "99th percentile of the length.", ""),
        whole=("episodes_completed",),
    ),
    *_group(
        "env",
        ("env_mean_x_pos", "Mean of the furthest x of the last `--episode-window` episodes, in pixels.", "Stays at one obstacle."),
        ("env_max_x_pos", "Largest of them.", "Stays for hundreds of updates."),
        ("env_distance_delta_sum", "New ground of all lanes in this update's rollout, in pixels.", "0: no lane moves forward."),
        ("env_shaping_raw_sum", "Sum of the shaped part of the rewards in this rollout, before the scale.", "0 with a distance weight above 0."),
        ("env_shaping_scaled_sum", "The same after the scale.", "Far above the returns: shaping is all there is."),
        ("env_shaping_last_dx", "New ground of all lanes in the rollout's last step, in pixels.", ""),
        ("env_shaping_last_raw", "Shaped reward of the rollout's last step, before the scale.", ""),
        ("env_shaping_last_scaled", "The same after the scale.", ""),
        ("env_shaping_last_scale", "The scale of rewards in use.", ""),
        ("env_shaping_parse_fail", "Steps so far whose score (or, on other back-ends, position) could not be read.", "Rises: the RAM does not hold what is expected."),
        ("forced_share", "Share of this rollout's steps that a script, a push or the archive decided; they do not teach the policy, but for those that `--imitation` shows.", "Near 1 for long: nothing is learned but values."),
        ("env_worker_restarts", "Worker processes of another back-end that were lost and replaced so far (`--backend`).", "Rises: see the diagnostics it names."),
        ("stage_share_{W}_{S}", "Chance with which stage W-S is drawn (`--curriculum`).", "At the floor while its clear rate is low (`progress`): nothing changes there."),
        ("archive_size", "Moments in the archive (`--archive-share`).", "Stays while the mean x rises."),
        ("archive_episodes", "Episodes so far that started from the archive; no other number but those named archive counts them.", "0 with `--archive-share`."),
        ("archive_clears", "Of these, how many reached the flag.", ""),
        ("archive_clear_rate", "Share of flags in the last `--episode-window` episodes that started from the archive.", "High while `clear_rate` stays low: the way there is not learned."),
        ("ways", "Ways that are practised: those that searches found (`--search-steps`), and a course (`--ways`).", "Stays above 0: the starts of their stages are not learned."),
        ("ways_mastered", "The share of these ways, counted from the flag, from which most attempts clear.", "Does not rise, and `ways_reached` neither."),
        ("ways_reached", "The share of these ways, counted from the flag, from which some of the newest attempts clear. It rises first: where the end of a stage is hard, most attempts fail from everywhere.", "Does not rise."),
        ("searched_steps", "Steps that searches have taken so far; they count as no steps of the run.", "Rises while `ways` does not: the searches find nothing."),
        ("probe_forward_action_selected", "The action that `--probe-forward-actions` found.", ""),
        ("auto_bootstrap_triggered", "1 once `--auto-bootstrap-threshold` has pushed the lanes forward.", "1: the policy did not move by itself."),
        ("auto_bootstrap_remaining", "Frames of that push still to come.", ""),
        ("auto_bootstrap_action_id", "The action that is pushed.", ""),
        whole=(
            *("env_distance_delta_sum", "env_shaping_parse_fail", "archive_size", "archive_episodes"),
            *("env_worker_restarts", "ways", "searched_steps"),
            *("archive_clears", "probe_forward_action_selected", "auto_bootstrap_triggered"),
            *("auto_bootstrap_remaining", "auto_bootstrap_action_id"),
        ),
    ),
    *_group(
        "time",
        ("update_time", "Seconds from one update to the next.", ""),
        ("rollout_time", "Seconds in which the rollout was collected (beside learning with `--overlap-collect` and `--actors`).", ""),
        ("learn_time", "Seconds of learning.", ""),
        ("time_engine", "Seconds spent waiting for the engine while collecting.", "Most of the update: use more cores or fewer lanes."),
        ("time_inference", "Seconds of deciding while collecting; frames go to the device and actions come back in it.", ""),
        ("time_copy", "Seconds of moving whole rollouts while collecting.", "Most of the update."),
        ("time_learn", "Seconds of learning (the same as `learn_time`).", ""),
        ("time_wait", "With `--overlap-collect` and `--actors`: seconds the learner waited for rollouts.", "Most of the update: collecting is the bottleneck."),
        ("time_log", "Seconds of writing down and looking after the update before.", "More than 2 % of `update_time`."),
        ("time_other", "Seconds of collecting that belong to nothing above.", "More than 10 % of `update_time`."),
    ),
    *_group(
        "replay",
        ("replay_fill_rate", "Share of the replay that is filled.", "Stays near 0."),
        ("replay_last_unique_ratio", "Share of different segments in the last batch.", "Below 0.5: few segments have all the priority."),
        ("replay_avg_unique_ratio", "Mean of that over the run.", ""),
        ("replay_push_total", "Segments stored so far.", "Does not rise with every update."),
        ("replay_sample_total", "Batches drawn so far.", ""),
        ("replay_priority_mean", "Mean priority.", ""),
        ("replay_priority_p50", "Median priority.", "0: most segments are never drawn."),
        ("replay_priority_p90", "90th percentile of the priorities.", ""),
        ("replay_priority_p99", "99th percentile of the priorities.", "Orders of magnitude above the median."),
        ("replay_sample_time_ms", "Milliseconds that drawing a batch takes, on average so far.", "More than learning from it."),
        ("replay_sample_search_ms", "Of these: choosing segments.", ""),
        ("replay_sample_gather_ms", "Of these: gathering them.", ""),
        ("replay_sample_copy_ms", "Of these: moving them to the device.", ""),
        ("replay_gpu_sample", "1 if segments are chosen on the device.", "0 with `--per-gpu-sample`: it fell back."),
        ("replay_interval", "Updates from one replayed batch to the next; follows TD errors with `--per-interval-max`.", "At its maximum for long: the replay teaches nothing new."),
        ("replay_loss_policy", "Policy loss of replayed minibatches; 0 in updates that replay nothing.", ""),
        ("replay_loss_value", "Value loss of replayed minibatches.", ""),
        ("replay_approx_kl", "How far the policy is from the one that played the segments.", "Above 1: segments are too old."),
        whole=("replay_push_total", "replay_sample_total", "replay_gpu_sample", "replay_interval"),
    ),
    *_group(
        "machine",
        ("gpu_util_last", "Use of the GPU in percent at the last look (`--monitor-interval`).", ""),
        ("gpu_util_mean_window", "Mean of the last `--gpu-window` looks.", "Low: the GPU waits for the engine; use more lanes or `--overlap-collect`."),
        ("gpu_util_max_window", "Largest of these looks.", "Low: the GPU never gets enough to do."),
        ("gpu_mem_used_mb", "Memory in use on the GPU in MiB, by everyone.", "Near `gpu_mem_total_mb`."),
        ("gpu_mem_total_mb", "Memory of the GPU in MiB.", ""),
        ("gpu_power_w", "Power draw of the GPU in watts.", ""),
        ("gpu_temperature_c", "Temperature of the GPU in degrees Celsius.", "Above about 85: it slows itself down."),
        ("proc_cpu_percent", "CPU use of the run in percent of one core.", "Far below 100 x cores while `time_engine` is large."),
        ("proc_mem_rss_mb", "Memory of the run in MiB.", "Grows for hours."),
        ("proc_threads", "Threads of the run.", "Grows."),
        ("proc_fds", "Open files of the run.", "Grows."),
        ("system_cpu_percent", "CPU use of the whole machine in percent.", "100 while `proc_cpu_percent` is low: others take it."),
        ("system_mem_percent", "Memory use of the whole machine in percent.", "Above 95."),
        whole=("proc_threads", "proc_fds"),
    ),
    *_group(
        "adaptive",
        ("adaptive_entropy_scale", "Factor on the entropy bonus (`--adaptive`).", "At its upper bound for long: exploring more does not help."),
        ("adaptive_lr_scale", "Factor on the learning rate.", "At a bound for long."),
        ("adaptive_state", "-1 decline, 0 too early to say, 1 plateau, 2 progress.", "Changes all the time: raise `--adaptive-window`."),
        whole=("adaptive_state",),
    ),
)
# fmt: on

#: Names that every row has, null where there is no value.
NAMES = tuple(field.name for field in FIELDS if STAGE not in field.name)
_BY_NAME = {field.name: field for field in FIELDS}
_PATTERNS = [
    (re.compile(re.escape(field.name).replace(re.escape(STAGE), r"(\d_\d|game)")), field)
    for field in FIELDS
    if STAGE in field.name
]


def find(name: str) -> Field | None:
    """The schema's entry of a field."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    return next((field for pattern, field in _PATTERNS if pattern.fullmatch(name)), None)


def complete(row: dict[str, Any]) -> None:
    """Gives a row every field of the schema; those without a value are null."""
    for name in NAMES:
        row.setdefault(name, None)
