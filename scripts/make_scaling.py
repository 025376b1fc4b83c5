"""Predicts steps/s of 1 to 64 GPUs and up to 10,000 cores from rates that were measured, compares
the same formulas with every point that was measured, and writes both tables into docs/scaling.md
and its translation, with what ranks, actors and old weights were measured to cost.

    python scripts/make_scaling.py              # writes the tables
    python scripts/make_scaling.py --measure    # measures ranks and actors before, in 20 minutes
    python scripts/make_scaling.py --check      # whether they are as they would be written
    python scripts/make_scaling.py --points     # every measured point beside its prediction

The model has a rate for each part alone (engine, inference, learner: `warpzone bench train`) and
adds up the times of what one resource does: cores, GPU, network. What different resources do at
the same time takes as long as the slowest. No part of it is fitted to the points it is compared
with, but for the engine's loss by threads (`contention`).
"""

import argparse
import csv
import itertools
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from math import ceil, log2
from pathlib import Path
from statistics import median
from typing import Any

from make_results import filled, write_out
from scaling import costs
from scaling.parts import FAST, MIDDLE, SLOW, Network, Parts, Point, Predicted

ROOT = Path(__file__).parents[1]
#: Pages and their words.
PAGES: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "benchmarks" / "scaling.toml").read_text())
#: Lines of benchmarks/ledger.jsonl: the engine on 1 to 16 threads, PPO and V-trace on one H200,
#: `quick` on two cores; then older rows of the same, which are only compared.
ENGINE, PPO, VTRACE, QUICK = 4, 10, 11, 9
OLDER_ENGINE, OLDER_TRAINING, TWO_CORES = 3, (5, 6, 7, 8), (1, 2)
#: Lines of fleet.jsonl: one of an idle machine, and the last, of when learner and actors had more
#: threads than cores. The last line of all is that of the present code.
OLDER_FLEET, OLDER_FLEETS = 1, 2
#: What depends on how busy the machine is, so that it can be measured again on another day.
MEASUREMENTS = (
    "ranks_overhead.py --rounds 20 --out benchmarks/ranks_overhead.json",
    "fleet.py --rounds 5 --updates 4 --warm-up 3 --out benchmarks/fleet.jsonl",
    "two_ranks.py --out benchmarks/two_ranks.json",
)
#: A machine's cores, the most that was measured; more are taken for more machines.
MACHINE = 16
#: Of ranks: what each GPU plays and learns from in an update, whatever their number.
STEPS = 1024 * 64
GPUS = (1, 2, 4, 8, 16, 32, 64)
CORES = (16, 64, 256, 1024, 4096, 10_000)
#: Bytes of a step on its way to a learner: its picture; the rest is below 1 %.
PICTURE = 84 * 84


# --- what was measured ----------------------------------------------------------------------------
@cache
def ledger(line: int) -> dict[str, Any]:
    lines = (ROOT / "benchmarks" / "ledger.jsonl").read_text().splitlines()
    row: dict[str, Any] = json.loads(lines[line - 1])
    return row


def benchmark(name: str, line: int = 1) -> dict[str, Any]:
    """The object of a file in benchmarks/, or that in a line of it."""
    text = (ROOT / "benchmarks" / name).read_text()
    found: dict[str, Any] = json.loads(text.splitlines()[line - 1] if name.endswith("l") else text)
    return found


def rows(name: str) -> list[dict[str, Any]]:
    """The lines of a file in benchmarks/."""
    text = (ROOT / "benchmarks" / name).read_text()
    return [json.loads(line) for line in text.splitlines()]


def fleet_line() -> tuple[int, bool]:
    """The line of fleet.jsonl that is of the present code, and whether the machine was idle."""
    found = rows("fleet.jsonl")
    return len(found), costs.idle(found[-1])


def parts(line: int) -> Parts:
    """The parts alone, from a row of `warpzone bench train`."""
    row = ledger(line)
    config, alone = row["config"], row["alone"]
    cores = row["machine"]["cores"]
    # Beside a GPU one core is left to the thread that launches.
    threads = config["num_threads"] or (cores if row["device"] == "cpu" else cores - 1)
    rates = {name: alone[name]["steps_per_sec"] for name in ("engine", "inference", "learner")}
    steps = config["num_envs"] * config["rollout_steps"] // config["minibatch"] * config["epochs"]
    return Parts(threads=threads, optimiser_steps=steps, **rates)


