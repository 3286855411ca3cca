"""Other sizes for a tensor and the memory that it lies in with its views: resize_, and out= of another shape."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np

from tritensor.ground.strides import contiguous_strides, memory_extent
from tritensor.ops.array import Array, as_strided, device_of, element_strides, empty, first_address, is_contiguous
from tritensor.ops.lazy_array import compute_now, leave_before_change, run_before_write
from tritensor.ops.strided_array import StridedArray
from tritensor.ops.table import registry
from tritensor.tensor.aliasing.views import copy_into, find_views, leave_base
from tritensor.tensor.core import Tensor, ensure_extra

_UNSHARED_REFERENCES = 3  # references to a counter of writes that nobody shares: its tensor's, this file's, and the counting's


def needs_own_memory(x: Tensor, count: int) -> bool:
    """Whether so many elements want new memory that no other tensor has to be led to: x lies alone in what it has, which is less."""
    version, extra = x._version_counter, x._extra
    return (
        x._array.size < count and x._view_path is None
        and (version is None or sys.getrefcount(version) <= _UNSHARED_REFERENCES)
        and (extra is None or (extra.memory is None and extra.views is None))
    )  # fmt: skip


def resize_memory(x: Tensor, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    """Let x show another shape, with strides in elements, of its memory, from its first element on. The caller counts the write.

    Where the memory ends before that, longer memory with the same contents takes its place for all tensors that lie in it (numpy arrays, and what
    `.data` gave, stay). Memory begins and ends where the tensor does that x is a view of, or did before it was made smaller.
    """
    root = x if x._view_path is None else x._view_path[0]
    compute_now(root, *find_views(root), x)
    leave_before_change(x)
    run_before_write(x._array)
    memory = _find_memory(root)
    # Of a view with another type, or of reversed memory, no vector of x's elements exists to take a window of.
    if memory is None or x._array.dtype != root._array.dtype:
        _move_to_own_memory(x, shape, strides)
        return
    first = (first_address(x._array) - first_address(memory)) // memory.itemsize if x._array.size else 0
    end = first + int(memory_extent(shape, strides)[1]) + 1 if 0 not in shape else first
    # Other tensors look at this memory: they all have to move to the longer one.
    if end > memory.size:
        longer = empty((end,), memory.dtype, device_of(memory))
        copy_into(as_strided(longer, (memory.size,), (1,)), memory)
        _move_tensors(root, memory, longer)
        memory = longer
    x._set_array(as_strided(memory, shape, strides, first) if 0 not in shape else empty(shape, memory.dtype, device_of(memory)))
    low, high = _span(root._array)
    # Remembered so that growing again within the same memory keeps what lies behind, as PyTorch's storage does.
    if high - low != memory.nbytes:
        ensure_extra(root).memory = memory
    elif root._extra is not None:
        root._extra.memory = None
    for view in find_views(root) if x is root else [x]:
        _record_path(root, view)


def _move_to_own_memory(x: Tensor, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    """x in memory of its own, which begins with its elements in order: of a tensor in reverse order, or of another type than what it is a view of."""
    old = x._array
    leave_base(x)
    count = int(memory_extent(shape, strides)[1]) + 1 if 0 not in shape else 0
    memory = empty((max(count, old.size),), old.dtype, device_of(old))
    copy_into(as_strided(memory, old.shape, contiguous_strides(old.shape)), old)
    x._set_array(as_strided(memory, shape, strides))


def _span(a: Array) -> tuple[int, int]:
    """Addresses of the first byte that an array reaches, and behind the last."""
    at = first_address(a)
    if a.size == 0:
        return at, at
    low, high = memory_extent(a.shape, element_strides(a))
    return at + int(low) * a.itemsize, at + (int(high) + 1) * a.itemsize


def _lies_in(a: Any, memory: Array) -> bool:
    if type(a) is not type(memory) or not a.size or (isinstance(a, StridedArray) and a.storage is not memory.storage):  # type: ignore[union-attr]
        return False
    (low, high), (first, last) = _span(a), _span(memory)
    return first <= low and high <= last


def _find_memory(root: Tensor) -> Array | None:
    """The memory of a tensor that is no view, as a vector of its elements; None where it may not be written, or is read backwards."""
    a, known = root._array, root._extra.memory if root._extra is not None else None
    if known is not None and known.dtype == a.dtype and (_lies_in(a, known) or not a.size):
        return known
    low, high = memory_extent(a.shape, element_strides(a)) if a.size else (0, -1)
    if low < 0 or (type(a) is np.ndarray and not a.flags.writeable):
        return None
    return as_strided(a, (int(high) + 1,), (1,)) if a.size else empty((0,), a.dtype, device_of(a))


def _move_tensors(root: Tensor, memory: Array, longer: Array) -> None:
    """Let all tensors that lie in a memory lie in the longer one that has its contents."""
    version = root._version_counter
    # Counting references is cheap, the walk over all objects is not.
    if version is None or sys.getrefcount(version) <= _UNSHARED_REFERENCES:
        return  # no view and no detached tensor shares it
    for t in (*find_views(root), *gc.get_objects()):
        if issubclass(type(t), Tensor):
            a = getattr(t, "_array", None)  # of a tensor that another thread is making there is none
            if _lies_in(a, memory):
                t._set_array(_same_window(a, memory, longer))


def _same_window(a: Any, memory: Array, longer: Array) -> Array:
    at = first_address(a) - first_address(memory)
    if isinstance(longer, StridedArray):
        return type(longer)(longer.storage, a.shape, a.dtype, a.strides, (at + longer.offset * longer.itemsize) // a.itemsize)
    return np.ndarray(a.shape, a.dtype, longer.view(np.uint8), at, a.strides)  # type: ignore[call-overload, no-any-return]


def _record_path(root: Tensor, view: Tensor) -> None:
    """Note the way from a base to a view, of which one has another shape now: a window on the base's elements, if all of it lies on them."""
    if view is root:
        return
    extra, base = ensure_extra(view), root._array
    # A write through such a view could not be expressed as a window on the base: it is refused instead.
    if not (view._array.dtype == base.dtype and is_contiguous(base) and (_lies_in(view._array, base))):
        extra.origin = extra.origin or "resized"
        return
    if extra.origin == "resized":
        extra.origin = ""
    window = {
        "shape": tuple(view._array.shape), "strides": element_strides(view._array),
        "offset": (first_address(view._array) - first_address(base)) // base.itemsize,
    }  # fmt: skip
    flatten = registry["reshape"], {"shape": (base.size,)}, ((base.shape, base.dtype),)
    view._view_path = (root, flatten, (registry["as_strided"], window, (((base.size,), base.dtype),)))
