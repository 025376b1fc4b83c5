"""Figures of README and of the guides are those of the files in `benchmarks`.

Tables that are generated (speeds, shipped agents) have tests of their own. Here each sentence with
a figure is made from its file and looked for in the page; where a page has a translation, its
numbers are. A number of README that looks measured and is in no sentence fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from statistics import median, median_high
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
TRANSLATIONS = {"README.md": "README.zh-CN.md"}
#: What a translation of a page keeps.
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
#: A number that was measured: thousands, shares, so many of so many, rates, millions.
MEASURED = re.compile(
    r"\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)? ?%|\b\d+ of\s+\d+\b|\d+ steps/s|\b\d+x\b(?!\d)|\b\d\.\d+M\b"
)
#: Names that stand for any.
EXAMPLES = {"x.json"}
Claim = Callable[[], str]


@cache
def document(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / name).read_text())


@cache
def rows(name: str) -> list[dict[str, Any]]:
    text = (ROOT / "benchmarks" / name).read_text()
    return [json.loads(line) for line in text.splitlines()]


def by_seed(name: str) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = {}
    for row in rows(name):
        found.setdefault(row["seed"], []).append(row)
    return dict(sorted(found.items()))


def thousands(value: float, digits: int) -> str:
    """Rounded to so many digits."""
    places = digits - len(str(round(value)))
    return f"{round(value, places):,.0f}"


def share(value: float) -> str:
    # Halves are rounded up, whatever their last bit is.
    return f"{100 * value + 1e-9:.1f} %"


def listed(values: list[Any]) -> str:
    return ", ".join(map(str, values))


# --- README ---------------------------------------------------------------------------------------
def trained(name: str) -> Claim:
    """A row of the table: the last line of each seed's curve."""

    def row() -> str:
        last = [run[-1] for run in by_seed(name).values()]
        steps = listed([f"{one['global_step'] / 1e6:.2f}M" for one in last])
        seconds = listed([f"{one['seconds'] + 1e-9:.0f}" for one in last])
        shares = listed([f"{100 * one['clear_rate']:.0f} %" for one in last])
        return f"| {steps} | {seconds} | {shares} |"

    return row


def cleared_again() -> str:
    """Of each seed the evaluation in which argmax clears most."""
    runs = by_seed("quick_evals.jsonl")
    best = [max(run, key=lambda one: one["argmax"]) for run in runs.values()]
    argmax, sampled = (listed([one[name] for one in best]) for name in ("argmax", "sampled"))
    steps = listed([f"{one['global_step'] / 1e6:.2f}M" for one in best])
    return (
        f"seeds {listed(list(runs))} `quick` clears {argmax} of {best[0]['of']} with argmax and "
        f"{sampled} sampled after {steps} steps"
    )


def speed_on_two_cores() -> str:
    rates = [
        median(row["env_steps_per_sec"] for row in run) for run in by_seed("quick.jsonl").values()
    ]
    return f"({thousands(min(rates), 2)} to {thousands(max(rates), 2)} steps/s)"


def on_the_gpu() -> str:
    newest = {row["config"]["algo"]: row for row in rows("ledger.jsonl") if gpu_training(row)}
    rate = {
        (algo, how): thousands(newest[algo]["end_to_end"][how]["steps_per_sec"], 3)
        for algo in ("ppo", "vtrace")
        for how in ("serial", "overlap")
    }
    ratio = {
        how: " and ".join(
            f"{newest[algo]['ratio_to_slowest'][how]:.2f}" for algo in ("ppo", "vtrace")
        )
        for how in ("serial", "overlap")
    }
    assert newest["ppo"]["config"]["epochs"] == 4
    return (
        f"PPO with 4 passes trains at {rate['ppo', 'serial']} steps/s in turns and "
        f"{rate['ppo', 'overlap']} with `--overlap-collect`, V-trace at {rate['vtrace', 'serial']} "
        f"and {rate['vtrace', 'overlap']}. Overlapped that is {ratio['overlap']} of the slowest "
        f"part alone, in turns {ratio['serial']}"
    )


