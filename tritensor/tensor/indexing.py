"""Indexing: x[...] and x[...] = value with numpy's meaning, and PyTorch's functions that pick and put by index."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor import dtypes
from tritensor.array import from_host, to_host
from tritensor.autograd.modes import state
from tritensor.errors import DeviceError, DTypeError, ShapeError
from tritensor.table import normal_dim, ops
from tritensor.tensor.core import Tensor, as_tensor, new_tensor
from tritensor.tensor.inplace import overwrite
from tritensor.tensor.publish import function
from tritensor.tensor.shaping import axis_too, reshape_to


def _is_basic(i: Any) -> bool:
    return (
        i is None or i is Ellipsis or type(i) is slice or (type(i) is int) or (isinstance(i, int | np.integer) and not isinstance(i, bool))
    )


def _basic(x: Tensor, index: tuple[Any, ...], name: str) -> tuple[Any, ...]:
    """A basic index in the form that ops.index_view takes: non-negative ints, slices of Python ints, no Ellipsis."""
    shape = x.array.shape
    used = 0
    for i in index:
        if i is not None and i is not Ellipsis:
            used += 1
    if used > len(shape):
        raise IndexError(f"{name}: {used} indices for a {len(shape)}-dimensional tensor of shape {tuple(shape)}")
    out: list[Any] = []
    d = 0
    seen = False
    for i in index:
        if type(i) is slice:
            out.append(i if _plain(i) else _plain_slice(i))
            d += 1
        elif i is None:
            out.append(None)
        elif i is Ellipsis:
            if seen:
                raise IndexError(f"{name}: an index can hold one Ellipsis (...) only")
            seen = True
            out.extend([slice(None)] * (len(shape) - used))
            d += len(shape) - used
        else:
            n = shape[d]
            if not -n <= i < n:
                raise IndexError(f"{name}: index {i} is out of range for dim {d} of size {n}")
            out.append(int(i) + n if i < 0 else int(i))
            d += 1
    return tuple(out)


def _plain(s: slice) -> bool:
    return (
        (s.start is None or type(s.start) is int)
        and (s.stop is None or type(s.stop) is int)
        and (s.step is None or (type(s.step) is int and s.step != 0))
    )


def _plain_slice(s: slice) -> slice:
    """A slice whose bounds were numpy integers or 0-d tensors."""
    if s.step is not None and int(s.step) == 0:
        raise ValueError("getitem: a slice's step cannot be 0")
    return slice(*[None if v is None else v.__index__() for v in (s.start, s.stop, s.step)])


def getitem(x: Tensor, index: Any) -> Tensor:
    """x[index]: a view for ints, slices, None and ..., a copy as soon as an array, list or mask takes part.

    Raises IndexError, before anything runs, for an index that is out of range; on a GPU the values of index tensors are not
    known here: an element out of range reads 0 there, and the next wait for the device raises.
    """
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
    entries = index if type(index) is tuple else (index,)
    for i in entries:
        if not _is_basic(i):
            view, indices, dims, front = _advanced(x, entries, "getitem")
            return ops.index_get(view, *indices, dims=dims, front=front)
    return ops.index_view(x, index=_basic(x, entries, "getitem"))


def _is_rows(x: Tensor, index: Any) -> bool:
    """Whether the index is one tensor of integers beside x: the usual case, taken without further looks."""
    return (
        isinstance(index, Tensor)
        and index.array.dtype.kind in "iu"
        and bool(x.array.shape)
        and type(index.array) is type(x.array)
        and index.device == x.device
    )


def _as_index(x: Tensor, i: Any, name: str) -> Any:
    """An entry that is not basic, as a Tensor of integers or booleans on x's device."""
    if isinstance(i, Tensor):
        found = i
    elif isinstance(i, bool | np.bool_):
        found = new_tensor(np.asarray(bool(i)))
    elif isinstance(i, list | tuple | range | np.ndarray):
        values = np.asarray([v.tolist() if isinstance(v, Tensor) else v for v in i] if isinstance(i, list | tuple) else i)
        found = new_tensor(values.astype(np.int64) if values.size == 0 and values.dtype == np.float64 else values)
    else:
        raise IndexError(f"{name}: {type(i).__name__} is no index; use ints, slices, None, ..., boolean or integer tensors")
    kind = dtypes.of(found.array.dtype).kind
    if kind not in ("bool", "int", "uint"):
        raise IndexError(f"{name}: an index of {found.dtype.name}; use integers or booleans, such as .long()")
    if found.device != x.device:
        if found.array.size > 1 and isinstance(i, Tensor) and found.device.type != "cpu":
            raise DeviceError(f"{name}: x is on {x.device}, an index on {found.device}; move it with .to({str(x.device)!r})")
        found = new_tensor(from_host(to_host(found.array), x.device))
    return found


