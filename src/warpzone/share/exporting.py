"""An agent as a file for other programs: ONNX, and PyTorch's own exported programs."""

from __future__ import annotations

import importlib
import io
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpzone.eval.weights import Found
from warpzone.run.files import write_atomically
from warpzone.share.playing import NEW, Playing
from warpzone.share.properties import how_to_play, properties

#: The name of the properties inside an exported program.
NOTES = "warpzone.json"
#: Logits of the file and of the network may differ by this share of the largest of them, and by
#: this where all are small: other libraries sum in another order.
TOLERANCE = 1e-4
#: Steps and lanes of noise that a file is compared on before it is written.
CHECK_STEPS, CHECK_LANES = 4, 3


def write_onnx(found: Found, path: Path) -> float:
    """Writes an ONNX file that was compared with the network; the largest difference of logits.
    OSError if they disagree; nothing is written then."""
    onnx = importlib.import_module("onnx")
    runtime = importlib.import_module("onnxruntime")
    importlib.import_module("onnxscript")
    playing = Playing(found.agent.cpu()).eval()
    with _quiet(), _explained():
        made = torch.onnx.export(
            _program(playing),
            input_names=list(playing.inputs),
            output_names=list(playing.outputs),
            dynamo=True,
            verbose=False,
        )
        model: Any = made.model_proto  # type: ignore[union-attr]
    _name_batch(model)
    model.doc_string = how_to_play(playing)
    model.producer_name = "warpzone"
    onnx.helper.set_model_props(model, properties(found, playing))
    onnx.checker.check_model(model, full_check=True)
    content = model.SerializeToString()
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])

    def run(given: dict[str, Tensor]) -> list[Tensor]:
        outputs = session.run(None, {name: value.numpy() for name, value in given.items()})
        return [torch.from_numpy(np.asarray(output)) for output in outputs]

    return _write(path, content, playing, run)


def write_torch(found: Found, path: Path) -> float:
    """Writes a program that `torch.export.load` reads; the largest difference of logits."""
    playing = Playing(found.agent.cpu()).eval()
    file = io.BytesIO()
    with _quiet(), _explained():
        notes = {NOTES: json.dumps(properties(found, playing), indent=1)}
        torch.export.save(_program(playing), file, extra_files=notes)
        file.seek(0)
        loaded = torch.export.load(file).module()

    def run(given: dict[str, Tensor]) -> list[Tensor]:
        return list(loaded(*given.values()))

    return _write(path, file.getvalue(), playing, run)


def _program(playing: Playing) -> torch.export.ExportedProgram:
    """The network as a graph, for any number of lanes."""
    lanes = torch.export.Dim("batch", min=1)
    # Two lanes: for one PyTorch would write down that there is only one.
    given = tuple(playing.first(2).values())
    with torch.no_grad():
        return torch.export.export(
            playing, given, dynamic_shapes=(tuple({0: lanes} for _ in given),)
        )


def _name_batch(model: Any) -> None:
    """Gives the free dimension a name that people understand."""
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    # Shapes in between have the exporter's own names; they are worked out again where needed.
    del model.graph.value_info[:]


def _write(path: Path, content: bytes, playing: Playing, run: Any) -> float:
    difference, largest = _compare(playing, run)
    if not difference <= TOLERANCE * max(1.0, largest):
        raise OSError(
            f"{path} was not written: its logits differ from the network's by {difference:.1e}"
        )
    write_atomically(path, lambda temporary: _put(temporary, content))
    return difference


def _put(path: Path, content: bytes) -> None:
    path.write_bytes(content)


@torch.no_grad()
def _compare(playing: Playing, run: Any) -> tuple[float, float]:
    """Plays noise; the largest difference of logits, and the largest of them."""
    random = torch.Generator().manual_seed(0)
    given = playing.first(CHECK_LANES)
    difference = largest = 0.0
    for _ in range(CHECK_STEPS):
        given["obs"] = torch.randint(
            0, 256, given["obs"].shape, generator=random, dtype=torch.uint8
        )
        wanted = dict(zip(playing.outputs, playing(*given.values()), strict=True))
        got = dict(zip(playing.outputs, run(given), strict=True))
        # NaN differs from everything; max() would lose it.
        gap = (got["logits"] - wanted["logits"]).abs().max()
        difference = float(torch.maximum(gap, torch.tensor(difference)))
        largest = max(largest, float(wanted["logits"].abs().max()))
        for name in playing.state:
            given[name] = wanted[NEW + name]
        if playing.sees_previous:
            given["previous_action"] = wanted["logits"].argmax(-1)
        if playing.sees_starts:
            given["starts"] = torch.arange(CHECK_LANES) == 1
    return difference, largest


@contextmanager
def _explained() -> Iterator[None]:
    """A network of the user's own may do what graphs cannot: one sentence instead of pages."""
    try:
        yield
    except RuntimeError as error:
        # PyTorch's own summary is general; what caused it names the operation.
        reason: BaseException = error
        while reason.__cause__ is not None:
            reason = reason.__cause__
        lines = str(reason).strip().splitlines() or [type(reason).__name__]
        raise OSError(f"the network cannot be exported: {lines[0]}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Exporters talk about themselves: packages that they do without, names that they deprecate."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "onnxscript")]
    before = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
