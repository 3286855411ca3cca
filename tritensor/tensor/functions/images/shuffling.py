"""Channels and pixels in other places: pixel_shuffle, its inverse, channel_shuffle."""

from __future__ import annotations

from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.ground.strides import is_channels_last
from tritensor.ops.table import ops
from tritensor.ops.table.shape_rules import one_integer
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.reshaping import forget_base
from tritensor.tensor.public_api.publish import function


def _check_image(name: str, x: Tensor, factor: int, what: str) -> tuple[tuple[int, ...], bool]:
    factor = one_integer(factor)
    if isinstance(factor, bool) or not isinstance(factor, int):
        raise TypeError(f"{name}: {what} is {factor!r}; give an integer")
    if x.ndim < 3:
        raise ShapeError(f"{name}: input {tuple(x.shape)} has {x.ndim} dimensions; give (..., channels, height, width)")
    if factor < 1:
        raise ArgumentError(f"{name}: {what} is {factor}; it must be at least 1")
    return tuple(x.shape), is_channels_last(x.array.shape, x.stride())


def _rearrange(x: Tensor, apart: tuple[int, ...], order: tuple[int, ...], shape: tuple[int, ...], last: bool) -> Tensor:
    """x with its dimensions taken apart, put in another order and joined to `shape`; channels last again where `last`."""
    y = ops.permute(ops.reshape(x.contiguous(), shape=apart), dims=order)
    # One copy in the final order: joining the dims after it is a view.
    y = forget_base(ops.reshape(ops.copy(y), shape=shape))
    return ops.permute(y, dims=(0, len(shape) - 1, *range(1, len(shape) - 1))) if last else y


@function(method=False)
def pixel_shuffle(x: Tensor, upscale_factor: int) -> Tensor:
    """(..., c r^2, h, w) -> (..., c, h r, w r): r^2 channels become the r x r pixels of one (Shi et al. 2016)."""
    shape, last = _check_image("pixel_shuffle", x, upscale_factor, "upscale_factor")
    r, (*lead, channels, h, w) = upscale_factor, shape
    if channels % (r * r):
        raise ShapeError(
            f"pixel_shuffle: input {shape}: its {channels} channels are no multiple of upscale_factor squared, {r * r}; give such a number"
        )
    c, k = channels // (r * r), len(lead)
    if last:
        x = ops.permute(x, dims=(0, 2, 3, 1))
        return _rearrange(x, (lead[0], h, w, c, r, r), (0, 1, 4, 2, 5, 3), (lead[0], h * r, w * r, c), True)
    # (c, r, r, h, w) -> (c, h, r, w, r): each pixel's factors beside it.
    order = (*range(k), k, k + 3, k + 1, k + 4, k + 2)
    return _rearrange(x, (*lead, c, r, r, h, w), order, (*lead, c, h * r, w * r), False)


@function(method=False)
def pixel_unshuffle(x: Tensor, downscale_factor: int) -> Tensor:
    """(..., c, h r, w r) -> (..., c r^2, h, w): pixel_shuffle undone."""
    shape, last = _check_image("pixel_unshuffle", x, downscale_factor, "downscale_factor")
    r, (*lead, c, height, width) = downscale_factor, shape
    if height % r or width % r:
        raise ShapeError(f"pixel_unshuffle: input {shape}: its height and width are no multiples of downscale_factor {r}")
    h, w, k = height // r, width // r, len(lead)
    if last:
        x = ops.permute(x, dims=(0, 2, 3, 1))
        return _rearrange(x, (lead[0], h, r, w, r, c), (0, 1, 3, 5, 2, 4), (lead[0], h, w, c * r * r), True)
    order = (*range(k), k, k + 2, k + 4, k + 1, k + 3)
    return _rearrange(x, (*lead, c, h, r, w, r), order, (*lead, c * r * r, h, w), False)


@function(method=False)
def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """(batch, c, ...) with its channels, seen as (groups, c / groups), in the order (c / groups, groups) (Zhang et al. 2018)."""
    shape, last = _check_image("channel_shuffle", x, groups, "groups")
    n, channels, *rest = shape
    if channels % groups:
        raise ShapeError(f"channel_shuffle: input {shape}: its {channels} channels are no multiple of groups {groups}")
    apart = (groups, channels // groups)
    if last:
        k = len(rest) + 1
        x = ops.permute(x, dims=(0, *range(2, k + 1), 1))
        return _rearrange(x, (n, *rest, *apart), (*range(k), k + 1, k), (n, *rest, channels), True)
    return _rearrange(x, (n, *apart, *rest), (0, 2, 1, *range(3, 3 + len(rest))), shape, False)


@function(method=False)
def native_channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """channel_shuffle under the name of PyTorch's operator."""
    return channel_shuffle(x, groups)