def threads_rate(line: int, lanes: int, threads: int) -> float:
    name = f"steps translated {lanes}x{threads}"
    return next(float(case["median"]) for case in ledger(line)["cases"] if case["name"] == name)


# --- the model ------------------------------------------------------------------------------------
def contention() -> float:
    """What each further thread costs the others, from 1 and 16 threads."""
    times = threads_rate(ENGINE, 1024, MACHINE) / threads_rate(ENGINE, 1024, 1)
    return (MACHINE / times - 1) / (MACHINE - 1)


def speed_up(threads: int) -> float:
    """Of the engine, over one thread of the same machine."""
    return threads / (1 + contention() * (threads - 1))


def engine(measured: Parts, threads: int) -> float:
    """Steps/s of the engine with so many threads, on machines of `MACHINE` cores."""
    one = measured.engine / speed_up(measured.threads)
    machines, rest = divmod(threads, MACHINE)
    return one * (machines * speed_up(MACHINE) + (speed_up(rest) if rest else 0.0))


def in_turns(measured: Parts) -> float:
    """One GPU, serial: collecting, in which engine and network alternate groups, then learning."""
    return 1 / (1 / min(measured.engine, measured.inference) + 1 / measured.learner)


def overlapped(measured: Parts) -> float:
    """One GPU, which decides and learns, beside cores that play."""
    return min(measured.engine, 1 / (1 / measured.inference + 1 / measured.learner))


def on_cores(measured: Parts) -> float:
    """No GPU: the same cores do everything, serial or overlapped."""
    return 1 / (1 / measured.engine + 1 / measured.inference + 1 / measured.learner)


def all_reduce(size: float, ranks: int, network: Network) -> float:
    """Seconds of adding up a block of all ranks, in a ring."""
    if ranks == 1:
        return 0.0
    return network.latency * ceil(log2(ranks)) + 2 * (ranks - 1) / ranks * size / network.bandwidth


def gradient(preset: str = "fast-1-1") -> int:
    """Bytes of the gradients."""
    return 4 * int(benchmark("exchange.json")["parameters"][preset])


def loopback() -> Network:
    """Of two processes on one machine, from the smallest block and the largest."""
    times = benchmark("exchange.json")["all_reduce_seconds"]["2"]
    latency = float(times["three numbers"])
    return Network(gradient() / (times["fast-1-1"] - latency), latency)


def ranks(measured: Parts, gpus: int, cores: int, network: Network) -> Predicted:
    """GPUs with so many cores each, `--overlap-collect`; lanes and minibatch grow with them."""
    # Three numbers before the passes of an optimiser step, the gradients after them.
    exchange = all_reduce(24, gpus, network) + all_reduce(gradient(), gpus, network)
    seconds = {
        "learner": STEPS / measured.learner,
        "inference": STEPS / measured.inference,
        "all-reduce": measured.optimiser_steps * exchange,
    }
    playing, device = STEPS / engine(measured, cores - 1), sum(seconds.values())
    limit = "engine" if playing > device else max(seconds, key=lambda name: seconds[name])
    return Predicted(gpus * STEPS / max(playing, device), limit)


def core_of_actor() -> float:
    """Steps/s that one core plays and decides for with the default network: an evaluation."""
    row = benchmark("evaluation.jsonl")
    return float(row["steps"] / row["seconds"] / row["machine"]["cores"])


def sending(size: float) -> float:
    """Seconds that a step of so many bytes takes through Ray's object store of one machine."""
    row = benchmark("exchange.json")
    return float(size * row["rollout_seconds"] / row["rollout_bytes"])


def fleet(measured: Parts, cores: int, network: Network) -> Predicted:
    """Actors on so many cores of other machines, and one GPU that learns."""
    update = max(1024, cores) * 64
    machines = ceil(cores / MACHINE)
    rates = {
        "actors": cores / (1 / core_of_actor() + sending(PICTURE)),
        "learner": measured.learner,
        "rollouts": network.bandwidth / PICTURE,
        # At worst every machine gets the weights from the learner's.
        "weights": update / (machines * gradient() / network.bandwidth),
    }
    limit = min(rates, key=lambda name: rates[name])
    return Predicted(rates[limit], limit)


