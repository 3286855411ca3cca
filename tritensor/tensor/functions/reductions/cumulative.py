"""Functions along one dim that keep its size: running sums, products, extrema and log-sums."""

from __future__ import annotations

from typing import Any

from tritensor.ground.dtypes import as_dtype, bool_
from tritensor.ground.errors import DTypeError
from tritensor.ops.table import normal_dim, ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.reductions.reductions import ValuesIndices, cast_if_given, choose_argument
from tritensor.tensor.public_api.publish import function
from tritensor.tensor.return_types import return_type


def _parse_dim(name: str, x: Tensor, dim: Any, axis: Any) -> int:
    """The dim counted from the front; that of a 1-d tensor goes without saying."""
    dim = choose_argument(name, "dim", dim, "axis", axis)
    if dim is None:
        # The array API leaves the axis of vectors out; PyTorch needs it always.
        if x.ndim > 1:
            raise TypeError(f"{name}: dim is missing for a tensor of {x.ndim} dims; give dim=0 to {x.ndim - 1}")
        dim = 0
    return normal_dim(name, dim, x.ndim)


def _refuse_bool(name: str, dtype: Any) -> None:
    if dtype is not None and as_dtype(dtype) is bool_:
        raise DTypeError(f"{name}: dtype is bool, which holds no running results; give an integer or floating type")


@function(out="dtype", inplace=True, names=("cumulative_sum",))
def cumsum(x: Tensor, dim: int | None = None, *, dtype: Any = None, axis: int | None = None) -> Tensor:
    """Running sum along dim (a 1-d tensor needs none); integers and bools in int64.

    >>> tt.tensor([1, 2, 3]).cumsum(0)
    tensor([1, 3, 6])
    """
    _refuse_bool("cumsum", dtype)
    return cast_if_given(ops.cumsum(cast_if_given(x, dtype), dim=_parse_dim("cumsum", x, dim, axis), reverse=False), dtype)


@function(out="dtype", inplace=True, names=("cumulative_prod",))
def cumprod(x: Tensor, dim: int | None = None, *, dtype: Any = None, axis: int | None = None) -> Tensor:
    """Running product along dim (a 1-d tensor needs none); integers and bools in int64. The gradient is exact where elements are zero."""
    _refuse_bool("cumprod", dtype)
    return cast_if_given(ops.cumprod(cast_if_given(x, dtype), dim=_parse_dim("cumprod", x, dim, axis)), dtype)


@function(out=True)
def cummax(x: Tensor, dim: int | None = None, *, axis: int | None = None) -> ValuesIndices:
    """(values, indices): the largest so far along dim, and where it stood last (int64). NaN counts as largest; the gradient goes to the index."""
    return return_type("cummax", ValuesIndices)(*ops.cummax(x, dim=_parse_dim("cummax", x, dim, axis)))


@function(out=True)
def cummin(x: Tensor, dim: int | None = None, *, axis: int | None = None) -> ValuesIndices:
    """(values, indices): the smallest so far along dim, and where it stood last (int64). NaN counts as smallest; the gradient goes to the index."""
    return return_type("cummin", ValuesIndices)(*ops.cummin(x, dim=_parse_dim("cummin", x, dim, axis)))


@function(out=True)
def logcumsumexp(x: Tensor, dim: int | None = None, *, axis: int | None = None) -> Tensor:
    """log of the running sum of e^x along dim, from the largest so far down, so that nothing overflows. DTypeError for types that are not floating."""
    return ops.logcumsumexp(x, dim=_parse_dim("logcumsumexp", x, dim, axis))
