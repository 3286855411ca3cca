"""Indexing: x[...] and x[...] = value, and PyTorch's functions that pick and put by index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor import dtypes
from tritensor.array import from_host, to_host
from tritensor.autograd.modes import state
from tritensor.errors import ArgumentError, DeviceError, DTypeError, ShapeError
from tritensor.table import normal_dim, ops
from tritensor.tensor.aliasing import quick_views
from tritensor.tensor.aliasing.inplace import overwrite, refuse_overlap
from tritensor.tensor.aliasing.views import remembered
from tritensor.tensor.core import Tensor, as_tensor, new_tensor
from tritensor.tensor.functions.shaping.reshaping import no_view, reshape_to
from tritensor.tensor.publishing.arguments import Operand
from tritensor.tensor.publishing.publish import function
from tritensor.tensor.reading.index import advanced_index, basic_index, entries_of, is_basic


def getitem(x: Tensor, index: Any) -> Tensor:
    """x[index]: a view for ints (0-d integer tensors too), slices, None and ..., a copy as soon as an array, list or mask takes part.

    Ints select first; index tensors on neighbouring dimensions leave their result in place, others put it in front.
    Raises IndexError, before anything runs, for an index that is out of range; on a GPU the values of index tensors are not
    known here: an element out of range reads 0 there, and the next wait for the device raises.
    """
    if (made := quick_views.taken(x, index)) is not None:
        return made
    if type(index) is int:
        shape = x.array.shape
        if not shape:
            raise IndexError("getitem: a 0-d tensor has nothing to index; use .item() for its value")
        n = shape[0]
        if not -n <= index < n:
            raise IndexError(f"getitem: index {index} is out of range for dim 0 of size {n}")
        return ops.index_view(x, index=(index + n if index < 0 else index,))
    if _is_rows(x, index):
        return ops.index_get(x, index, dims=(0,), front=False)
    entries = entries_of(index)
    for i in entries:
        if not is_basic(i):
            view, indices, dims, front = advanced_index(x, entries, "getitem")
            return ops.index_get(view, *indices, dims=dims, front=front) if indices else view
    return ops.index_view(x, index=basic_index(x, entries, "getitem"))


def _is_rows(x: Tensor, index: Any) -> bool:
    """Whether the index is one tensor of integers beside x: the usual case, taken without further looks."""
    return (
        isinstance(index, Tensor)
        and index.array.dtype.kind == "i"
        and bool(index.array.shape)
        and bool(x.array.shape)
        and type(index.array) is type(x.array)
        and index.device == x.device
    )


def setitem(x: Tensor, index: Any, value: Any) -> None:
    """x[index] = value, which broadcasts and is cast; recorded by autograd. Of repeated positions the last one stays."""
    entries = entries_of(index)
    if all(map(is_basic, entries)):
        overwrite(ops.index_view(x, index=basic_index(x, entries, "setitem")), _fitting(x, value), "setitem")
        return
    if len(entries) == 1 and isinstance(entries[0], Tensor) and _fill_masked(x, entries[0], value):
        return
    if _is_rows(x, index):
        _put(x, [index], (0,), False, value)
        return
    view, indices, dims, front = advanced_index(x, entries, "setitem")
    if indices:
        _put(view, indices, dims, front, value)
    else:
        overwrite(view, _fitting(x, value), "setitem")


def _fill_masked(x: Tensor, mask: Tensor, value: Any) -> bool:
    """x[mask] = one value for a mask of x's own shape: no positions needed."""
    one = isinstance(value, bool | int | float) or (isinstance(value, Tensor) and value.array.size == 1 and value.device == x.device)
    if not one or mask.array.dtype != np.bool_ or mask.array.shape != x.array.shape or mask.device != x.device or not x.array.shape:
        return False
    given = _fitting(x, value)
    one_tensor = given if isinstance(given, Tensor) else ops.full(shape=(), value=given, dtype=x.array.dtype, device=x.device)
    overwrite(x, ops.where(mask, ops.reshape(one_tensor, shape=()), x), "setitem")
    return True


def _fitting(x: Tensor, value: Any) -> Any:
    """A value to be written into x: numbers as they are, the rest a tensor of x's type on its device."""
    if isinstance(value, bool | int | float | complex):
        return dtypes.as_element(x.array.dtype, value, "setitem")
    v = as_tensor(value, x) if not isinstance(value, Tensor) else value
    if v.device != x.device:
        if v.array.size > 1 and isinstance(value, Tensor):
            raise DeviceError(f"setitem: x is on {x.device}, the value on {v.device}; move it with .to({str(x.device)!r})")
        v = v.to(x.device)
    return v if v.array.dtype == x.array.dtype else ops.cast(v, dtype=x.array.dtype)