def _advanced(x: Tensor, entries: tuple[Any, ...], name: str) -> tuple[Tensor, list[Tensor], tuple[int, ...], bool]:
    """x after its basic entries, the index tensors, the dimensions they apply to, and whether their result comes first.

    numpy's rule: ints count as index arrays once there is one; arrays that stand side by side leave their result in
    place, separated ones (by a slice, None or ...) put it in front.
    """
    items = [i if _is_basic(i) else _as_index(x, i, name) for i in entries]
    shape = tuple(x.array.shape)
    used = sum(_consumes(i) for i in items)
    if used > len(shape):
        raise IndexError(f"{name}: {used} indices for a {len(shape)}-dimensional tensor of shape {shape}")
    if sum(i is Ellipsis for i in items) > 1:
        raise IndexError(f"{name}: an index can hold one Ellipsis (...) only")
    basic: list[Any] = []  # what index_view is given: slices and new axes; indexed dimensions pass through whole
    indices: list[Tensor] = []
    dims: list[int] = []
    d = at = 0  # dimension of x, dimension of the view
    runs, inside = 0, False
    for i in items:
        advanced = isinstance(i, Tensor) or (i is not None and i is not Ellipsis and type(i) is not slice)
        if advanced and not inside:
            runs += 1
        inside = advanced
        if i is Ellipsis:
            count = len(shape) - used
            basic.extend([slice(None)] * count)
            d, at = d + count, at + count
        elif i is None:
            basic.append(None)
            at += 1
        elif type(i) is slice:
            basic.append(i if _plain(i) else _plain_slice(i))
            d, at = d + 1, at + 1
        elif isinstance(i, Tensor) and dtypes.of(i.array.dtype).kind == "bool":
            new, count = _mask_indices(x, i, shape, d, name)
            basic.extend([slice(None)] * count if count else [None])  # True and False stand for a new dimension
            indices.extend(new)
            dims.extend(range(at, at + max(count, 1)))
            d, at = d + count, at + max(count, 1)
        else:
            basic.append(slice(None))
            indices.append(i if isinstance(i, Tensor) else _int_index(x, int(i), shape[d], d, name))
            dims.append(at)
            d, at = d + 1, at + 1
    trivial = all(type(b) is slice and b == slice(None) for b in basic)
    return (x if trivial else ops.index_view(x, index=tuple(basic))), indices, tuple(dims), runs > 1


def _consumes(i: Any) -> int:
    """How many dimensions of x an entry takes."""
    if i is None or i is Ellipsis:
        return 0
    return len(i.array.shape) if isinstance(i, Tensor) and dtypes.of(i.array.dtype).kind == "bool" else 1


def _int_index(x: Tensor, i: int, n: int, d: int, name: str) -> Tensor:
    if not -n <= i < n:
        raise IndexError(f"{name}: index {i} is out of range for dim {d} of size {n}")
    return new_tensor(from_host(np.asarray(i, np.int64), x.device))


def _mask_indices(x: Tensor, mask: Tensor, shape: tuple[int, ...], d: int, name: str) -> tuple[list[Tensor], int]:
    """A boolean mask as integer indices, one per dimension that it covers (one for a 0-d mask, of a new dimension)."""
    values = to_host(mask.array)  # how many there are decides the result's shape, so the host must know
    count = values.ndim
    if values.shape != shape[d : d + count]:
        raise IndexError(f"{name}: a mask of shape {values.shape} for dims of sizes {shape[d : d + count]}; both must be the same")
    found = np.nonzero(values) if count else (np.zeros(int(values), np.int64),)
    return [new_tensor(from_host(np.ascontiguousarray(f), x.device)) for f in found], count


