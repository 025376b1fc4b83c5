"""Weights without a configuration: the network is worked out from the shapes of its tensors."""

from __future__ import annotations

import re
from collections.abc import Mapping

from torch import Tensor

from warpzone.config import ConfigError, TrainConfig
from warpzone.env.actions import action_table
from warpzone.model.spec import DEFAULT_CHANNELS, MEMORIES, ModelSpec

#: Common sizes of pictures, the usual ones first; several lead to the same shapes.
SIZES = (84, 42, 96, 64, 48, 128, 36, 56, 72, 112, *range(27, 241))
MOST_GRAY = 8
ACTION_SETS = ("simple", "complex", "right", "extended")


def guess_config(tensors: Mapping[str, Tensor]) -> TrainConfig:
    """The configuration that weights fit to: network, picture size and action set. Settings that
    shapes do not show (frame skip, status bar) use their defaults."""
    shapes = {name: tuple(value.shape) for name, value in tensors.items()}
    encoder = "nature" if "encoder.convolutions.0.weight" in shapes else "impala"
    plain = "encoder.convolutions." if encoder == "nature" else "encoder.stages."
    # Those of residual blocks have longer names. A file may hold its tensors in any order.
    numbered = {
        int(found[1]): shape
        for name, shape in shapes.items()
        if (found := re.fullmatch(re.escape(plain) + r"(\d+)\.weight", name))
    }
    convolutions = [numbered[number] for number in sorted(numbered)]
    try:
        planes = convolutions[0][1]
        features, flat = shapes["encoder.linear.weight"]
        count = shapes["heads.policy.weight"][0]
    except (KeyError, ValueError, IndexError):
        raise ConfigError("the weights are not those of an agent of this program") from None
    # No stack of gray frames is that deep.
    color = planes > MOST_GRAY and planes % 3 == 0
    channels = tuple(shape[0] for shape in convolutions)
    usual = DEFAULT_CHANNELS[encoder]
    width = channels[0] / usual[0]
    given = ""
    if channels != tuple(max(1, round(count * width)) for count in usual):
        width, given = 1.0, ",".join(map(str, channels))
    blocks = sum(name.startswith("encoder.stages.") for name in shapes if "first.weight" in name)
    known = {
        "encoder": encoder,
        "encoder_width": width,
        "encoder_channels": given,
        "hidden_size": max(1, round(features / width)),
        "frame_stack": planes // 3 if color else planes,
        "color": color,
        "impala_blocks": blocks // len(channels) if encoder == "impala" else 2,
        "previous_action": "previous.weight" in shapes,
        "noisy": "heads.policy.weight_sigma" in shapes,
        "actions": _actions(count),
    }
    return _fitting(known, flat, shapes)


def _fitting(
    known: dict[str, object], flat: int, shapes: Mapping[str, tuple[int, ...]]
) -> TrainConfig:
    """Tries memories and picture sizes until every tensor has its place."""
    from warpzone.model.shapes import fits
    from warpzone.model.spec import model_spec

    remembering = any(name.startswith("memory.") for name in shapes)
    memories = MEMORIES[1:] if remembering else MEMORIES[:1]
    for memory in memories:
        for size in SIZES:
            config = TrainConfig(size=size, memory=memory, **known)  # type: ignore[arg-type]
            try:
                spec = model_spec(config, len(action_table(config.actions).masks))
            except ValueError:
                continue
            # Pictures of 48 and of 64 leave as many features, by other convolutions.
            if _flat(spec) == flat and fits(spec, shapes):
                return config
    raise ConfigError("the network of these weights cannot be told from their shapes")


def _flat(spec: ModelSpec) -> int:
    height, width = spec.picture_after
    return spec.scaled_channels[-1] * height * width


def _actions(count: int) -> str:
    for name in ACTION_SETS:
        if len(action_table(name).masks) == count:
            return name
    raise ConfigError(f"no action set has the {count} actions of these weights")
