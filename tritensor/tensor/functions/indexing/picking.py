"""Indexing: x[...] and x[...] = value, and PyTorch's functions that pick and put by index."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.autograd.engine import is_followed
from tritensor.ground import dtypes
from tritensor.ground.errors import DeviceError, DTypeError, IndexShapeError, MetaError, OutOfRangeError, ShapeError
from tritensor.ground.strides import preserve_format
from tritensor.ops.array import is_contiguous
from tritensor.ops.table import broadcast, normal_dim, ops
from tritensor.tensor.aliasing import basic_indexing
from tritensor.tensor.aliasing.basic_indexing import getitem
from tritensor.tensor.aliasing.inplace import overwrite
from tritensor.tensor.aliasing.overlaps import has_own_cells
from tritensor.tensor.aliasing.views import is_write_recorded, refuse_write
from tritensor.tensor.casting import cast
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.indexing.scattering import require_same_dtype
from tritensor.tensor.functions.shaping.reshaping import forget_base, reshape_to
from tritensor.tensor.overriding.protocol import awaken
from tritensor.tensor.parsing.data import as_tensor
from tritensor.tensor.parsing.index import advanced_index, basic_index, is_basic, split_index
from tritensor.tensor.parsing.nonzero_count import flat_nonzero
from tritensor.tensor.public_api.publish import function


def _by_index(x: Tensor, index: Any) -> Tensor:
    """x[index] for an index that is not plain, and for those that are out of range."""
    if type(index) is int:
        shape = x._array.shape
        if not shape:
            raise IndexError("getitem: a 0-d tensor has nothing to index; use .item() for its value")
        n = shape[0]
        if not -n <= index < n:
            raise IndexError(f"getitem: index {index} is out of range for dim 0 of size {n}")
        return ops.index_view(x, index=(index + n if index < 0 else index,))
    if (one := _one_int(index)) is not None and (made := getitem(x, one, plain_only=True)) is not None:
        return made
    if _is_plain_index(x, index):
        return ops.index_get(x, index, dims=(0,), front=False)
    if type(index) is tuple and (dims := _plainly_indexed(x, index)):
        return ops.index_get(x, *[index[d] for d in dims], dims=dims, front=False)
    # One flat index instead of one for each dimension.
    if _is_whole_mask(x, index):
        return select_true(x, index)
    try:
        entries = split_index(index)
        for i in entries:
            if not is_basic(i):
                view, indices, dims, front = advanced_index(x, entries, "getitem")
                return ops.index_get(view, *indices, dims=dims, front=front) if indices else view
        return ops.index_view(x, index=basic_index(x, entries, "getitem"))
    except (TypeError, IndexError, ValueError):
        if awaken((index,)):
            return x[index]
        raise


def _one_int(index: Any) -> int | None:
    """The value of an integer tensor without dimensions, whose values are at hand."""
    if isinstance(index, Tensor) and not (at := index._array).shape and type(at) is np.ndarray and at.dtype.kind == "i":
        return int(at)
    return None


def _is_plain_index(x: Tensor, index: Any) -> bool:
    """Whether the index is one tensor of integers beside x: the usual case, taken without further looks."""
    if not isinstance(index, Tensor):
        return False
    at, array = index._array, x._array
    kind = type(at)
    if at.dtype.kind != "i" or kind is not type(array) or not at.shape or not array.shape:
        return False
    return kind is np.ndarray or index.device == x.device


def _plainly_indexed(x: Tensor, index: tuple[Any, ...]) -> tuple[int, ...]:
    """The dimensions of the tensors in an index that holds such as well, one behind the other, and nothing else but whole slices; () for any other index."""
    if len(index) > len(x._array.shape):
        return ()
    dims = tuple([d for d, i in enumerate(index) if type(i) is not slice])
    if not dims or dims[-1] - dims[0] >= len(dims) or not all([_is_plain_index(x, index[d]) for d in dims]):
        return ()
    return dims if all([i == slice(None) for i in index if type(i) is slice]) else ()


def _is_whole_mask(x: Tensor, index: Any) -> bool:
    """Whether the index is one mask of x's own shape."""
    return isinstance(index, Tensor) and index._array.dtype == np.bool_ and len(x._array.shape) > 0 and index._array.shape == x._array.shape


