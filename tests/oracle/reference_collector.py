"""One lane, one step at a time: the obvious way to fill a rollout."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.collect.lanes import lane_options
from warpzone.config import TrainConfig
from warpzone.model.agent import Agent


class ReferenceLane:
    """Plays one lane with an agent. `uniform` decides what is sampled."""

    def __init__(
        self, config: TrainConfig, agent: Agent, rom: bytes, native: Any, seed: int
    ) -> None:
        self.config = config
        self.agent = agent
        options = lane_options(config)
        same_step = _engine.Autoreset.SAME_STEP
        self.vector = options.make_vector(rom, 1, native=native, autoreset=same_step)
        self.frame = np.zeros((1, 1, config.size, config.size), np.uint8)
        self.final = np.zeros_like(self.frame)
        self.info = np.zeros((1, len(_engine.INFO_FIELDS)), np.int32)
        self.vector.seed([seed])
        self.vector.reset(None, self.frame, self.info)
        self.seen = [self.frame[0, 0].copy()]  # Frames of the running episode.
        self.state = agent.initial_state(1)
        self.before = 0

    @torch.no_grad()
    def look(self, seen: list[NDArray[np.uint8]], first: bool) -> tuple[torch.Tensor, float, Any]:
        """Logits, value and the memory after, of an episode whose frames are `seen`."""
        stack = self.config.frame_stack
        padded = [seen[0]] * stack + seen
        obs = torch.from_numpy(np.stack(padded[-stack:]))[None]
        before, starts = torch.tensor([self.before]), torch.tensor([first])
        logits, value, after = self.agent.act(obs, before, self.state, starts)
        return logits[0], float(value[0]), after

    def rollout(self, uniform: torch.Tensor) -> dict[str, NDArray[Any]]:
        """uniform: [T, A]. Observations (stacked), and everything a rollout holds."""
        found: dict[str, list[Any]] = defaultdict(list)
        found["state"] = [part[0].numpy().copy() for part in self.state]
        for numbers in uniform:
            self._remember(found)
            logits, value, after = self.look(self.seen, len(self.seen) == 1)
            noise = -torch.log(-torch.log(numbers.clamp(1e-10, 1.0 - 1e-7)))
            action = int(torch.argmax(logits + noise))
            self.state, self.before = after, action
            reward, terminated, truncated = self._play(action)
            cut = truncated and not terminated
            found["final_value"].append(0.0)
            if cut:
                found["final_value"][-1] = self.look([*self.seen, self.final[0, 0]], False)[1]
            if terminated or truncated:
                self.seen = []
            self.seen.append(self.frame[0, 0].copy())
            found["actions"].append(action)
            found["logits"].append(logits.numpy())
            found["log_prob"].append(float(torch.log_softmax(logits, -1)[action]))
            found["values"].append(value)
            found["rewards"].append(reward)
            found["terminated"].append(terminated)
            found["truncated"].append(cut)
        self._remember(found)
        found["last_value"].append(self.look(self.seen, len(self.seen) == 1)[1])
        state = found.pop("state")
        return {name: np.array(values) for name, values in found.items()} | {
            f"state{index}": part for index, part in enumerate(state)
        }

    def _remember(self, found: dict[str, list[Any]]) -> None:
        stack = self.config.frame_stack
        found["obs"].append(np.stack(([self.seen[0]] * stack + self.seen)[-stack:]))
        found["age"].append(len(self.seen) - 1)
        found["previous_actions"].append(self.before)

    def _play(self, action: int) -> tuple[float, bool, bool]:
        reward = np.zeros(1, np.float32)
        terminated, truncated = np.zeros(1, np.bool_), np.zeros(1, np.bool_)
        final_info = np.zeros_like(self.info)
        actions = np.array([action])
        self.vector.step(
            *(actions, self.frame, reward, terminated, truncated),
            *(self.info, self.final, final_info),
        )
        return float(reward[0]), bool(terminated[0]), bool(truncated[0])
