"""gather and scatter: elements picked and put along one dimension, each at a position of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.autograd.engine import is_followed
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, DTypeError
from tritensor.ops.table import normal_dim, ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.reshaping import forget_base, reshape_to
from tritensor.tensor.public_api.publish import function

REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


@function(out="exact")
def gather(x: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """y[.., i, ..] = x[.., index[.., i, ..], ..] along `dim`; y has index's shape. `sparse_grad` is accepted; gradients are dense.

    >>> scores = tt.tensor([[0.1, 0.9], [0.8, 0.2]])
    >>> scores.gather(1, tt.tensor([[1], [0]]))  # of each row, one
    tensor([[0.9000],
            [0.8000]])
    """
    d = normal_dim("gather", dim, len(x._array.shape))
    shape = tuple(index._array.shape)
    loose = not index._array.size and not fits_inside(index, x, d)
    # The usual case: shapes are the op's to check.
    if len(shape) == len(x._array.shape) and not loose:
        return ops.gather(x, index, dim=d)
    if loose:  # as PyTorch: an empty index may have any shape
        return _make_empty_part(x, shape)
    return forget_base(reshape_to(ops.gather(at_least_1d(x), at_least_1d(index), dim=d), shape))


def fits_inside(index: Tensor, x: Tensor, dim: int = -1) -> bool:
    """Whether an index has as many dimensions as x and is not larger, but along `dim`."""
    inner, outer = index._array.shape, x._array.shape
    return len(inner) == len(outer) and all([m <= n or d == dim for d, (m, n) in enumerate(zip(inner, outer, strict=True))])


def at_least_1d(x: Tensor) -> Tensor:
    """A tensor without dimensions as a vector of one element; any other as it is."""
    return x if x._array.shape else ops.reshape(x, shape=(1,))


def require_same_dtype(name: str, x: Tensor, source: Tensor) -> Tensor:
    """A tensor, which has to be of x's type."""
    if source._array.dtype != x._array.dtype:
        raise DTypeError(f"{name}: src is {source.dtype.name}, x is {x.dtype.name}; cast one of them with .to(...)")
    return source


def _apply_scatter(name: str, op: Callable[..., Tensor], x: Tensor, dim: int, index: Tensor, source: Any, **attrs: Any) -> Tensor:
    """op(x, index, source, dim=), where x, index and source may each lack dimensions, and an empty index may have any shape."""
    d = normal_dim(name, dim, len(x._array.shape))
    values = _to_source(name, x, index, source)
    if not index._array.size and not (fits_inside(index, x, d) and fits_inside(index, values)):
        if not is_followed(values):
            return ops.copy(x)
        shape = (0,) * max(len(x._array.shape), 1)  # nothing of it is written, and the result hangs at it all the same
        index, values = ops.reshape(index, shape=shape), _make_empty_part(values, shape)
    if len(index._array.shape) == len(x._array.shape) == len(values._array.shape):
        return (
            op(at_least_1d(x), at_least_1d(index), at_least_1d(values), dim=d, **attrs)
            if x._array.shape
            else _apply_at_least_1d(op, x, index, values, d, attrs)
        )
    return _apply_at_least_1d(op, x, index, values, d, attrs)


