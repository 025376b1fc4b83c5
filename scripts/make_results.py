"""Writes what was measured about the shipped agents into README, docs/results.md, docs/agents.md
and their translations, between the lines `<!-- NAME -->` and `<!-- /NAME -->`, and draws their
learning curve. The Chinese words are those of scripts/translation/zh.toml.

    python scripts/make_results.py                       # from src/warpzone/agents and benchmarks
    python scripts/make_results.py --evals RUN/evals.jsonl.gz --name all    # of another run
    python scripts/make_results.py --check               # whether all is as it would be written

`--evals` makes benchmarks/agent-NAME.jsonl of a run's evaluations: one line for each, with the
clears of every stage.
"""

import argparse
import gzip
import json
import runpy
import sys
from pathlib import Path
from typing import Any

from translation import chinese

from warpzone.eval import card
from warpzone.report.published import RESULTS, SOURCES
from warpzone.run.names import WEIGHTS_SUFFIX
from warpzone.run.shipped import AGENTS, read_description, shipped_names

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/results.md", "docs/agents.md")
CHINESE_PAGES = ("README.zh-CN.md", "docs/results.zh.md", "docs/agents.zh.md")
#: What an agent of all stages must reach and what it aims at, in episodes of 992.
GOALS = {"argmax": (850, 943), "sampled": (800, 930)}
#: Points that the rate of argmax may be lower on starts and games that did not choose the weights.
DROPS = {"delays": ("within 5 points", "within 2"), "rom": ("reported", "within 5 points")}
#: Of 31 start delays, what every stage aims at.
STAGE_AIM = 25


def compact(source: Path) -> list[dict[str, Any]]:
    """A run's evaluations, one row for each."""
    found: dict[int, dict[str, Any]] = {}
    with (gzip.open if source.suffix == ".gz" else open)(source, "rt") as file:
        for line in file:
            row = json.loads(line)
            one = found.setdefault(
                row["global_step"],
                {"global_step": row["global_step"], "seconds": round(row["seconds"], 1)},
            )
            pair = one.setdefault(row["policy"], {}).setdefault(row["stage"], [0, 0])
            pair[0] += row["cleared"]
            pair[1] += 1
    return [found[step] for step in sorted(found)]


