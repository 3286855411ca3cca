"""A tensor that takes other memory or another shape in place: resize_, resize_as_, set_."""

from __future__ import annotations

import math
from typing import Any

from tritensor.autograd.modes import state
from tritensor.autograd.node import version_of
from tritensor.autograd.saved import copy_for_borrowers
from tritensor.ground.call_site import warn
from tritensor.ground.errors import ArgumentError, DTypeError, GradError, ShapeError, TransformError
from tritensor.ground.strides import as_format, contiguous_format, contiguous_strides, preserve_format, strides_in_format
from tritensor.ground.transforms import WrappedArray
from tritensor.ops.array import element_strides, empty
from tritensor.ops.lazy_array import leave_before_change, run_before_write
from tritensor.tensor.aliasing.resizing import resize_memory
from tritensor.tensor.aliasing.views import find_views, leave_base
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.derivatives import refuse_derivative
from tritensor.tensor.functions.shaping.reshaping import parse_sizes as shape_of
from tritensor.tensor.public_api.publish import function


def _refuse_graph(name: str, x: Tensor) -> None:
    if x._tracked:
        raise GradError(f"{name}: the tensor requires grad, and the graph would not see its new memory; use it on x.detach()")


def _resize(name: str, x: Tensor, shape: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
    if type(x._array) is WrappedArray:
        raise TransformError(f"{name}: inside vmap, grad or jvp a tensor has no memory of its own; use reshape, an index or cat")
    copy_for_borrowers(x)
    resize_memory(x, shape, strides)
    version_of(x).bump_loosely(name)
    return x


@function(free=False)
def resize_(x: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Give x another shape, in place: its elements in the order of memory, new ones behind them without a value where it grows.

    Where x grows beyond its memory, longer memory takes its place for all tensors that lie in it (numpy arrays, and what `.data` gave, keep the old).

    Raises GradError for a tensor that requires grad, ShapeError for a negative size, TransformError inside vmap, grad and jvp.
    """
    _refuse_graph("resize_", x)
    shape = shape_of("resize_", size) if size else ()
    if min(shape, default=0) < 0:
        raise ShapeError(f"resize_: shape {shape} has a negative size")
    wanted = as_format("resize_", memory_format, contiguous_format)
    if wanted is preserve_format:
        raise ArgumentError("resize_: preserve_format says nothing of a new shape; give contiguous_format or channels_last")
    # PyTorch leaves memory, strides and version as they are.
    if shape == tuple(x._array.shape) and wanted is contiguous_format:
        return x
    return _resize("resize_", x, shape, strides_in_format(shape, contiguous_strides(shape), wanted))


@function
def resize_as_(x: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """x.resize_(the_template.shape), laid out as the template where memory_format is preserve_format."""
    wanted = as_format("resize_as_", memory_format, contiguous_format)
    shape = tuple(the_template._array.shape)
    if wanted is not preserve_format:
        return resize_(x, shape, memory_format=wanted)
    _refuse_graph("resize_as_", x)
    return _resize("resize_as_", x, shape, strides_in_format(shape, element_strides(the_template._array), preserve_format))


def _reshape_deprecated(name: str, x: Tensor, shape: tuple[int, ...]) -> Tensor:
    warn(f"{name}: the form that is not in place is deprecated, as in PyTorch; use reshape or resize_")
    if math.prod(shape) != x._array.size:
        raise ShapeError(f"{name}: size {shape} has {math.prod(shape)} elements, the tensor {tuple(x.shape)} {x._array.size}; use resize_")
    return x.reshape(shape)


@function(free=False)
def resize(x: Tensor, *sizes: Any) -> Tensor:
    """The tensor in another shape of as many elements: reshape under an older name. Raises ShapeError for another number of elements."""
    return _reshape_deprecated("resize", x, shape_of("resize", sizes))


@function(free=False)
def resize_as(x: Tensor, tensor: Tensor) -> Tensor:
    """The tensor in another one's shape: x.reshape(tensor.shape) under an older name."""
    return _reshape_deprecated("resize_as", x, tuple(tensor.shape))


def _has_no_views(x: Tensor) -> bool:
    """Whether x was computed, or is in no graph, and neither is a view nor has any, whose way through the graph would be another's."""
    return (x._node is not None or not x._tracked) and x._view_path is None and not find_views(x) and type(x._array) is not WrappedArray


@function(free=False)
def set_(x: Tensor, source: Tensor | None = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Tensor:
    """Let x look at source's memory: as source does, or from `storage_offset` of it on with `size` and `stride`; without source at none.

    A parameter takes other memory under no_grad. What was computed in the graph stays there, and what takes a source that is in it enters it; a
    derivative through them raises NoDerivativeError. Raises GradError for a leaf that requires grad and for a view in the graph or what has views,
    DTypeError for a source of another type, ShapeError for a window outside the memory.
    """
    recorded = state.enabled and (x._tracked or (source is not None and size is None and source._tracked)) and _has_no_views(x)
    # Under no_grad a leaf may take other memory: load_state_dict(assign=True) does so.
    if not recorded and (state.enabled or not x.is_leaf):
        _refuse_graph("set_", x)
    if source is None:
        changed = empty((0,), x._array.dtype, x.device)
    elif source._array.dtype != x._array.dtype:
        raise DTypeError(f"set_: x is {x.dtype.name}, source {source.dtype.name}; give a source of x's type")
    elif size is None:
        changed = source._array
    else:
        shape = shape_of("set_", (size,))
        steps = contiguous_strides(shape) if stride is None else shape_of("set_", (stride,))
        changed = source.detach().as_strided(shape, steps, storage_offset)._array
    hung = refuse_derivative("set_", new_tensor(changed), x, source) if recorded else None
    copy_for_borrowers(x)
    for a in (x._array, changed):  # which counts as a write to both
        run_before_write(a)
    leave_before_change(x)
    leave_base(x)
    x._set_array(changed)
    if hung is not None:
        x._set_node(hung._node)
    if source is not None:
        x._version_counter = version_of(source)
    version_of(x).bump_loosely("set_")
    return x


@function(free=False)
def is_set_to(x: Tensor, tensor: Tensor) -> bool:
    """Whether both look at the same memory in the same way."""
    a, b = x._array, tensor._array
    same = type(a) is type(b) and a.shape == b.shape and a.dtype == b.dtype and element_strides(a) == element_strides(b)
    return bool(same and x.data_ptr() == tensor.data_ptr())
