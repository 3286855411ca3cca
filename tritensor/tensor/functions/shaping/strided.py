"""as_strided: a window of any shape, strides and offset on the memory that a tensor lives in."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from tritensor.autograd import engine
from tritensor.autograd.modes import enable_grad, state
from tritensor.autograd.node import Node, Severed, version_of
from tritensor.dispatch.level_nodes import unrecorded
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.ground.strides import MemoryFormat, memory_extent, memory_order
from tritensor.ground.thread_state import here
from tritensor.ground.transforms import WrappedArray
from tritensor.ops.array import as_strided as memory_window
from tritensor.ops.array import element_strides, first_address, is_contiguous, reshape_strides
from tritensor.ops.table import ops, registry
from tritensor.tensor.aliasing.overlaps import has_own_cells
from tritensor.tensor.aliasing.views import change_shape
from tritensor.tensor.core import Tensor, ensure_extra, new_tensor
from tritensor.tensor.functions.shaping.reshaping import parse_sizes, reshape_to
from tritensor.tensor.public_api.publish import function


class _Geometry(NamedTuple):
    """A window: element strides, and the offset of its first element."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    def ends(self) -> tuple[int, int]:
        """Offsets of the first and the last element in memory; of an empty window nothing lies between them."""
        if 0 in self.shape:
            return self.offset, self.offset - 1
        low, high = memory_extent(self.shape, self.strides)
        return self.offset + low, self.offset + high

    def within(self, other: _Geometry, shared: bool) -> bool:
        """Whether all of this window lies on another one, some of whose elements may be `shared`."""
        (low, high), (first, last) = self.ends(), other.ends()
        # A window without gaps is compared by its ends; any other element by element.
        if low > high or (not shared and first <= low and high <= last and last - first + 1 == math.prod(other.shape)):
            return True
        return bool(np.isin(self.places(), other.places()).all())

    def places(self) -> np.ndarray:
        """Offsets of all elements."""
        grid = np.zeros(self.shape, np.int64)
        for d, (n, s) in enumerate(zip(self.shape, self.strides, strict=True)):
            grid += (np.arange(n) * s).reshape((-1,) + (1,) * (len(self.shape) - 1 - d))
        return grid.reshape(-1) + self.offset


def _find_base(x: Tensor) -> Tensor:
    """The tensor that owns the memory of which x is a view; x itself where it is none."""
    # as_strided counts from the memory's start, which is the base's, not the view's.
    return x if x._view_path is None else x._view_path[0]


def _find_offset(x: Tensor) -> int:
    """Elements between the start of the memory and x's first element."""
    return (first_address(x._array) - first_address(_find_base(x)._array)) // x._array.itemsize


@function(free=False)
def storage_offset(x: Tensor) -> int:
    """Elements between the start of the memory that x is a view of and x's first element."""
    return _find_offset(x)