# --- where it was measured ------------------------------------------------------------------------
def points() -> Iterator[Point]:
    """Every measured point, in the groups of the table."""
    for line, lanes in ((ENGINE, 256), (ENGINE, 1024), (OLDER_ENGINE, 1024)):
        one = threads_rate(line, lanes, 1)
        for threads in (2, 4, 8, 16):
            if (line, lanes, threads) != (ENGINE, 1024, 16):
                what = f"ledger.jsonl:{line}, {lanes} lanes, {threads} threads"
                rate = threads_rate(line, lanes, threads)
                yield Point("engine", what, rate, one * speed_up(threads))
    for line in TWO_CORES:
        what = f"ledger.jsonl:{line}, 256 lanes, 2 threads"
        rates = [threads_rate(line, 256, threads) for threads in (1, 2)]
        yield Point("engine", what, rates[1], rates[0] * speed_up(2))
    text = (ROOT / "benchmarks" / "profile_h200.txt").read_text().split("# commit ")[-1]
    for threads, rate in re.findall(r"(\d+) threads, 2 groups: median ([\d,]+)", text):
        collecting = min(engine(parts(PPO), int(threads)), parts(PPO).inference)
        what = f"profile_h200.txt, {threads} threads"
        yield Point("collecting", what, float(rate.replace(",", "")), collecting)
    for group, lines in (("gpu", (PPO, VTRACE)), ("gpu before", OLDER_TRAINING)):
        for line in lines:
            yield from _training(group, line)
    with (ROOT / "benchmarks" / "bench_overlap_h200.csv").open() as file:
        for row in csv.DictReader(file):
            put = in_turns if row["mode"] == "sync" else overlapped
            what = f"bench_overlap_h200.csv, {row['mode']} {row['num_envs']} x {row['rollout']}"
            yield Point("gpu", what, float(row["steps_per_sec_mean"]), put(parts(PPO)))
    six = replace(parts(PPO), learner=parts(PPO).learner * 4 / 6)
    yield Point("gpu", "fast-1-1.jsonl, last row", _last("fast-1-1.jsonl"), in_turns(six))
    for mode, kept in ledger(QUICK)["end_to_end"].items():
        what = f"ledger.jsonl:{QUICK}, {mode}"
        yield Point("cores", what, kept["steps_per_sec"], on_cores(parts(QUICK)))
    yield Point("cores", "quick.jsonl, last row", _last("quick.jsonl"), on_cores(parts(QUICK)))
    yield from _processes()


def _training(group: str, line: int) -> Iterator[Point]:
    for mode, put in (("serial", in_turns), ("overlap", overlapped)):
        rate = ledger(line)["end_to_end"][mode]["steps_per_sec"]
        yield Point(group, f"ledger.jsonl:{line}, {mode}", rate, put(parts(line)))


def _last(name: str) -> float:
    return float(rows(name)[-1]["env_steps_per_sec"])


def _processes() -> Iterator[Point]:
    """Two processes and more of one machine with two cores, beside one process."""
    seconds = all_reduce(gradient("quick"), 2, loopback())
    times = benchmark("exchange.json")["all_reduce_seconds"]["2"]
    what = "exchange.json, gradients of quick, exchanges/s"
    yield Point("all-reduce", what, 1 / times["quick"], 1 / seconds)
    measured = 1 / benchmark("ranks_overhead.json")["cases"]["ppo"]["cpu_ratio"]
    yield Point("one rank", "ranks_overhead.json, over no rank, CPU time", measured, 1.0)
    two = benchmark("two_ranks.json")
    # The same cores do the same work, and exchange in between.
    alone = two["steps_per_update"] / two["steps_per_second"]["1"]
    exchange = all_reduce(24, 2, loopback()) + all_reduce(gradient("quick"), 2, loopback())
    slower = alone / (alone + two["optimiser_steps"] * exchange)
    yield Point("two ranks", "two_ranks.json, over one process", two["ratio"], slower)
    newest, idle = fleet_line()
    for group, line, keys in (
        # By the clock more processes get more of a busy machine.
        ("actors", newest, ("cpu_ratio", "ratio") if idle else ("cpu_ratio",)),
        ("actors before", OLDER_FLEET, ("cpu_ratio", "ratio")),
    ):
        kinds = benchmark("fleet.jsonl", line)["kinds"]
        # Seconds of CPU time for a million steps, and what sending them adds.
        here = kinds["overlapped"]["cpu_seconds_per_million_steps"]
        ratio = here / (here + 1e6 * sending(42 * 42))
        for kind, key in itertools.product(("actors 1", "actors 2"), keys):
            what = f"fleet.jsonl:{line}, {kind} over one process, {key}"
            yield Point(group, what, kinds[kind][key], ratio)


