"""unique, unique_consecutive and isin. How many elements are distinct decides the shape of the result, so these wait for the device."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import DTypeError, ShapeError
from tritensor.ops.table import normal_dim, ops
from tritensor.tensor.casting import to_dtype
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.derivatives import refuse_derivative
from tritensor.tensor.functions.shaping.reshaping import forget_base, reshape_to, slice_along, to_c_order
from tritensor.tensor.functions.sorting.ordering import invert_permutation
from tritensor.tensor.parsing.nonzero_count import flat_nonzero
from tritensor.tensor.public_api.publish import function

INT64 = np.dtype(np.int64)


def _find_run_starts(x: Tensor, d: int = 0) -> Tensor:
    """Which elements along d differ from the one before; the first one does. NaN differs from everything."""
    n = x._array.shape[d]
    one = (*x._array.shape[:d], min(n, 1), *x._array.shape[d + 1 :])
    changes = ops.ne(slice_along(x, d, 1, n), slice_along(x, d, 0, max(n - 1, 0)))
    return ops.cat(ops.full(shape=one, value=True, dtype=np.dtype(np.bool_), device=x.device), changes, dim=d)


def _number_runs(firsts: Tensor, d: int = 0) -> Tensor:
    return ops.sub(ops.cumsum(firsts, dim=d, reverse=False), 1)


def _count_runs(starts: Tensor, n: int) -> Tensor:
    """How long each run is, of n elements."""
    m = starts._array.size
    ends = ops.cat(slice_along(starts, 0, 1, m), ops.full(shape=(min(m, 1),), value=n, dtype=INT64, device=starts.device), dim=0)
    return ops.sub(ends, starts)


def _take_slices(x: Tensor, places: Tensor, d: int) -> Tensor:
    return to_c_order(ops.index_get(x, places, dims=(d,), front=False))


def _pack_results(name: str, x: Tensor, found: Tensor, numbers: Tensor | None = None, counts: Tensor | None = None) -> Any:
    """What a function gives that found distinct elements of x: these, by which there is no derivative, and whatever else was asked for."""
    several = tuple(t for t in (refuse_derivative(name, found, x), numbers, counts) if t is not None)
    return several if len(several) > 1 else several[0]


def _take_slices_along(x: Tensor, places: Tensor, d: int) -> Tensor:
    """Slices of x along d; as PyTorch lays them, each slice by itself in memory."""
    order = (d, *[a for a in range(len(x._array.shape)) if a != d])
    found = _take_slices(ops.permute(x, dims=order), places, 0)
    return forget_base(ops.permute(found, dims=invert_permutation(order)))


def _parse_dim(name: str, x: Tensor, dim: int) -> int:
    """dim counted from the front. IndexError where x has none."""
    if not x._array.shape:
        raise IndexError(f"{name}: dim {dim} of a tensor that has no dimensions; leave dim out")
    return normal_dim(name, dim, len(x._array.shape))


def _slices_as_rows(name: str, x: Tensor, d: int) -> Tensor | None:
    """The slices along d as rows (n, elements); None where there is none. ShapeError where slices have no elements."""
    shape = tuple(x._array.shape)
    n = shape[d]
    if 0 in (*shape[:d], *shape[d + 1 :]):
        raise ShapeError(f"{name}: the slices of x {shape} along dim {d} have no elements, and nothing tells them apart")
    moved = ops.permute(x, dims=(d, *[a for a in range(len(shape)) if a != d]))
    return reshape_to(moved, (n, math.prod(shape) // n)) if n else None


def _rank_rows(rows: Tensor) -> Tensor:
    """(n,) the ranks of rows (n, c) in lexicographic order, equal rows of one rank: columns are ranked, then pairs of ranks, until one is left."""
    n = rows._array.shape[0]
    columns = ops.permute(rows, dims=(1, 0))
    while True:
        values, order = ops.sort(columns, dim=1, descending=False)
        zeros = ops.full(shape=tuple(order._array.shape), value=0, dtype=INT64, device=rows.device)
        columns = ops.scatter(zeros, order, _number_runs(_find_run_starts(values, 1), 1), dim=1)
        count = columns._array.shape[0]
        if count == 1:
            return ops.reshape(columns, shape=(n,))
        even = count // 2 * 2
        pairs = ops.reshape(slice_along(columns, 0, 0, even), shape=(even // 2, 2, n))
        high, low = (ops.reshape(slice_along(pairs, 1, k, k + 1), shape=(even // 2, n)) for k in (0, 1))
        joined = ops.add(ops.mul(high, n), low)
        columns = joined if even == count else ops.cat(joined, slice_along(columns, 0, even, count), dim=0)


@function
def unique(x: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The distinct elements, or the distinct slices along dim, in ascending order whatever `sorted` says. Each NaN is one of its own.

    return_inverse adds where each element (slice) is among them, of x's shape (size); return_counts how often each occurs. int64.
    Raises ShapeError for slices without elements, IndexError for a dim of a 0-d tensor; a derivative by x raises NoDerivativeError.

    >>> tt.tensor([3, 1, 3]).unique(return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    given, x = x, x.detach()
    if dim is not None:
        d = _parse_dim("unique", x, dim)
        rows = _slices_as_rows("unique", x, d)
        keys, shape = (x if rows is None else _rank_rows(rows)), (x._array.shape[d],)
        keys = ops.reshape(keys, shape=shape) if rows is not None else ops.full(shape=(0,), value=0, dtype=INT64, device=x.device)
    else:
        d, keys, shape = None, reshape_to(x, (x._array.size,)), tuple(x._array.shape)
    n = keys._array.size
    # Without the inverse no permutation is needed: sorting values alone is faster.
    if d is None and not return_inverse:
        values = ops.sort_values(keys, dim=0)
        # numpy finds the starts in one pass; the device path makes index tensors.
        if not return_counts and isinstance(values._array, np.ndarray):
            return _pack_results("unique", given, new_tensor(values._array[_find_run_starts_on_host(values._array)]))
        starts = flat_nonzero(_find_run_starts(values))
        return _pack_results("unique", given, _take_slices(values, starts, 0), None, _count_runs(starts, n) if return_counts else None)
    values, order = ops.sort(keys, dim=0, descending=False)
    firsts = _find_run_starts(values)
    starts = flat_nonzero(firsts)
    found = _take_slices(values, starts, 0) if d is None else _take_slices_along(x, _take_slices(order, starts, 0), d)
    numbers = None
    if return_inverse:
        zeros = ops.full(shape=(n,), value=0, dtype=INT64, device=x.device)
        numbers = forget_base(ops.reshape(ops.scatter(zeros, order, _number_runs(firsts), dim=0), shape=shape))
    return _pack_results("unique", given, found, numbers, _count_runs(starts, n) if return_counts else None)


def _find_run_starts_on_host(x: np.ndarray) -> np.ndarray:
    """Which elements of a vector differ from the one before."""
    new = np.empty(x.size, np.bool_)
    new[:1] = True
    np.not_equal(x[1:], x[:-1], out=new[1:])
    return new


@function
def unique_consecutive(x: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The first of every run of equal elements (of equal slices along dim), in order. NaN equals nothing.

    return_inverse adds the number of the run that each element is in, return_counts the length of each run. int64.
    A derivative by x raises NoDerivativeError.
    """
    given, x = x, x.detach()
    if dim is None and not return_inverse and not return_counts and isinstance(x._array, np.ndarray):
        flat = x._array.reshape(-1)
        return _pack_results("unique_consecutive", given, new_tensor(flat[_find_run_starts_on_host(flat)]))
    if dim is not None:
        d = _parse_dim("unique_consecutive", x, dim)
        rows, along = _slices_as_rows("unique_consecutive", x, d), x
        shape: tuple[int, ...] = (x._array.shape[d],)
        if rows is None:
            firsts = ops.full(shape=(0,), value=False, dtype=np.dtype(np.bool_), device=x.device)
        else:
            firsts = ops.any(_find_run_starts(rows), dim=(1,), keepdim=False)
    else:
        d, shape, along = 0, tuple(x._array.shape), reshape_to(x, (x._array.size,))
        firsts = _find_run_starts(along)
    starts = flat_nonzero(firsts)
    numbers = forget_base(ops.reshape(_number_runs(firsts), shape=shape)) if return_inverse else None
    counts = _count_runs(starts, firsts._array.size) if return_counts else None
    return _pack_results("unique_consecutive", given, _take_slices_along(along, starts, d), numbers, counts)