@function
def as_strided(x: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view of any shape and strides, in elements, on the whole memory of which x is a view.

    Args:
        storage_offset: the first element, counted from the start of that memory; x's own first element unless given.

    Memory begins where the tensor that x is a view of begins; detach() and data begin one of their own. The gradient is
    that of x alone: of an element read several times the sum, of memory outside x none. Raises ShapeError for a window
    that leaves the memory.
    """
    if here.noting is not None:
        here.noting.spoil("what it counts from is not told by how x lies")
    root = _find_base(x)
    array = root._array
    steps = element_strides(array)
    at = _find_offset(x)
    # PyTorch's default is x's own offset, not 0.
    first = at if storage_offset is None else int(storage_offset)
    window = _Geometry(parse_sizes("as_strided", (size,)), parse_sizes("as_strided", (stride,)), first)
    own = _Geometry(tuple(x._array.shape), element_strides(x._array), at)
    # The base as a vector in memory order: its view, so that writes reach the base's graph.
    order = sorted(range(len(array.shape)), key=lambda d: -steps[d])
    dense = ops.permute(root, dims=tuple(order)) if order != list(range(len(order))) else root
    flat = reshape_strides(dense._array.shape, element_strides(dense._array), (array.size,))
    if flat is None or (array.size > 1 and flat != (1,)):
        return _make_window_on_gaps(root, x, own, window)
    y: Tensor = ops.as_strided(ops.reshape(dense, shape=(array.size,)), shape=window.shape, strides=window.strides, offset=window.offset)
    if root is not x:
        # What forbids writing x forbids writing a window on it.
        if x._extra is not None and x._extra.origin:
            ensure_extra(y).origin = x._extra.origin
        if x._tracked and state.enabled:
            shared = not has_own_cells(x._array)
            if not window.within(own, shared):
                ensure_extra(y).origin = "window"
            y._set_node(WindowNode(x, own, window, shared))
        else:
            y._set_node(Severed() if x._tracked else None)
    return y


def _make_window_on_gaps(root: Tensor, x: Tensor, own: _Geometry, window: _Geometry) -> Tensor:
    """A window on memory that has gaps, or elements that share cells: a view with a gradient that cannot be written in the graph."""
    array = root._array
    memory = _Geometry(tuple(array.shape), element_strides(array), 0)
    (begin, end), ranks = memory.ends(), (len(window.shape), len(window.strides))
    # Below a transform, or before the first element, no plain window exists.
    if type(array) is WrappedArray or begin < 0 or ranks[0] != ranks[1]:
        raise ShapeError(
            f"as_strided: shape {window.shape} and strides {window.strides} of memory of shape {memory.shape} and strides {memory.strides}, which has "
            "gaps or repeats; take contiguous() first"
        )
    low, high = window.ends()
    if low < begin or high > end:
        raise ShapeError(
            f"as_strided: shape {window.shape}, strides {window.strides}, storage_offset {window.offset} read elements {low} to {high} of memory whose "
            f"last element is {end}; give smaller ones"
        )
    y = new_tensor(memory_window(array, *window))
    y._version_counter = version_of(root)
    step = (registry["as_strided"], window._asdict(), ((memory.shape, array.dtype),))
    y._record_view_of(root, step, state.enabled)
    ensure_extra(y).origin = ensure_extra(y).origin or "gaps"
    if x._tracked and state.enabled:
        y._set_node(WindowNode(x, own, window, not has_own_cells(x._array)))
    return y


@function
def as_strided_(x: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """as_strided, in place: the memory stays, this tensor's window on it changes."""
    return change_shape(x, as_strided, (size, stride, storage_offset), {}, "as_strided_")


@function(free=False)
def dim_order(x: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions from the outermost in memory to the innermost; those of which the strides do not say stay in their order.

    Args:
        ambiguity_check: True, or a list of memory formats: raise RuntimeError where a size is 1 or neighbouring strides are equal, unless the
            tensor lies in exactly one of the formats.
    """
    formats = ambiguity_check if isinstance(ambiguity_check, list) else []
    if not isinstance(ambiguity_check, bool | list) or not all(isinstance(f, MemoryFormat) for f in formats):
        raise TypeError(f"dim_order: ambiguity_check is {ambiguity_check!r}; give a bool or a list of memory formats")
    shape, strides = tuple(x._array.shape), element_strides(x._array)
    # A dim of size 1 may have any stride: its position cannot be read off.
    unclear = 1 in shape or any(a == b for a, b in itertools.pairwise(strides))
    if ambiguity_check is not False and unclear and sum(x.is_contiguous(f) for f in formats) != 1:
        raise ArgumentError(
            f"dim_order: the tensor {shape} with strides {strides} has more than one order of dimensions; leave ambiguity_check out, or give "
            "a list of memory formats of which it has one"
        )
    if is_contiguous(x._array):
        return tuple(range(len(shape)))
    return memory_order(shape, strides)


class _WindowOp:
    """What a WindowNode shows as its op."""

    name = "as_strided"
    view = True
    inputs = ("x",)
    outputs = ("y",)
    broadcasts = False


class WindowNode(Node):
    """A window on the memory of a view: the gradient of what the view and the window have in common."""

    __slots__ = ("level", "own", "shared", "window")

    def __init__(self, x: Tensor, own: _Geometry, window: _Geometry, shared: bool) -> None:
        super().__init__(_WindowOp, (engine.edge_of(x),), None, None, None, ((x._array.shape, x._array.dtype),))
        self.level = x._array.level if type(x._array) is WrappedArray else None
        self.own = own
        self.window = window
        self.shared = shared  # whether the view reads an element twice

    def pull(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        with unrecorded(self.level):
            return (self._gradient(new_tensor(g))._array,)

    def pull_tensors(self, g: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
        with enable_grad():
            return (self._gradient(g),)

    def _gradient(self, g: Tensor) -> Tensor:
        """The gradient summed up in the memory's own order, and read there by the view; shared evenly where it reads twice."""
        (low, high), (first, last) = self.own.ends(), self.window.ends()
        # One vector that covers both windows: gradients of elements outside x fall away when x reads it.
        low, high = min(low, first), max(high, last)
        summed = self._add_to_memory(g, self.window, low, high)
        found = _read_window(summed, self.own, low)
        if self.shared:
            one = ops.full(shape=self.own.shape, value=1, dtype=g._array.dtype, device=g.device)
            found = ops.div(found, _read_window(self._add_to_memory(one, self.own, low, high), self.own, low))
        return ops.copy(found)

    @staticmethod
    def _add_to_memory(values: Tensor, where: _Geometry, low: int, high: int) -> Tensor:
        """Memory from low to high with values added at a window."""
        n, count = high - low + 1, math.prod(where.shape)
        places = ops.arange(start=0, end=n, step=1, dtype=np.dtype(np.int64), device=values.device)
        zeros = ops.full(shape=(n,), value=0, dtype=values._array.dtype, device=values.device)
        return ops.scatter_add(zeros, reshape_to(_read_window(places, where, low), (count,)), reshape_to(values, (count,)), dim=0)


def _read_window(memory: Tensor, where: _Geometry, low: int) -> Tensor:
    return ops.as_strided(memory, shape=where.shape, strides=where.strides, offset=where.offset - low)