def gpu_training(row: dict[str, Any]) -> bool:
    return row.get("bench") == "train" and row["device"] == "NVIDIA H200"


def kills() -> str:
    result = document("kill_test.json")
    assert result["ok"]
    return (
        f"{result['kills']} SIGKILLs, {result['kills_inside_checkpoint_writes']} of them inside "
        "checkpoint writes, left the same weights"
    )


def backends() -> str:
    sync, workers = (trials("nes-py", kind) for kind in ("sync", "async"))
    return (
        f"nes-py as a back-end: {went_well(sync)} of {len(sync)} sync and {went_well(workers)} of "
        f"{len(workers)} async trials of {sync[0]['num_envs']} games"
    )


def trials(backend: str, kind: str) -> list[dict[str, Any]]:
    wanted = (backend, kind)
    return [row for row in rows("env_stability.jsonl") if (row["backend"], row["kind"]) == wanted]


def went_well(some: list[dict[str, Any]]) -> int:
    return sum(row["reset_ok"] and row["game_ok"] for row in some)


def long_comparison() -> str:
    result = document("oracle_retro.json")
    total = result["total"]
    assert result["different"] == []
    assert result["code"] == ["interpreter", "translated", "emitted"]
    assert total["leftovers"] == 1
    return (
        f"{total['frames']:,} frames, no byte different; of {total['pictures']:,} pictures "
        "compared, one differs"
    )


# --- guides ---------------------------------------------------------------------------------------
def between_rollouts() -> str:
    ratios = rows("env_overhead.jsonl")[-1]["ratios"]
    inside = share(ratios["share of time inside the guide"])
    return (
        f"calls between rollouts together take {inside} of the time of playing; a step takes "
        f"{ratios['guided to logged']:.2f} of the time"
    )


def with_browsers() -> str:
    result = document("dashboard_load.json")
    ratios = result["speed_ratios"]
    return (
        f"was {result['speed_ratio_median'] + 1e-9:.3f} of that without (median of {len(ratios)} "
        f"pairs, which lay between {min(ratios):.2f} and {max(ratios):.2f}), training used "
        f"{share(result['training_cpu_ratio'] - 1)} more CPU time, and the server "
        f"{share(result['server_cpu_share_of_a_core'])} of a core"
    )


def one_evaluation() -> str:
    cpu, gpu = (
        next(row for row in rows("evaluation.jsonl") if row["device"] == device)
        for device in ("cpu", "NVIDIA H200")
    )
    seconds = [f"{one:.0f}" for one in cpu["all_seconds"]]
    return (
        f"{cpu['episodes']} episodes of {cpu['steps']:,} steps, took {cpu['seconds']:.0f} s on two "
        f"idle cores of a Xeon with AVX-512, the median of {listed(seconds[:-1])} and {seconds[-1]}"
        " s (`python benchmarks/evaluation.py --rounds 3`, in `benchmarks/evaluation.jsonl`). On "
        f"an H200 with {gpu['machine']['cores']} cores it took {gpu['seconds']:.1f} s (`--device "
        f"cuda`; {listed(gpu['all_seconds'])} s)"
    )


def killed_runs() -> str:
    result = document("kill_test.json")
    return (
        f"archive and curriculum {result['kills']} times, "
        f"{result['kills_inside_checkpoint_writes']} of them inside a checkpoint"
    )


def disasters() -> str:
    kinds = document("disasters.json")["kinds"]
    each = {kind["disasters"] for kind in kinds.values()}
    assert all(kind["ok"] for kind in kinds.values())
    assert len(each) == 1
    return f"lets each happen {each.pop()} times"


