"""`warpzone doctor`: what is installed, and what to do about each problem."""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from importlib import metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING

from warpzone.cli import surroundings
from warpzone.cli.extras import EXTRAS, command
from warpzone.cli.surroundings import Check

if TYPE_CHECKING:
    from warpzone.rom import Rom

_EMITTER = "nothing to repair: emitted code is about as fast as compiled code"
_TRANSLATE = "it is made on first use, or now by `warpzone rom install --variant all`"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "doctor",
        help="check this installation and say what to do about each problem",
        description="Checks this installation; exit code 1 when something needed is missing.",
    )
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    parser.add_argument("--torch", action="store_true", help="import torch and ask it for GPUs")
    parser.add_argument(
        "--network",
        action="store_true",
        help="ask the package index for the ROM's wheel even if the ROM is installed",
    )


def run(args: argparse.Namespace) -> int:
    checks = list(examine(use_torch=args.torch, use_network=args.network))
    if args.json:
        print(json.dumps([asdict(check) for check in checks], indent=2))
    else:
        for check in checks:
            print(f"{check.status:8}{check.name:22}{check.detail}")
            if check.advice:
                print(f"{'':30}-> {check.advice}")
    return 1 if any(check.status == "problem" for check in checks) else 0


def examine(*, use_torch: bool = False, use_network: bool = False) -> Iterator[Check]:
    yield Check("python", "ok", f"{platform.python_version()} ({sys.executable})")
    yield surroundings.machine()
    if library := surroundings.c_library():
        yield library
    yield Check("threads", "ok", f"{_usable_cores()} usable of {os.cpu_count()} cores")
    engine = _engine()
    yield engine
    missing = True
    if engine.status == "ok":
        yield surroundings.cpu(_levels())
        roms = list(_roms())
        yield from roms
        missing = any(check.status == "problem" for check in roms)
    yield _compiler(engine.status == "ok")
    yield from surroundings.folders()
    yield surroundings.proxy()
    # Only the ROM is fetched from the network.
    if missing or use_network:
        yield surroundings.network()
    yield _ffmpeg()
    yield _display()
    yield _gpu()
    yield _torch(use_torch)
    yield from _extras()


def _levels() -> tuple[str, ...]:
    from warpzone import _engine

    return _engine.SIMD_LEVELS


def _usable_cores() -> int:
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _engine() -> Check:
    version = metadata.version("warpzone")
    try:
        from warpzone import _engine as engine
    except ImportError as error:
        advice = "build it: `make setup`, or `pip install .` in the source folder"
        return Check("engine", "problem", f"{version}, but it does not load ({error})", advice)
    detail = f"{version}, {engine.__file__}, SIMD: {', '.join(engine.SIMD_LEVELS)}"
    return Check("engine", "ok", detail)


def _roms() -> Iterator[Check]:
    from warpzone import rom

    try:
        images = [rom.locate()]
    except rom.RomError as error:
        yield Check("rom", "problem", str(error), "warpzone rom install")
        return
    for variant in rom.installed():
        try:
            image = rom.load_stored(variant)
        except rom.RomError as error:
            yield Check("rom", "problem", str(error))
            continue
        if image.sha256 != images[0].sha256:
            images.append(image)
    for image in images:
        yield Check("rom", "ok", f"{image.variant}, {image.path}")
        try:
            yield _translated(image)
        except ValueError as error:
            yield Check("translated", "problem", str(error), "unset WARPZONE_NATIVE")


def _translated(image: "Rom") -> Check:
    from warpzone.rom import native

    code, why = native.will_run(image.data)
    if code == "compiled":
        return Check("translated", "ok", f"{image.variant}, compiled: {why}")
    if code == "emitted":
        return Check("translated", "ok", f"{image.variant}, {why}")
    if code == "to compile":
        return Check("translated", "note", f"{image.variant}: {why}", _TRANSLATE)
    advice = "install gcc or clang" if native.enabled() else "unset WARPZONE_NATIVE"
    detail = f"{image.variant}: {why}; the interpreter is about 5 times slower"
    return Check("translated", "note", detail, advice)


def _compiler(engine_works: bool) -> Check:
    from warpzone.rom import compiler

    try:
        command = compiler.find()
        return Check("compiler", "ok", compiler.describe(command))
    except compiler.CompilerError as error:
        if engine_works:
            from warpzone.rom import native

            if native.emitter_refusal() is None:
                missing = isinstance(error, compiler.NoCompilerError)
                detail = "there is none, and the emitter is used" if missing else str(error)
                return Check("compiler", "note", detail, _EMITTER)
        detail = f"{error} Without it only the interpreter runs, about 5 times slower."
        return Check("compiler", "note", detail, "install gcc or clang")


def _ffmpeg() -> Check:
    try:
        from imageio_ffmpeg import get_ffmpeg_exe

        return Check("ffmpeg", "ok", str(get_ffmpeg_exe()))
    except (ImportError, RuntimeError) as error:
        return Check("ffmpeg", "note", f"no videos: {error}", "pip install imageio-ffmpeg")


def _display() -> Check:
    names = ("DISPLAY", "WAYLAND_DISPLAY")
    found = next((f"{name}={os.environ[name]}" for name in names if os.environ.get(name)), None)
    if found or sys.platform == "darwin":
        return Check("display", "ok", found or "macOS")
    advice = 'write a video with `--out file.mp4` or use render_mode="rgb_array"'
    return Check("display", "note", "none, so no windows", advice)


def _gpu() -> Check:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return Check("gpu", "note", "no NVIDIA GPU found", "the engine does not need one")
    command = [tool, "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command, found on the user's PATH
            command, capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Check("gpu", "note", f"nvidia-smi fails ({error})", "check the NVIDIA driver")
    return Check("gpu", "ok", "; ".join(done.stdout.strip().splitlines()))


def _torch(use: bool) -> Check:
    if find_spec("torch") is None:
        return Check("torch", "note", "not installed (training)", command(EXTRAS["torch"][1]))
    detail = metadata.version("torch")
    if use:
        import torch

        count = torch.cuda.device_count()
        detail += f", {count} CUDA device{'' if count == 1 else 's'}"
    return Check("torch", "ok", detail)


def _extras() -> Iterator[Check]:
    for module, (purpose, extra) in EXTRAS.items():
        if module == "torch":
            continue  # said above, with its version
        if find_spec(module) is None:
            yield Check(module, "note", f"not installed ({purpose})", command(extra))
        else:
            yield Check(module, "ok", purpose)
