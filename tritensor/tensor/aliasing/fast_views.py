"""Views of tensors in one step: numpy's own view or a window on a GPU, one Tensor, one node. Each function has the parameters of the public one that it
serves, and gives None where the array or an argument is not a usual one: the public function then takes the long way, through `ops.<view>`."""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np

from tritensor.autograd.modes import state
from tritensor.autograd.node import Node, next_sequence, version_of
from tritensor.ops.array import CudaArray
from tritensor.ops.table import registry
from tritensor.tensor.aliasing import windows
from tritensor.tensor.core import Tensor

_new = object.__new__


def new_view(x: Tensor, shape: tuple[int, ...], array: Any, name: str, attrs: dict[str, Any]) -> Tensor:
    """The tensor of `array`, which is what the view op `name` makes of x's array (one of this shape) with these attributes."""
    op = registry[name]
    meta = ((shape, array.dtype),)
    # Slots are set one by one: this is the body of new_tensor without its call.
    t = _new(Tensor)
    t._array = array
    t._grad = None
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
        if views is not None and len(fresh := views.fresh) < 32:
            t._view_path = (x, (op, attrs, meta)) if above is None else (*above, (op, attrs, meta))
            fresh[id(t)] = ref(t)
            return t
    t._record_view_of(x, (op, attrs, meta), recording)
    return t


def reshape(x: Tensor, *shape: Any) -> Tensor | None:
    """x in another shape, which may hold one -1; None where that is not plain (the caller then looks closer)."""
    array = x._array
    if type(array) is CudaArray:
        window = windows.reshape(array, shape)
        return None if window is None else new_view(x, array.shape, window, "reshape", {"shape": window.shape})
    # Of other layouts reshape may have to copy, which is no view: the caller decides.
    if type(array) is not np.ndarray or not array.flags.c_contiguous:
        return None
    try:
        made = array.reshape(shape)
    except (TypeError, ValueError):  # the caller says what is wrong
        return None
    found = made.shape
    if found != shape and -1 not in shape:  # numpy takes other negative sizes for -1
        return None
    return new_view(x, array.shape, made, "reshape", {"shape": found})


_transpose_attrs: dict[tuple[int, Any, Any], dict[str, Any]] = {}  # attributes of permute by (ndim, dim0, dim1) of an exchange
_MATRIX_TRANSPOSE = {"dims": (1, 0)}
_permute_attrs: dict[tuple[Any, ...], dict[str, Any]] = {}  # and by the dims given


def transpose(x: Tensor, *dims: Any, dim0: Any = None, dim1: Any = None) -> Tensor | None:
    """Two dimensions exchanged; None where that is not plain."""
    array = x._array
    kind = type(array)
    if (kind is not np.ndarray and kind is not CudaArray) or len(dims) != 2 or dim0 is not None or dim1 is not None:
        return None
    dim0, dim1 = dims
    if type(dim0) is not int or type(dim1) is not int:  # before the look-up, where 1.0 and True are 1
        return None
    # One dictionary for all nodes of a permutation: it is never written to.
    attrs = _transpose_attrs.get((array.ndim, dim0, dim1))
    if attrs is None:
        if not (-array.ndim <= dim0 < array.ndim and -array.ndim <= dim1 < array.ndim):
            return None
        order = list(range(array.ndim))
        order[dim0], order[dim1] = order[dim1], order[dim0]
        attrs = _transpose_attrs[array.ndim, dim0, dim1] = {"dims": tuple(order)}
    made = windows.permute(array, attrs["dims"]) if kind is CudaArray else array.transpose(attrs["dims"])
    return new_view(x, array.shape, made, "permute", attrs)


def t(x: Tensor) -> Tensor | None:
    """The transpose of a matrix; None where that is not plain."""
    array = x._array
    if type(array) is CudaArray:
        if len(shape := array.shape) != 2:
            return None
        return new_view(x, shape, windows.new_window(array, shape[::-1], array.strides[::-1]), "permute", _MATRIX_TRANSPOSE)
    if type(array) is not np.ndarray or len(shape := array.shape) != 2:
        return None
    return new_view(x, shape, array.T, "permute", _MATRIX_TRANSPOSE)


