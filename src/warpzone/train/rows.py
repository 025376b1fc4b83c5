"""The metrics row of an update."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from warpzone.config import ConfigError

if TYPE_CHECKING:
    from warpzone.collect.collector import Collected
    from warpzone.train.loop import Run

#: Longer than this on a CPU is a mistake more often than a plan.
CPU_HOURS = 12.0


class Seconds(NamedTuple):
    """When an update began, had its rollout, and had learned from it; and how long writing down the
    update before took, which counts into this one."""

    began: float
    waited: float
    learned: float
    log: float

    @property
    def elapsed(self) -> float:
        """What the update took."""
        return self.learned - self.began + self.log


def make_row(
    run: Run, losses: dict[str, float], collected: Collected, seconds: Seconds, lag: int
) -> dict[str, Any]:
    """Counters, speeds, losses, episodes, and whose the seconds were."""
    config = run.config
    rate = config.steps_per_update / seconds.elapsed
    owners = _owners(run, collected, seconds)
    return {
        "timestamp": time.time(),
        "update": run.global_update,
        "global_step": run.global_step,
        "seconds": run.seconds,
        "env_steps_per_sec": rate,
        "env_frames_per_sec": rate * config.frame_skip,
        "updates_per_sec": 1.0 / seconds.elapsed,
        "eta": _left(run, rate),
        "policy_lag": lag,
        **losses,
        **collected.summary,
        **{f"time_{owner}": value for owner, value in sorted(owners.items())},
    }


def _left(run: Run, rate: float) -> float:
    """Seconds until the steps are done or the time is up, whatever comes first."""
    config = run.config
    steps = max(0, config.max_steps - run.global_step) / rate
    return min(steps, max(0.0, config.max_time * 60 - run.seconds)) if config.max_time else steps


def _owners(run: Run, collected: Collected, seconds: Seconds) -> dict[str, float]:
    """Where collecting overlaps with learning, only the wait for it is the update's own."""
    waiting = seconds.waited - seconds.began
    owners = {
        **collected.owners,
        "learn": seconds.learned - seconds.waited,
        "log": seconds.log,
    }
    if run.config.overlap_collect:
        owners["wait"] = waiting
    else:
        collecting = sum(collected.owners.values())
        owners["other"] = owners.get("other", 0.0) + max(0.0, waiting - collecting)
    return owners


def refuse_endless(run: Run, row: dict[str, Any]) -> None:
    """After the second update the speed is known: a run that would take days on the CPU ends."""
    if run.global_update != 2 or run.device.type == "cuda":
        return
    hours = row["eta"] / 3600
    if hours > CPU_HOURS and os.environ.get("MARIO_ALLOW_CPU_AUTO") != "1":
        raise ConfigError(
            f"at {row['env_steps_per_sec']:.0f} steps/s this run would take {hours:.0f} hours "
            "on the CPU; lower --max-steps, choose a smaller network, or set "
            "MARIO_ALLOW_CPU_AUTO=1 to go on"
        )
