"""How observations are made, in plain NumPy: the definition, slow and exact."""

from math import gcd

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]


def axis_weights(source: int, output: int) -> NDArray[np.int64]:
    """[output, source] whole-number weights; every row has the sum source / gcd."""
    common = gcd(source, output)
    span, unit = source // common, output // common
    out = np.arange(output)[:, None]
    pixel = np.arange(source)[None, :]
    begin = np.maximum(out * span, pixel * unit)
    end = np.minimum((out + 1) * span, (pixel + 1) * unit)
    weights: NDArray[np.int64] = np.maximum(end - begin, 0)
    return weights


def resize_area(image: Image, height: int, width: int) -> Image:
    """The mean of the area under each output pixel, rounded half up."""
    rows = axis_weights(image.shape[0], height)
    columns = axis_weights(image.shape[1], width)
    total = int(rows[0].sum() * columns[0].sum())
    # Products of whole numbers this small are exact in double precision, and much faster.
    sums = (rows.astype(float) @ image.astype(float) @ columns.T.astype(float)).astype(np.int64)
    resized: Image = ((2 * sums + total) // (2 * total)).astype(np.uint8)
    return resized


def resize_nearest(image: Image, height: int, width: int) -> Image:
    """OpenCV's INTER_NEAREST, whose floating point now and then falls short of the quotient."""
    rows = (np.arange(height) * (1 / (height / image.shape[0]))).astype(int)
    columns = (np.arange(width) * (1 / (width / image.shape[1]))).astype(int)
    picked: Image = image[rows][:, columns]
    return picked


def to_gray(rgb: Image) -> Image:
    """OpenCV's 8-bit RGB2GRAY."""
    weights = np.array([9798, 19235, 3735])
    gray: Image = ((rgb.astype(np.int64) @ weights + 16384) >> 15).astype(np.uint8)
    return gray


def observe(
    screens: list[Image],
    height: int,
    width: int,
    *,
    gray: bool = True,
    crop: tuple[int, int, int, int] = (0, 0, 0, 0),
    mask_top: int = 0,
    resize: str = "area",
) -> Image:
    """The observation of one 240 x 256 RGB screen, or of the brighter pixels of several."""
    planes = [to_gray(s)[:, :, None] if gray else s for s in screens]
    image = np.max(planes, axis=0)
    image[:mask_top] = 0
    top, bottom, left, right = crop
    image = image[top : 240 - bottom, left : 256 - right]
    method = resize_area if resize == "area" else resize_nearest
    channels = [method(image[:, :, c], height, width) for c in range(image.shape[2])]
    return channels[0] if gray else np.stack(channels, axis=2)
