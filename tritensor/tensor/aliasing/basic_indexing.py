"""Basic indexing in one step: x[i], x[a:b], x[:, None, 0] as numpy's own view or a window on a GPU, one Tensor, one node. An index is another one at
nearly every call, so that no plan would serve it twice."""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np

from tritensor.autograd.modes import state
from tritensor.autograd.node import Node, next_sequence, version_of
from tritensor.ground import shortcuts
from tritensor.ops.array import CudaArray
from tritensor.ops.table import registry
from tritensor.tensor.aliasing import windows
from tritensor.tensor.core import Tensor

_new = object.__new__
OFF = False  # see ground/shortcuts.py
shortcuts.read_by(globals())


def _new_view(x: Tensor, shape: tuple[int, ...], array: Any, index: tuple[Any, ...]) -> Tensor:
    """The tensor of `array`, which is what the op index_view makes of x's array (one of this shape)."""
    op, attrs = registry["index_view"], {"index": index}
    meta = ((shape, array.dtype),)
    # Slots are set one by one: this is the body of new_tensor without its call.
    t = _new(Tensor)
    t._array = array
    t._grad = t._layout = None
    t._version_counter = x._version_counter or version_of(x)
    recording = state.enabled
    # Bare node construction, in step with Node.__init__.
    if recording and x._tracked:
        node = t._node = _new(Node)  # what Node(...) does, without the call
        node.op = op
        node.edges = (x._node or x,)
        node.inputs = node.outputs = node.hooks = None
        node.attrs = attrs
        node.meta = meta
        node.sequence = next_sequence()
        t._tracked = True
    else:
        t._node = None
        t._tracked = False
    t._extra = None
    above = x._view_path
    extra = x._extra if above is None else above[0]._extra
    # What _record_view_of does where the base has views already.
    if recording and extra is not None and (above is None or x._extra is None):
        views = extra.views
        if views is not None and ((n := len(fresh := views.fresh)) < 31 or n & (n + 1)):
            t._view_path = (x, (op, attrs, meta)) if above is None else (*above, (op, attrs, meta))
            fresh[id(t)] = ref(t)
            return t
    t._record_view_of(x, (op, attrs, meta), recording)
    return t


def getitem(x: Tensor, index: Any) -> Tensor | None:
    """x[index] for an int, a slice with a positive step, on the CPU a new axis, or a tuple of these, one Ellipsis among them; None where that is not plain, or
    somebody looks at single ops: the caller then takes the long way, through `ops.index_view`."""
    array = x._array
    on_gpu = type(array) is CudaArray
    if OFF or (type(array) is not np.ndarray and not on_gpu):
        return None
    shape = array.shape
    kind = type(index)
    if kind is int:
        if not shape or not -shape[0] <= index < shape[0]:
            return None
        if on_gpu:
            at, strides = index if index >= 0 else index + shape[0], array.strides
            return _new_view(x, shape, windows.new_window(array, shape[1:], strides[1:], at * strides[0]), (at,))
        # With an Ellipsis numpy gives a view even of one element, without it a scalar.
        return _new_view(x, shape, array[index] if len(shape) > 1 else array[index, ...], (index if index >= 0 else index + shape[0],))
    if kind is tuple:
        # The index is copied only where it has to change: most have no negative entry.
        counted: list[Any] | None = None  # once an int counts from the end
        d, dims = 0, len(shape)
        for k, i in enumerate(index):
            if type(i) is int:
                if d >= dims or not -(n := shape[d]) <= i < n:
                    return None
                if i < 0:
                    counted = counted or list(index)
                    counted[k] = i + n
                d += 1
            elif type(i) is slice:
                if d >= dims or (i != _WHOLE_SLICE and not _is_plain_slice(i)):
                    return None
                d += 1
            elif i is Ellipsis:
                rest = index[k + 1 :]
                if any([r is Ellipsis for r in rest]):  # `in` would compare index tensors by their elements
                    return None
                left = dims - d - sum([r is not None for r in rest])
                return None if left < 0 else getitem(x, (*index[:k], *(_WHOLE_SLICE,) * left, *rest))
            elif i is not None or on_gpu:
                return None
        made = windows.index(array, index) if on_gpu else array[(*index, ...)]
        return _new_view(x, shape, made, index if counted is None else tuple(counted))
    if index is None and not on_gpu:
        return _new_view(x, shape, array[None], (None,))
    if kind is slice and shape and _is_plain_slice(index):
        return _new_view(x, shape, windows.index(array, (index,)) if on_gpu else array[index], (index,))
    return None


_WHOLE_SLICE = slice(None)


def _is_plain_slice(i: slice) -> bool:
    """Whether a slice is of Python's ints, and does not step back."""
    step = i.step
    return (step is None or (type(step) is int and step > 0)) and _is_plain_bound(i.start) and _is_plain_bound(i.stop)


def _is_plain_bound(bound: Any) -> bool:
    return bound is None or type(bound) is int
