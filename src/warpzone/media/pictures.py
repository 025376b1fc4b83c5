"""Screens as pictures: enlarged, side by side, as a file, as text."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import ceil, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]
#: Rows of the block that RAM is shown as.
RAM_ROWS = 32


def enlarge(image: Image, factor: int) -> Image:
    """Every pixel becomes `factor` x `factor`."""
    if factor < 1:
        raise ValueError(f"the scale must be at least 1, and is {factor}")
    return image if factor == 1 else image.repeat(factor, axis=0).repeat(factor, axis=1)


def mosaic(screens: Sequence[Image], columns: int | None = None, gap: int = 2) -> Image:
    """All screens in one picture, row by row; at least as wide as high, full rows if possible."""
    if not screens:
        raise ValueError("a mosaic needs at least one screen")
    if len(screens) == 1:
        return screens[0]
    columns = columns or _columns(len(screens))
    rows = ceil(len(screens) / columns)
    height, width, depth = screens[0].shape
    canvas = np.zeros(
        (rows * (height + gap) - gap, columns * (width + gap) - gap, depth), dtype=np.uint8
    )
    for index, screen in enumerate(screens):
        top = index // columns * (height + gap)
        left = index % columns * (width + gap)
        canvas[top : top + height, left : left + width] = screen
    return canvas


def _columns(count: int) -> int:
    square = ceil(sqrt(count))
    return next((c for c in range(square, 2 * square) if count % c == 0), square)


def shrink(image: Image, factor: int) -> Image:
    """The mean of every `factor` x `factor` block; a remainder at the edge is cut off."""
    height, width = image.shape[0] // factor, image.shape[1] // factor
    blocks = image[: height * factor, : width * factor].reshape(height, factor, width, factor, -1)
    means: NDArray[np.float64] = blocks.mean(axis=(1, 3))
    return means.round().astype(np.uint8)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields a temporary name beside `path`; renames it to `path` if the body succeeds, removes
    it if not."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist")
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def save_png(image: Image, path: Path, colors: int | None = None) -> None:
    """Writes a PNG; with `colors` as an indexed one, which is much smaller."""
    from PIL import Image as Pillow

    picture = Pillow.fromarray(image)
    if colors is not None:
        picture = picture.quantize(colors, dither=Pillow.Dither.NONE)
    with replacing(path) as temporary:
        picture.save(temporary, format="PNG", optimize=True)


def half_blocks(image: Image, columns: int, lines: int) -> str:
    """The picture as text: two pixels in each character, in 24-bit colour."""
    height, width = image.shape[:2]
    scale = max(width / columns, height / (2 * lines), 1.0)
    rows = (np.arange(int(height / scale) // 2 * 2) * scale).astype(int)
    picked = image[rows][:, (np.arange(int(width / scale)) * scale).astype(int)]
    text = []
    for upper, lower in zip(picked[::2].tolist(), picked[1::2].tolist(), strict=True):
        line, last = [], None
        for pair in zip(upper, lower, strict=True):
            if pair != last:
                (r, g, b), (s, h, c) = pair
                line.append(f"\x1b[38;2;{r};{g};{b}m\x1b[48;2;{s};{h};{c}m")
                last = pair
            line.append("\N{UPPER HALF BLOCK}")
        text.append("".join(line) + "\x1b[0m")
    return "\r\n".join(text)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def ram_block(rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Rows of RAM, `[..., 1, 2048]`, as blocks of 32 x 64 bytes that can be looked at."""
    return rows.reshape(*rows.shape[:-2], RAM_ROWS, -1)