def permute(x: Tensor, *dims: Any) -> Tensor | None:
    """Dimensions in another order; None where that is not plain."""
    array = x._array
    kind = type(array)
    if kind is not np.ndarray and kind is not CudaArray:
        return None
    try:
        # The look-up comes first: checking dims takes a loop, and most calls repeat earlier ones.
        attrs = _permute_attrs.get(dims)
        if attrs is None:
            n = len(dims)
            if n != array.ndim or not all([type(d) is int and -n <= d < n for d in dims]) or len({d % n for d in dims}) != n:
                return None
            attrs = _permute_attrs[dims] = {"dims": tuple([d % n for d in dims])}
        if kind is CudaArray:
            if not all([type(d) is int for d in dims]) or len(dims) != len(array.shape):
                return None
            made: Any = windows.permute(array, attrs["dims"])
        else:
            made = array.transpose(dims)
    except (TypeError, ValueError):  # a list; 1.0, which the look-up takes for 1; as many dims as another array has
        return None
    return new_view(x, array.shape, made, "permute", attrs)


_unsqueeze_attrs: dict[tuple[Any, ...], dict[str, Any]] = {}  # attributes of the reshape that puts a dimension in, by (shape, dim)
_squeeze_attrs: dict[tuple[Any, ...], dict[str, Any]] = {}  # and of the one that takes a dimension out
_expand_strides: dict[
    tuple[Any, ...], tuple[tuple[int, ...], dict[str, Any]]
] = {}  # of expand strides in bytes and attributes, by (shape, strides, size)
CACHE_ENTRIES = 4096  # entries of such a dictionary


def unsqueeze(x: Tensor, dim: Any) -> Tensor | None:
    """A new dimension of size 1; None where that is not plain."""
    array = x._array
    kind = type(array)
    if (kind is not np.ndarray and kind is not CudaArray) or type(dim) is not int:  # the type before the look-up, where 1.0 and True are 1
        return None
    shape = array.shape
    attrs = _unsqueeze_attrs.get((shape, dim))
    if attrs is None:
        n = len(shape)
        if not -n - 1 <= dim <= n:
            return None
        at = dim % (n + 1)
        attrs = _remember(_unsqueeze_attrs, (shape, dim), {"shape": (*shape[:at], 1, *shape[at:])})
    made = windows.reshape_exactly(array, attrs["shape"]) if kind is CudaArray else array.reshape(attrs["shape"])
    return new_view(x, shape, made, "reshape", attrs)


def _remember(into: dict[Any, Any], key: Any, value: Any) -> Any:
    # Programs with ever new shapes must not grow it without end; clearing is cheaper than an order of use.
    if len(into) >= CACHE_ENTRIES:
        into.clear()
    into[key] = value
    return value


def squeeze(x: Tensor, dim: Any = None) -> Tensor | None:
    """Without one dimension, of size 1; None where that is not plain."""
    array = x._array
    kind = type(array)
    if (kind is not np.ndarray and kind is not CudaArray) or type(dim) is not int:  # the type before the look-up, where 1.0 and True are 1
        return None
    shape = array.shape
    attrs = _squeeze_attrs.get((shape, dim))
    if attrs is None:
        n = len(shape)
        if not -n <= dim < n or shape[dim] != 1:
            return None
        at = dim % n
        attrs = _remember(_squeeze_attrs, (shape, dim), {"shape": (*shape[:at], *shape[at + 1 :])})
    made = windows.reshape_exactly(array, attrs["shape"]) if kind is CudaArray else array.squeeze(dim)
    return new_view(x, shape, made, "reshape", attrs)