def select_true(x: Tensor, mask: Tensor) -> Tensor:
    """The elements of x at which a mask of x's shape is True, as a vector; one index into the flattened x. Waits for the device."""
    if mask.device != x.device and mask.device.type != "cpu":
        raise DeviceError(f"getitem: x is on {x.device}, an index on {mask.device}; move it with .to({str(x.device)!r})")
    places = flat_nonzero(reshape_to(mask, (mask._array.size,)))
    if places.device != x.device:
        places = places.to(x.device)
    return ops.index_get(reshape_to(x, (x._array.size,)), places, dims=(0,), front=False)


def setitem(x: Tensor, index: Any, value: Any) -> None:
    """x[index] = value, which broadcasts and is cast; recorded by autograd. Of repeated positions the last one stays."""
    if index is False:  # nothing, of whatever is given, as in PyTorch
        return
    try:
        if (view := getitem(x, index, plain_only=True)) is not None:
            overwrite(view, _cast_value(x, value), "setitem")
            return
        entries = split_index(index)
        # A view is written in place: no index tensors, one copy.
        if all(map(is_basic, entries)):
            overwrite(ops.index_view(x, index=basic_index(x, entries, "setitem")), _cast_value(x, value), "setitem")
            return
        if len(entries) == 1 and isinstance(entries[0], Tensor) and _fill_masked(x, entries[0], value):
            return
        if _is_plain_index(x, index):
            _write_at(x, [index], (0,), False, value)
            return
        try:
            view, indices, dims, front = advanced_index(x, entries, "setitem")
        except MetaError:
            overwrite(x, _written_by_mask(x, value), "setitem")
            return
        if indices:
            _write_at(view, indices, dims, front, value)
        else:
            overwrite(view, _cast_value(x, value), "setitem")
    except (TypeError, IndexError, ValueError):
        if not awaken((index, value)):
            raise
        x[index] = value


def _written_by_mask(x: Tensor, value: Any) -> Tensor:
    """x after a write at a mask without values, which says neither where nor how often: a tensor of x's layout in the graph of both."""
    if not x.is_meta:
        raise DeviceError(f"setitem: x is on {x.device}, a mask on device meta; make the mask where x is")
    v = fit_value(x, value)
    if not isinstance(v, Tensor):
        return ops.copy(x, memory_format=preserve_format)
    anywhere = ops.full(shape=(), value=True, dtype=np.dtype(np.bool_), device=x.device)
    return ops.where(anywhere, ops.cast(ops.sum(v, dim=tuple(range(v.ndim)), keepdim=False), dtype=x._array.dtype), x)


def _fill_masked(x: Tensor, mask: Tensor, value: Any) -> bool:
    """x[mask] = one value for a mask of x's own shape: no positions needed."""
    one = isinstance(value, bool | int | float) or (isinstance(value, Tensor) and value._array.size == 1 and value.device == x.device)
    if not one or mask._array.dtype != np.bool_ or mask._array.shape != x._array.shape or mask.device != x.device or not x._array.shape:
        return False
    given = fit_value(x, value)
    one_tensor = given if isinstance(given, Tensor) else ops.full(shape=(), value=given, dtype=x._array.dtype, device=x.device)
    overwrite(x, ops.where(mask, ops.reshape(one_tensor, shape=()), x), "setitem", one_value=True)
    return True


def _cast_value(x: Tensor, value: Any) -> Any:
    """A value for a part of x that is a view: a complex tensor is cast to real, as copy_ does."""
    return fit_value(x, cast(value, x._array.dtype) if isinstance(value, Tensor) and value._array.dtype.kind == "c" else value)


