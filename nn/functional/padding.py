"""Padding: a constant, a reflection, the edge repeated, or the other side."""

from __future__ import annotations

from collections.abc import Sequence

from tritensor.ground.errors import ArgumentError, ShapeError, UnknownModeError, UnsupportedShapeError
from tritensor.nn.functional.window_arguments import copy_channels_last
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.images import Sides, constant_pad_nd, crop, parse_padding
from tritensor.tensor.functions.shaping.reshaping import forget_base
from tritensor.tensor.public_api.publish import checked


@checked
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Surround with more: pad is (left, right) of the last dimension, then of the one before it, and so on; negative cuts off.

    Args:
        mode: "constant" fills with `value` (0). The others pad the last one, two or three dimensions of (channels, ...) or (batch, channels, ...):
            "reflect" mirrors at the edge element (fewer than the dimension has), "replicate" repeats it, "circular" goes on at the other side.

    Raises:
        ShapeError: sizes that do not fit. UnknownModeError: an unknown mode. ArgumentError: a value for one that takes none.
    """
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise UnknownModeError(f"pad: mode {mode!r} is not known; give 'constant', 'reflect', 'replicate' or 'circular'")
    sides = parse_padding("pad", input, pad)
    lead = input.ndim - len(pad) // 2  # dimensions in front of those that are padded
    if mode == "constant":
        return constant_pad_nd(input, pad, 0 if value is None else value)
    for n, (before, after) in zip(input.shape, sides, strict=True):
        if n + before + after < 0:
            raise ShapeError(f"pad: {tuple(pad)} takes more off input {tuple(input.shape)} than there is")
    if value:
        raise ArgumentError(f"pad: mode {mode!r} takes no value, {value} was given; leave it out, or pad by constant")
    if len(pad) not in (2, 4, 6) or lead not in (1, 2):
        raise UnsupportedShapeError(
            f"pad: {tuple(pad)} for input {tuple(input.shape)} in mode {mode!r}: it pads the last 1, 2 or 3 dimensions behind (channels,) or "
            "(batch, channels)"
        )
    return _pad_edges(input, sides[lead:], mode, lead == 1)


def _pad_edges(input: Tensor, sides: Sides, mode: str, single: bool) -> Tensor:
    """Padding by what the input holds. PyTorch keeps the layout of batches and of what looks like one, and of circular padding not even that."""
    for n, (before, after), dim in zip(input.shape[-len(sides) :], sides, range(-len(sides), 0), strict=True):
        _check_sides(input, mode, n, before, after, dim + input.ndim)
    x = input
    if mode == "circular":  # cut first: what is cut off is not shown at the other side
        x = crop(input, [(0, 0)] * (input.ndim - len(sides)) + list(sides))
        sides = [(max(before, 0), max(after, 0)) for before, after in sides]  # what was negative has been cut already
        if 0 in x.shape[-len(sides) :]:
            if any(before or after for before, after in sides):
                raise ShapeError(f"pad: {sides} wrapped: cutting leaves {tuple(x.shape)}, nothing to wrap")
            return x.clone()  # as every padding: no view of the input
    x = x.contiguous() if single or mode == "circular" else x
    y = ops.edge_pad(x.unsqueeze(0) if single else x, sides=tuple(sides), mode=mode)
    if single:
        y = forget_base(y.squeeze(0))
        return y if mode == "circular" else copy_channels_last(input, y)  # a volume without a batch counts as a batch of images
    return y


def _check_sides(x: Tensor, mode: str, n: int, before: int, after: int, dim: int) -> None:
    done = {"reflect": "reflected", "replicate": "repeated", "circular": "wrapped"}[mode]
    given = f"pad: {before} and {after} {done} at dim {dim} of {tuple(x.shape)}"
    if n + before + after < 1 and mode != "circular":
        raise ShapeError(f"{given}: nothing would be left")
    if n == 0 and max(before, after) > 0:
        raise ShapeError(f"{given}: there must be an element to show")
    if mode == "reflect" and max(before, after) >= n:
        raise ShapeError(f"{given}: each must be less than its size {n}")
    if mode == "circular" and max(before, after) > n:
        raise ShapeError(f"{given}: neither may be more than its size {n}")
