"""Positions, order and distinct elements by the array API standard."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tritensor.array_api.operands import axes_of, met, need_array, ours
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.tensor.core import Tensor, new_tensor


def _place(name: str, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    find = getattr(ours, name)
    if axis is None:
        found = find(need_array(name, x).reshape(-1))
        return found.reshape((1,) * len(x.array.shape)) if keepdims else found
    (d,) = axes_of(name, need_array(name, x), axis)
    return find(x, d, keepdims)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The position of the first largest along an axis; of x flattened for None."""
    return _place("argmax", x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The position of the first smallest along an axis; of x flattened for None."""
    return _place("argmin", x, axis, keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Where x is not 0: a vector of positions per axis. Raises ValueError for an array without axes."""
    if not need_array("nonzero", x).array.shape:
        raise ShapeError("nonzero: x has no axes, so its elements have no positions; reshape it to (1,)")
    return tuple(ours.nonzero(x, as_tuple=True))


def searchsorted(x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Where in the sorted vector x1 (sorted by `sorter`, where given) each of x2 would go: before its equals, or after them ("right")."""
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted: side is {side!r}; it is 'left' or 'right'")
    a, b = met("searchsorted", x1, x2)
    return ours.searchsorted(a, b, right=side == "right", sorter=None if sorter is None else sorter.to(dtypes.int64))


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """x in order along an axis, equal ones in theirs."""
    (d,) = axes_of("sort", need_array("sort", x), axis)
    return ours.sort(x, d, descending, stable=stable)[0]


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The positions that put x in order along an axis."""
    (d,) = axes_of("argsort", need_array("argsort", x), axis)
    return ours.argsort(x, d, descending, stable=stable)


def _counted_from_front(indices: Tensor, size: int) -> Tensor:
    """Indices from the end as indices from the front."""
    return indices if indices.dtype.kind == "uint" else ours.where(indices < 0, indices + size, indices)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices of x at indices along an axis, which a vector need not name."""
    if axis is None:
        if len(need_array("take", x).array.shape) != 1:
            raise ShapeError(f"take: x has shape {tuple(x.array.shape)}; name the axis, which only a vector goes without")
        axis = 0
    (d,) = axes_of("take", x, axis)
    return x[(*(slice(None),) * d, indices.to(dtypes.int64))]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements at indices along an axis, which differ from line to line."""
    (d,) = axes_of("take_along_axis", need_array("take_along_axis", x), axis)
    return ours.take_along_dim(x, _counted_from_front(indices, x.array.shape[d]).to(dtypes.int64), d)


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


def _complex_unique(x: Tensor) -> UniqueAll:
    """Complex numbers, which live on the CPU, by numpy, by real and then by imaginary part."""
    found = np.unique(x.detach().numpy().reshape(-1), True, True, True, equal_nan=False)
    values, firsts, inverse, counts = (new_tensor(f) for f in found)
    return UniqueAll(values, firsts, inverse.reshape(tuple(x.array.shape)), counts)


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements of x in order, every NaN by itself: values, first positions in x flattened, inverse, counts."""
    if need_array("unique_all", x).is_complex():
        return _complex_unique(x)
    values, inverse, counts = ours.unique(x, return_inverse=True, return_counts=True)
    order = ours.argsort(x.reshape(-1), stable=True)
    firsts = order[ours.cumsum(counts, 0) - counts] if x.array.size else order
    return UniqueAll(values, firsts, inverse.reshape(tuple(x.array.shape)), counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements of x in order, every NaN by itself, and their counts."""
    if need_array("unique_counts", x).is_complex():
        found = _complex_unique(x)
        return UniqueCounts(found.values, found.counts)
    return UniqueCounts(*ours.unique(x, return_counts=True))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements of x in order, every NaN by itself, and which of them each element of x is."""
    if need_array("unique_inverse", x).is_complex():
        found = _complex_unique(x)
        return UniqueInverse(found.values, found.inverse_indices)
    values, inverse = ours.unique(x, return_inverse=True)
    return UniqueInverse(values, inverse.reshape(tuple(x.array.shape)))


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements of x in order, every NaN by itself."""
    return _complex_unique(x).values if need_array("unique_values", x).is_complex() else ours.unique(x)


__all__ = [
    "argmax", "argmin", "argsort", "nonzero", "searchsorted", "sort", "take", "take_along_axis", "unique_all", "unique_counts",
    "unique_inverse", "unique_values",
]  # fmt: skip
