"""index_select, index_add, index_copy, index_fill, index_reduce: whole slices of a dimension, named by a vector of indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, DeviceError, DTypeError, IndexShapeError, OutOfRangeError, ShapeError
from tritensor.ops.table import normal_dim, ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.indexing.scattering import at_least_1d, count_slices, divide_by_counts, reduce_into, require_same_dtype
from tritensor.tensor.functions.shaping.reshaping import forget_base
from tritensor.tensor.public_api.arguments import Operand
from tritensor.tensor.public_api.publish import function


def _to_vector(name: str, index: Tensor) -> Tensor:
    """An index as a vector; the op that is given it as `called` refuses values below 0 and beyond the end."""
    if len(index._array.shape) > 1:
        raise IndexShapeError(f"{name}: index {tuple(index._array.shape)} is not a vector; give one dimension, such as index.flatten()")
    return at_least_1d(index)


def _expand_along(index: Tensor, shape: tuple[int, ...], dim: int) -> Tensor:
    """A vector along `dim` of a shape, the same everywhere else; a view."""
    return ops.expand(ops.reshape(index, shape=tuple([n if d == dim else 1 for d, n in enumerate(shape)])), shape=shape)


def _prepare_slices(name: str, x: Tensor, dim: int, index: Tensor, source: Tensor) -> tuple[Tensor, int, Tensor, Tensor]:
    """x, the dimension, index in source's shape, and source, all of at least one dimension; x's slices are of the sizes of source's."""
    d = normal_dim(name, dim, len(x._array.shape))
    whole, part = at_least_1d(x), at_least_1d(require_same_dtype(name, x, source))
    places = _to_vector(name, index)
    want = (*whole._array.shape[:d], places._array.size, *whole._array.shape[d + 1 :])
    if tuple(part._array.shape) != want:
        given = f"x {tuple(x._array.shape)}, {places._array.size} indices along dim {d} and source {tuple(source._array.shape)}"
        raise IndexShapeError(f"{name}: {given}; source's shape must be {want}")
    return whole, d, _expand_along(places, want, d), part


def _refuse_empty_dim(name: str, x: Tensor, dim: int, places: Tensor) -> None:
    """Raise OutOfRangeError for indices into a dimension without elements, be there nothing to read or write along the others, too."""
    if places._array.size and not x._array.shape[dim]:
        raise OutOfRangeError(
            f"{name}: {places._array.size} indices into dim {dim} of x {tuple(x._array.shape)}, which has size 0; give none"
        )


def _restore_shape(x: Tensor, y: Tensor) -> Tensor:
    """A result in the shape of an x that may have no dimensions."""
    return y if x._array.shape else forget_base(ops.reshape(y, shape=()))


@function(out="exact")
def index_select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of a dimension that a vector of indices names. Raises IndexError for a negative index, too."""
    d = normal_dim("index_select", dim, len(x._array.shape))
    if not x._array.shape and index._array.size != 1:
        raise OutOfRangeError(f"index_select: {index._array.size} indices into a tensor without dimensions; it takes one")
    whole = at_least_1d(x)
    shape = whole._array.shape
    places = _to_vector("index_select", index)
    _refuse_empty_dim("index_select", whole, d, places)
    return _restore_shape(
        x, ops.gather(whole, _expand_along(places, (*shape[:d], places._array.size, *shape[d + 1 :]), d), dim=d, called="index_select")
    )


@function(inplace=True, out=True)
def index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """A copy of x with alpha * source's slices added at the indices of a dimension, in a fixed order; of integers alpha is cut to a whole number.

    Raises IndexError for a negative index, too.
    """
    whole, d, places, part = _prepare_slices("index_add", x, dim, index, source)
    if len(whole._array.shape) > 1 and not whole._array.size:  # as PyTorch: nothing is asked of the indices
        return ops.copy(x)
    # 1 is the default: no pass over source for it.
    part = part if alpha == 1 else ops.mul(part, dtypes.as_factor(x._array.dtype, alpha, "index_add"))
    return _restore_shape(x, ops.scatter_add(whole, places, part, dim=d, called="index_add"))


@function(inplace=True, out=True)
def index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """A copy of x with source's slices written at the indices of a dimension; of repeated indices the last one stays.

    Raises IndexError for a negative index, too.
    """
    whole, d, places, part = _prepare_slices("index_copy", x, dim, index, source)
    return _restore_shape(x, ops.scatter(whole, places, part, dim=d, called="index_copy"))


@function(inplace=True, out=True)
def index_reduce(x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """A copy of x in which the `reduce` of source's slices, and of x's own unless include_self is False, stands at the indices of a dimension.

    Args:
        reduce: "prod", "mean", "amax" or "amin"; what it means is said of scatter_reduce.
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise ArgumentError(f"index_reduce: reduce is {reduce!r}; it is 'prod', 'mean', 'amax' or 'amin' (for sums there is index_add)")
    whole, d, places, part = _prepare_slices("index_reduce", x, dim, index, source)
    _refuse_empty_dim("index_reduce", whole, d, at_least_1d(index))
    if reduce != "mean":
        return _restore_shape(x, reduce_into("index_reduce", whole, d, places, part, reduce, include_self))
    sums = reduce_into("index_reduce", whole, d, places, part, "sum", include_self)
    return _restore_shape(x, divide_by_counts(sums, count_slices(whole, d, at_least_1d(index), include_self)))


@function(inplace=True)
def index_fill(x: Tensor, dim: int, index: Tensor, value: Operand) -> Tensor:
    """A copy of x with one value, a number or a 0-d tensor, written at the indices of a dimension; negative ones count from the end."""
    d = normal_dim("index_fill", dim, len(x._array.shape))
    whole, places = at_least_1d(x), _to_vector("index_fill", index)
    shape = tuple([n if k == d else 1 for k, n in enumerate(whole._array.shape)])
    nowhere = ops.full(shape=shape, value=False, dtype=np.dtype(np.bool_), device=x.device)
    if 0 in [n for k, n in enumerate(whole._array.shape) if k != d]:  # as PyTorch: nothing is asked of the indices
        return ops.copy(x)
    here = (*shape[:d], places._array.size, *shape[d + 1 :])
    true = ops.full(shape=here, value=True, dtype=np.dtype(np.bool_), device=x.device)
    mask = ops.index_put(nowhere, true, places, dims=(d,), front=False, accumulate=False, called="index_fill")
    return _restore_shape(x, ops.where(mask, _to_fill_value("index_fill", x, value), whole))


def _to_fill_value(name: str, x: Tensor, value: Any) -> Any:
    """A value to fill with: a number that fits x's type, or a 0-d tensor of it."""
    if isinstance(value, bool | int | float | complex | np.generic):
        return dtypes.as_element(x._array.dtype, value.item() if isinstance(value, np.generic) else value, name)
    if value._array.size != 1 or value._array.shape:
        raise ShapeError(f"{name}: value has shape {tuple(value._array.shape)}; give a number or a 0-d tensor")
    if value.device != x.device:
        # A 0-d CPU tensor counts as a number, which PyTorch moves.
        if value.device.type != "cpu":
            raise DeviceError(f"{name}: x is on {x.device}, value on {value.device}; move it with .to({str(x.device)!r})")
        value = value.to(x.device)
    if value.dtype.is_complex and not x.dtype.is_complex:
        raise DTypeError(f"{name}: value is {value.dtype.name}, x is {x.dtype.name}; cast x with .to({value.dtype.name!r})")
    return value if value._array.dtype == x._array.dtype else ops.cast(value, dtype=x._array.dtype)
