"""The first convolutions in the forms made for CUDA against the plain ones."""

import pytest
import torch
from torch import Tensor, nn

from warpzone.model.stem import FrameConvolution, PatchConvolution, pixels_of, working_dtype


def frames(size: tuple[int, int]) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (3, 2, *size), generator=generator, dtype=torch.uint8)


def assert_same(layer: nn.Conv2d, ours: Tensor, x: Tensor) -> None:
    """Values and gradients are those of the library's layer on frames / 255."""
    plain = nn.functional.conv2d(x / 255.0, layer.weight, layer.bias, layer.stride, layer.padding)
    torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-5)
    parameters = list(layer.parameters())
    probe = torch.randn_like(plain)
    for one, other in zip(
        torch.autograd.grad((ours * probe).sum(), parameters),
        torch.autograd.grad((plain * probe).sum(), parameters),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [(36, 36), (41, 38), (11, 8)])
def test_patches(size: tuple[int, int]) -> None:
    torch.manual_seed(0)
    layer = PatchConvolution(2, 5, kernel=8, stride=4)
    assert_same(layer, layer(frames(size)), frames(size))
    assert_same(layer, layer.by_patches(frames(size)), frames(size))


@pytest.mark.parametrize("stride", [1, 2, 3, 8])
def test_patches_of_other_sizes(stride: int) -> None:
    torch.manual_seed(0)
    layer = PatchConvolution(2, 5, kernel=2 * stride, stride=stride)
    assert_same(layer, layer.by_patches(frames((27, 29))), frames((27, 29)))


def test_padded_frames() -> None:
    torch.manual_seed(0)
    layer = FrameConvolution(2, 5)
    assert_same(layer, layer(frames((12, 9))), frames((12, 9)))
    assert_same(layer, layer.padded(frames((12, 9))), frames((12, 9)))


def test_a_kernel_that_is_no_whole_number_of_patches_is_refused() -> None:
    with pytest.raises(ValueError, match="kernel of 7 does not divide into patches of 4"):
        PatchConvolution(2, 5, kernel=7, stride=4)


def test_the_working_type_is_autocasts() -> None:
    assert working_dtype(torch.zeros(1)) == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert working_dtype(torch.zeros(1)) == torch.bfloat16


def test_pixels_are_the_frames_channels_last() -> None:
    pixels = pixels_of(frames((7, 9)))
    assert torch.equal(pixels, frames((7, 9)).float())
    assert pixels.is_contiguous(memory_format=torch.channels_last)
