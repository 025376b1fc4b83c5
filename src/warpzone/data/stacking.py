"""Frame stacks gathered on the device from frames that were stored once.

Channel `stack - 1` is the newest frame. Channel `stack - 1 - k` is the frame k steps earlier, or
the episode's first frame where the episode is younger than that, so a stack never looks across a
reset.
"""

import torch
from torch import Tensor

#: Integers that whole pictures may consist of, the widest first.
WIDER = (torch.int64, torch.int32, torch.int16)


def wide(pictures: Tensor) -> Tensor:
    """The same memory, [..., H, W] as [..., n]: n integers as wide as the size of a picture allows.
    Copying them one by one is then nearly as fast as memory."""
    flat = pictures.flatten(-2)
    for dtype in WIDER:
        if flat.shape[-1] % dtype.itemsize == 0:
            return flat.view(dtype)
    return flat


def stack_frames(frames: Tensor, age: Tensor, steps: Tensor, lanes: Tensor) -> Tensor:
    """The observations of the given (step, lane) pairs: uint8 [N, stack, H, W].

    frames: [T + stack, B, H, W]; age: [T + 1, B]; steps and lanes: int64 [N].
    """
    stack = frames.shape[0] - age.shape[0] + 1
    back = torch.arange(stack - 1, -1, -1, device=frames.device)
    rows = steps[:, None] + (stack - 1) - torch.minimum(back, age[steps, lanes][:, None])
    flat = rows * frames.shape[1] + lanes[:, None]
    # One index per picture: index_select copies whole pictures, which is what makes this cheap.
    pictures = frames.flatten(0, 1).index_select(0, flat.flatten())
    return pictures.view(steps.shape[0], stack, *frames.shape[2:])


def stack_sequence(frames: Tensor, age: Tensor) -> Tensor:
    """Every observation of a rollout, the one after the last step included.

    Returns uint8 [T + 1, B, stack, H, W].
    """
    length, lanes = age.shape
    pairs = torch.arange(length * lanes, device=frames.device)
    flat = stack_frames(frames, age, pairs // lanes, pairs % lanes)
    return flat.view(length, lanes, *flat.shape[1:])