def _taken(x: Tensor, indices: list[Tensor], dims: tuple[int, ...], front: bool) -> tuple[int, ...]:
    """Shape of the elements of x that index tensors name."""
    spread = indices[0].array.shape if len(indices) == 1 else np.broadcast_shapes(*(i.array.shape for i in indices))
    rest = tuple([n for d, n in enumerate(x.array.shape) if d not in dims])
    lead = 0 if front else dims[0]
    return (*rest[:lead], *spread, *rest[lead:])


def _put(x: Tensor, indices: list[Tensor], dims: tuple[int, ...], front: bool, value: Any) -> None:
    """Write at index tensors, in place, through the graph where there is one."""
    v = _fitting(x, value)
    if not isinstance(v, Tensor):
        v = ops.full(shape=(), value=v, dtype=x.array.dtype, device=x.device)
    want = _taken(x, indices, dims, front)
    extra = len(v.array.shape) - len(want)
    if extra > 0 and all(n == 1 for n in v.array.shape[:extra]):
        v = ops.reshape(v, shape=tuple(v.array.shape[extra:]))
    if any(n not in (1, m) for n, m in zip(reversed(v.array.shape), reversed(want), strict=False)) or len(v.array.shape) > len(want):
        raise ShapeError(f"setitem: value {tuple(v.array.shape)} does not broadcast to the indexed elements, {want}")
    if v.array.shape != want:
        v = ops.expand(v, shape=want)
    if remembered(x) or (state.enabled and v.tracked):
        overwrite(x, ops.index_put(x, v, *indices, dims=dims, front=front, accumulate=False), "setitem")
    else:
        refuse_overlap(x, "setitem")
        ops.index_assign(x, v, *indices, dims=dims, front=front)


Tensor.__getitem__ = getitem  # type: ignore
Tensor.__setitem__ = setitem  # type: ignore


