"""Layouts: the same values under other strides, in poisoned memory, on any device; and reading back what was touched."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.device import device
from tritensor.ground.strides import ordered_strides
from tritensor.ops.array import Array, contiguous_strides, element_strides, from_host
from tritensor.ops.strided_array import StridedArray

# as is; reversed axes in memory; the first axis innermost (for images: channels last); every second element of a poisoned buffer;
# negative steps; stride 0 along the first axis
STRIDED = ("plain", "transposed", "rotated", "sliced", "reversed", "broadcast")
# other values: no elements, no dimensions (only where inputs broadcast: elsewhere an op's own samples hold them)
SHAPED = ("empty", "zerodim")


class Placed(NamedTuple):
    """An array on a device and the flat buffer around it, kept to see whether anything was written."""

    array: Array
    base: Array
    before: np.ndarray  # the buffer's bytes when it was made


def poison(dtype: np.dtype) -> Any:
    """A value that spoils any result it enters: NaN, or a large odd integer."""
    kind = dtypes.of(dtype).kind
    if kind in ("float", "float8", "complex"):
        return np.array(np.nan).astype(dtype)
    return np.array(True) if kind == "bool" else np.array(np.iinfo(dtype).max, dtype)


def _plan(shape: tuple[int, ...], layout: str) -> tuple[int, tuple[int, ...], int]:
    """Length of the buffer, strides in elements and offset that lay out `shape`."""
    dense = contiguous_strides(shape)
    size = math.prod(shape)
    if layout == "transposed":
        return size, tuple(reversed(contiguous_strides(tuple(reversed(shape))))), 0
    if layout == "rotated":
        order = (0, *range(2, len(shape)), 1) if len(shape) > 3 else (*range(1, len(shape)), 0) if shape else ()
        return size, ordered_strides(shape, order), 0
    if layout == "sliced":
        outer = tuple(2 * n + 1 for n in shape)  # a margin on both sides of every axis, all of it poison
        strides = contiguous_strides(outer)
        return max(math.prod(outer), 3), tuple(2 * s for s in strides), sum(strides) or 1
    if layout == "reversed":
        return size, tuple(-s for s in dense), max(size - 1, 0)
    if layout == "broadcast" and shape and shape[0] > 1:
        return size // shape[0], (0, *dense[1:]), 0
    return size, dense, 0


def place(x: np.ndarray, layout: str, on: device) -> Placed:
    """`x` in a layout on a device. In layout "broadcast" the first slice stands for all of them."""
    return lay_out(x, on, *_plan(x.shape, layout))


def lay_out(x: np.ndarray, on: device, length: int, strides: tuple[int, ...], offset: int) -> Placed:
    """`x` on a device under given strides, `offset` elements from the start of a poisoned buffer of `length`."""
    buffer = np.full(length, poison(x.dtype), x.dtype)
    window = np.lib.stride_tricks.as_strided(buffer[offset:], x.shape, tuple(s * x.itemsize for s in strides))
    if x.size:
        if strides and strides[0] == 0 and x.shape[0] > 1:
            window[0] = x[0]  # the last slice would win otherwise
        else:
            window[...] = x
    if on.type == "cpu":
        return Placed(window, buffer, buffer.view(np.uint8).copy())
    base = from_host(buffer, on)
    assert isinstance(base, StridedArray)
    return Placed(base.as_strided(x.shape, strides, offset), base, buffer.view(np.uint8).copy())


def find_gaps(p: Placed) -> np.ndarray:
    """Which bytes of a buffer belong to no element of its array."""
    gaps, x = np.ones(p.base.shape, np.bool_), p.array
    start = x.offset - p.base.offset if isinstance(x, StridedArray) else (x.ctypes.data - p.base.ctypes.data) // x.itemsize  # type: ignore[union-attr]
    if x.size:
        np.lib.stride_tricks.as_strided(gaps[start:], x.shape, element_strides(x))[...] = False  # bools are one byte: elements are bytes
    return np.repeat(gaps, x.itemsize)


def broadcasts(x: np.ndarray) -> bool:
    """True where layout "broadcast" would change anything."""
    return x.ndim > 0 and x.shape[0] > 1


def reshape_inputs(inputs: tuple[Any, ...], layout: str) -> tuple[Any, ...] | None:
    """Inputs of a broadcasting op with no elements, or with no dimensions; None where that is not possible."""
    arrays = [x for x in inputs if isinstance(x, np.ndarray)]
    if not arrays or any(x.size == 0 for x in arrays):
        return None
    if layout == "zerodim":
        if all(x.ndim == 0 for x in arrays):
            return None
        return tuple(np.array(x.flat[0]) if isinstance(x, np.ndarray) else x for x in inputs)
    if not any(x.ndim and x.shape[-1] > 1 for x in arrays):
        return None
    return tuple(x[..., :0] if isinstance(x, np.ndarray) and x.ndim and x.shape[-1] > 1 else x for x in inputs)
