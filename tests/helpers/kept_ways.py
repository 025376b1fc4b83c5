"""The ways of `benchmarks/ways`, and runs that practise some of them."""

from pathlib import Path
from typing import Any

KEPT = Path(__file__).parents[2] / "benchmarks" / "ways"
#: Two ways through 7-1, from start delays 46 and 59; two more begin later.
PRACTISED: dict[str, Any] = {
    "stages": "7-1",
    "actions": "complex",
    "start_delay": 60,
    "stagnation_limit": 60,
    "archive_share": 0.9,
    "imitation": 0.5,
    "ways": str(KEPT),
}