def soaked(name: str) -> tuple[int, str, str, str]:
    result = document(name)
    memory = result["growth"]["anonymous_mib"]
    for flat in ("fds", "threads"):
        assert result["growth"][flat]["interval_per_hour"] == [0.0, 0.0]
    low, high = memory["interval_per_hour"]
    return (
        result["updates"],
        f"{memory['per_hour']:.1f}",
        f"{low:.1f} to {high:.1f}",
        memory["verdict"],
    )


def an_hour() -> str:
    updates, growth, interval, verdict = soaked("soak.json")
    return (
        f"With {updates:,} updates, and counting what the allocator keeps, memory grew by {growth} "
        f"MiB an hour with a 95 % interval of {interval}: `{verdict}`"
    )


def an_hour_in_use() -> str:
    if (used := document("soak.json")["growth"].get("in_use_mib")) is None:
        return "`in_use_mib`"
    low, high = used["interval_per_hour"]
    grown = f"{used['per_hour']:.1f} MiB, interval {low:.1f} to {high:.1f}: `{used['verdict']}`"
    return f"What was in use grew by {grown}"


def an_hour_given_back() -> str:
    updates, growth, interval, verdict = soaked("soak_held.json")
    return (
        f"With {updates:,} updates and `--give-back` it grew by {growth} MiB, interval {interval}: "
        f"`{verdict}`"
    )


def trial_row(backend: str, kind: str, words: str) -> Claim:
    def row() -> str:
        some = trials(backend, kind)
        names = ("construct_time", "reset_time", "step_time", "duration")
        seconds = ([one[name] for one in some] for name in names)
        times = [f"{median_high(each):.1f} s, {max(each):.1f} s" for each in seconds]
        good = f"{went_well(some)} ({went_well(some) / len(some):.0%})".replace("%", " %")
        start = f"| `{backend}` | {len(some)} {words} | {some[0]['num_envs']} | {good}"
        return " | ".join([start, *times]) + " |"

    return row


def engine_cycles() -> str:
    cycles = document("native_stability.json")["cycles"]
    return (
        f"{cycles['failures']} failures; {cycles['rss_mb_first']} MiB after a tenth, "
        f"{cycles['rss_mb_last']} MiB at the end"
    )


def engine_for_long() -> str:
    run = document("native_stability.json")["mixed_run"]
    return (
        f"{run['steps']:,} steps, {run['episodes']:,} episodes, {run['lanes_reset_at_random']:,} "
        f"lanes reset at random, {run['failures']} failures; {run['rss_mb_first']} MiB, then "
        f"{run['rss_mb_last']} MiB ({run['rss_kb_per_minute']} KiB a minute)"
    )


def busy_machine() -> str:
    (case,) = document("wait_policy.json")["cases"]
    rates = {policy: sorted(found) for policy, found in case["steps_per_sec"].items()}
    assert case["busy_loops"] == 2
    return (
        f"made {rates['ACTIVE'][0]} to {rates['ACTIVE'][-1]} steps/s so, and "
        f"{rates['PASSIVE'][0]} to {rates['PASSIVE'][-1]} with threads that sleep"
    )


def busy_machine_in_short() -> str:
    (case,) = document("wait_policy.json")["cases"]
    active, passive = (sorted(case["steps_per_sec"][name]) for name in ("ACTIVE", "PASSIVE"))
    return f"{active[0]} to {active[-1]} steps/s against {passive[0]} to {passive[-1]}"


def one_rank() -> str:
    case = document("ranks_overhead.json")["cases"]["ppo"]
    low, middle, high = (100 * (one - 1) for one in case["cpu_quartiles"])
    return (
        f"takes {middle:.1f} % more CPU time than a plain run: the median of {case['rounds']} "
        f"updates in turns, with quartiles of {low:+.1f} % and {high:+.1f} %"
    )


def without_a_compiler() -> str:
    rate = document("interpreter_share.json")["steps_per_cpu_second"]["translated"]
    return f"Shares of {rate:,} steps per CPU second, translated code with AVX-512"


