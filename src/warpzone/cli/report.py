"""`warpzone report`: one HTML file about runs, to look at and to share."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from warpzone.rom.waiting import loading


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "report",
        help="one self-contained HTML file about one or more runs",
        description="Learning curves, stages, heat maps, videos, throughput and configuration of "
        "one or more runs, beside published results, in one file that needs no network. An "
        "evaluation of more stages is shown if it is in the run: "
        "`warpzone eval RUN --stages all --json RUN/eval.json`. The folder of a sweep or a "
        "population has a report of its own.",
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a folder, a name, or `latest`")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="an .html (default: the run's name.html; several runs: report.html)",
    )
    parser.add_argument(
        "--embed-mb",
        type=float,
        default=8.0,
        help="videos inside the file, in MB; others are links",
    )
    parser.add_argument("--no-maps", action="store_true", help="leave out the maps")
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"), help="where runs are")
    parser.add_argument(
        "--rom", help="eu, world, lost-levels or a file (default: the installed one)"
    )


def run(args: argparse.Namespace) -> int:
    from warpzone.report.data import read_run, told_apart
    from warpzone.report.page import make_page, make_search_page
    from warpzone.report.search import is_search, search_sections
    from warpzone.run.reader import named_run

    folders = [
        args.runs_dir / word if is_search(args.runs_dir / word) else named_run(word, args.runs_dir)
        for word in args.runs
    ]
    if args.out is None:
        name = folders[0].resolve().name if len(folders) == 1 else "report"
        args.out = Path(f"{name}.html")
    if args.out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"{args.out.name}: a report is an .html")
    if not args.out.parent.is_dir():
        raise FileNotFoundError(f"the folder {args.out.parent} does not exist")
    if args.embed_mb < 0:
        raise ValueError(f"--embed-mb must not be negative, and is {args.embed_mb}")
    if any(map(is_search, folders)):
        if len(folders) > 1:
            raise ValueError("a sweep or a population is reported alone; give one folder")
        return _write(make_search_page(*search_sections(folders[0])), args.out)
    runs = told_apart([read_run(folder) for folder in folders])
    image, program = None, None
    if not args.no_maps:
        from warpzone import rom
        from warpzone.rom import native

        try:
            image = rom.locate(args.rom).data
            program = native.load(image)
        except rom.RomError as error:
            print(f"warpzone report: no maps: {error}", file=sys.stderr)
    with loading(f"drawing {args.out}"):
        text = make_page(
            runs, args.out, rom=image, native=program, embed=int(args.embed_mb * 1_000_000)
        )
    return _write(text, args.out)


def _write(text: str, path: Path) -> int:
    from warpzone.run.files import write_text

    write_text(path, text)
    print(f"{len(text) / 1e6:.1f} MB in {path}")
    return 0