def evaluations_of(name: str) -> list[dict[str, Any]]:
    """Rows of benchmarks/agent-NAME.jsonl."""
    text = (ROOT / "benchmarks" / f"agent-{name}.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def curve_of(name: str) -> str:
    """The learning curve of an agent, by policy."""
    rows = [
        {
            "label": policy,
            "seconds": one["seconds"],
            "clear_rate": sum(c for c, _ in one[policy].values())
            / sum(n for _, n in one[policy].values()),
        }
        for policy in ("argmax", "sampled")
        for one in evaluations_of(name)
        # `warpzone teach` evaluates the likeliest actions alone.
        if policy in one
    ]
    draw = runpy.run_path(str(ROOT / "benchmarks" / "curve.py"))["draw"]
    return str(draw(rows, f"Agent {name}: share of all stages and start delays that it clears"))


# --- what is written ------------------------------------------------------------------------------
def summary(about: dict[str, Any]) -> str:
    """An agent in a table of one row."""
    clears, training = about["measured"][0]["clears"], about["training"]
    argmax, sampled = (card.total(clears[policy]) for policy in ("argmax", "sampled"))
    return "\n".join(
        (
            "| `warpzone eval all --stages all` | argmax | sampled | steps | seconds |",
            "|---|---|---|---|---|",
            f"| {training['hardware']} | **{argmax[0]} / {argmax[1]}** ({_share(*argmax)}) | "
            f"{sampled[0]} / {sampled[1]} ({_share(*sampled)}) | {training['steps'] / 1e6:.0f}M | "
            f"{training['seconds']:,.0f} |",
        )
    )


def sums(about: dict[str, Any]) -> str:
    """Every evaluation, then the games."""
    return "\n".join((*card.sums(about["measured"]), *card.game_lines(about["games"])))


def table(about: dict[str, Any]) -> str:
    """All stages beside what others have published."""
    clears = about["measured"][0]["clears"]
    head = ["stage", "`all`, argmax", "`all`, sampled", *(source.name for source in SOURCES)]
    rows = [head, ["---"] * len(head)]
    for stage in card.STAGES:
        ours = [_share(*card.count(clears[policy][stage])) for policy in ("argmax", "sampled")]
        rows.append([stage, *ours, *(cell or "-" for cell in RESULTS[stage])])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def goals(about: dict[str, Any]) -> str:
    """What is wanted and what there is."""
    clears = about["measured"][0]["clears"]
    lines = ["| | must | aim | measured |", "|---|---|---|---|"]
    for policy, (must, aim) in GOALS.items():
        got, of = card.total(clears[policy])
        lines.append(f"| {policy} clears of {of} | {must} | {aim} | {_got(got, must, aim)} |")
    least = {stage: card.count(digits)[0] for stage, digits in clears["argmax"].items()}
    never = [stage for stage, got in least.items() if not got]
    below = sum(got < STAGE_AIM for got in least.values())
    said = f"not cleared: {', '.join(never)}" if never else "every stage is cleared"
    lines.append(
        f"| every stage, argmax, of 31 | above 0 | {STAGE_AIM} | {said}; stages below "
        f"{STAGE_AIM}: {below} |"
    )
    first = about["measured"][0]
    for one in about["measured"][1:]:
        if "argmax" not in one["clears"]:
            continue
        wanted, better = DROPS["delays" if one["rom"] == first["rom"] else "rom"]
        rate = _rate(one["clears"]["argmax"])
        drop = 100 * (_rate(clears["argmax"]) - rate)
        said = f"{100 * rate:.1f} %, {drop:.1f} points below the first row"
        lines.append(f"| {card.label(one)}, argmax | {wanted} | {better} | {said} |")
    games = about["games"].get("argmax")
    if games:
        lines.append(
            f"| whole game, three lives | stages in a row reported | half of the games won | "
            f"{games['mean']} stages on average, {games['won']} of {games['games']} won |"
        )
    return "\n".join(lines)


def size() -> str:
    """What the weights of all agents take."""
    taken = sum((AGENTS / f"{name}{WEIGHTS_SUFFIX}").stat().st_size for name in shipped_names())
    return f"At present they take {taken / 2**20:.1f} MiB."


def _got(got: int, must: int, aim: int) -> str:
    missing = f"**short by {must - got}**" if got < must else f"short of the aim by {aim - got}"
    return f"{got}" if got >= aim else f"{got}, {missing}"


def _rate(clears: dict[str, str]) -> float:
    got, of = card.total(clears)
    return got / of


def _share(clears: int, episodes: int) -> str:
    return f"{100 * clears / episodes:.0f} %"


def blocks() -> dict[str, str]:
    """By the name of the place."""
    about = read_description("all")
    return {
        "agent": summary(about),
        "measured": sums(about),
        "stages": table(about),
        "goals": goals(about),
        "size": size(),
    }


def filled(text: str, parts: dict[str, str]) -> str:
    """A page with its places filled in."""
    for name, part in parts.items():
        first, last = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, found, rest = text.partition(first)
        if found:
            text = f"{before}{first}{part}\n{last}{rest.partition(last)[2]}"
    return text


def write_out(wanted: dict[Path, str], args: argparse.Namespace, root: Path) -> int:
    """Writes the files that differ, or with `--check` and `--dry-run` names them; the exit code."""
    stale = [
        path for path, text in wanted.items() if not path.is_file() or path.read_text() != text
    ]
    reading = args.check or args.dry_run
    for path in stale:
        print(f"{path.relative_to(root)} {'is not up to date' if reading else 'written'}")
        if not reading:
            path.write_text(wanted[path])
    if args.dry_run:
        print(f"would write {len(stale)} of {len(wanted)} files")
    return 1 if args.check and stale else 0


def pages() -> dict[Path, str]:
    """Every page with what is to be in it."""
    parts = blocks()
    in_chinese = {name: chinese("results", part) for name, part in parts.items()}
    return {
        ROOT / page: filled((ROOT / page).read_text(), said)
        for names, said in ((PAGES, parts), (CHINESE_PAGES, in_chinese))
        for page in names
    }


def main() -> int:
    """Writes, or says what is not as it would be written."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--evals", type=Path, metavar="FILE", help="evals.jsonl of a run")
    parser.add_argument(
        "--goes-on", action="store_true", help="that run began with the agent the file is of"
    )
    parser.add_argument("--name", default="all", choices=shipped_names())
    parser.add_argument("--check", action="store_true", help="write nothing, fail if it differs")
    parser.add_argument(
        "--dry-run", action="store_true", help="say what is to be written, and stop"
    )
    args = parser.parse_args()
    if args.evals is not None and not args.dry_run:
        rows = compact(args.evals)
        if args.goes_on:
            before = evaluations_of(args.name)
            for row in rows:
                row["global_step"] += before[-1]["global_step"]
                row["seconds"] = round(row["seconds"] + before[-1]["seconds"], 1)
            rows = before + rows
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (ROOT / "benchmarks" / f"agent-{args.name}.jsonl").write_text(text)
    wanted = pages()
    wanted[ROOT / "docs" / "media" / "learning-all.svg"] = curve_of("all")
    return write_out(wanted, args, ROOT)


if __name__ == "__main__":
    sys.exit(main())
