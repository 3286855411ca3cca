"""Elements that share cells: tensors that overlap themselves or one another, what is refused of them, and writes on which all agree."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from tritensor.ground.errors import ShapeError
from tritensor.ground.transforms import WrappedArray
from tritensor.ops.array import Array, element_strides, same_memory
from tritensor.ops.strided_array import MetaArray, StridedArray
from tritensor.ops.table import ops
from tritensor.tensor.aliasing.views import copy_into
from tritensor.tensor.core import Tensor, new_tensor

# What leaves the same in a cell, however many elements share it: functions that change nothing when they are applied again. PyTorch takes them
# of windows that overlap, and refuses them of expanded tensors.
_IDEMPOTENT = frozenset((
    "abs_", "absolute_", "ceil_", "clamp_", "clamp_max_", "clamp_min_", "clip_", "fix_", "floor_", "hardtanh_", "nan_to_num_", "relu6_", "relu_", "round_",
    "sgn_", "sign_", "trunc_",
))  # fmt: skip
# Writes of one value to some of the elements, which PyTorch takes of expanded tensors, too.
_ONE_VALUE = frozenset(("index_fill_", "masked_fill_"))


def has_own_cells(a: Array) -> bool:
    """Whether each element of an array has a cell of its own."""
    if type(a) is np.ndarray:
        # numpy's flag is free; the strides need a look-up.
        return a.flags.c_contiguous or _strides_apart(a.shape, element_strides(a))
    return _strides_apart(a.shape, a.strides)


@functools.lru_cache(4096)
def _strides_apart(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """has_own_cells of an array of that shape and those strides, in elements."""
    if 0 in shape:
        return True
    steps = sorted([(abs(stride), n) for n, stride in zip(shape, strides, strict=True) if n != 1])
    reach = 0  # of the elements along the dimensions with smaller strides
    for stride, n in steps:
        if stride <= reach:
            break
        reach += stride * (n - 1)
    else:
        return True
    # A dimension of stride 0 always repeats cells, no count needed.
    if steps[0][0] == 0:
        return False
    cells = np.zeros(1, np.int64)  # strides that interleave: count the cells
    for stride, n in steps:
        cells = (cells[:, None] + stride * np.arange(n)).reshape(-1)
    return np.unique(cells).size == cells.size


def refuse_overlap(x: Tensor, name: str) -> None:
    """Raise ShapeError where several elements of x share one cell, so that what a write leaves there would be a matter of order."""
    if not has_own_cells(x._array):
        raise ShapeError(
            f"{name}: the tensor of shape {x._array.shape} with strides {element_strides(x._array)} is expanded or overlaps itself, several "
            "elements share one cell; write to a clone() or contiguous() copy"
        )


def refuse_shared_out(out: Any, given: Any, name: str) -> None:
    """Raise ShapeError where `out` shares some of its elements with a tensor that is read: it would be overwritten as it is read.

    The same elements in the same order are no mistake. As in PyTorch only tensors without gaps are compared.
    """
    for o in out if isinstance(out, list | tuple) else (out,):
        for x in given:
            if isinstance(x, list | tuple):
                refuse_shared_out(o, x, name)
            elif isinstance(x, Tensor) and isinstance(o, Tensor) and x._array is not o._array and _overlap_in_part(o._array, x._array):
                raise ShapeError(
                    f"{name}: out {tuple(o._array.shape)} shares some of its memory with an input {tuple(x._array.shape)}, which would be "
                    "overwritten as it is read; give another out, or clone() the input"
                )


def _overlap_in_part(a: Array, b: Array) -> bool:
    """Whether two arrays without gaps have elements in common, but not all in the same order."""
    if type(a) is not type(b) or not same_memory(a, b):
        return False
    spans = []
    for x in (a, b):
        strides = element_strides(x)
        if min(strides, default=0) < 0 or sum([(n - 1) * k for n, k in zip(x.shape, strides, strict=True)]) + 1 != x.size:
            return False
        start = x.pointer if isinstance(x, StridedArray) else x.__array_interface__["data"][0]
        spans.append((start, start + x.size * x.dtype.itemsize, strides))
    (begin, end, order), (first, last, other) = spans
    return begin < last and first < end and not (begin == first and end == last and order == other)


def elements_agree(x: Tensor, name: str, given: Any, one_value: bool) -> bool:
    """Whether elements of x that share a cell get the same value: by a write that is called so, of one number, or of one value to some of them."""
    # What lies below may have other strides than the shape says.
    if type(x._array) is WrappedArray:
        return False
    # PyTorch takes single values and repeatable functions of windows that overlap, of expanded tensors only fills.
    single = given._array.size == 1 if isinstance(given, Tensor) else True
    return one_value or name in _ONE_VALUE or ((single or name in _IDEMPOTENT) and 0 not in element_strides(x._array))


def write_changed(x: Tensor, value: Tensor) -> None:
    """Write what differs from x's contents over them, where elements that share a cell agree on what to write."""
    if type(x._array) is MetaArray:
        return
    target = new_tensor(x._array)
    changed = ops.logical_and(ops.ne(value, target), ops.logical_or(ops.eq(value, value), ops.eq(target, target)))  # NaN is NaN
    for index in _disjoint_parts(x._array.shape, element_strides(x._array)):
        # Part by part: within one, no two elements share a cell.
        part = ops.index_view(target, index=index)
        copy_into(part._array, ops.where(ops.index_view(changed, index=index), ops.index_view(value, index=index), part)._array)


def _disjoint_parts(shape: tuple[int, ...], strides: tuple[int, ...]) -> Iterator[tuple[Any, ...]]:
    """Indices of parts that do not overlap themselves, all of the elements together: the smallest dimensions are walked until the rest lies apart."""
    rest = list(shape)
    walked: list[int] = []
    for d in sorted(range(len(shape)), key=shape.__getitem__):
        if _strides_apart(tuple(rest), strides):
            break
        if shape[d] > 1:
            rest[d] = 1
            walked.append(d)
    for place in np.ndindex(*[shape[d] for d in walked]):
        at = dict(zip(walked, place, strict=True))
        yield tuple([slice(at[d], at[d] + 1) if d in at else slice(None) for d in range(len(shape))])