@function(method=False, out=True, also={"element": "elements", "test_element": "test_elements"})
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is among test_elements (one of the two may be a number); with `invert` whether it is not. NaN is in nothing.

    `assume_unique` changes nothing. Raises TypeError for two numbers, DTypeError for bool and complex types.
    """
    given = [t for t in (elements, test_elements) if isinstance(t, Tensor)]
    for name, t in (("elements", elements), ("test_elements", test_elements)):
        if not isinstance(t, Tensor | bool | int | float | np.generic):
            raise TypeError(f"isin: {name} is a {type(t).__name__}; give a tensor or a number")
    if not given:
        raise TypeError("isin: elements and test_elements are numbers; give a tensor for at least one of them")
    common = dtypes.result_type([t._array if isinstance(t, Tensor) else t for t in (elements, test_elements)], "isin")
    for name, t in (("elements", elements), ("test_elements", test_elements)):
        if isinstance(t, Tensor) and dtypes.of(t._array.dtype).kind in ("bool", "complex"):
            raise DTypeError(f"isin: {name} is {t.dtype.name}; it takes integers and floating types; cast it with .to(...)")
    sought, among = (_to_common_type(t, common, given[0]) for t in (elements, test_elements))
    n = among._array.size
    if n == 0:
        return ops.full(shape=tuple(sought._array.shape), value=bool(invert), dtype=np.dtype(np.bool_), device=sought.device)
    # Sorted once, then one binary search for each element.
    row = ops.sort_values(reshape_to(among, (n,)), dim=0)
    upwards = ops.where(ops.ne(row, row), math.inf, row) if row.is_floating_point() else row  # NaN comes last, and no search passes it
    place = ops.clamp(ops.searchsorted(upwards, sought, right=False, out_int32=False), None, n - 1)
    return (ops.ne if invert else ops.eq)(ops.index_get(row, place, dims=(0,), front=False), sought)


def _to_common_type(t: Any, common: np.dtype, like: Tensor) -> Tensor:
    """A tensor without gradients, in the common type."""
    if not isinstance(t, Tensor):
        return ops.full(shape=(), value=t, dtype=common, device=like.device)
    return to_dtype(t.detach(), common)
