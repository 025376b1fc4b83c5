"""Looking at a run, and steering it, from a browser."""

from __future__ import annotations

import importlib.util
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from warpzone.config.bounds import Above, AtLeast, AtMost, Refusal

#: Packages that a dashboard needs, all in the extra of that name.
NEEDED = ("fastapi", "uvicorn", "websockets")
#: The variable that sets the token, and how short that may be.
TOKEN = "WARPZONE_DASHBOARD_TOKEN"  # noqa: S105 (the name of a variable)
LEAST_TOKEN = 16


@dataclass(frozen=True)
class DashboardConfig:
    """Looking at a run, and steering it, from a browser."""

    dashboard: bool = False
    """Serve a page about this run, in a separate process that ends with the run."""
    dashboard_host: str = "127.0.0.1"
    """Address the dashboard listens on; another than this machine's own needs the token."""
    dashboard_port: Annotated[int, AtLeast(0), AtMost(65535)] = 8765
    """Port of the dashboard; 0 takes a free one."""
    control: bool = False
    """Let the dashboard pause, save, stop and change the run, with the token printed at start."""
    dashboard_metrics: bool = False
    """Let the dashboard serve /metrics for Prometheus as well."""
    wall_lanes: Annotated[int, AtLeast(0), AtMost(64)] = 16
    """Lanes whose pictures the dashboard can show; 0 shows none."""
    wall_rate: Annotated[float, Above(0), AtMost(30)] = 15.0
    """Pictures a second of each lane while a browser shows them."""


def missing() -> str:
    """The sentence about a package that is not there; empty if all are."""
    lacking = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if not lacking:
        return ""
    return f"the dashboard needs {', '.join(lacking)}: pip install 'warpzone[dashboard]'"


def address(host: str, port: int) -> str:
    """What to open in a browser."""
    name = socket.gethostname() if host in ("0.0.0.0", "::") else host  # noqa: S104 (not bound)
    return f"http://[{name}]:{port}/" if ":" in name else f"http://{name}:{port}/"


def refusals(config: DashboardConfig) -> Iterator[Refusal]:
    """Fields of this section that do not go together."""
    yield (
        config.control and not config.dashboard,
        "--control is about the dashboard; add --dashboard",
    )
    yield (
        config.dashboard_metrics and not config.dashboard,
        "--dashboard-metrics is about the dashboard; add --dashboard",
    )
