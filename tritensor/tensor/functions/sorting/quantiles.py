"""quantile and nanquantile: positions q (n - 1) in sorted rows, and what lies between two elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground import shortcuts
from tritensor.ground.errors import ArgumentError, DTypeError, EmptyError
from tritensor.ops.lazy_array import settle
from tritensor.ops.table import normal_dim, ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.reshaping import forget_base, reshape_to
from tritensor.tensor.functions.sorting.ordering import sort_along
from tritensor.tensor.public_api.arguments import Operand
from tritensor.tensor.public_api.publish import function

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _parse_levels(name: str, x: Tensor, q: Any) -> tuple[Tensor, bool]:
    """q as a vector of x's type, and whether one number was given."""
    if x._array.dtype not in (np.float32, np.float64):
        raise DTypeError(f"{name}: x is {x.dtype.name}; {name} takes float32 and float64; cast it with .to(float32)")
    if not x._array.size:
        raise EmptyError(f"{name}: x {tuple(x._array.shape)} has no element; give it at least one")
    if not isinstance(q, Tensor):
        if isinstance(q, bool) or not isinstance(q, int | float | np.number):
            raise TypeError(f"{name}: q is a {type(q).__name__}; give a number or a tensor")
        if not 0 <= q <= 1:
            raise ArgumentError(f"{name}: q {q} is outside [0, 1]; give 0.5 for the middle")
        return ops.full(shape=(1,), value=float(q), dtype=x._array.dtype, device=x.device), True
    if len(q._array.shape) > 1:
        raise ArgumentError(f"{name}: q {tuple(q._array.shape)} has {len(q._array.shape)} dimensions; give a number or a vector")
    if q._array.dtype != x._array.dtype:
        raise DTypeError(f"{name}: q is {q.dtype.name}, x is {x.dtype.name}; cast q so that both are the same")
    shortcuts.note_values_read()
    inside = (
        np.logical_and(given >= 0, given <= 1).all() if isinstance(given := settle(q._array), np.ndarray) else True
    )  # as PyTorch, no wait for a GPU
    if not inside:
        raise ArgumentError(f"{name}: some of q lie outside [0, 1]; give 0.5 for the middle")
    return reshape_to(q, (q._array.size,)), not q._array.shape


def _interpolate(rows: Tensor, ranks: Tensor, interpolation: str) -> Tensor:
    """The elements of sorted rows (..., n) at fractional ranks (..., k)."""
    last = len(rows._array.shape) - 1
    if interpolation in ("lower", "higher", "nearest"):
        ranks = getattr(ops, {"lower": "floor", "higher": "ceil"}.get(interpolation, "round"))(ranks)
    low = ops.cast(ranks.detach(), dtype=np.dtype(np.int64))
    below = ops.gather(rows, low, dim=last)
    if interpolation not in ("linear", "midpoint"):
        return below
    above = ops.gather(rows, ops.cast(ops.ceil(ranks.detach()), dtype=np.dtype(np.int64)), dim=last)
    step = ops.sub(above, below)
    if interpolation == "midpoint":
        return ops.sub(above, ops.mul(step, 0.5))
    # lerp from the nearer end, so that whole ranks give the elements exactly.
    weight = ops.sub(ranks, ops.cast(low, dtype=rows._array.dtype))
    return ops.where(ops.lt(weight, 0.5), ops.add(below, ops.mul(step, weight)), ops.sub(above, ops.mul(step, ops.sub(1.0, weight))))


def _find_quantile(name: str, x: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str, skips: bool) -> Tensor:
    levels, single = _parse_levels(name, x, q)
    if interpolation not in INTERPOLATIONS:
        raise ArgumentError(f"{name}: interpolation is {interpolation!r}; it is one of {', '.join(INTERPOLATIONS)}")
    ndim = len(x._array.shape)
    # A 0-d tensor has only dim 0 and -1: any other is refused.
    if dim is None or not ndim:
        normal_dim(name, dim or 0, ndim)
        kept, rows = (1,) * ndim, reshape_to(x, (x._array.size,))
        rest: tuple[int, ...] = ()
    else:
        d = normal_dim(name, dim, ndim)
        kept = (*x._array.shape[:d], 1, *x._array.shape[d + 1 :])
        rest = (*x._array.shape[:d], *x._array.shape[d + 1 :])
        rows = ops.permute(x, dims=(*[a for a in range(ndim) if a != d], d))
    last = len(rows._array.shape) - 1
    n = rows._array.shape[last]
    nan = ops.ne(rows.detach(), rows.detach())
    rows = sort_along(rows, last)
    if skips:
        valid = ops.cast(ops.sum(ops.logical_not(nan), dim=(last,), keepdim=True), dtype=x._array.dtype)
        ranks = ops.mul(levels, ops.sub(valid, 1.0))
        ranks = ops.where(ops.lt(ranks, 0.0), 0.0, ranks)
    else:
        ranks = ops.where(ops.any(nan, dim=(last,), keepdim=True), float(n - 1), ops.mul(levels, float(n - 1)))
    found = _interpolate(rows, ops.expand(ranks, shape=(*rest, levels._array.size)), interpolation)  # (*rest, k)
    shape = kept if keepdim else rest
    if single:
        return forget_base(ops.reshape(found, shape=shape))
    front = ops.permute(found, dims=(last, *range(last)))
    return forget_base(ops.reshape(front, shape=(levels._array.size, *shape)))


@function(out=True)
def quantile(x: Tensor, q: Operand, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """The element at q (n - 1) of the sorted elements over dim (None: all), interpolated between two neighbours; NaN where there is one.

    q: a number, or a vector of x's type, which adds a first dim. interpolation: linear, lower, higher, midpoint, nearest.

    Raises:
        DTypeError: x is neither float32 nor float64, or q of another type. ValueError: q outside [0, 1] or of more dims; another interpolation.
    """
    return _find_quantile("quantile", x, q, dim, keepdim, interpolation, False)


@function(out=True)
def nanquantile(x: Tensor, q: Operand, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """As `quantile`, of what is not NaN; NaN where there is nothing else."""
    return _find_quantile("nanquantile", x, q, dim, keepdim, interpolation, True)
