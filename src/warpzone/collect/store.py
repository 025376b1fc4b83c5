"""Where a rollout is written while it is collected."""

from __future__ import annotations

import torch

from warpzone.config import TrainConfig


class Store:
    """Memory for one rollout, used again and again. What arrives with every step of the engine is
    kept on the host and moved to the device once."""

    def __init__(
        self, config: TrainConfig, actions: int, device: torch.device, lanes: int | None = None
    ) -> None:
        """lanes: those of this rank, if there are others."""
        steps, stack = config.rollout_steps, config.frame_stack
        lanes = config.num_envs if lanes is None else lanes
        pinned = device.type == "cuda"
        self.frames = torch.zeros(
            (steps + stack, lanes, *config.picture), dtype=torch.uint8, device=device
        )
        self.actions = torch.zeros((steps, lanes), dtype=torch.int64, device=device)
        self.previous = torch.zeros((steps + 1, lanes), dtype=torch.int64, device=device)
        self.logits = torch.zeros((steps, lanes, actions), device=device)
        self.log_prob = torch.zeros((steps, lanes), device=device)
        self.values = torch.zeros((steps, lanes), device=device)
        self.last_value = torch.zeros(lanes, device=device)
        self.final_value = torch.zeros((steps, lanes), device=device)
        self.rewards = torch.zeros((steps, lanes), pin_memory=pinned)
        self.terminated = torch.zeros((steps, lanes), dtype=torch.bool, pin_memory=pinned)
        self.truncated = torch.zeros((steps, lanes), dtype=torch.bool, pin_memory=pinned)
        self.forced = torch.zeros((steps, lanes), dtype=torch.bool, pin_memory=pinned)
        self.shown = torch.zeros((steps, lanes), dtype=torch.bool, pin_memory=pinned)
        self.age = torch.zeros((steps + 1, lanes), dtype=torch.int64, pin_memory=pinned)
