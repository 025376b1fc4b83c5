"""`warpzone rom`: install and verify the ROM, and say what is installed."""

import argparse
import sys
import time

from warpzone import rom

_EMITTED = (
    "translated without a compiler, by the emitter: in memory, in a moment, whenever it is loaded"
)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "rom",
        help="install and verify the ROM, and say what is installed",
        description=f"The ROM comes out of the wheel of {rom.WHEEL} or from a file of your own.",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    install = actions.add_parser("install", help="store the ROM and translate its program")
    install.add_argument(
        "--variant",
        choices=[*rom.KNOWN, "all", "gym"],
        help="eu: the ROM of gym-super-mario-bros (default); world: the canonical one; all: both; "
        "downsample, pixel, rectangle: the same game with other pictures; lost-levels, "
        "lost-levels-downsample: worlds 1 to 4 of The Lost Levels; gym: every ROM of "
        "gym-super-mario-bros",
    )
    install.add_argument(
        "--from", dest="source", metavar="FILE", help="a ROM of your own, or the wheel"
    )
    actions.add_parser("info", help="show what is installed")
    actions.add_parser("verify", help="check every installed ROM; exit code 1 when one is damaged")


def run(args: argparse.Namespace) -> int:
    if args.action == "install":
        return _install(args.variant, args.source)
    return _info() if args.action == "info" else _verify()


def _install(variant: str | None, source: str | None) -> int:
    sets: dict[str, list[str | None]] = {"all": [*rom.VARIANTS], "gym": ["eu", *rom.MODIFIED]}
    for name in sets.get(variant or "", [variant]):
        installed = rom.install(name, source)
        print(f"{installed.variant}: {installed.path}")
        _translate(installed)
    return 0


def _translate(installed: rom.Rom) -> None:
    from warpzone.rom import native

    if not native.emits() and native.cached(installed.data) is not None:
        return
    started = time.perf_counter()
    # Where nothing can be translated this warns; the ROM is installed either way.
    program = native.load(installed.data)
    seconds = time.perf_counter() - started
    if program is not None and program.how == "emitted":
        print(f"{installed.variant}: {_EMITTED}")
    elif program is not None:
        print(f"{installed.variant}: translated in {seconds:.1f} s")


def _info() -> int:
    from warpzone.rom import native

    chosen = rom.locate()
    shown = [chosen]
    for variant in rom.installed():
        if variant != chosen.variant:
            shown.append(rom.load_stored(variant))
    for image in shown:
        print(f"{image.variant}{' (used by default)' if image is chosen else ''}")
        print(f"  path       {image.path}")
        print(f"  sha256     {image.sha256}")
        code, why = native.will_run(image.data)
        print(f"  translated {f'no: {why}' if code in ('to compile', 'none') else why}")
    return 0


def _verify() -> int:
    # The ROM in use comes first: with none at all this is the error that names the command.
    chosen = rom.locate()
    print(f"{chosen.variant}: {chosen.path} is good")
    failures = 0
    for variant in rom.installed():
        try:
            image = rom.load_stored(variant)
        except rom.RomError as error:
            print(f"warpzone rom: {error}", file=sys.stderr)
            failures += 1
        else:
            if image.path != chosen.path:
                print(f"{image.variant}: {image.path} is good")
    return 1 if failures else 0
