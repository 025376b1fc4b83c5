"""Frame stacking, replay and its priorities, done slowly: Python lists, one thing at a time."""

from collections import deque
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from warpzone.data.types import Rollout, State


class ToyLanes:
    """Lanes that show random pictures and end at random, and remember whole episodes.

    The rollouts they fill are made from the episodes' lists, without any index arithmetic.
    """

    def __init__(
        self,
        lanes: int,
        stack: int,
        actions: int,
        seed: int,
        end: float = 0.2,
        picture: tuple[int, int] = (3, 2),
    ) -> None:
        self.rng = np.random.default_rng(seed)
        self.stack, self.actions, self.end = stack, actions, end
        self.picture = picture
        #: The pictures of the running episode of each lane, the newest last.
        self.episodes = [[self.show()] for _ in range(lanes)]
        self.rows = [[self.show()] * (stack - 1) + episode for episode in self.episodes]
        self.before = [0] * lanes

    def show(self) -> NDArray[np.uint8]:
        return self.rng.integers(0, 256, self.picture, dtype=np.uint8)

    def observe(self, lane: int) -> NDArray[np.uint8]:
        """The stack that the lane's player sees: the oldest frame repeats if there are too few."""
        newest = self.episodes[lane][-self.stack :]
        return np.stack([newest[0]] * (self.stack - len(newest)) + newest)

    def rollout(self, length: int, state: State = ()) -> tuple[Rollout, NDArray[np.uint8]]:
        """The next rollout and the observations seen: [T + 1, B, stack, H, W]."""
        lanes = len(self.episodes)
        seen, ages, before = [], [], []
        flags: dict[str, list[NDArray[np.bool_]]] = {"terminated": [], "truncated": []}
        actions = self.rng.integers(0, self.actions, (length, lanes))
        rows = [history[-self.stack :] for history in self.rows]
        for t in range(length + 1):
            seen.append(np.stack([self.observe(lane) for lane in range(lanes)]))
            ages.append([len(episode) - 1 for episode in self.episodes])
            before.append(list(self.before))
            if t == length:
                break
            ended = self.rng.random(lanes) < self.end
            cut = self.rng.random(lanes) < 0.5
            flags["terminated"].append(ended & ~cut)
            flags["truncated"].append(ended & cut)
            for lane, episode in enumerate(self.episodes):
                if ended[lane]:
                    episode.clear()
                episode.append(self.show())
                rows[lane].append(episode[-1])
                self.before[lane] = int(actions[t, lane])
        self.rows = rows
        logits = self.floats(length, lanes, self.actions)
        chosen = torch.from_numpy(actions)
        forced = self.rng.random((length, lanes)) < 0.1
        rollout = Rollout(
            frames=torch.from_numpy(np.stack([np.stack(history) for history in rows], 1)),
            age=torch.tensor(ages),
            actions=chosen,
            previous_actions=torch.tensor(before),
            logits=logits,
            log_prob=logits.log_softmax(-1).gather(-1, chosen[..., None])[..., 0],
            values=self.floats(length, lanes),
            last_value=self.floats(lanes),
            final_value=self.floats(length, lanes),
            rewards=self.floats(length, lanes),
            terminated=torch.from_numpy(np.stack(flags["terminated"])),
            truncated=torch.from_numpy(np.stack(flags["truncated"])),
            forced=torch.from_numpy(forced),
            shown=torch.from_numpy(forced & (self.rng.random((length, lanes)) < 0.5)),
            state=state,
        )
        return rollout, np.stack(seen)

    def floats(self, *shape: int) -> torch.Tensor:
        return torch.from_numpy(self.rng.standard_normal(shape)).float()


@dataclass
class SlowReplay:
    """The last `capacity` segments, as rollouts of one lane, and their weights."""

    capacity: int
    length: int
    segments: deque[Rollout] = field(default_factory=deque)

    def push(self, rollout: Rollout) -> None:
        for start in range(0, rollout.length, self.length):
            for lane in range(rollout.lanes):
                self.segments.append(cut(rollout, lane, start, start + self.length))
                if len(self.segments) > self.capacity:
                    self.segments.popleft()


def cut(rollout: Rollout, lane: int, start: int, end: int) -> Rollout:
    """Steps [start, end) of one lane, as a rollout."""
    one = rollout.select(torch.tensor([lane]))
    steps = slice(start, end)
    return Rollout(
        frames=one.frames[start : end + rollout.stack],
        age=one.age[start : end + 1],
        actions=one.actions[steps],
        previous_actions=one.previous_actions[start : end + 1],
        logits=one.logits[steps],
        log_prob=one.log_prob[steps],
        values=one.values[steps],
        last_value=one.last_value if end == rollout.length else one.values[end],
        final_value=one.final_value[steps],
        rewards=one.rewards[steps],
        terminated=one.terminated[steps],
        truncated=one.truncated[steps],
        forced=one.forced[steps],
        # Replayed segments are not imitated.
        shown=torch.zeros_like(one.forced[steps]),
        state=(),
    )


def find(weights: list[float], s: float) -> int:
    """The leaf in whose share of the weights, laid end to end, the number s lies."""
    reached = 0.0
    for index, weight in enumerate(weights):
        reached += weight
        if s < reached:
            return index
    raise ValueError(f"{s} is not below the total {reached}")


def kl_divergence(counts: NDArray[np.int64], weights: NDArray[np.float64]) -> float:
    """KL(empirical || weights / total), in nats."""
    seen = counts / counts.sum()
    wanted = weights / weights.sum()
    used = seen > 0
    return float(np.sum(seen[used] * np.log(seen[used] / wanted[used])))