def getitem(x: Tensor, index: Any) -> Tensor | None:
    """x[index] for an int, a slice with a positive step, or a tuple of these, one Ellipsis among them; None where that is not plain."""
    array = x._array
    on_gpu = type(array) is CudaArray
    if type(array) is not np.ndarray and not on_gpu:
        return None
    shape = array.shape
    kind = type(index)
    if kind is int:
        if not shape or not -shape[0] <= index < shape[0]:
            return None
        if on_gpu:
            at, strides = index if index >= 0 else index + shape[0], array.strides
            return new_view(x, shape, windows.new_window(array, shape[1:], strides[1:], at * strides[0]), "index_view", {"index": (at,)})
        # With an Ellipsis numpy gives a view even of one element, without it a scalar.
        return new_view(x, shape, array[index, ...], "index_view", {"index": (index if index >= 0 else index + shape[0],)})
    if kind is tuple:
        if len(index) > len(shape):
            return None
        # The index is copied only where it has to change: most have no negative entry.
        counted: list[Any] | None = None  # once an int counts from the end
        for d, i in enumerate(index):
            if type(i) is int:
                n = shape[d]
                if not -n <= i < n:
                    return None
                if i < 0:
                    counted = counted or list(index)
                    counted[d] = i + n
            elif type(i) is not slice or (i != _WHOLE_SLICE and not _is_plain_slice(i)):
                if i is not Ellipsis:
                    return None
                rest = index[d + 1 :]
                if any([r is Ellipsis for r in rest]):  # `in` would compare index tensors by their elements
                    return None
                return getitem(x, (*index[:d], *(_WHOLE_SLICE,) * (len(shape) - len(index) + 1), *rest))
        made = windows.index(array, index) if on_gpu else array[(*index, ...)]
        return new_view(x, shape, made, "index_view", {"index": index if counted is None else tuple(counted)})
    if kind is slice and shape and _is_plain_slice(index):
        return new_view(x, shape, windows.index(array, (index,)) if on_gpu else array[index], "index_view", {"index": (index,)})
    return None


_WHOLE_SLICE = slice(None)


def _is_plain_slice(i: slice) -> bool:
    """Whether a slice is of Python's ints, and does not step back."""
    step = i.step
    return (step is None or (type(step) is int and step > 0)) and _is_plain_bound(i.start) and _is_plain_bound(i.stop)


def _is_plain_bound(bound: Any) -> bool:
    return bound is None or type(bound) is int


def select(x: Tensor, dim: Any, index: Any) -> Tensor | None:
    """x at one index of its first dimension; None where that is not plain."""
    return getitem(x, index) if type(dim) is int and dim == 0 and type(index) is int else None


def expand(x: Tensor, *size: Any, implicit: bool = False) -> Tensor | None:
    """x stretched to a size without -1; None where that is not plain."""
    array = x._array
    if type(array) is CudaArray:
        window = windows.expand(array, size)
        return None if window is None else new_view(x, array.shape, window, "expand", {"shape": size})
    if type(array) is not np.ndarray:
        return None
    shape, strides = array.shape, array.strides
    try:
        known = _expand_strides.get((shape, strides, size))
        if known is None:
            found = _find_expand_strides(array, size)
            if found is None:
                return None
            known = _remember(_expand_strides, (shape, strides, size), (found, {"shape": size}))
        # np.broadcast_to takes eight times as long (2.8 us).
        made = np.ndarray(size, array.dtype, array, 0, known[0])
    except (TypeError, ValueError):  # a list; 2.0, which the look-up takes for 2; an array of another type, with gaps between these strides
        return None
    return new_view(x, shape, made, "expand", known[1])


def _find_expand_strides(array: np.ndarray, size: tuple[int, ...]) -> tuple[int, ...] | None:
    """The strides of an array in C order stretched to a size; None where it is not so or does not stretch so."""
    lead = len(size) - array.ndim
    if lead < 0 or not all([type(n) is int and n >= 0 for n in size]) or not array.flags.c_contiguous:
        return None
    strides = [0] * lead
    for have, step, want in zip(array.shape, array.strides, size[lead:], strict=True):
        if have not in (want, 1):
            return None
        strides.append(step if have == want else 0)
    return tuple(strides)
