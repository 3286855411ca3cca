"""One part of a tensor written: select_scatter and its like in a copy, fill_diagonal_ in place; narrow_copy, a part as a copy."""

from __future__ import annotations

from typing import Any

from tritensor.ground.errors import DeviceError, OutOfRangeError, ShapeError
from tritensor.ground.strides import is_dense, memory_extent, preserve_format
from tritensor.ground.transforms import WrappedArray
from tritensor.ops.array import element_strides
from tritensor.ops.table import normal_dim, ops
from tritensor.tensor.aliasing.basic_indexing import getitem
from tritensor.tensor.aliasing.inplace import overwrite
from tritensor.tensor.aliasing.overlaps import has_own_cells
from tritensor.tensor.aliasing.views import leave_base
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.pointwise.operators import fill_
from tritensor.tensor.functions.shaping.joining import narrow, select
from tritensor.tensor.functions.shaping.reshaping import diagonal
from tritensor.tensor.functions.shaping.strided import as_strided
from tritensor.tensor.functions.shaping.strided import storage_offset as offset_of
from tritensor.tensor.public_api.publish import function


def _copy_with_strides(x: Tensor) -> Tensor:
    """A copy of x with x's own strides, gaps included, which hold zeros; where elements share cells, one that is dense, as clone's."""
    array = x._array
    shape, strides = tuple(array.shape), element_strides(array)
    # Gaps can only be kept where there are some and the memory is the tensor's own.
    if type(array) is WrappedArray or is_dense(shape, strides) or not has_own_cells(array):
        return ops.copy(x, memory_format=preserve_format)
    low, high = memory_extent(shape, strides)
    memory = ops.full(shape=(high - low + 1,), value=0, dtype=array.dtype, device=x.device)
    return overwrite(ops.as_strided(memory, shape=shape, strides=strides, offset=-low), x, "clone")


def _write_part(name: str, out: Tensor, part: Tensor, src: Tensor) -> Tensor:
    """A copy after one of its views was written."""
    if tuple(src._array.shape) != tuple(part._array.shape):
        raise ShapeError(f"{name}: src {tuple(src._array.shape)} for a part of shape {tuple(part._array.shape)}; both must be the same")
    if src.device != out.device:
        raise DeviceError(f"{name}: x is on {out.device}, src on {src.device}; move it with .to({str(out.device)!r})")
    overwrite(part, src if src._array.dtype == out._array.dtype else ops.cast(src, dtype=out._array.dtype), name)
    if out._view_path is not None:  # nobody has the memory with the gaps but this window on it
        _ = out._node
        leave_base(out)
    return out


@function
def select_scatter(x: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of x in which src stands where x.select(dim, index) is."""
    out = _copy_with_strides(x)
    return _write_part("select_scatter", out, select(out, dim, index), src)


@function(out=True)
def slice_scatter(x: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """A copy of x in which src stands at start:end:step of a dimension."""
    d = normal_dim("slice_scatter", dim, len(x._array.shape))
    if not x._array.shape:
        raise IndexError("slice_scatter: x has no dimensions to slice")
    if step < 1:
        raise ShapeError(f"slice_scatter: step is {step}; it must be 1 or more")
    out = _copy_with_strides(x)
    return _write_part("slice_scatter", out, getitem(out, (*(slice(None),) * d, slice(start, end, step))), src)


@function
def diagonal_scatter(x: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of x in which src stands on a diagonal of two dimensions."""
    out = _copy_with_strides(x)
    return _write_part("diagonal_scatter", out, diagonal(out, offset, dim1, dim2), src)


@function
def as_strided_scatter(x: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A copy of x, of x's strides, in which src stands in the window x.as_strided(size, stride, storage_offset).

    Raises ShapeError for an x some of whose elements share cells, for a window that leaves its memory, and for one that reads an element twice.
    """
    if not has_own_cells(x._array):
        raise ShapeError(f"as_strided_scatter: elements of x with strides {element_strides(x._array)} share cells; take contiguous() first")
    out = _copy_with_strides(x)
    first = offset_of(out) + (0 if storage_offset is None else int(storage_offset) - offset_of(x))
    return _write_part("as_strided_scatter", out, as_strided(out, size, stride, first), src)


@function(out=True)
def narrow_copy(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Elements start to start + length - 1 of a dimension, as a copy."""
    if not -len(x._array.shape) <= dim < len(x._array.shape):
        raise OutOfRangeError(
            f"narrow_copy: dim {dim} is out of range for a {len(x._array.shape)}-dimensional tensor; give one of its dims"
        )
    return ops.copy(narrow(x, dim, start, length))


@function(free=False)
def fill_diagonal_(x: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Write one value on the main diagonal of a matrix, or of a tensor of more dimensions of one size; returns x.

    wrap: in a tall matrix (rows, n) the diagonal begins anew with each n + 1 rows.

    Raises ShapeError for a vector, and for more than two dimensions that are not of one size.
    """
    shape = tuple(x._array.shape)
    if len(shape) < 2:
        raise ShapeError(f"fill_diagonal_: input {shape} has {len(shape)} dimensions and no diagonal; give a matrix or more dimensions")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise ShapeError(f"fill_diagonal_: input {shape}: more than two dimensions must be of one size; take x.diagonal(...).fill_(value)")
    line = x
    # Each step takes the diagonal of the first two dims, until one is left.
    for _ in shape[1:]:
        line = diagonal(line, 0, 0, 1)
    fill_(line, fill_value)
    period = shape[1] + 1
    if wrap and len(shape) == 2 and shape[0] > period:
        whole = shape[0] // period
        if whole > 1:
            fill_(diagonal(x[period : whole * period].view(whole - 1, period, shape[1]), 0, 1, 2), fill_value)
        if shape[0] % period:
            fill_(diagonal(x[whole * period :], 0, 0, 1), fill_value)
    return x
