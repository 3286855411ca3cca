"""Choice of the kernel that a convolution takes on a GPU."""

from __future__ import annotations

from typing import Any

from tritensor.ground.strides import ordered_strides
from tritensor.kernels.convolution.geometry import Geometry
from tritensor.kernels.convolution.gpu import channel_blocks, depthwise, gathered, weight_blocks
from tritensor.kernels.convolution.gpu.partial_sums import Gradients, image_like
from tritensor.kernels.convolution.gpu.pixel_indices import channels_innermost
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import convert
from tritensor.ops.array import CudaArray

BLOCK_OF_CHANNELS = 16  # channels of a group from which a tap's make a block that tensor cores multiply
PAYS = 1 << 18  # elements of an image from which a transposing copy costs less than gathering cells one by one


def _blocks_pay(x: CudaArray, channels: int) -> bool:
    """Whether blocks of `channels` of x are multiplied."""
    return channels >= BLOCK_OF_CHANNELS and (channels_innermost(x) or x.size >= PAYS)


def _to_channels_innermost(x: CudaArray) -> CudaArray:
    """x with its channels innermost: itself, or a transposing copy."""
    if channels_innermost(x):
        return x
    copy = allocate(x.shape, x.dtype, x, ordered_strides(x.shape, (0, *range(2, len(x.shape)), 1)))
    convert(x, copy)
    return copy


def channels_last(x: CudaArray, channels: int) -> CudaArray | None:
    """x with its channels innermost where blocks of `channels` are multiplied: itself, or a transposing copy where that pays, else None."""
    return _to_channels_innermost(x) if _blocks_pay(x, channels) else None


def operand_of_gradients(g: CudaArray, s: Geometry) -> CudaArray | None:
    """What both gradients read of g (N, O, *outs): it with its channels innermost, itself or one copy for the two; None where they take it as it is."""
    return None if depthwise.fits(s) else channels_last(g, s.out // s.groups)


def correlate(
    x: CudaArray, weight: CudaArray, bias: CudaArray | None, s: Geometry, transposed: bool, activation: Any = None, last: CudaArray | None = None
) -> CudaArray:  # fmt: skip
    """The convolution of x with weight (O, C / G, *kernel), or, transposed, the gradient that a g (given as x) sends to its input.

    activation: a jitted formula that each element goes through, its bias added, before it is rounded. last: x with its channels innermost, where
    there is one already.
    """
    y = image_like(x, weight, s.channels if transposed else s.out, s.size if transposed else s.outs)
    if y.size == 0:
        return y
    # one row of weights to a channel: tensor cores would multiply tiles that are nearly empty
    if depthwise.fits(s):
        return depthwise.correlate(x, weight, bias, s, transposed, y, activation)
    if last is None:
        last = channels_last(x, (s.out if transposed else s.channels) // s.groups)
    if last is not None:
        return channel_blocks.correlate(last, weight, bias, s, transposed, y, activation)
    return gathered.correlate(x, weight, bias, s, transposed, y, activation)


def weight_gradient(x: CudaArray, g: CudaArray, s: Geometry, bias: bool = False, last: CudaArray | None = None) -> Gradients:
    """The gradients to the weight and, where asked, to the bias; None for that where it is not summed on the way. last: g with its channels innermost,
    where there is one already."""
    if depthwise.fits(s) and g.size:
        return depthwise.weight_gradient(x, g, s, bias)
    if _blocks_pay(x, s.channels // s.groups) and _blocks_pay(g, s.out // s.groups) and g.size:
        return weight_blocks.weight_gradient(_to_channels_innermost(x), _to_channels_innermost(g) if last is None else last, s), None
    return gathered.weight_gradient(x, g, s, bias)
