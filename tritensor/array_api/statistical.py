"""Reductions, running sums and truth tests of the array API standard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritensor.array_api.operands import Axes, functions, normal_axes, promote_operands, require_array
from tritensor.ground import dtypes
from tritensor.ground.dtypes import DType
from tritensor.ground.errors import ShapeError
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import rename_function


def _reduce(name: str, x: Tensor, axis: Axes, keepdims: bool, reduce: Callable[[Tensor, Any, bool], Tensor]) -> Tensor:
    """x reduced along axes; along an axis of one element where axis is (), which PyTorch takes for all."""
    # None is passed on: PyTorch's reduction of all dims is one op, without a list of them.
    if axis is None and require_array(name, x)._array.shape:
        return reduce(x, None, keepdims)
    dims = normal_axes(name, require_array(name, x), axis)
    # PyTorch reads () as all axes: along a new axis of one element nothing is summed.
    if not dims:
        return reduce(x.unsqueeze(-1), -1, False)
    return reduce(x, dims if len(dims) > 1 else dims[0], keepdims)


_SUM_TYPES = {"uint": dtypes.uint64, "int": dtypes.int64, "bool": dtypes.int64}


def _sum_options(x: Tensor, dtype: DType | None) -> dict[str, DType]:
    """`dtype=` of a sum or product: of integers the default type, with or without a sign; their own of others."""
    kind = x.dtype
    # PyTorch sums uint8 in int64; the standard keeps the sign's kind.
    wanted = _SUM_TYPES.get(kind.kind, kind) if dtype is None else dtypes.as_dtype(dtype)
    # Without dtype= PyTorch's sum needs no cast, which it would record.
    return {} if wanted is kind and kind.kind not in _SUM_TYPES else {"dtype": wanted}


def sum(x: Tensor, /, *, axis: Axes = None, dtype: DType | None = None, keepdims: bool = False) -> Tensor:
    """The sum along axes."""
    given = _sum_options(require_array("sum", x), dtype)
    return _reduce("sum", x, axis, keepdims, lambda x, dims, keep: functions.sum(x, dims, keep, **given))


def prod(x: Tensor, /, *, axis: Axes = None, dtype: DType | None = None, keepdims: bool = False) -> Tensor:
    """The product along axes."""
    given = _sum_options(require_array("prod", x), dtype)
    return _reduce("prod", x, axis, keepdims, lambda x, dims, keep: functions.prod(x, dims, keep, **given))


# By the standard's name: PyTorch's, documentation.
_REDUCTIONS = {
    "mean": ("mean", "The mean along axes."),
    "max": ("amax", "The largest along axes, NaN where one is. Raises ValueError where there is no element."),
    "min": ("amin", "The smallest along axes, NaN where one is. Raises ValueError where there is no element."),
    "all": ("all", "Whether all along axes are true; bool, where PyTorch's of uint8 is uint8."),
    "any": ("any", "Whether one along axes is true; bool, where PyTorch's of uint8 is uint8."),
}


def _make_reduction(name: str, function: str, doc: str) -> Callable[..., Tensor]:
    def call(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
        found = _reduce(name, x, axis, keepdims, getattr(functions, function))
        return found.to(dtypes.bool_) if name in ("all", "any") else found

    return rename_function(call, name, doc)


made = {n: _make_reduction(n, *given) for n, given in _REDUCTIONS.items()}
globals().update(made)


def var(x: Tensor, /, *, axis: Axes = None, correction: int | float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance along axes, over n - correction."""
    return _reduce("var", x, axis, keepdims, lambda x, dims, keep: functions.var(x, dims, keepdim=keep, correction=correction))


def std(x: Tensor, /, *, axis: Axes = None, correction: int | float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation along axes, over n - correction."""
    return _reduce("std", x, axis, keepdims, lambda x, dims, keep: functions.std(x, dims, keepdim=keep, correction=correction))


def count_nonzero(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """How many along axes are not 0."""
    return _reduce("count_nonzero", x, axis, keepdims, lambda x, dims, keep: functions.sum(x.to(dtypes.bool_), dims, keep))


def _scan(name: str, x: Tensor, axis: int | None, dtype: DType | None, include_initial: bool, scan: Any, first: int) -> Tensor:
    rank = len(require_array(name, x)._array.shape)
    # PyTorch has no default axis for these.
    if axis is None and rank != 1:
        raise ShapeError(f"{name}: x has shape {tuple(x._array.shape)}; name the axis, which only a vector goes without")
    (d,) = normal_axes(name, x, 0 if axis is None else axis)
    found = scan(x, d, **_sum_options(x, dtype))
    if not include_initial:
        return found
    size = list(found.shape)
    size[d] = 1
    return functions.cat((functions.full(tuple(size), first, dtype=found.dtype, device=found.device), found), d)


def cumulative_sum(x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None, include_initial: bool = False) -> Tensor:
    """Running sums along an axis, which a vector need not name; with include_initial a 0 stands first."""
    return _scan("cumulative_sum", x, axis, dtype, include_initial, functions.cumsum, 0)


def cumulative_prod(x: Tensor, /, *, axis: int | None = None, dtype: DType | None = None, include_initial: bool = False) -> Tensor:
    """Running products along an axis, which a vector need not name; with include_initial a 1 stands first."""
    return _scan("cumulative_prod", x, axis, dtype, include_initial, functions.cumprod, 1)


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """The n-th differences of neighbours along an axis, with values put before and after."""
    given = promote_operands("diff", *(v for v in (x, prepend, append) if v is not None))
    joined = given.pop(0)
    if prepend is not None:
        # Joined here, after promotion: PyTorch's diff wants all parts in one type.
        joined = functions.cat((given.pop(0), joined), axis)
    if append is not None:
        joined = functions.cat((joined, given.pop(0)), axis)
    return functions.diff(joined, n, axis)


__all__ = sorted([*made, "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "prod", "std", "sum", "var"])
