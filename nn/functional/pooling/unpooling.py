"""Max unpooling: every maximum at the position it came from, zeros elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import DTypeError, ShapeError
from tritensor.ground.strides import channels_last, is_channels_last
from tritensor.nn.functional.window_arguments import Sizes, lacks_batch, to_axes, to_strides
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import checked


def _unpooled_size(
    name: str, input: Tensor, axes: int, kernel: Any, stride: Any, padding: Any, wanted: Sequence[int] | None
) -> tuple[int, ...]:
    """The size of what was pooled: as small as it can be, or `wanted`, which must be less than a step away from that."""
    usual = tuple((n - 1) * s + k - 2 * p for n, k, s, p in zip(input.shape[-axes:], kernel, stride, padding, strict=True))
    if wanted is None:
        return usual
    given = tuple(wanted)
    if not all(isinstance(n, int | np.integer) for n in given):
        raise TypeError(f"{name}: output_size is {wanted!r}; give a tuple of ints")
    if len(given) == axes + 2:
        given = given[2:]
    if len(given) != axes:
        raise ValueError(f"{name}: output_size {tuple(wanted)} has {len(wanted)} sizes; give {axes}, or {axes + 2} with batch and channels")
    for d, (n, least, s) in enumerate(zip(given, usual, stride, strict=True)):
        if not least - s < n < least + s:
            raise ValueError(f"{name}: invalid output_size {given}: its size {d} is {n}, and must be between {least - s} and {least + s}")
    return given


def _unpool(name: str, axes: int, input: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any) -> Tensor:
    lacks_batch(name, input, axes)  # refuses other dimensions; with a batch or without, what follows is the same
    if indices.dtype != dtypes.int64:
        raise DTypeError(f"{name}: indices are {indices.dtype.name}; give int64, as max_pool{axes}d(return_indices=True) returns them")
    if indices.shape != input.shape:
        raise ShapeError(f"{name}: indices {tuple(indices.shape)}, input {tuple(input.shape)}: there must be one for each element")
    if 0 in input.shape[1:]:
        raise ShapeError(f"{name}: input {tuple(input.shape)} has a size of 0, which only its first dimension may have")
    kernel = to_axes(name, "kernel_size", kernel_size, axes)
    strides = to_strides(name, stride, kernel)
    if min(strides) < 1:
        raise ShapeError(f"{name}: stride {strides} is not positive; give 1 or more")
    size = _unpooled_size(name, input, axes, kernel, strides, to_axes(name, "padding", padding, axes), output_size)
    if min(size) < 1:
        raise ShapeError(f"{name}: input {tuple(input.shape)} would come out as {size}; give less padding, or an output_size")
    lead, places = tuple(input.shape[:-axes]), math.prod(input.shape[-axes:])
    zeros = ops.full(shape=(*lead, math.prod(size)), value=0, dtype=input.dtype.numpy, device=input.device)
    flat = ops.scatter(zeros, indices.reshape(*lead, places), input.reshape(*lead, places), dim=len(lead), called=name)
    y = flat.reshape(*lead, *size)
    if axes == 2 and is_channels_last(tuple(input.shape), input.stride()):
        y = y.contiguous(memory_format=channels_last)
    return y  # type: ignore[no-any-return]


@checked
def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """Maxima back to the places that max_pool1d noted in `indices`, zeros elsewhere: (batch, c, w) -> (batch, c, w'), w' = (w - 1) stride + kernel_size
    - 2 padding unless output_size says otherwise. Raises ValueError for an output_size a step or more away from that."""
    return _unpool("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


@checked
def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """Maxima back to the places that max_pool2d noted in `indices`, zeros elsewhere: (batch, c, h, w) -> (batch, c, h', w'), as max_unpool1d."""
    return _unpool("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


@checked
def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """Maxima back to the places that max_pool3d noted in `indices`, zeros elsewhere: (batch, c, d, h, w) -> (batch, c, d', h', w'), as max_unpool1d."""
    return _unpool("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)
