"""First convolutions: uint8 frames in, computed in a layout that suits the hardware.

Few input channels leave most of a tensor core idle. Both layers here are the plain convolution with
the same weights, written so that more channels meet each weight.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

#: Applied to the weights, not to the pixels, of which there are more.
SCALE = 1.0 / 255.0
#: Integers as wide as a row of a patch, by its pixels.
WIDE = {2: torch.int16, 4: torch.int32, 8: torch.int64}
#: Channels of an input, in bfloat16, that tensor cores take in one go.
ALIGNED = 8


def working_dtype(x: Tensor) -> torch.dtype:
    """What autocast computes convolutions in; float32 without it. uint8 is exact in bfloat16."""
    if torch.is_autocast_enabled(x.device.type):
        return torch.get_autocast_dtype(x.device.type)
    return torch.float32


def pixels_of(frames: Tensor) -> Tensor:
    """0..255 in the working type, channels last: convolutions follow the layout of their input,
    and this one trains faster, on CPUs too."""
    if frames.is_cuda:
        return frames.to(working_dtype(frames), memory_format=torch.channels_last)
    # Bytes are interleaved first, and then converted in the order they lie in: on a CPU three times
    # as fast as both at once.
    return torch.stack(frames.unbind(1), -1).to(working_dtype(frames)).permute(0, 3, 1, 2)


class PatchConvolution(nn.Conv2d):
    """A convolution of uint8 frames / 255 whose kernel is a multiple of its stride, no padding.

    On CUDA the pixels of a stride x stride patch become channels, so a kernel of 8 and a stride of
    4 over 4 frames is a kernel of 2 and a stride of 1 over 64 channels. On an H200 that doubles the
    speed of the whole nature encoder; on a CPU it is a little slower.
    """

    def __init__(self, before: int, after: int, kernel: int, stride: int) -> None:
        if kernel % stride:
            raise ValueError(f"a kernel of {kernel} does not divide into patches of {stride}")
        super().__init__(before, after, kernel, stride)
        self.patch = stride
        self.patches = kernel // stride

    def forward(self, frames: Tensor) -> Tensor:
        if frames.is_cuda:
            return self.by_patches(frames)
        return F.conv2d(pixels_of(frames), self.weight * SCALE, self.bias, self.stride)

    def by_patches(self, frames: Tensor) -> Tensor:
        """The same convolution, patches as channels."""
        patch, patches = self.patch, self.patches
        batch, channels, height, width = frames.shape
        # Pixels beyond the last whole patch are beyond the last place of the kernel, too.
        rows, columns = height // patch, width // patch
        pixels = frames[:, :, : rows * patch, : columns * patch].contiguous()
        # A patch's row of pixels moves as one integer, not pixel by pixel.
        pixels = pixels.view(WIDE.get(patch, torch.uint8))
        pixels = pixels.view(batch, channels, rows, patch, columns, -1)
        # [N, rows, columns, channels * patch * patch] in memory, which is channels last.
        pixels = pixels.permute(0, 2, 4, 1, 3, 5).contiguous().view(torch.uint8)
        pixels = pixels.view(batch, rows, columns, -1).to(working_dtype(frames))
        pixels = pixels.permute(0, 3, 1, 2)
        weight = self.weight.view(-1, channels, patches, patch, patches, patch)
        weight = weight.permute(0, 1, 3, 5, 2, 4).reshape(weight.shape[0], -1, patches, patches)
        return F.conv2d(pixels, weight * SCALE, self.bias)


class FrameConvolution(nn.Conv2d):
    """A 3x3 convolution of uint8 frames / 255 that keeps their size.

    On CUDA the frames are padded with empty ones, which doubles the speed of the whole impala
    encoder in inference.
    """

    def __init__(self, before: int, after: int) -> None:
        super().__init__(before, after, 3, padding=1)

    def forward(self, frames: Tensor) -> Tensor:
        if frames.is_cuda:
            return self.padded(frames)
        return F.conv2d(pixels_of(frames), self.weight * SCALE, self.bias, padding=1)

    def padded(self, frames: Tensor) -> Tensor:
        """The same convolution, with empty frames that nothing comes from."""
        empty = (0, 0, 0, 0, 0, -frames.shape[1] % ALIGNED)
        pixels = pixels_of(F.pad(frames, empty))
        return F.conv2d(pixels, F.pad(self.weight, empty) * SCALE, self.bias, padding=1)