# -- PyTorch's functions
@function(out=True)
def gather(x: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """y[.., i, ..] = x[.., index[.., i, ..], ..] along `dim`; y has index's shape. `sparse_grad` is accepted; gradients are dense."""
    d = normal_dim("gather", dim, len(x.array.shape))
    shape = tuple(index.array.shape)
    if len(shape) == len(x.array.shape):
        return ops.gather(x, index, dim=d)
    if not index.array.size:  # as PyTorch: an empty index may have any shape
        return ops.reshape(ops.index_view(reshape_to(x, (x.array.size,)), index=(slice(0, 0),)), shape=shape)
    return no_view(reshape_to(ops.gather(_lined(x), _lined(index), dim=d), shape))


def _lined(x: Tensor) -> Tensor:
    """A tensor without dimensions as a vector of one element; any other as it is."""
    return x if x.array.shape else ops.reshape(x, shape=(1,))


def _scattered(name: str, op: Callable[..., Tensor], x: Tensor, dim: int, index: Tensor, source: Any) -> Tensor:
    """op(x, index, source, dim=), where x, index and source may each lack dimensions, and an empty index may have any shape."""
    d = normal_dim(name, dim, len(x.array.shape))
    values = _source(name, x, index, source)
    if len(index.array.shape) == len(x.array.shape) == len(values.array.shape):
        return op(x, index, values, dim=d)
    if not index.array.size:
        return ops.copy(x)
    return no_view(reshape_to(op(_lined(x), _lined(index), _lined(values), dim=d), tuple(x.array.shape)))


def _scatter_mul(x: Tensor, index: Tensor, source: Tensor, *, dim: int) -> Tensor:
    """x with source multiplied into the places that index names: one after the other along `dim`, since places may repeat."""
    lead = (slice(None),) * dim
    reach = ops.index_view(source, index=tuple([slice(n) for n in index.array.shape]))
    for j in range(index.array.shape[dim]):
        place = ops.index_view(index, index=(*lead, slice(j, j + 1)))
        factor = ops.index_view(reach, index=(*lead, slice(j, j + 1)))
        x = ops.scatter(x, place, ops.mul(ops.gather(x, place, dim=dim), factor), dim=dim)
    return x


def _typed(name: str, x: Tensor, source: Tensor) -> Tensor:
    """A tensor, which has to be of x's type."""
    if source.array.dtype != x.array.dtype:
        raise DTypeError(f"{name}: src is {source.dtype.name}, x is {x.dtype.name}; cast one of them with .to(...)")
    return source


def _source(name: str, x: Tensor, index: Tensor, source: Any) -> Tensor:
    """The values to scatter: a tensor of x's type, a number spread over index's shape."""
    if not isinstance(source, bool | int | float | complex | np.generic):
        return _typed(name, x, source)
    number = dtypes.as_element(x.array.dtype, source.item() if isinstance(source, np.generic) else source, name)
    return ops.expand(ops.full(shape=(), value=number, dtype=x.array.dtype, device=x.device), shape=tuple(index.array.shape))


@function(inplace=True, out=True)
def scatter(x: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Tensor:
    """A copy of x with src[.., j, ..] (or a number) written at [.., index[.., j, ..], ..]; of repeated positions the last one stays.

    `reduce`: "add" adds to what is there, "multiply" multiplies it, one source after the other.
    """
    given = value if src is None else src
    if given is None:
        raise TypeError("scatter: give src, a tensor, or value, a number")
    if reduce not in (None, "add", "multiply"):
        raise ArgumentError(f"scatter: reduce is {reduce!r}; it is None, 'add' or 'multiply'")
    op = ops.scatter if reduce is None else ops.scatter_add if reduce == "add" else _scatter_mul
    return _scattered("scatter", op, x, dim, index, given)


@function(inplace=True, out=True)
def scatter_add(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """A copy of x with src[.., j, ..] added at [.., index[.., j, ..], ..] along `dim`, in a fixed order."""
    return _scattered("scatter_add", ops.scatter_add, x, dim, index, _typed("scatter_add", x, src))


@function(out=True)
def index_select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of a dimension that a vector of indices names."""
    if len(index.array.shape) > 1:
        raise ShapeError(f"index_select: index {tuple(index.array.shape)} is not a vector")
    d = normal_dim("index_select", dim, len(x.array.shape))
    if not x.array.shape and index.array.size != 1:
        raise IndexError(f"index_select: {index.array.size} indices into a tensor without dimensions; it takes one")
    found = ops.index_get(_lined(x), _lined(index), dims=(d,), front=False)
    return found if x.array.shape else no_view(ops.reshape(found, shape=()))


@function(inplace=True, out=True)
def index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """A copy of x with alpha * source's slices added at the indices of a dimension."""
    d = normal_dim("index_add", dim, len(x.array.shape))
    values = _typed("index_add", x, source)
    return _put_along(x, d, index, values if alpha == 1 else ops.mul(values, alpha), True)


def _put_along(x: Tensor, d: int, index: Tensor, values: Tensor, accumulate: bool) -> Tensor:
    """A copy of x with values written or added at indices of dimension d; x, index and values may lack dimensions."""
    out = ops.index_put(_lined(x), _lined(values), _lined(index), dims=(d,), front=False, accumulate=accumulate)
    return out if x.array.shape else no_view(ops.reshape(out, shape=()))


@function(inplace=True, out=True)
def index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """A copy of x with source's slices written at the indices of a dimension."""
    d = normal_dim("index_copy", dim, len(x.array.shape))
    return _put_along(x, d, index, _typed("index_copy", x, source), False)


@function(inplace=True)
def index_fill(x: Tensor, dim: int, index: Tensor, value: Operand) -> Tensor:
    """A copy of x with one value written at the indices of a dimension."""
    d = normal_dim("index_fill", dim, len(x.array.shape))
    shape = (*x.array.shape[:d], index.array.size, *x.array.shape[d + 1 :])
    if isinstance(value, bool | int | float | complex | np.generic):
        number = dtypes.as_element(x.array.dtype, value.item() if isinstance(value, np.generic) else value, "index_fill")
        one = ops.full(shape=(), value=number, dtype=x.array.dtype, device=x.device)
    else:
        one = _fitting(x, ops.reshape(value, shape=()))
    return _put_along(x, d, index, ops.expand(one, shape=shape), False)


@function(inplace=True)
def index_put(x: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of x with values written, or added with `accumulate`, at a tuple of index tensors."""
    view, found, dims, front = advanced_index(x, tuple(indices), "index_put")
    if view is x:
        v = ops.expand(values, shape=_taken(x, found, dims, front))
        return ops.index_put(x, v, *found, dims=dims, front=front, accumulate=bool(accumulate))
    out = ops.copy(x)
    part, found, dims, front = advanced_index(out, tuple(indices), "index_put")
    if found:
        v = ops.expand(values, shape=_taken(part, found, dims, front))
        written = ops.index_put(part, v, *found, dims=dims, front=front, accumulate=bool(accumulate))
    else:
        written = ops.add(part, values) if accumulate else values
    overwrite(part, written, "index_put")
    return out


@function(out=True)
def take(x: Tensor, index: Tensor) -> Tensor:
    """Elements of the flattened tensor, in index's shape."""
    return ops.index_get(reshape_to(x, (x.array.size,)), index, dims=(0,), front=False)


@function(out=True)
def take_along_dim(x: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """gather with broadcasting: x and indices stretch to each other outside `dim`, where negative ones count from the end.

    None flattens both, and indices have to be 0 or more.
    """
    if dim is None:
        return ops.gather(reshape_to(x, (x.array.size,)), reshape_to(indices, (indices.array.size,)), dim=0)
    d = normal_dim("take_along_dim", dim, len(x.array.shape))
    if not x.array.shape:
        raise IndexError(f"take_along_dim: dim {dim} of a tensor that has no dimensions; leave dim out")
    if len(indices.array.shape) != len(x.array.shape):
        raise ShapeError(
            f"take_along_dim: x {tuple(x.array.shape)} and indices {tuple(indices.array.shape)} differ in their number of dimensions"
        )
    outer = [list(s) for s in (x.array.shape, indices.array.shape)]
    for s in outer:
        s[d] = 1
    common = list(np.broadcast_shapes(*map(tuple, outer)))
    full = [(*common[:d], y.array.shape[d], *common[d + 1 :]) for y in (x, indices)]
    n = x.array.shape[d]
    backward = ops.logical_and(ops.lt(indices, 0), ops.ge(indices, -n))
    places = ops.where(backward, ops.add(indices, n), indices)
    return ops.gather(ops.expand(x, shape=full[0]), ops.expand(places, shape=full[1]), dim=d)


@function
def take_along_axis(x: Tensor, indices: Tensor, axis: int | None = -1) -> Tensor:
    """numpy's name for take_along_dim, and numpy's default: the last axis."""
    return take_along_dim(x, indices, axis)


def _need_mask(name: str, mask: Tensor) -> None:
    if mask.array.dtype != np.bool_:
        raise DTypeError(f"{name}: mask is {mask.dtype.name}; it takes bool, such as mask != 0")


@function(out=True)
def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """The elements where mask (which broadcasts with x) is True, as a vector."""
    _need_mask("masked_select", mask)
    shape = np.broadcast_shapes(tuple(x.array.shape), tuple(mask.array.shape))
    if not shape:
        return getitem(reshape_to(x, (1,)), reshape_to(mask, (1,)))
    return getitem(ops.expand(x, shape=shape), ops.expand(mask, shape=shape))


@function(inplace=True)
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """x with its elements where mask is True replaced by the first elements of source, in order; x and mask broadcast to each other."""
    _need_mask("masked_scatter", mask)
    shape = np.broadcast_shapes(tuple(x.array.shape), tuple(mask.array.shape))
    x, full = _lined(ops.expand(x, shape=shape)), _lined(ops.expand(mask, shape=shape))
    found, dims = [new_tensor(from_host(f, x.device)) for f in np.nonzero(to_host(full.array))], tuple(range(len(x.array.shape)))
    count = found[0].array.size
    if source.array.size < count:
        raise ShapeError(f"masked_scatter: source has {source.array.size} elements for {count} that the mask names")
    first = ops.index_view(reshape_to(source, (source.array.size,)), index=(slice(0, count),))
    out = ops.index_put(x, first, *found, dims=dims, front=False, accumulate=False)
    return out if shape else no_view(ops.reshape(out, shape=()))


@function(out=True)
def nonzero(x: Tensor, *, as_tuple: bool = False) -> Any:
    """Positions of the elements that are not 0: (count, ndim), or a vector per dimension. Waits for the device."""
    found = np.nonzero(to_host(x.array)) if x.array.shape else (np.zeros(int(bool(to_host(x.array))), np.int64),)
    if as_tuple:
        return tuple([new_tensor(from_host(f, x.device)) for f in found])
    rows = np.stack(found, 1) if x.array.shape else np.zeros((found[0].size, 0), np.int64)
    return new_tensor(from_host(rows, x.device))


@function
def argwhere(x: Tensor) -> Tensor:
    """Positions of the elements that are not 0: (count, ndim)."""
    return nonzero(x)
