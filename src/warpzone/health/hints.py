"""Hints for a run that makes no progress. A hint is given once, and again only after
`--hint-cooldown-updates` updates."""

from __future__ import annotations

from typing import Any

from warpzone.config import TrainConfig

#: Updates in a row without new ground in any lane.
NO_DISTANCE = 10
#: Share of forced steps that leaves the policy next to nothing to learn from, and the updates in a
#: row after which the hint is given; and those after which a hint says that nothing was learned.
FORCED = 0.9
MOSTLY_FORCED = 3
NOTHING_LEARNED = 5
#: Percent of a GPU, over the monitor's window, below which it mostly waits; and the seconds of
#: warm-up.
IDLE_GPU = 25.0
WARM = 60.0
#: Updates without a better mean return, and what counts as better: this share of the spread.
NO_GAIN = 300
GAIN = 0.05
#: Above this clear rate, constant returns are expected.
SOLVED = 0.9


class Hints:
    """Reads rows, one for each update."""

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self._given: dict[str, int] = {}
        self._still = 0
        self._forced = 0
        self._idle = 0
        self._skipped = 0.0
        self._best: float | None = None
        self._best_at = 0

    def read(self, row: dict[str, Any]) -> list[str]:
        """Sentences about this update; nearly always none."""
        if self.config.hint_cooldown_updates == 0:
            return []
        update = int(row["update"])
        found = {
            "nothing": self._nothing(row),
            "forced": self._mostly_forced(row),
            "distance": self._distance(row),
            "gpu": self._gpu(row),
            "return": self._return(row, update),
        }
        return [text for kind, text in found.items() if text and self._due(kind, update)]

    def _due(self, kind: str, update: int) -> bool:
        last = self._given.get(kind)
        if last is not None and update - last < self.config.hint_cooldown_updates:
            return False
        self._given[kind] = update
        return True

    def _mostly_forced(self, row: dict[str, Any]) -> str:
        share = row.get("forced_share") or 0.0
        self._forced = self._forced + 1 if share >= FORCED else 0
        # The hint about no free step at all is more precise.
        if self._forced < MOSTLY_FORCED or self._idle >= NOTHING_LEARNED:
            return ""
        return (
            f"{share:.0%} of the steps were forced for {self._forced} updates, so that the policy "
            f"learns nearly nothing: {self._less_script()}"
        )

    def _nothing(self, row: dict[str, Any]) -> str:
        """No free step, or no optimiser step that was applied."""
        skipped = (row.get("updates_skipped") or 0.0) - self._skipped
        self._skipped += skipped
        forced = (row.get("forced_share") or 0.0) >= 1.0
        left_out = skipped >= self.config.optimiser_steps
        self._idle = self._idle + 1 if forced or left_out else 0
        if self._idle < NOTHING_LEARNED:
            return ""
        if forced:
            return (
                f"the policy has learned from no step for {self._idle} updates, because all were "
                f"forced: {self._less_script()}"
            )
        return f"no optimiser step was applied for {self._idle} updates: lower --lr"

    def _less_script(self) -> str:
        ends = self.config.script_ends
        when = f"at step {ends:,.0f}" if ends < float("inf") else "never"
        return (
            "shorten --scripted-sequence or --scripted-forward-frames, or lower --scripted-share "
            f"(scripts end {when})"
        )

    def _distance(self, row: dict[str, Any]) -> str:
        self._still = self._still + 1 if row.get("env_distance_delta_sum") == 0 else 0
        if self._still < NO_DISTANCE:
            return ""
        return (
            f"no lane has gained ground for {self._still} updates: look at a video, check "
            "--actions and --stages, raise --reward-distance-weight or --entropy"
        )

    def _gpu(self, row: dict[str, Any]) -> str:
        used = row.get("gpu_util_mean_window")
        if used is None or used >= IDLE_GPU or row["seconds"] < WARM:
            return ""
        more = "raise --num-envs or --minibatch"
        if not self.config.collects_beside:
            more += ", or add --overlap-collect"
        return f"the GPU is busy {used:.0f} % of the time: {more}"

    def _return(self, row: dict[str, Any], update: int) -> str:
        mean = row.get("avg_return")
        if mean is None:
            return ""
        margin = GAIN * (row.get("recent_return_std") or 0.0)
        if self._best is None or mean > self._best + margin:
            self._best, self._best_at = mean, update
        waited = update - self._best_at
        if waited < NO_GAIN or (row.get("clear_rate") or 0.0) >= SOLVED:
            return ""
        more = "raise --entropy or lower --lr"
        if not self.config.adaptive:
            more += ", or try --adaptive"
        return f"the mean return has not risen for {waited} updates (now {mean:.2f}): {more}"
