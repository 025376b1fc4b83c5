"""How fast steps are without a compiler: the interpreter and the portable drawing code beside
translated code, with the workload of `warpzone bench engine`.

CPU seconds are counted, not those of the clock, and cases are interleaved: the shares hold on a
busy machine too. `python benchmarks/interpreter_share.py --out benchmarks/interpreter_share.json`
"""

import argparse
import json
import time
from pathlib import Path
from statistics import median

from warpzone import _engine, rom
from warpzone.bench import machine
from warpzone.bench.workload import Lanes, Setup


def rate(lanes: Lanes, seconds: float) -> float:
    """Steps of all lanes for each CPU second."""
    began = time.process_time()
    steps = lanes.steps(seconds)
    return steps / (time.process_time() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each case and round")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    image = rom.find("eu")
    setups = {"translated": Setup()}
    for level in _engine.SIMD_LEVELS:
        setups[f"interpreter, {level}"] = Setup(translated=False, simd=level)
        setups[f"translated, {level}"] = Setup(simd=level)
    cases = {name: Lanes(image, setup).start() for name, setup in setups.items()}
    rounds: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(args.rounds):
        for name, lanes in cases.items():
            rounds[name].append(rate(lanes, args.seconds))
    best = rounds["translated"]
    result = {
        "command": f"interpreter_share.py --rounds {args.rounds} --seconds {args.seconds}",
        "machine": machine.describe(),
        "steps_per_cpu_second": {name: round(median(found)) for name, found in rounds.items()},
        "share_of_translated": {
            name: round(median(a / b for a, b in zip(found, best, strict=True)), 3)
            for name, found in rounds.items()
        },
    }
    print(json.dumps(result, indent=1))
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