def setitem(x: Tensor, index: Any, value: Any) -> None:
    """x[index] = value, which broadcasts and is cast; recorded by autograd. Of repeated positions the last one stays."""
    entries = index if type(index) is tuple else (index,)
    if all(map(_is_basic, entries)):
        target = ops.index_view(x, index=_basic(x, entries, "setitem"))
        overwrite(target, _fitting(x, value), "setitem")
        return
    if len(entries) == 1 and isinstance(entries[0], Tensor) and _fill_masked(x, entries[0], value):
        return
    if _is_rows(x, index):
        _put(x, [index], (0,), False, value)
        return
    view, indices, dims, front = _advanced(x, entries, "setitem")
    _put(view, indices, dims, front, value)


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
    if isinstance(value, bool | int | float):
        return value
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
    base = x.extra.base if x.extra is not None else None
    if state.enabled and (x.tracked or v.tracked or (base is not None and base.tracked)):
        overwrite(x, ops.index_put(x, v, *indices, dims=dims, front=front, accumulate=False), "setitem")
    else:
        ops.index_assign(x, v, *indices, dims=dims, front=front)


Tensor.__getitem__ = getitem  # type: ignore
Tensor.__setitem__ = setitem  # type: ignore


# -- PyTorch's functions
@function
@axis_too
def gather(x: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """y[.., i, ..] = x[.., index[.., i, ..], ..] along `dim`; y has index's shape. `sparse_grad` is accepted; gradients are dense."""
    return ops.gather(x, index, dim=normal_dim("gather", dim, len(x.array.shape)))


def _source(name: str, x: Tensor, index: Tensor, source: Any) -> Tensor:
    """The values to scatter: a tensor of x's type, a number spread over index's shape."""
    if isinstance(source, Tensor):
        if source.array.dtype != x.array.dtype:
            raise DTypeError(f"{name}: src is {source.dtype.name}, x is {x.dtype.name}; cast one of them with .to(...)")
        return source
    return ops.expand(ops.full(shape=(), value=source, dtype=x.array.dtype, device=x.device), shape=tuple(index.array.shape))


@function(inplace=True)
@axis_too
def scatter(x: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Tensor:
    """A copy of x with src[.., j, ..] (or a number) written at [.., index[.., j, ..], ..]; of repeated positions the last one stays."""
    given = value if src is None else src
    if given is None:
        raise TypeError("scatter: give src, a tensor, or value, a number")
    d = normal_dim("scatter", dim, len(x.array.shape))
    source = _source("scatter", x, index, given)
    if reduce == "add":
        return ops.scatter_add(x, index, source, dim=d)
    if reduce is not None:
        raise ValueError(f"scatter: reduce {reduce!r} is not supported; leave it out, or use 'add'")
    return ops.scatter(x, index, source, dim=d)


@function(inplace=True)
@axis_too
def scatter_add(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """A copy of x with src[.., j, ..] added at [.., index[.., j, ..], ..] along `dim`, in a fixed order."""
    return ops.scatter_add(x, index, _source("scatter_add", x, index, src), dim=normal_dim("scatter_add", dim, len(x.array.shape)))


@function
@axis_too
def index_select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of a dimension that a vector of indices names."""
    if len(index.array.shape) > 1:
        raise ShapeError(f"index_select: index {tuple(index.array.shape)} is not a vector")
    d = normal_dim("index_select", dim, len(x.array.shape))
    return ops.index_get(x, reshape_to(index, (index.array.size,)), dims=(d,), front=False)


@function(inplace=True)
@axis_too
def index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """A copy of x with alpha * source's slices added at the indices of a dimension."""
    d = normal_dim("index_add", dim, len(x.array.shape))
    values = _source("index_add", x, index, source)
    return ops.index_put(x, values if alpha == 1 else ops.mul(values, alpha), index, dims=(d,), front=False, accumulate=True)


@function(inplace=True)
@axis_too
def index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """A copy of x with source's slices written at the indices of a dimension."""
    d = normal_dim("index_copy", dim, len(x.array.shape))
    return ops.index_put(x, _source("index_copy", x, index, source), index, dims=(d,), front=False, accumulate=False)


@function(inplace=True)
@axis_too
def index_fill(x: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """A copy of x with one value written at the indices of a dimension."""
    d = normal_dim("index_fill", dim, len(x.array.shape))
    shape = (*x.array.shape[:d], index.array.size, *x.array.shape[d + 1 :])
    one = value if isinstance(value, Tensor) else ops.full(shape=(), value=value, dtype=x.array.dtype, device=x.device)
    return ops.index_put(x, ops.expand(one, shape=shape), index, dims=(d,), front=False, accumulate=False)


@function(inplace=True)
def index_put(x: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of x with values written, or added with `accumulate`, at a tuple of index tensors."""
    view, found, dims, front = _advanced(x, tuple(indices), "index_put")
    v = ops.expand(values, shape=_taken(view, found, dims, front))
    return ops.index_put(view, v, *found, dims=dims, front=front, accumulate=bool(accumulate))


@function
def take(x: Tensor, index: Tensor) -> Tensor:
    """Elements of the flattened tensor, in index's shape."""
    return ops.index_get(reshape_to(x, (x.array.size,)), index, dims=(0,), front=False)


@function
@axis_too
def take_along_dim(x: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """gather with broadcasting: x and indices stretch to each other outside `dim`; None flattens both."""
    if dim is None:
        return ops.gather(reshape_to(x, (x.array.size,)), reshape_to(indices, (indices.array.size,)), dim=0)
    d = normal_dim("take_along_dim", dim, len(x.array.shape))
    if len(indices.array.shape) != len(x.array.shape):
        raise ShapeError(
            f"take_along_dim: x {tuple(x.array.shape)} and indices {tuple(indices.array.shape)} differ in their number of dimensions"
        )
    outer = [list(s) for s in (x.array.shape, indices.array.shape)]
    for s in outer:
        s[d] = 1
    common = list(np.broadcast_shapes(*map(tuple, outer)))
    full = [(*common[:d], y.array.shape[d], *common[d + 1 :]) for y in (x, indices)]
    return ops.gather(ops.expand(x, shape=full[0]), ops.expand(indices, shape=full[1]), dim=d)


@function
def take_along_axis(x: Tensor, indices: Tensor, axis: int | None = -1) -> Tensor:
    """numpy's name for take_along_dim, and numpy's default: the last axis."""
    return take_along_dim(x, indices, axis)


@function(inplace=True)
def masked_fill(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    """x where mask is False, one value where it is True; mask broadcasts."""
    _need_mask("masked_fill", mask)
    filler = value if isinstance(value, Tensor) else ops.full(shape=(), value=value, dtype=x.array.dtype, device=x.device)
    return ops.where(mask, ops.cast(filler, dtype=x.array.dtype) if filler.array.dtype != x.array.dtype else filler, x)


def _need_mask(name: str, mask: Tensor) -> None:
    if mask.array.dtype != np.bool_:
        raise DTypeError(f"{name}: mask is {mask.dtype.name}; it takes bool, such as mask != 0")


@function
def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """The elements where mask (which broadcasts with x) is True, as a vector."""
    _need_mask("masked_select", mask)
    shape = np.broadcast_shapes(tuple(x.array.shape), tuple(mask.array.shape))
    if not shape:
        return getitem(reshape_to(x, (1,)), reshape_to(mask, (1,)))
    return getitem(ops.expand(x, shape=shape), ops.expand(mask, shape=shape))


@function(inplace=True)
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """x with its elements where mask is True replaced by the first elements of source, in order."""
    _need_mask("masked_scatter", mask)
    full = ops.expand(mask, shape=tuple(x.array.shape))
    found, dims = [new_tensor(from_host(f, x.device)) for f in np.nonzero(to_host(full.array))], tuple(range(len(x.array.shape)))
    count = found[0].array.size
    if source.array.size < count:
        raise ShapeError(f"masked_scatter: source has {source.array.size} elements for {count} that the mask names")
    first = ops.index_view(reshape_to(source, (source.array.size,)), index=(slice(0, count),))
    return ops.index_put(x, first, *found, dims=dims, front=False, accumulate=False)


@function
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
