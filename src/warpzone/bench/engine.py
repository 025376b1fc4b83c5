"""`warpzone bench engine`: the cases, and the targets of their ratios."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from warpzone import _engine
from warpzone.bench import nespy, once
from warpzone.bench.rounds import Case, cpu_ratio, interleave, ratio
from warpzone.bench.workload import Lanes, Setup, has_gymnasium, raw_frames
from warpzone.rom import native

#: The configuration of published numbers.
MAIN = Setup()
#: Two skips of the same, so that the cost of a frame and of an observation can be told apart.
#: One observation without the stack's copies is what is asked for.
SHORT = Setup(frame_stack=1)
LONG = Setup(frame_stack=1, frame_skip=20)
RESET_LANES = 64


@dataclass(frozen=True)
class Plan:
    """What to measure and for how long."""

    seconds: float = 1.0
    rounds: int = 7
    lanes: tuple[int, ...] = (1, 16, 256)
    threads: tuple[int, ...] = (1, 2)
    translate: bool = False

    def __post_init__(self) -> None:
        if self.rounds < 5:
            raise ValueError(f"medians need at least 5 rounds, not {self.rounds}")
        if not self.seconds > 0:
            raise ValueError(f"a slice must last longer than {self.seconds} s")
        if min(self.lanes, default=0) < 1 or min(self.threads, default=0) < 1:
            raise ValueError("lanes and threads are lists of numbers from 1 up, such as 1,16")


def setups(plan: Plan, translated: bool) -> list[Setup]:
    """All vector configurations, without repetition."""
    wanted = [MAIN] if translated else []
    wanted.append(Setup(translated=False))
    if translated:
        wanted += [Setup(simd=level) for level in _engine.SIMD_LEVELS[1:]]
        wanted += [SHORT, LONG]
        wanted += [
            Setup(lanes=lanes, threads=threads)
            for lanes in plan.lanes
            for threads in plan.threads
            if threads <= lanes
        ]
    return list(dict.fromkeys(wanted))


def measure(rom: bytes, variant: str, plan: Plan, tell: Callable[[str], None]) -> dict[str, Any]:
    """One interleaved run over all cases; the result is ready for JSON."""
    program = native.load(rom)
    translated = program is not None
    vectors = {setup: Lanes(rom, setup).start() for setup in setups(plan, translated)}
    resets = Lanes(rom, Setup(lanes=RESET_LANES, translated=translated)).start()
    cases = [Case("raw interpreter", "frames/s", raw_frames(rom, None))]
    if translated:
        cases.append(Case("raw translated", "frames/s", raw_frames(rom, program)))
    for setup, lanes in vectors.items():
        cases.append(Case(_name(setup), "steps/s", lanes.steps, setup.about()))
    cases.append(Case("reset", "resets/s", resets.resets, resets.setup.about()))
    if nespy.available():
        cases.append(Case("raw nes-py", "frames/s", nespy.raw_frames(variant)))
        cases.append(Case("steps nes-py", "steps/s", nespy.wrapped_steps(variant)))
    interleave(cases, plan.rounds, plan.seconds, tell)
    for lanes in (*vectors.values(), resets):
        lanes.close()

    tell("construction, memory, translation, import")
    by_name = {case.name: case for case in cases}
    costs = {
        **once.construction(rom, plan.rounds),
        **once.import_time(plan.rounds),
        **once.translation_time(rom, plan.translate),
        "reset_us": 1e6 / median(by_name["reset"].rates),
        **_observation_cost(by_name),
    }
    return {
        "api": "MarioVectorEnv" if has_gymnasium() else "_engine.Vector",
        "rom": variant,
        "cases": [case.summary() for case in cases],
        "costs": costs,
        "checks": checks(by_name, costs),
    }


def checks(cases: dict[str, Case], costs: dict[str, Any]) -> list[dict[str, Any]]:
    """The speed targets that this run measures."""
    main = _name(MAIN)
    found: list[dict[str, Any]] = []

    def at_least(what: str, one: str, other: str, target: float, **more: float) -> None:
        if one in cases and other in cases:
            value = ratio(cases[one], cases[other])
            row = {"what": what, "value": value, "at_least": target, "ok": value >= target}
            found.append(row | more)

    def against_nes_py(what: str, one: str, other: str, target: float) -> None:
        """Both are one thread, so that they can also be compared on a machine that is in use."""
        if one in cases and other in cases:
            steady = cpu_ratio(cases[one], cases[other])
            at_least(f"{what} / nes-py", one, other, target, per_cpu_second=steady)

    def below(what: str, key: str, target: float) -> None:
        value = costs.get(key)
        if value is not None:
            found.append({"what": what, "value": value, "below": target, "ok": value < target})

    against_nes_py("steps, translated", main, "steps nes-py", 300)
    against_nes_py("steps, interpreter", _name(Setup(translated=False)), "steps nes-py", 90)
    against_nes_py("steps, avx2", _name(Setup(simd="avx2")), "steps nes-py", 220)
    against_nes_py("raw frames, translated", "raw translated", "raw nes-py", 500)
    one = {case.about["lanes"]: name for name, case in cases.items() if _threads(case) == 1}
    for name, case in cases.items():
        threads = _threads(case)
        if threads in (2, 16) and case.about["lanes"] >= 16 and case.about["lanes"] in one:
            target = 1.9 if threads == 2 else 13
            what = f"{threads} threads / 1, {case.about['lanes']} lanes"
            at_least(what, name, one[case.about["lanes"]], target)
    below("draw and observation, in frames", "observation_frames", 5)
    below("reset of a lane, us", "reset_us", 50)
    below("construction of 1,024 lanes, s", "construction_s", 2)
    below("memory of 1,024 lanes, MiB", "memory_mib", 64)
    below("translation, s", "translation_s", 60)
    below("import, s", "import_s", 0.5)
    return found


def _observation_cost(cases: dict[str, Case]) -> dict[str, Any]:
    """From two frame skips: what a frame costs, and what everything else of a step costs."""
    short, long = _name(SHORT), _name(LONG)
    if short not in cases or long not in cases:
        return {}
    frames, rests = [], []
    for fast, slow in zip(cases[short].rates, cases[long].rates, strict=True):
        frame = (1e6 / slow - 1e6 / fast) / (LONG.frame_skip - SHORT.frame_skip)
        frames.append(frame)
        rests.append(1e6 / fast - SHORT.frame_skip * frame)
    rest, frame = median(rests), median(frames)
    return {"frame_us": frame, "observation_us": rest, "observation_frames": rest / frame}


def _threads(case: Case) -> int:
    """Threads of a case that differs from the main one in lanes and threads only."""
    plain = case.about.get("simd") == "auto" and case.about.get("code") == "translated"
    usual = (case.about.get("frame_skip"), case.about.get("frame_stack")) == (4, 4)
    return int(case.about["threads"]) if plain and usual and case.unit == "steps/s" else 0


def _name(setup: Setup) -> str:
    parts = ["steps", setup.code]
    parts.append(f"{setup.lanes}x{setup.threads}")
    if setup.simd != "auto":
        parts.append(setup.simd)
    if setup.frame_skip != MAIN.frame_skip:
        parts.append(f"skip {setup.frame_skip}")
    if setup.frame_stack != MAIN.frame_stack:
        parts.append(f"stack {setup.frame_stack}")
    return " ".join(parts)