def fit_value(x: Tensor, value: Any) -> Any:
    """A value to be written into x: numbers as they are, the rest a tensor of x's type on its device."""
    if isinstance(value, bool | int | float | complex):
        return dtypes.as_element(x._array.dtype, value, "setitem")
    v = as_tensor(value, x, "setitem") if not isinstance(value, Tensor) else value
    if v.device != x.device:
        if v._array.size > 1 and isinstance(value, Tensor):
            raise DeviceError(f"setitem: x is on {x.device}, the value on {v.device}; move it with .to({str(x.device)!r})")
        v = v.to(x.device)
    return v if v._array.dtype == x._array.dtype else ops.cast(v, dtype=x._array.dtype)


def _indexed_shape(x: Tensor, indices: list[Tensor], dims: tuple[int, ...], front: bool) -> tuple[int, ...]:
    shapes = [tuple(i._array.shape) for i in indices]
    try:
        spread = shapes[0] if len(shapes) == 1 else np.broadcast_shapes(*shapes)
    except ValueError:
        given = ", ".join(map(str, shapes))
        raise IndexShapeError(f"setitem: indices of shapes {given} do not broadcast together; their sizes must be equal or 1") from None
    rest = tuple([n for d, n in enumerate(x._array.shape) if d not in dims])
    lead = 0 if front else dims[0]
    return (*rest[:lead], *spread, *rest[lead:])


def _write_at(x: Tensor, indices: list[Tensor], dims: tuple[int, ...], front: bool, value: Any) -> None:
    """Write at index tensors, in place, through the graph where there is one."""
    v = fit_value(x, value)
    if not isinstance(v, Tensor):
        v = ops.full(shape=(), value=v, dtype=x._array.dtype, device=x.device)
    want = _indexed_shape(x, indices, dims, front)
    extra = len(v._array.shape) - len(want)
    # numpy lets a value have more leading sizes of 1 than the target.
    if extra > 0 and all(n == 1 for n in v._array.shape[:extra]):
        v = ops.reshape(v, shape=tuple(v._array.shape[extra:]))
    if any(n not in (1, m) for n, m in zip(reversed(v._array.shape), reversed(want), strict=False)) or len(v._array.shape) > len(want):
        raise ShapeError(
            f"setitem: value {tuple(v._array.shape)} does not broadcast to the indexed elements, {want}; give a value of that shape, or one that does"
        )
    if 0 in want and not is_followed(v):  # nothing is written, and nothing asked of the indices
        if is_write_recorded(x):
            refuse_write(x, "setitem")
        # An index into a dimension without elements is out of range, even where nothing is written.
        if 0 in [x._array.shape[d] for d in dims] and 0 not in np.broadcast_shapes(*[i._array.shape for i in indices]):
            raise OutOfRangeError(
                f"setitem: indices into dims {dims} of x {tuple(x._array.shape)}, one of which has size 0; give empty ones"
            )
        return
    one_value = v._array.size == 1
    if v._array.shape != want:
        v = ops.expand(v, shape=want)
    # In place by kernel only where no graph looks on: index_put makes a new array that autograd can follow.
    if is_write_recorded(x) or is_followed(v) or is_followed(x) or not has_own_cells(x._array):
        overwrite(x, ops.index_put(x, v, *indices, dims=dims, front=front, accumulate=False), "setitem", one_value=one_value)
    else:
        ops.index_assign(x, v, *indices, dims=dims, front=front)


basic_indexing.install(_by_index)
Tensor.__getitem__ = getitem  # type: ignore
Tensor.__setitem__ = setitem  # type: ignore


