"""The live display of a run: one table and a bar, redrawn a few times a second."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from warpzone.config import TrainConfig
from warpzone.run.journal import note


class Progress:
    """A table and a bar on a terminal, periodic lines elsewhere."""

    LINE_EVERY = 10.0

    def __init__(self, config: TrainConfig, title: str, *, shown: bool = True) -> None:
        """shown: whether there is a display at all."""
        self._config = config
        self._title = title
        self._console = Console(stderr=True)
        self._live: Live | None = None
        self._last_line = 0.0
        self._shown = shown
        #: The newest metrics, and when they came; before the first update there are none.
        self._row: dict[str, Any] | None = None
        self._row_at = time.monotonic()

    def __enter__(self) -> Progress:
        if self._shown and self._console.is_terminal:
            self._row_at = time.monotonic()
            self._live = Live(self, console=self._console, refresh_per_second=4, transient=False)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self, row: dict[str, Any]) -> None:
        """Shows the newest metrics."""
        self._row, self._row_at = row, time.monotonic()
        if self._live is not None:
            self._live.refresh()
        elif self._shown and time.monotonic() - self._last_line > self.LINE_EVERY:
            self._last_line = time.monotonic()
            print(line(row, self._config.max_time), file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Prints a sentence above the table."""
        note(text)
        if self._shown:
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def __rich__(self) -> Group:
        """What is shown now; the clock runs between two updates as well."""
        since = time.monotonic() - self._row_at
        if self._row is None:
            steps = f"{self._config.steps_per_update:,}"
            first = f"the first update collects and learns from {steps} steps"
            return Group(Text(self._title), Text(f"{first} · {_clock(since)}"))
        return Group(self._table(self._row), self._bar(self._row, since))

    def _bar(self, row: dict[str, Any], since: float) -> Table:
        share = done(row, self._config)
        line = Table.grid(padding=(0, 1))
        line.add_row(
            ProgressBar(total=1.0, completed=share, width=40),
            f"{share:.0%}",
            f"{_clock(row['seconds'] + since)} gone, {_clock(max(0.0, row['eta'] - since))} to go",
        )
        return line

    def _table(self, row: dict[str, Any]) -> Table:
        table = Table(title=self._title, show_header=False, min_width=64)
        share = row["global_step"] / self._config.max_steps
        steps = f"{row['global_step']:,} of {self._config.max_steps:,} ({share:.0%})"
        table.add_row("steps", steps)
        table.add_row(
            "speed",
            f"{row['env_steps_per_sec']:,.0f} steps/s, {row['env_frames_per_sec']:,.0f} frames/s",
        )
        spent = _clock(row["seconds"])
        if limit := self._config.max_time * 60:
            spent += f" of {_clock(limit)} ({row['seconds'] / limit:.0%})"
        table.add_row("time", f"{spent}, {_clock(row['eta'])} to go")
        if row.get("avg_return") is not None:
            table.add_row(
                "return",
                f"p50 {row['recent_return_p50']:.1f}, p90 {row['recent_return_p90']:.1f}",
            )
            table.add_row("clear rate", f"{row['clear_rate']:.1%} of the last episodes")
            table.add_row(
                "furthest x", f"{row['env_mean_x_pos']:.0f} mean, {row['env_max_x_pos']:.0f} best"
            )
        table.add_row(
            "losses",
            f"policy {row['loss_policy']:.4f}, value {row['loss_value']:.4f}, "
            f"entropy {row['entropy']:.3f}",
        )
        if row.get("lag_max") is not None:
            lag = f"lag of {row['lag_p50']:g} updates (median), {row['lag_max']:g} (most)"
            table.add_row(
                "actors", f"{row['actors_present']:g}; {row['actors_lost']:g} lost; {lag}"
            )
        if row["updates_skipped"]:
            skipped = f"{row['updates_skipped']:,.0f} optimiser steps"
            table.add_row("skipped", f"{skipped}: their loss or gradient was not finite")
        # Shares of the update; collecting while learning is not included.
        shares = [(k[5:], v) for k, v in row.items() if k.startswith("time_") and v is not None]
        split = (f"{name} {seconds * row['updates_per_sec']:.0%}" for name, seconds in shares)
        table.add_row("time split", ", ".join(split))
        return table


def done(row: dict[str, Any], config: TrainConfig) -> float:
    """The share of the run that is done: of its steps or of its time, whichever ends first."""
    shares: list[float] = [row["global_step"] / config.max_steps]
    if config.max_time:
        shares.append(row["seconds"] / (config.max_time * 60))
    return min(1.0, max(shares))


def _clock(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


class Unseen(Progress):
    """The display of a rank that does not lead, and of measurements: nothing."""

    def update(self, row: dict[str, Any]) -> None:
        """Shows nothing."""

    def say(self, text: str) -> None:
        """Says nothing."""


def line(row: dict[str, Any], max_time: float = 0.0) -> str:
    """An update in one line; with the time of a run that has a budget of so many minutes."""
    time_spent = f"time={_clock(row['seconds'])}/{_clock(max_time * 60)} " if max_time else ""
    text = (
        f"[train] step={row['global_step']} steps/s={row['env_steps_per_sec']:.0f} "
        f"{time_spent}eta={_clock(row['eta'])} entropy={row['entropy']:.3f}"
    )
    if row.get("avg_return") is not None:
        text += f" return={row['avg_return']:.1f} clear={row['clear_rate']:.1%}"
        text += f" x={row['env_mean_x_pos']:.0f}"
    if row.get("lag_max") is not None:
        text += f" lag={row['lag_p50']:g}/{row['lag_max']} lost={row['actors_lost']}"
    return text
