"""tritensor.masked: functions over dims that see only the elements where a mask is True, as if the others were not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.autograd.saved import borrow_saved
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, DTypeError
from tritensor.ops.table import normal_dim, ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.reductions.distances import vector_norm
from tritensor.tensor.functions.reductions.reductions import Dims, cast_if_given, parse_dims
from tritensor.tensor.functions.reductions.reductions import logsumexp as _logsumexp
from tritensor.tensor.functions.sorting.ordering import nanmedian
from tritensor.tensor.public_api.publish import function

_I64 = np.dtype(np.int64)


def cast_operand(x: Tensor, dtype: Any, floating: bool = False) -> Tensor:
    """x in the type in which a result was asked for; integers in int64, or in the default type where it is `floating`."""
    if dtype is not None:
        return cast_if_given(x, dtype)
    if x.is_floating_point() or x.is_complex():
        return x
    # Sums of small integers overflow their own type.
    return ops.cast(x, dtype=dtypes.default_float().numpy if floating else _I64)


@borrow_saved
def fill_masked(name: str, x: Tensor, mask: Tensor | None, instead: float) -> Tensor:
    """x with `instead` where the mask is False; the mask broadcasts to x."""
    if mask is None:
        return x
    # An integer mask would be a mistake of 0 and 1 for indices.
    if mask._array.dtype != np.bool_:
        raise DTypeError(f"{name}: mask is {mask.dtype.name}; give a bool mask, such as mask != 0")
    return ops.where(mask, x, instead)


def _worst_number(x: Tensor, sign: int) -> float:
    """The number that loses against all: the lowest (sign -1) or the highest of x's type."""
    if x.is_floating_point():
        return sign * float("inf")
    return int(np.iinfo(x._array.dtype).min if sign < 0 else np.iinfo(x._array.dtype).max)


def _count_unmasked(x: Tensor, mask: Tensor | None, dims: tuple[int, ...], keepdim: bool, kind: np.dtype) -> Tensor:
    """How many elements are seen."""
    shape, kind_of_mask = tuple(x.shape), np.dtype(np.bool_)
    seen = ops.full(shape=shape, value=True, dtype=kind_of_mask, device=x.device) if mask is None else ops.expand(mask, shape=shape)
    # Counted as bools in int64, then cast: a float16 sum stops at 2048.
    return ops.cast(ops.sum(seen, dim=dims, keepdim=keepdim), dtype=kind)