# -- PyTorch's functions
@function(inplace=True)
def index_put(x: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of x with values written, or added with `accumulate`, at a tuple of index tensors; None among them stands for a whole dimension."""
    if not isinstance(indices, tuple | list):
        raise TypeError(f"index_put: indices is a {type(indices).__name__}; give a tuple of tensors")
    if values._array.dtype != x._array.dtype:
        raise DTypeError(f"index_put: values is {values.dtype.name}, x is {x.dtype.name}; cast one of them with .to(...)")
    entries = tuple([slice(None) if i is None else i for i in indices])
    try:
        view, found, dims, front = advanced_index(x, entries, "index_put")
    except MetaError:
        return _written_by_mask(x, values)
    # index_put copies x itself: one pass.
    if view is x and found and is_contiguous(x._array):
        v = _expand_values(values, _indexed_shape(x, found, dims, front))
        return ops.index_put(x, v, *found, dims=dims, front=front, accumulate=bool(accumulate), called="index_put")
    out = ops.copy(x, memory_format=preserve_format)
    part, found, dims, front = advanced_index(out, entries, "index_put")
    if found:
        v = _expand_values(values, _indexed_shape(part, found, dims, front))
        written = ops.index_put(part, v, *found, dims=dims, front=front, accumulate=bool(accumulate), called="index_put")
    else:
        written = ops.add(part, values) if accumulate else values
    overwrite(part, written, "index_put")
    return out


def _expand_values(values: Tensor, want: tuple[int, ...]) -> Tensor:
    shape = tuple(values._array.shape)
    if len(shape) > len(want) or any(n not in (1, m) for n, m in zip(reversed(shape), reversed(want), strict=False)):
        raise ShapeError(
            f"index_put: values {shape} does not broadcast to the indexed elements, {want}; give a value of that shape, or one that does"
        )
    return values if shape == want else ops.expand(values, shape=want)


@function(out="exact")
def take(x: Tensor, index: Tensor) -> Tensor:
    """Elements of the flattened tensor, in index's shape; negative indices count from the end."""
    return ops.index_get(reshape_to(x, (x._array.size,)), index.contiguous(), dims=(0,), front=False, called="take")


@function(inplace=True)
def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of x with source's elements written, or added, at places of the flattened x; index and source have as many elements.

    Negative indices count from the end; of repeated places the last one stays.
    """
    count = index._array.size
    if source._array.size != count:
        raise IndexShapeError(f"put: source has {source._array.size} elements for {count} in index; both must be the same")
    require_same_dtype("put", x, source)
    flat, places, values = (reshape_to(t, (t._array.size,)) for t in (x, index, source))
    written = ops.index_put(flat, values, places, dims=(0,), front=False, accumulate=bool(accumulate), called="put")
    out = forget_base(reshape_to(written, tuple(x._array.shape)))
    return out if is_contiguous(x._array) else overwrite(ops.copy(x, memory_format=preserve_format), out, "put")


@function(out=True)
def take_along_dim(x: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """gather with broadcasting: x and indices stretch to each other outside `dim`, where negative ones count from the end.

    None flattens both, and indices have to be 0 or more.
    """
    if dim is None:
        return ops.gather(reshape_to(x, (x._array.size,)), reshape_to(indices, (indices._array.size,)), dim=0)
    d = normal_dim("take_along_dim", dim, len(x._array.shape))
    if not x._array.shape:
        raise IndexError(f"take_along_dim: dim {dim} of a tensor that has no dimensions; leave dim out")
    if len(indices._array.shape) != len(x._array.shape):
        raise ShapeError(
            f"take_along_dim: x {tuple(x._array.shape)} and indices {tuple(indices._array.shape)} differ in their number of dimensions; reshape one of them"
        )
    outer = [list(s) for s in (x._array.shape, indices._array.shape)]
    for s in outer:
        s[d] = 1
    common = list(broadcast("take_along_dim", *map(tuple, outer), labels=("x beside dim", "indices beside dim")))
    full = [(*common[:d], y._array.shape[d], *common[d + 1 :]) for y in (x, indices)]
    n = x._array.shape[d]
    # Only those in range: others must reach gather's own check.
    backward = ops.logical_and(ops.lt(indices, 0), ops.ge(indices, -n))
    places = ops.where(backward, ops.add(indices, n), indices)
    return ops.gather(ops.expand(x, shape=full[0]), ops.expand(places, shape=full[1]), dim=d)


@function
def take_along_axis(x: Tensor, indices: Tensor, axis: int | None = -1) -> Tensor:
    """numpy's name for take_along_dim, and numpy's default: the last axis."""
    return take_along_dim(x, indices, axis)