def _make_empty_part(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """No element of x, in a shape that has none, which hangs at x's place in the graph."""
    return forget_base(ops.reshape(ops.index_view(reshape_to(x, (x._array.size,)), index=(slice(0, 0),)), shape=shape))


def _apply_at_least_1d(op: Callable[..., Tensor], x: Tensor, index: Tensor, values: Tensor, d: int, attrs: dict[str, Any]) -> Tensor:
    """op of what may lack dimensions, in x's shape."""
    return forget_base(reshape_to(op(at_least_1d(x), at_least_1d(index), at_least_1d(values), dim=d, **attrs), tuple(x._array.shape)))


def _to_source(name: str, x: Tensor, index: Tensor, source: Any) -> Tensor:
    """The values to scatter: a tensor of x's type, a number spread over index's shape."""
    if not isinstance(source, bool | int | float | complex | np.generic):
        return require_same_dtype(name, x, source)
    number = dtypes.as_element(x._array.dtype, source.item() if isinstance(source, np.generic) else source, name)
    return ops.expand(make_number_like(x, number), shape=tuple(index._array.shape))


def make_number_like(x: Tensor, number: Any, dtype: Any = None) -> Tensor:
    """A number as a 0-d tensor of x's type (or another) on x's device."""
    return ops.full(shape=(), value=number, dtype=x._array.dtype if dtype is None else dtype, device=x.device)


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
    # PyTorch's deprecated reduce= of scatter, under the name that scatter_reduce has.
    if reduce == "multiply":
        return _apply_scatter("scatter", ops.scatter_reduce, x, dim, index, given, reduce="prod", include_self=True)
    return _apply_scatter("scatter", ops.scatter_add if reduce == "add" else ops.scatter, x, dim, index, given)


@function(inplace=True, out=True)
def scatter_add(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """A copy of x with src[.., j, ..] added at [.., index[.., j, ..], ..] along `dim`, in a fixed order.

    >>> tt.zeros(3).scatter_add(0, tt.tensor([0, 2, 2]), tt.tensor([1.0, 2.0, 3.0]))
    tensor([1., 0., 5.])
    """
    return _apply_scatter("scatter_add", ops.scatter_add, x, dim, index, require_same_dtype("scatter_add", x, src))


@function(inplace=True, out=True)
def scatter_reduce(x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """A copy of x in which the `reduce` of src[.., j, ..], and of x itself unless include_self is False, stands at [.., index[.., j, ..], ..].

    Args:
        reduce: "sum", "prod", "mean" (whole numbers rounded down), "amax" or "amin", which share a gradient evenly among equal elements.
    """
    return reduce_into("scatter_reduce", x, dim, index, src, reduce, include_self)


def reduce_into(name: str, x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool) -> Tensor:
    """scatter_reduce, in the words of another function."""
    if reduce not in REDUCTIONS:
        raise ArgumentError(f"{name}: reduce is {reduce!r}; it is {', '.join(map(repr, REDUCTIONS[:-1]))} or {REDUCTIONS[-1]!r}")
    require_same_dtype(name, x, src)
    if reduce == "mean":
        return _apply_scatter(name, _scatter_mean, x, dim, index, src, include_self=bool(include_self))
    called = "" if name == "scatter_reduce" else name
    if reduce == "sum":
        return _apply_scatter(name, _scatter_sum, x, dim, index, src, include_self=bool(include_self), called=called)
    return _apply_scatter(name, ops.scatter_reduce, x, dim, index, src, reduce=reduce, include_self=bool(include_self), called=called)


def _expand_number(x: Tensor, index: Tensor, number: Any, dtype: Any = None) -> Tensor:
    return ops.expand(make_number_like(x, number, dtype), shape=tuple(index._array.shape))


def _scatter_sum(x: Tensor, index: Tensor, source: Tensor, *, dim: int, include_self: bool, called: str = "") -> Tensor:
    base = x if include_self else ops.scatter(x, index, _expand_number(x, index, 0), dim=dim, called=called)
    return ops.scatter_add(base, index, source, dim=dim, called=called)


def _scatter_mean(x: Tensor, index: Tensor, source: Tensor, *, dim: int, include_self: bool) -> Tensor:
    """The sum divided by how many it is of."""
    kind = np.dtype(np.int64)
    ones = ops.full(shape=tuple(x._array.shape), value=int(include_self), dtype=kind, device=x.device)
    counts = ops.scatter_add(ones, index, _expand_number(x, index, 1, kind), dim=dim)
    return divide_by_counts(_scatter_sum(x, index, source, dim=dim, include_self=include_self), counts)


def count_slices(x: Tensor, dim: int, index: Tensor, include_self: bool) -> Tensor:
    """How often a vector names each slice of a dimension, one more with include_self; broadcasts with x."""
    kind, n = np.dtype(np.int64), x._array.shape[dim]
    ones = ops.full(shape=(n,), value=int(include_self), dtype=kind, device=x.device)
    counts = ops.scatter_add(ones, index, _expand_number(x, index, 1, kind), dim=0)
    return ops.reshape(counts, shape=tuple([n if d == dim else 1 for d in range(len(x._array.shape))]))


def divide_by_counts(sums: Tensor, counts: Tensor) -> Tensor:
    """Sums divided by counts, of which 0 is as good as 1; whole numbers are rounded down."""
    if sums._array.dtype == np.bool_:
        raise DTypeError("mean: bool has no mean; cast it with .to(...)")
    # Where nothing was scattered the sum is 0 already.
    counts = ops.maximum(counts, 1)
    if not sums.dtype.is_floating_point and not sums.dtype.is_complex:
        return ops.floor_divide(sums, ops.cast(counts, dtype=sums._array.dtype))
    means = ops.div(sums, ops.cast(counts, dtype=dtypes.accumulator(sums._array.dtype)))  # float16 counts no further than 2048
    return means if means._array.dtype == sums._array.dtype else ops.cast(means, dtype=sums._array.dtype)