@function(namespace="masked")
def sum(x: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Sum over dims of what the mask shows; 0 of nothing."""
    return cast_if_given(
        ops.sum(fill_masked("masked.sum", cast_operand(x, dtype), mask, 0), dim=parse_dims("masked.sum", x, dim), keepdim=keepdim), dtype
    )


@function(namespace="masked")
@borrow_saved
def prod(x: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Product over dims of what the mask shows; 1 of nothing."""
    return cast_if_given(
        ops.prod(fill_masked("masked.prod", cast_operand(x, dtype), mask, 1), dim=parse_dims("masked.prod", x, dim), keepdim=keepdim), dtype
    )


def _run_along(
    name: str, op: Callable[..., Tensor], x: Tensor, dim: int, dtype: Any, mask: Tensor | None, nothing: int, **attrs: Any
) -> Tensor:
    filled = fill_masked(name, cast_operand(x, dtype), mask, nothing)
    return cast_if_given(op(filled, dim=normal_dim(name, dim, x.ndim), **attrs), dtype)


@function(namespace="masked")
def cumsum(x: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Running sum along dim of what the mask shows."""
    return _run_along("masked.cumsum", ops.cumsum, x, dim, dtype, mask, 0, reverse=False)


@function(namespace="masked")
def cumprod(x: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Running product along dim of what the mask shows."""
    return _run_along("masked.cumprod", ops.cumprod, x, dim, dtype, mask, 1)


@function(namespace="masked")
@borrow_saved
def amax(x: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Largest over dims of what the mask shows; the lowest number of nothing."""
    x = cast_if_given(x, dtype)
    return ops.amax(fill_masked("masked.amax", x, mask, _worst_number(x, -1)), dim=parse_dims("masked.amax", x, dim), keepdim=keepdim)


@function(namespace="masked")
@borrow_saved
def amin(x: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Smallest over dims of what the mask shows; the highest number of nothing."""
    x = cast_if_given(x, dtype)
    return ops.amin(fill_masked("masked.amin", x, mask, _worst_number(x, 1)), dim=parse_dims("masked.amin", x, dim), keepdim=keepdim)


def _find_index(name: str, sign: int, x: Tensor, dim: int | None, keepdim: bool, dtype: Any, mask: Tensor | None) -> Tensor:
    x = cast_if_given(x, dtype)
    place = None if dim is None else normal_dim(f"masked.{name}", dim, x.ndim)
    found = getattr(ops, name)(fill_masked(f"masked.{name}", x, mask, _worst_number(x, sign)), dim=place, keepdim=keepdim)
    return ops.cast(found, dtype=x._array.dtype)


@function(namespace="masked")
def argmax(x: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Index along dim, or in the flattened tensor, of the largest that the mask shows; in x's own type, as in PyTorch."""
    return _find_index("argmax", -1, x, dim, keepdim, dtype, mask)


@function(namespace="masked")
def argmin(x: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Index along dim, or in the flattened tensor, of the smallest that the mask shows; in x's own type, as in PyTorch."""
    return _find_index("argmin", 1, x, dim, keepdim, dtype, mask)


@function(namespace="masked")
def mean(x: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Mean over dims of what the mask shows, of floating types (ArgumentError for others; give dtype); NaN of nothing."""
    x, dims = cast_if_given(x, dtype), parse_dims("masked.mean", x, dim)
    if not x.is_floating_point() and not x.is_complex():
        raise ArgumentError(f"masked.mean: x is {x.dtype.name}; give a floating dtype")
    total = ops.sum(fill_masked("masked.mean", x, mask, 0), dim=dims, keepdim=keepdim)
    return ops.div(total, _count_unmasked(x, mask, dims, keepdim, x._array.dtype))


@function(namespace="masked")
def norm(
    x: Tensor, ord: float | None = 2.0, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The norm of order `ord` over dims (see linalg.vector_norm) of what the mask shows."""
    p = 2.0 if ord is None else float(ord)
    x = cast_operand(x, dtype, floating=True)
    return vector_norm(fill_masked("masked.norm", x, mask, float("inf") if p < 0 else 0), p, dim, keepdim)


def _variance(
    name: str, x: Tensor, dim: Any, unbiased: bool | None, correction: float | None, keepdim: bool, dtype: Any, mask: Tensor | None
) -> Tensor:
    """sum of squared distances from the mean of what is seen, over max(0, how many - correction)."""
    if unbiased is not None and correction is not None:
        raise TypeError(f"{name}: unbiased={unbiased} and correction={correction} say the same thing; give correction")
    # PyTorch's two signatures: unbiased, or correction.
    less = (1 if unbiased is None or unbiased else 0) if correction is None else correction
    x, dims = cast_operand(x, dtype, floating=True), parse_dims(name, x, dim)
    # The variance of complex numbers is real.
    kind = np.dtype(f"f{x._array.dtype.itemsize // 2}") if x.is_complex() else x._array.dtype
    count = _count_unmasked(x, mask, dims, True, kind)
    # Two passes: the difference of sums of squares would cancel.
    centred = ops.sub(x, ops.div(ops.sum(fill_masked(name, x, mask, 0), dim=dims, keepdim=True), count))
    squares = ops.sum(fill_masked(name, ops.mul(centred, centred.conj()), mask, 0), dim=dims, keepdim=keepdim)
    left = _count_unmasked(x, mask, dims, keepdim, kind)
    return ops.div(squares, ops.maximum(ops.sub(left, float(less)), 0.0))


@function(namespace="masked")
def var(
    x: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None, keepdim: bool = False, dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Variance over dims of what the mask shows."""
    return _variance("masked.var", x, dim, unbiased, correction, keepdim, dtype, mask)


@function(namespace="masked")
def std(
    x: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None, keepdim: bool = False, dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Standard deviation over dims of what the mask shows."""
    return ops.sqrt(_variance("masked.std", x, dim, unbiased, correction, keepdim, dtype, mask))


def _apply_softmax(name: str, of: Callable[..., Tensor], x: Tensor, dim: int, dtype: Any, mask: Tensor | None) -> Tensor:
    x = cast_operand(x, dtype, floating=True)
    return of(fill_masked(name, x, mask, -float("inf")), dim=normal_dim(name, dim, x.ndim))


@function(namespace="masked")
def softmax(x: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """e^x / sum e^x along dim of what the mask shows, 0 elsewhere; NaN where it shows nothing."""
    return _apply_softmax("masked.softmax", ops.softmax, x, dim, dtype, mask)


@function(namespace="masked")
def log_softmax(x: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """x - log sum e^x along dim of what the mask shows, -inf elsewhere; NaN where it shows nothing."""
    return _apply_softmax("masked.log_softmax", ops.log_softmax, x, dim, dtype, mask)


@function(namespace="masked")
def softmin(x: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The softmax of -x."""
    return _apply_softmax("masked.softmin", ops.softmax, ops.neg(cast_operand(x, dtype, floating=True)), dim, None, mask)


@function(namespace="masked")
def normalize(x: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """x divided by its norm along dim (by eps where that is smaller), of what the mask shows; 0 elsewhere."""
    x = fill_masked("masked.normalize", cast_operand(x, dtype, floating=True), mask, 0)
    # Orders below 0 choose the smallest: the zeros in place of masked elements would win.
    seen = ops.where(mask, x, float("inf")) if mask is not None and float(ord) < 0 else x
    return ops.div(x, ops.maximum(vector_norm(seen, float(ord), dim, True), float(eps)))


@function(namespace="masked")
def logsumexp(x: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """log sum e^x over dims of what the mask shows; -inf of nothing. Of integers a whole number, as in PyTorch."""
    x = cast_if_given(x, dtype)
    # Complex numbers have no lowest; exp(-inf) adds nothing to the sum.
    nothing = -float("inf") if x.is_complex() else _worst_number(x, -1)
    seen, dims = fill_masked("masked.logsumexp", x, mask, nothing), parse_dims("masked.logsumexp", x, dim)
    return cast_if_given(_logsumexp(seen, dims, keepdim), x.dtype)


@function(namespace="masked")
def logaddexp(x: Tensor, other: Tensor, *, dtype: Any = None, input_mask: Tensor | None = None, other_mask: Tensor | None = None) -> Tensor:
    """log(e^x + e^other) of what the masks show; -inf of nothing."""
    x, other = cast_operand(x, dtype, floating=True), cast_operand(other, dtype, floating=True)
    seen = [fill_masked("masked.logaddexp", t, mask, -float("inf")) for t, mask in ((x, input_mask), (other, other_mask))]
    return ops.logaddexp(*seen)


@function(namespace="masked")
def median(x: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The middle element along dim, the lower one of two, of what the mask shows and is not NaN; NaN of nothing.

    Of integers in their own type, or `dtype`; ArgumentError where the mask shows nothing of some row, which they have no number for.
    """
    wanted = x.dtype if dtype is None else dtype
    values = fill_masked("masked.median", cast_operand(x, None, floating=True), mask, float("nan"))
    found = nanmedian(values, normal_dim("masked.median", dim, x.ndim), keepdim).values
    if x.is_floating_point():
        return found
    if bool(ops.any(ops.isnan(found), dim=tuple(range(found.ndim)), keepdim=False)):
        raise ArgumentError(
            f"masked.median: the mask shows nothing of some row, for which {x.dtype.name} has no NaN; convert with .float()"
        )
    return cast_if_given(found, wanted)
