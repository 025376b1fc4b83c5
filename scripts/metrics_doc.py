"""Writes docs/metrics.md from the schema, and docs/metrics.zh.md with the words of
scripts/translation/zh.toml; `--check` only says whether both are up to date."""

import argparse
import sys
from pathlib import Path

from translation import chinese

from warpzone.metrics import schema

DOCS = Path(__file__).parents[1] / "docs"
GROUPS = {
    "run": "Where the run is",
    "loss": "Learning",
    "episode": "Episodes",
    "env": "Progress and shaping",
    "time": "Where the seconds go",
    "replay": "Replay (`--per`)",
    "machine": "Machine",
    "adaptive": "Adaptive schedules (`--adaptive`)",
}
HEAD = """# Metrics

Made by `scripts/metrics_doc.py` from `src/warpzone/metrics/schema.py`; change that table, not this
page. [Reading metrics](reading-metrics.md) has examples for `jq`, pandas, polars and TensorBoard.

A run writes a row for every update (every `--log-interval`-th) to `metrics.jsonl` in its folder.
Every row has every field below; a field without a value (no GPU, no replay, no finished episode
yet) is `null`, never 0. NaN and infinities are `null` too. Counts marked *whole* are integers in
`metrics/latest.parquet`. TensorBoard and W&B name a field `group/name`, e.g. `loss/loss_total`.
"""
TAIL = """## Other files of a run

| file | one line for each | fields |
|---|---|---|
| `episodes.jsonl` | finished episode | `lane`, `stage` (0 is 1-1, 31 is 8-4, -1 the whole game), `start_delay` (frames), `episode_return`, `steps`, `furthest_x`, `reason` (`flag`, `death`, `setback`, `timeout`, `stagnation`), `restart` (the moment of the archive it began at, 0 the start of the stage, 2147483647 its halfway page), `global_step` |
| `evals.jsonl` | evaluated start | `global_step`, `seconds`, `stage`, `policy`, `start_delay`, `cleared`, `furthest_x`, `steps`, `reason` and more |
| `heartbeat.jsonl` | `--heartbeat-interval` seconds | `timestamp`, `component`, `phase` (`start`, `collect`, `learn`, `eval`, `checkpoint`, `pause`, and at the end `done` or `interrupt`), `update`, `global_step`, `updates_per_sec`, `steps_per_sec` (over the last 8 lines), `idle_seconds` (since the last step or optimiser step), `message` (the last hint or warning); of the process `proc_cpu_percent` (since the line before), `proc_mem_rss_mb`, `proc_threads`, `proc_children`, `proc_fds`; `gpu_*` as the monitor last saw them; and with `--actors` `lag_p50`, `lag_max`, `actors_present` and `actors_lost` of the newest update |
| `env.jsonl` | environment of another back-end that is made, ready or lost | `timestamp`, `kind`, `text`, `env`, `of`, `seconds`, `pid`, `global_step` |
| `alerts.jsonl` | alert ([monitoring](monitoring.md)) | `timestamp`, `kind`, `text`, `update`, `global_step` |
| `metrics/latest.parquet` | the newest 10,000 rows of `metrics.jsonl` | the fields above |
| `metrics/heartbeats.parquet` | the newest 10,000 lines of `heartbeat.jsonl` | the fields of that file |

All of these JSONL files are rotated at
`--metrics-rotate-mb`: the old one becomes `metrics-0001.jsonl.gz` and so on. Parts come first when
reading, in the order of their numbers. A resumed run drops the rows of metrics, episodes and
evaluations after its checkpoint, from parts too, so no row is there twice.
"""  # noqa: E501


def reference(whole: str = "whole") -> str:
    """The whole page, with this word for counts."""
    parts = [HEAD]
    for group, title in GROUPS.items():
        parts.append(
            f"## {title}\n\nGroup `{group}`.\n\n| field | meaning | a bad value |\n|---|---|---|"
        )
        for field in schema.FIELDS:
            if field.group == group:
                count = f" *{whole}*" if field.whole else ""
                parts.append(f"| `{field.name}`{count} | {field.meaning} | {field.bad} |")
        parts[-1] += "\n"
    return "\n".join([*parts, TAIL])


def pages() -> dict[Path, str]:
    """Every page that is made here."""
    return {
        DOCS / "metrics.md": reference(),
        DOCS / "metrics.zh.md": chinese("metrics", reference(whole="整数")),
    }


def main() -> int:
    """0 if the pages are what the schema says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if it differs")
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be written, and stop"
    )
    args = parser.parse_args()
    unknown = {field.group for field in schema.FIELDS} - set(GROUPS)
    if unknown:
        print(f"metrics_doc: no title for the groups {sorted(unknown)}.", file=sys.stderr)
        return 1
    wanted = pages()
    stale = [path for path in wanted if not path.is_file() or path.read_text() != wanted[path]]
    if args.dry_run:
        for path in wanted:
            print(f"would {'rewrite' if path in stale else 'leave'} {path.name}")
        return 0
    if args.check:
        for path in stale:
            print(f"{path} is out of date; run {Path(__file__).name}.", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(wanted[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