def small_network() -> str:
    rates = [
        median(row["env_steps_per_sec"] for row in run) for run in by_seed("quick.jsonl").values()
    ]
    return f"A small network on a CPU learns at {thousands(min(rates), 1)} steps/s"


def size_of_agents() -> str:
    files = (ROOT / "src" / "warpzone" / "agents").glob("*.safetensors")
    return f"At present they take {sum(file.stat().st_size for file in files) / 2**20:.1f} MiB."


CLAIMS: list[tuple[str, Claim]] = [
    ("README.md", trained("quick.jsonl")),
    ("README.md", trained("fast-1-1.jsonl")),
    ("README.md", cleared_again),
    ("README.md", speed_on_two_cores),
    ("README.md", on_the_gpu),
    ("README.md", kills),
    ("README.md", backends),
    ("README.md", long_comparison),
    ("docs/agents.md", size_of_agents),
    ("docs/curriculum.md", between_rollouts),
    ("docs/dashboard.md", with_browsers),
    ("docs/evaluation.md", one_evaluation),
    ("docs/installing.md", without_a_compiler),
    ("docs/installing.md", small_network),
    ("docs/reading-metrics.md", an_hour),
    ("docs/reading-metrics.md", an_hour_in_use),
    ("docs/reading-metrics.md", an_hour_given_back),
    ("docs/runs.md", killed_runs),
    ("docs/runs.md", disasters),
    ("docs/stability.md", trial_row("nes-py", "sync", "in one process")),
    ("docs/stability.md", trial_row("nes-py", "async", "with worker processes")),
    ("docs/stability.md", trial_row("retro", "async", "with worker processes")),
    ("docs/scaling.md", one_rank),
    ("docs/stability.md", engine_cycles),
    ("docs/stability.md", engine_for_long),
    ("docs/training.md", busy_machine),
    ("docs/troubleshooting.md", busy_machine_in_short),
]


def one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def translated(page: str) -> Path | None:
    other = ROOT / TRANSLATIONS.get(page, f"{page.removesuffix('.md')}.zh.md")
    return other if other.exists() else None


# By number: names of functions hold addresses, which differ between processes.
@pytest.mark.parametrize(("page", "claim"), CLAIMS, ids=range(len(CLAIMS)))
def test_pages_say_what_was_measured(page: str, claim: Claim) -> None:
    said = claim()
    assert said in one_line((ROOT / page).read_text())
    other = translated(page)
    if other is not None:
        assert set(NUMBER.findall(said)) <= set(NUMBER.findall(other.read_text())), other.name


def left_over(text: str) -> Iterator[str]:
    """Numbers that look measured and that no generated part and no sentence above explains."""
    text = re.sub(r"<!-- (\w+) -->\n.*?<!-- /\1 -->", " ", text, flags=re.DOTALL)
    text = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)|!\[[^]]*\]", " ", text, flags=re.DOTALL)
    text = one_line(text)
    for page, claim in CLAIMS:
        if page == "README.md":
            text = text.replace(one_line(re.sub(r"`[^`]*`", " ", claim())), " ")
    yield from MEASURED.findall(text)


def test_no_figure_of_the_readme_is_without_a_file() -> None:
    assert list(left_over((ROOT / "README.md").read_text())) == []


def test_a_figure_without_a_file_is_noticed() -> None:
    for text in ("It clears 31 of 31.", "at 4,900 steps/s", "in 1.30M steps", "2.5 % less", "90x"):
        assert list(left_over(text)), text
    assert list(left_over("frames 0 to 30 of 84x84 pictures, Python 3.11")) == []


def test_files_that_pages_name_are_there() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")]
    for page in pages:
        for name in set(re.findall(r"benchmarks/([\w.-]+\w)", page.read_text())) - EXAMPLES:
            assert (ROOT / "benchmarks" / name).exists(), f"{page.name} names benchmarks/{name}"
