"""How fast steps are without a compiler: emitted code, the interpreter and the portable drawing
code beside compiled code, with the workload of `warpzone bench engine`.

CPU seconds are counted, not those of the clock, and cases are interleaved: the shares hold on a
busy machine too. `python benchmarks/interpreter_share.py --out benchmarks/interpreter_share.json`
"""

import argparse
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median

from warpzone import _engine, rom
from warpzone.bench import machine
from warpzone.bench.rounds import Slice
from warpzone.bench.workload import Lanes, Setup, program, raw_frames
from warpzone.rom import native

Shares = dict[str, float]


def rate(work: Slice, seconds: float) -> float:
    """Steps or frames for each CPU second."""
    began = time.process_time()
    done = work(seconds)
    return done / (time.process_time() - began)


def shares(
    cases: Mapping[str, Slice], rounds: int, seconds: float
) -> tuple[dict[str, int], Shares]:
    """Medians of interleaved rounds, and of the ratios to `translated` within each."""
    found: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, work in cases.items():
            found[name].append(rate(work, seconds))
    best = found["translated"]
    return (
        {name: round(median(rates)) for name, rates in found.items()},
        {
            name: round(median(a / b for a, b in zip(rates, best, strict=True)), 3)
            for name, rates in found.items()
        },
    )


def emission_ms(image: bytes) -> float:
    """CPU time to emit the whole program."""
    times = []
    for _ in range(9):
        began = time.process_time()
        native.emit(image)
        times.append(1000 * (time.process_time() - began))
    return round(median(times), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each case and round")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    image = rom.find("eu")
    codes = {
        "translated": Setup(),
        "emitted": Setup(emitted=True),
        "interpreter": Setup(translated=False),
    }
    frames = {name: raw_frames(image, program(image, setup)) for name, setup in codes.items()}
    setups = {"translated": Setup()}
    for level in _engine.SIMD_LEVELS:
        for name, setup in codes.items():
            setups[f"{name}, {level}"] = replace(setup, simd=level)
    lanes = {name: Lanes(image, setup).start().steps for name, setup in setups.items()}
    frame_rates, frame_shares = shares(frames, args.rounds, args.seconds)
    step_rates, step_shares = shares(lanes, args.rounds, args.seconds)
    chosen = f"--rounds {args.rounds} --seconds {args.seconds}"
    result = {
        "command": f"benchmarks/interpreter_share.py {chosen}",
        "machine": machine.describe(),
        "emission_ms": emission_ms(image),
        "frames_per_cpu_second": frame_rates,
        "frames_share_of_translated": frame_shares,
        "steps_per_cpu_second": step_rates,
        "share_of_translated": step_shares,
    }
    print(json.dumps(result, indent=1))
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
