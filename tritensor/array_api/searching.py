"""Positions, order and distinct elements by the array API standard."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tritensor.array_api.operands import functions, normal_axes, promote_operands, require_array
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.tensor.core import Tensor, new_tensor


def _find_extreme(name: str, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    find = getattr(functions, name)
    if axis is None:
        found = find(require_array(name, x).reshape(-1))
        return found.reshape((1,) * len(x._array.shape)) if keepdims else found
    (d,) = normal_axes(name, require_array(name, x), axis)
    return find(x, d, keepdims)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The position of the first largest along an axis; of x flattened for None."""
    return _find_extreme("argmax", x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The position of the first smallest along an axis; of x flattened for None."""
    return _find_extreme("argmin", x, axis, keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Where x is not 0: a vector of positions per axis. Raises ValueError for an array without axes."""
    if not require_array("nonzero", x)._array.shape:
        raise ShapeError("nonzero: x has no axes, so its elements have no positions; reshape it to (1,)")
    return tuple(functions.nonzero(x, as_tuple=True))


def searchsorted(x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Where in the sorted vector x1 (sorted by `sorter`, where given) each of x2 would go: before its equals, or after them ("right")."""
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted: side is {side!r}; it is 'left' or 'right'")
    a, b = promote_operands("searchsorted", x1, x2)
    # PyTorch wants int64; the standard allows every integer type.
    return functions.searchsorted(a, b, right=side == "right", sorter=None if sorter is None else sorter.to(dtypes.int64))


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """x in order along an axis, equal ones in theirs."""
    (d,) = normal_axes("sort", require_array("sort", x), axis)
    return functions.sort(x, d, descending, stable=stable)[0]


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The positions that put x in order along an axis."""
    (d,) = normal_axes("argsort", require_array("argsort", x), axis)
    return functions.argsort(x, d, descending, stable=stable)


def _to_nonnegative(indices: Tensor, size: int) -> Tensor:
    """Indices from the end as indices from the front."""
    # Unsigned indices cannot count from the end.
    return indices if indices.dtype.kind == "uint" else functions.where(indices < 0, indices + size, indices)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices of x at indices along an axis, which a vector need not name."""
    if axis is None:
        if len(require_array("take", x)._array.shape) != 1:
            raise ShapeError(f"take: x has shape {tuple(x._array.shape)}; name the axis, which only a vector goes without")
        axis = 0
    (d,) = normal_axes("take", x, axis)
    return x[(*(slice(None),) * d, indices.to(dtypes.int64))]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements at indices along an axis, which differ from line to line."""
    (d,) = normal_axes("take_along_axis", require_array("take_along_axis", x), axis)
    # PyTorch's gather refuses negative indices.
    return functions.take_along_dim(x, _to_nonnegative(indices, x._array.shape[d]).to(dtypes.int64), d)


class UniqueAll(NamedTuple):
    """Distinct values, where each stands first, which of them each element is, how often each stands."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Distinct values and how often each stands."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Distinct values and which of them each element is."""

    values: Tensor
    inverse_indices: Tensor


def _find_complex_unique(x: Tensor) -> UniqueAll:
    """Complex numbers, which live on the CPU, by numpy, by real and then by imaginary part."""
    # Complex numbers have no order in PyTorch, so its unique refuses them.
    found = np.unique(x.detach().numpy().reshape(-1), True, True, True, equal_nan=False)
    values, firsts, inverse, counts = (new_tensor(f) for f in found)
    return UniqueAll(values, firsts, inverse.reshape(tuple(x._array.shape)), counts)


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements of x in order, every NaN by itself: values, first positions in x flattened, inverse, counts."""
    if require_array("unique_all", x).is_complex():
        return _find_complex_unique(x)
    values, inverse, counts = functions.unique(x, return_inverse=True, return_counts=True)
    # The first of each run in a stable order is the first occurrence.
    order = functions.argsort(x.reshape(-1), stable=True)
    firsts = order[functions.cumsum(counts, 0) - counts] if x._array.size else order
    return UniqueAll(values, firsts, inverse.reshape(tuple(x._array.shape)), counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements of x in order, every NaN by itself, and their counts."""
    if require_array("unique_counts", x).is_complex():
        found = _find_complex_unique(x)
        return UniqueCounts(found.values, found.counts)
    return UniqueCounts(*functions.unique(x, return_counts=True))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements of x in order, every NaN by itself, and which of them each element of x is."""
    if require_array("unique_inverse", x).is_complex():
        found = _find_complex_unique(x)
        return UniqueInverse(found.values, found.inverse_indices)
    values, inverse = functions.unique(x, return_inverse=True)
    return UniqueInverse(values, inverse.reshape(tuple(x._array.shape)))


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements of x in order, every NaN by itself."""
    return _find_complex_unique(x).values if require_array("unique_values", x).is_complex() else functions.unique(x)


__all__ = [
    "argmax", "argmin", "argsort", "nonzero", "searchsorted", "sort", "take", "take_along_axis", "unique_all", "unique_counts",
    "unique_inverse", "unique_values",
]  # fmt: skip
