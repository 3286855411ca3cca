"""Basic indexing in one step: x[i], x[a:b], x[:, None, 0] as numpy's own view or a window on a GPU, one Tensor, one node. An index is another one at
nearly every call, so that no plan would serve it twice."""

from __future__ import annotations

from collections.abc import Callable
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
WATCHED = False  # see ground/shortcuts.py
shortcuts.read_by(globals())

_by_index: Callable[[Tensor, Any], Tensor]  # the long way, which looks at every kind of index: see install


def install(by_index: Callable[[Tensor, Any], Tensor]) -> None:
    """Let `getitem` go on with this for an index that is not plain; functions/indexing/picking.py calls this."""
    global _by_index
    _by_index = by_index


def getitem(x: Tensor, index: Any, plain_only: bool = False) -> Any:
    """x[index]: a view for ints (0-d integer tensors too), slices, None and ..., a copy as soon as an array, list or mask takes part.

    Ints select first; index tensors on neighbouring dimensions leave their result in place, others put it in front.
    Raises IndexError, before anything runs, for an index that is out of range; on a GPU the values of index tensors are not
    known here: an element out of range reads 0 there, and the next wait for the device raises.

    A plain index is an int, a slice with a positive step, on the CPU a new axis, or a tuple of these, one Ellipsis among them. With `plain_only` any other
    gives None, and so does every index while somebody looks at single ops.
    """
    array = x._array
    kind_of_array = type(array)
    on_gpu = kind_of_array is CudaArray
    made = None
    # Of one element numpy gives a scalar, and a view where the index ends with an Ellipsis.
    if not WATCHED and (kind_of_array is np.ndarray or on_gpu):
        shape = array.shape
        kind = type(index)
        if kind is int:
            if shape and -(n := shape[0]) <= index < n:
                at = index if index >= 0 else index + n
                if on_gpu:
                    strides = array.strides
                    made = windows.new_window(array, shape[1:], strides[1:], at * strides[0])
                else:
                    made = array[index] if len(shape) > 1 else array[index, ...]
                index = (at,)
        elif kind is tuple and (whole := _counted(index, shape, on_gpu)) is not None:
            index = whole
            made = windows.index(array, index) if on_gpu else array[index]
            if type(made) is not kind_of_array:
                made = array[(*index, ...)]
        elif (kind is slice and shape and _is_plain_slice(index)) or (index is None and not on_gpu):
            index = (index,)
            made = windows.index(array, index) if on_gpu else array[index]
    if made is None:
        return None if plain_only else _by_index(x, index)
    op, attrs = registry["index_view"], {"index": index}
    meta = ((shape, array.dtype),)
    # Slots are set one by one: this is the body of new_tensor without its call.
    t = _new(Tensor)
    t._array = made
    t._grad = t._layout = t._extra = None
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


_WHOLE_SLICE = slice(None)


def _counted(index: tuple[Any, ...], shape: tuple[int, ...], on_gpu: bool) -> tuple[Any, ...] | None:
    """A plain index with ints counted from the beginning and slices in place of an Ellipsis; None for any other."""
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
            if d >= dims or not _is_plain_slice(i):
                return None
            d += 1
        elif i is Ellipsis:
            rest = index[k + 1 :]
            if any([r is Ellipsis for r in rest]):  # `in` would compare index tensors by their elements
                return None
            left = dims - d - sum([r is not None for r in rest])
            return None if left < 0 else _counted((*index[:k], *(_WHOLE_SLICE,) * left, *rest), shape, on_gpu)
        elif i is not None or on_gpu:
            return None
    return index if counted is None else tuple(counted)


def _is_plain_slice(i: slice) -> bool:
    """Whether a slice is of Python's ints, and does not step back."""
    low, high, step = i.start, i.stop, i.step
    return (low is None or type(low) is int) and (high is None or type(high) is int) and (step is None or (type(step) is int and step > 0))
