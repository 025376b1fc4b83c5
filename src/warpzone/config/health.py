"""Who watches over a run, and how closely."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HealthConfig:
    """Who watches over a run, and how closely."""

    monitor_interval: float = 10.0
    """Seconds between two looks at GPU, CPU and memory; 0 never looks."""
    heartbeat_interval: float = 30.0
    """Seconds between two lines of heartbeat.jsonl; 0 writes none."""
    stall_timeout: float = 300.0
    """Write the stacks of all threads after this many seconds without progress; 0 never does."""
    fail_on_stall: bool = False
    """End a run that made no progress for --stall-timeout seconds, with exit code 1."""
    step_timeout: float = 15.0
    """A step of all lanes that takes longer than this many seconds is slow."""
    slow_step_trace_threshold: int = 5
    """More slow steps than this within the window write the stacks of all threads; 0 never does."""
    slow_step_trace_window: float = 120.0
    """Seconds in which slow steps are counted together."""
    hint_cooldown_updates: int = 200
    """Updates before the same hint is given again; 0 gives no hints."""
