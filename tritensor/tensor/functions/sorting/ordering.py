"""Sorts and ranks along a dim. NaN is the largest, -0.0 equals 0.0, equal elements stay in the order of their places on every device."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.autograd.engine import is_followed
from tritensor.ground.errors import ArgumentError, EmptyError
from tritensor.ground.transforms import WrappedArray
from tritensor.ops.table import normal_dim, ops
from tritensor.ops.table.shape_rules import one_integer
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.reductions.reductions import ValuesIndices
from tritensor.tensor.functions.shaping.reshaping import forget_base, reshape_to
from tritensor.tensor.public_api.publish import function
from tritensor.tensor.return_types import return_type

MEDIAN, NANMEDIAN = -1, -2  # what ops.rank_place takes for ranks that depend on NaN


def sort_along(x: Tensor, d: int) -> Tensor:
    """x in ascending order along d; where no gradient is asked, without the places."""
    return ops.sort(x, dim=d, descending=False)[0] if is_followed(x) else ops.sort_values(x, dim=d)


def invert_permutation(order: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that undoes another."""
    return tuple([order.index(a) for a in range(len(order))])


@function(out=True)
def sort(x: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> ValuesIndices:
    """(values, indices) in ascending order along dim, or in descending order; equal elements keep their order, whatever `stable` says.

    The gradient goes to the place that a value came from. DTypeError for complex types.

    >>> values, indices = tt.tensor([3, 1, 2]).sort(descending=True)
    >>> values, indices
    (tensor([3, 2, 1]), tensor([0, 2, 1]))
    """
    d = normal_dim("sort", dim, len(x._array.shape))
    return return_type("sort", ValuesIndices)(*ops.sort(x, dim=d, descending=bool(descending)))


@function(out=True)
def argsort(x: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Tensor:
    """The indices (int64) that sort x along dim; equal elements keep their order, whatever `stable` says."""
    return ops.argsort(x, dim=normal_dim("argsort", dim, len(x._array.shape)), descending=bool(descending))


@function(out=True)
def msort(x: Tensor) -> Tensor:
    """x in ascending order along its first dim."""
    return sort_along(x, 0)


@function(out=True)
def topk(x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> ValuesIndices:
    """(values, indices) of the k largest elements along dim, or the k smallest; always in order, whatever `sorted` says.

    Of equal elements the first ones are taken. Raises IndexError where there are fewer than k.

    >>> values, indices = tt.tensor([3.0, 1.0, 4.0, 1.0]).topk(2)
    >>> values, indices
    (tensor([4., 3.]), tensor([2, 0]))
    """
    k = one_integer(k)
    if isinstance(k, bool) or not isinstance(k, int):
        raise TypeError(f"topk: k {k!r} is not an integer")
    d = normal_dim("topk", dim, len(x._array.shape))
    # PyTorch's topk of a 0-d tensor gives its one element for k 0, too.
    k = 1 if k == 0 and not x._array.shape else int(k)
    return return_type("topk", ValuesIndices)(*ops.topk(x, k=k, dim=d, largest=bool(largest)))


def require_elements(name: str, x: Tensor, d: int) -> None:
    """Raise IndexError where there is nothing along a dim."""
    if x._array.shape and x._array.shape[d] == 0:
        raise EmptyError(f"{name}: x {tuple(x._array.shape)} has no element along dim {d}; give it at least one")


def pick_along(name: str, x: Tensor, index: Tensor, d: int, keepdim: bool) -> ValuesIndices:
    """(values, indices) at one index along d for every row, d kept or not."""
    kind, values = return_type(name, ValuesIndices), ops.gather(x, index, dim=d)
    if keepdim or not x._array.shape:
        return kind(values, index)
    shape = (*x._array.shape[:d], *x._array.shape[d + 1 :])
    return kind(forget_base(ops.reshape(values, shape=shape)), forget_base(ops.reshape(index, shape=shape)))


@function(out="exact")
def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> ValuesIndices:
    """(value, index) of the k-th smallest element along dim, k from 1; of equal elements in the order of their places."""
    k = one_integer(k)
    if isinstance(k, bool) or not isinstance(k, int):
        raise TypeError(f"kthvalue: k {k!r} is not an integer")
    d = normal_dim("kthvalue", dim, len(x._array.shape))
    require_elements("kthvalue", x, d)
    n = x._array.shape[d] if x._array.shape else 1
    if not 1 <= k <= n:
        raise ArgumentError(f"kthvalue: k {k} of {n} elements along dim {d} of x {tuple(x._array.shape)}; give k from 1 to {n}")
    return pick_along("kthvalue", x, ops.rank_place(x.detach(), dim=d, rank=int(k) - 1), d, keepdim)


def _find_median(name: str, x: Tensor, dim: Any, keepdim: bool, rank: int) -> Any:
    """median and nanmedian: over one dim (value, index), over all elements the value."""
    if dim is not None:
        d = normal_dim(name, dim, len(x._array.shape))
        require_elements(name, x, d)
        return pick_along(name, x, ops.rank_place(x.detach(), dim=d, rank=rank), d, keepdim)
    flat = reshape_to(x, (x._array.size,))
    if not x._array.size:
        return _median_of_empty(flat)
    plain = flat.detach()
    y = forget_base(ops.reshape(ops.gather(plain, ops.rank_place(plain, dim=0, rank=rank), dim=0), shape=()))
    if not is_followed(x):
        return y
    if type(x._array) is WrappedArray or x.is_meta:  # equal elements would have a count for each example: the first has the derivative
        return forget_base(ops.reshape(ops.gather(flat, ops.rank_place(plain, dim=0, rank=rank), dim=0), shape=()))
    # The gradient is shared among all that equal the median, NaN counting as equal to NaN.
    equal = ops.logical_or(ops.eq(plain, y), ops.logical_and(ops.ne(plain, plain), ops.ne(y, y)))
    where = ops.nonzero_static(equal, size=int(ops.sum(equal, dim=(0,), keepdim=False).item()), fill_value=0)
    same = ops.index_get(flat, ops.reshape(where, shape=(where._array.size,)), dims=(0,), front=False)
    return ops.amax(same, dim=(0,), keepdim=False)  # whose gradient is shared among equals


def _median_of_empty(x: Tensor) -> Tensor:
    """NaN, in the graph; of other types what PyTorch makes of NaN: True, and of integers the smallest or, below 32 bits, 0."""
    if x.is_floating_point():
        return ops.mul(ops.sum(x, dim=(0,), keepdim=False), float("nan"))
    dtype = x._array.dtype
    nothing = True if dtype == np.bool_ else np.iinfo(dtype).min if dtype.itemsize >= 4 else 0
    return ops.full(shape=(), value=nothing, dtype=dtype, device=x.device)


@function(out=True)
def median(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """median(x): the middle element, the lower one of two; its gradient is shared evenly among equals. median(x, dim): (value, index).

    NaN where there is one; the index is then that of the first.
    """
    return _find_median("median", x, dim, keepdim, MEDIAN)


@function(out=True)
def nanmedian(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """As `median`, of what is not NaN; NaN where there is nothing else."""
    return _find_median("nanmedian", x, dim, keepdim, NANMEDIAN)


@function(out=True)
def mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> ValuesIndices:
    """(value, index) of the most frequent element along dim, of several the smallest; the index is that of its last occurrence.

    A NaN equals nothing, itself neither.
    """
    d = normal_dim("mode", dim, len(x._array.shape))
    require_elements("mode", x, d)
    if not x._array.shape:
        return pick_along("mode", x, ops.rank_place(x.detach(), dim=0, rank=0), 0, keepdim)
    order = tuple(a for a in range(len(x._array.shape)) if a != d)
    # Runs are counted along the last dim.
    rows = ops.permute(x.detach(), dims=(*order, d))
    values, places = ops.sort(rows, dim=len(order), descending=False)
    last = ops.argmax(ops.run_lengths(values), dim=len(order), keepdim=True)
    index = ops.permute(ops.gather(places, last, dim=len(order)), dims=invert_permutation((*order, d)))
    return pick_along("mode", x, index, d, keepdim)
