"""`warpzone export`: an agent as a file for other programs."""

from __future__ import annotations

import argparse
from pathlib import Path

from warpzone.cli.acting import AGENT, NETWORK


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "export",
        help="write an agent as ONNX or as an exported program of PyTorch",
        description="Writes the network of an agent to a file that other programs run: pictures "
        "in, logits and value out, memory as named inputs and outputs. The file also says which "
        "actions, pictures and stages it is for. It is compared with the network before it is "
        "written, and replaces a file of that name.",
    )
    parser.add_argument("agent", help=AGENT)
    parser.add_argument("--onnx", type=Path, metavar="FILE", help="an ONNX file")
    parser.add_argument(
        "--torch", type=Path, metavar="FILE", help="a program for torch.export.load (.pt2)"
    )
    parser.add_argument("--network", metavar="MODULE:CLASS", help=NETWORK)
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"), help="where runs are")


def run(args: argparse.Namespace) -> int:
    from warpzone.cli.acting import named
    from warpzone.rom.waiting import loading

    wanted = [file for file in (args.onnx, args.torch) if file is not None]
    if not wanted:
        raise ValueError("say what to write: --onnx FILE, --torch FILE, or both")
    if args.onnx == args.torch:
        raise ValueError("--onnx and --torch cannot be the same file")
    for file in wanted:
        if file.is_dir():
            raise ValueError(f"{file} is a folder; give a file's name")
        if not file.parent.is_dir():
            raise FileNotFoundError(f"the folder {file.parent} does not exist")
    found = named(args)
    from warpzone.share.exporting import write_onnx, write_torch

    for file, write in ((args.onnx, write_onnx), (args.torch, write_torch)):
        if file is not None:
            with loading(f"writing {file}"):
                difference = write(found, file)
            size = file.stat().st_size / 2**20
            print(f"{file}: {size:.1f} MiB, logits differ by at most {difference:.1e}")
    return 0
