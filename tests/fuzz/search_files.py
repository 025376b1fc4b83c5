"""Good files of searches and of trials, as `warpzone sweep`, `warpzone population` and the
regressions of back-ends write and read them."""

from __future__ import annotations

from typing import Any

TRIAL: dict[str, Any] = {
    "number": 0,
    "state": "complete",
    "value": 0.5,
    "params": {"lr": 1e-3, "algo": "ppo"},
    "curve": [[100, 0.1], [200, 0.5]],
    "run": "runs/one",
    "reason": "",
    "steps": 200,
    "gpu_seconds": 1.5,
    "seconds": 3.0,
}
SWEEP: dict[str, Any] = {
    "format": 1,
    "name": "one",
    "objective": "clears",
    "direction": "maximize",
    "sampler": "tpe",
    "pruner": "median",
    "max_steps": 200,
    "parameters": [
        {"name": "lr", "low": 1e-4, "high": 1e-2, "log": True, "choices": []},
        {"name": "algo", "low": None, "high": None, "log": False, "choices": ["ppo", "a2c"]},
    ],
    "trials": [
        TRIAL,
        {**TRIAL, "number": 1, "value": 0.75, "params": {"lr": 3e-3, "algo": "a2c"}},
        {**TRIAL, "number": 2, "state": "pruned", "value": None, "curve": [[100, 0.0]]},
    ],
    "best": 1,
    "command": "warpzone train --lr 0.003",
    "importance": {"lr": 0.75, "algo": 0.25},
}
POINTS: list[dict[str, Any]] = [
    {"step": 100, "value": None, "settings": {"lr": 1e-3}},
    {"step": 200, "value": 0.5, "settings": {"lr": 2e-3}},
]
MEMBER: dict[str, Any] = {
    "run": "member-0",
    "member": 0,
    "parent": None,
    "step": 0,
    "settings": {"lr": 1e-3},
    "points": POINTS,
}
POPULATION: dict[str, Any] = {
    "format": 1,
    "name": "one",
    "objective": "clears",
    "direction": "maximize",
    "parameters": ["lr"],
    "runs": [MEMBER, {**MEMBER, "run": "member-1", "member": 1, "parent": "member-0", "step": 100}],
    "best": {"run": "member-1", "value": 0.5},
    "command": "warpzone train --lr 0.002",
    "members": 2,
    "exchange": 100,
    "max_steps": 200,
}
#: Search spaces: one with all that a file can say, and a small one.
SPACES = [
    b"""preset = "quick"
objective = "clears"
sampler = "tpe"
pruner = "median"
startup_trials = 10
[fixed]
max_steps = 400_000
eval_interval = 50_000
[space.lr]
low = 1e-4
high = 3e-3
log = true
[space.minibatch]
choices = [256, 512, 1024]
[space.algo]
choices = ["ppo", "a2c"]
[space.epochs]
low = 1
high = 5
when = { algo = "ppo" }
otherwise = 1
""",
    b"""name = "one"
pruner = "none"
seed = 3
[space.num_envs]
low = 16
high = 64
step = 16
""",
]
#: A row of `env_stability_report.jsonl`, and the log of a worker that hangs.
STABILITY: dict[str, Any] = {
    "kind": "async",
    "backend": "retro",
    "num_envs": 2,
    "reset_ok": True,
    "game_ok": True,
    "duration": 1.5,
    "error": "",
}
WORKER_LOG = b"""2026-01-01T00:00:00.000Z worker_started
2026-01-01T00:00:01.000Z calling_mario_make
Thread 0x01 (most recent call first):
  File "/usr/lib/emulator.py", line 12 in load
  File "/usr/lib/worker.py", line 3 in main
"""
#: Button scripts.
SCRIPTS = [b"RIGHT+B:180, RIGHT+A+B:20\n", b"# a comment\nLEFT:1,NOOP:3\nSTART:2 # and one\n"]
