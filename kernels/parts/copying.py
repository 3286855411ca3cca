"""Copies of arrays: into windows of any strides, into C order or another, cast on the way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tritensor.ground.errors import ShapeError
from tritensor.ground.strides import MemoryFormat, contiguous_format, strides_in_format
from tritensor.kernels.parts.allocation import allocate, allocate_result
from tritensor.kernels.parts.cpu.float_conversions import as_integers
from tritensor.kernels.parts.elementwise import run, unchanged
from tritensor.kernels.parts.float8 import BYTE, as_bytes, conversion, is_float8
from tritensor.ops.array import Array, CudaArray, is_contiguous
from tritensor.ops.array import lying as array_lying


def convert(source: CudaArray, target: CudaArray) -> None:
    """target[...] = source, cast to target's type."""
    formula, kind = unchanged, target.dtype
    # kernels see the bytes of float8, which not every GPU converts
    if is_float8(source.dtype) or is_float8(kind):
        formula = conversion(source.dtype, kind) or unchanged
        source, target, kind = as_bytes(source), as_bytes(target), BYTE if is_float8(kind) else kind
    run((formula,), ((0,),), (source,), (target,), kind)


def write(target: Array, source: Array) -> None:
    """target[...] = source, broadcast and cast: copies into an existing window of any strides, on either device.

    Overlapping windows of one memory are the caller's business (copy the source first).
    """
    if isinstance(target, CudaArray):
        assert isinstance(source, CudaArray)
        convert(source, target)
        return
    assert isinstance(source, np.ndarray)
    # numpy's casts of what an integer cannot hold differ by processor
    if target.dtype.kind in "iu" and source.dtype.kind in "fV":
        source = as_integers(source, target.dtype)
    np.copyto(target, source, casting="unsafe")


def contiguous(x: Array) -> Array:
    """x itself where it lies in C order, else a C-ordered copy."""
    if is_contiguous(x):
        return x
    return copied(x) if isinstance(x, CudaArray) else np.array(x, order="C")


def copied(x: CudaArray, *, memory_format: MemoryFormat = contiguous_format, out: CudaArray | None = None) -> CudaArray:
    """A copy on the same device, C-ordered or in another memory format."""
    if out is None:
        out = allocate(x.shape, x.dtype, x, strides_in_format(x.shape, x.strides, memory_format))
    convert(x, out)
    return out


def to_c_order(x: CudaArray) -> CudaArray:
    """x itself where it lies in C order, else a C-ordered copy; on a GPU."""
    return x if is_contiguous(x) else copied(x)


def reshape_or_copy(x: CudaArray, to: tuple[int, ...]) -> CudaArray:
    """x in another shape, a view where its strides allow one, else a copy."""
    try:
        return x.reshape(to)
    except ShapeError:
        return to_c_order(x).reshape(to)


def to_elementwise_layout(y: CudaArray, operands: Sequence[CudaArray]) -> CudaArray:
    """A C-ordered y itself where an elementwise result of `operands` lies so, else a copy that lies as that does."""
    if all([x.is_contiguous() for x in operands]):  # mostly: without asking how a result would lie
        return y
    out = allocate_result(operands, y.shape, y.dtype)
    return y if out.is_contiguous() else assigned(out, y)


def to_strides(y: Array, strides: tuple[int, ...]) -> Array:
    """y itself where it has these strides, in elements, or a copy that has; on either device. Without elements they say nothing."""
    if 0 in y.shape:
        return y
    # numpy's arrays have a shorter way to the same answer
    if not isinstance(y, CudaArray):
        return array_lying(y, strides)
    if all([n == 1 or have == step for n, have, step in zip(y.shape, y.strides, strides, strict=True)]):
        return y
    return assigned(allocate(y.shape, y.dtype, y, strides), y)


def assigned(target: CudaArray, source: CudaArray) -> CudaArray:
    """`target`, which is new memory, after write."""
    write(target, source)
    return target
