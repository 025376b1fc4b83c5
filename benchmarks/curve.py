"""Draws learning curves as an SVG: python benchmarks/curve.py FILE.jsonl OUT.svg WHERE

Each line of FILE has `seed` (or a `label` of its own), `seconds` and `clear_rate`.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 300, 56, 44, 28
COLORS = ("#e4572e", "#2e86ab", "#3bb273", "#8e5ea2")


def draw(rows: list[dict[str, Any]], title: str) -> str:
    """The share of episodes that reached the flag, over wall-clock seconds."""
    runs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        label = row["label"] if "label" in row else f"seed {row['seed']}"
        runs[label].append((row["seconds"], row["clear_rate"]))
    last = max(seconds for points in runs.values() for seconds, _ in points)

    def place(seconds: float, share: float) -> str:
        x = LEFT + seconds / last * (WIDTH - LEFT - 16)
        y = HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)
        return f"{x:.1f},{y:.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="18" font-weight="bold">{title}</text>',
    ]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = place(0.0, share).split(",")
        parts.append(f'<line x1="{x}" x2="{WIDTH - 16}" y1="{y}" y2="{y}" stroke="#dddddd"/>')
        parts.append(
            f'<text x="{LEFT - 8}" y="{float(y) + 4}" text-anchor="end">{share:.0%}</text>'
        )
    for seconds in range(0, int(last) + 1, 5 if last < 100 else 60):
        x = place(seconds, 0.0).split(",")[0]
        parts.append(f'<text x="{x}" y="{HEIGHT - 24}" text-anchor="middle">{seconds}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 6}" text-anchor="middle">seconds</text>')
    for index, (label, points) in enumerate(sorted(runs.items())):
        color = COLORS[index % len(COLORS)]
        line = " ".join(place(*point) for point in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        below = TOP + 16 + 16 * index
        parts.append(f'<text x="{LEFT + 16}" y="{below}" fill="{color}">{label}</text>')
    return "\n".join([*parts, "</svg>\n"])


def main() -> int:
    """Reads, draws, writes."""
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    source, target = map(Path, sys.argv[1:3])
    rows = [json.loads(line) for line in source.read_text().splitlines()]
    title = f"Stage 1-1, {sys.argv[3]}: episodes that reach the flag while training"
    target.write_text(draw(rows, title))
    return 0


if __name__ == "__main__":
    sys.exit(main())