# --- the page -------------------------------------------------------------------------------------
def predictions(words: dict[str, Any]) -> str:
    """The tables of ranks and of actors."""
    ppo, vtrace = parts(PPO), parts(VTRACE)
    most = 10_000 // GPUS[-1]
    lines = [words["ranks"].format(most=most), "|---|---|---|---|---|"]
    for gpus in GPUS:
        cells = [
            ranks(ppo, gpus, MACHINE, FAST),
            ranks(ppo, gpus, MACHINE, SLOW),
            ranks(vtrace, gpus, MACHINE, FAST),
            ranks(vtrace, gpus, most, FAST),
        ]
        lines.append(" | ".join((f"| {gpus}", *(_cell(cell, words) for cell in cells))) + " |")
    lines += ["", words["fleet"], "|---|---|---|"]
    for cores in CORES:
        cells = [fleet(vtrace, cores, SLOW), fleet(vtrace, cores, MIDDLE)]
        lines.append(" | ".join((f"| {cores:,}", *(_cell(cell, words) for cell in cells))) + " |")
    return "\n".join(lines)


def rates(words: dict[str, Any]) -> str:
    """What the model was given, and from where."""
    ppo, vtrace = (
        [f"{round(rate, -3):,.0f}" for rate in (found.engine, found.inference, found.learner)]
        for found in (parts(PPO), parts(VTRACE))
    )
    network = loopback()
    found: str = words["rates"].strip()
    return found.format(
        ppo=ppo,
        vtrace=vtrace,
        contention=100 * contention(),
        core=f"{round(core_of_actor(), -2):,.0f}",
        ray=1e-9 / sending(1),
        latency=1e3 * network.latency,
        loopback=1e-9 * network.bandwidth,
    )


def comparison(words: dict[str, Any]) -> str:
    """How far the predictions are from what was measured, by group."""
    groups: dict[str, list[Point]] = {}
    for point in points():
        groups.setdefault(point.group, []).append(point)
    lines = [words["checks"], "|---|---|---|---|"]
    newest, idle = fleet_line()
    by = words["by the clock too" if idle else "by CPU time"]
    for group, found in groups.items():
        errors = sorted((point.error for point in found), key=abs)
        middle = median(abs(error) for error in errors)
        what = words["groups"][group].format(line=newest, by=by)
        lines.append(f"| {what} | {len(found)} | {middle:.0%} | {errors[-1]:+.0%} |")
    return "\n".join(lines)


def blocks(words: dict[str, Any]) -> dict[str, str]:
    """What stands in the page, by the name of its place."""
    return {
        "predictions": predictions(words),
        "rates": rates(words),
        "comparison": comparison(words),
        "one rank": costs.one_rank(benchmark("ranks_overhead.json"), words["costs"]),
        "two ranks": costs.two_ranks(benchmark("two_ranks.json"), words["costs"]),
        "actors": costs.actors(rows("fleet.jsonl"), OLDER_FLEETS, words["costs"]),
        "lags": costs.lags(rows("lags.jsonl"), words["costs"]),
    }


def _cell(predicted: Predicted, words: dict[str, Any]) -> str:
    return f"{float(f'{predicted.rate:.2g}'):,.0f}, {words['limits'][predicted.limit]}"


def main() -> int:
    """Writes, or says what is not as it would be written."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing, fail if it differs")
    parser.add_argument("--points", action="store_true", help="print every point, and stop")
    parser.add_argument(
        "--dry-run", action="store_true", help="say what is to be written, and stop"
    )
    parser.add_argument(
        "--measure", action="store_true", help="measure ranks and actors first; the machine is idle"
    )
    args = parser.parse_args()
    for command in MEASUREMENTS if args.measure else ():
        print(f"{'would run' if args.dry_run else 'running'} python benchmarks/{command}")
        if not args.dry_run:
            subprocess.run([sys.executable, *f"benchmarks/{command}".split()], cwd=ROOT, check=True)
    if args.points:
        for point in points():
            rates = f"{point.measured:>12,.4g} {point.predicted:>12,.4g} {point.error:+7.1%}"
            print(f"{rates}  {point.group:14} {point.what}")
        return 0
    wanted = {
        ROOT / page: filled((ROOT / page).read_text(), blocks(words))
        for page, words in PAGES.items()
    }
    return write_out(wanted, args, ROOT)


if __name__ == "__main__":
    sys.exit(main())
