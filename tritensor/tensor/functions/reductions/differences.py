"""Differences and integrals of sampled functions: diff, gradient, trapezoid, cumulative_trapezoid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.ops.table import normal_dim, normal_dims, ops, sized_dim
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.reshaping import slice_along
from tritensor.tensor.public_api.publish import function


def _join_ends(name: str, x: Tensor, dim: int, prepend: Tensor | None, append: Tensor | None) -> Tensor:
    """x with what stands before and behind it along dim."""
    parts = [p for p in (prepend, x, append) if p is not None]
    for label, part in (("prepend", prepend), ("append", append)):
        if part is not None and (
            part.ndim != x.ndim or any(a != b for k, (a, b) in enumerate(zip(part.shape, x.shape, strict=False)) if k != dim)
        ):
            raise ShapeError(
                f"{name}: x {tuple(x.shape)}, {label} {tuple(part.shape)}: all sizes but that of dim {dim} must be equal, as in cat"
            )
    return ops.cat(*parts, dim=dim) if len(parts) > 1 else x


@function(out=True)
def diff(x: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """The n-th difference along dim, x[i + 1] - x[i] taken n times, of x with what `prepend` and `append` put before and behind it.

    Of bools whether neighbours differ. Raises ShapeError for a 0-d x and for parts that do not fit, ArgumentError for a negative n.
    """
    if x.ndim == 0:
        raise ShapeError("diff: x () has no dimension to take differences along; give it at least one")
    if n < 0:
        raise ArgumentError(f"diff: n {n} is negative; give 0 or more")
    axis = normal_dim("diff", dim, x.ndim)
    if n == 0:
        return x.clone()
    x = _join_ends("diff", x, axis, prepend, append)
    for _ in range(min(n, x.shape[axis])):
        last = x.shape[axis]
        following, before = slice_along(x, axis, min(1, last), last), slice_along(x, axis, 0, max(last - 1, 0))
        # Bools have no minus; differing is what subtraction modulo 2 says.
        x = ops.ne(following, before) if x._array.dtype == np.bool_ else ops.sub(following, before)
    return x


# gradient
@function(method=False)
def gradient(x: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """Estimates of dx/dt along dims, a tensor of x's shape for each, from three neighbours (second order; at the edges of `edge_order`).

    Args:
        spacing: the distance of neighbours, one for all dims or one for each; or for each dim a 1-d tensor with its coordinates.
        dim: an int, several, or None for all.
        edge_order: 1 or 2.

    The weights are those of the parabola through three points (Fornberg, "Generation of finite difference formulas on arbitrarily
    spaced grids", 1988). Raises ArgumentError and ShapeError for an edge_order, spacing or size that does not do.
    """
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient: edge_order is {edge_order}; give 1 or 2")
    spacing = 1 if spacing is None else spacing
    several = isinstance(spacing, list | tuple)
    dims = _parse_gradient_dims(x, dim, len(spacing) if several and dim is None else None)
    spacings: Sequence[Any] = list(spacing) if several else [spacing] * len(dims)
    if len(spacings) != len(dims):
        raise ShapeError(f"gradient: {len(spacings)} spacings for {len(dims)} dims; give one for each")
    for d, h in zip(dims, spacings, strict=True):
        if x.shape[d] < edge_order + 1:
            raise ShapeError(f"gradient: x {tuple(x.shape)} has {x.shape[d]} along dim {d}; edge_order {edge_order} needs {edge_order + 1}")
        if isinstance(h, Tensor) and h.ndim and (h.ndim != 1 or h.shape[0] != x.shape[d]):
            raise ShapeError(f"gradient: spacing {tuple(h.shape)} for dim {d} of x {tuple(x.shape)}; give its {x.shape[d]} coordinates")
    # A difference below 0 would wrap around.
    if x._array.dtype.kind in "ub":
        raise DTypeError(f"gradient: x is {x.dtype.name}, whose differences wrap; cast it with .to(float32)")
    return tuple([
        _differentiate_uneven(x, d, h, edge_order) if isinstance(h, Tensor) and h.ndim else _differentiate_even(x, d, h, edge_order)
        for d, h in zip(dims, spacings, strict=True)
    ])  # fmt: skip


def _parse_gradient_dims(x: Tensor, dim: Any, count: int | None) -> tuple[int, ...]:
    """Dims in the order in which they were given."""
    if dim is None:
        if count is not None and count != x.ndim:
            raise ShapeError(f"gradient: {count} spacings for an x of {x.ndim} dims; give one for each, or dim")
        return tuple(range(x.ndim))
    given = (dim,) if isinstance(dim, int) else tuple(dim)
    normal_dims("gradient", given, x.ndim)  # refuses a dim given twice
    return tuple(normal_dim("gradient", d, x.ndim) for d in given)


def _sum_weighted(parts: Sequence[tuple[Any, Tensor]]) -> Tensor:
    total = None
    for weight, part in parts:
        term = ops.mul(part, weight)
        total = term if total is None else ops.add(total, term)
    return total  # type: ignore[return-value]


def _differentiate_even(x: Tensor, d: int, h: Any, order: int) -> Tensor:
    """(x[i + 1] - x[i - 1]) / 2h; at the edges (x[1] - x[0]) / h, or (-3 x[0] + 4 x[1] - x[2]) / 2h."""
    n = x.shape[d]
    if order == 1:
        ends = [ops.div(ops.sub(slice_along(x, d, b, b + 1), slice_along(x, d, b - 1, b)), h) for b in (1, n - 1)]
    else:
        one = [slice_along(x, d, k, k + 1) for k in (0, 1, 2, n - 3, n - 2, n - 1)]
        ends = [
            ops.div(_sum_weighted(((-1.5, one[0]), (2.0, one[1]), (-0.5, one[2]))), h),
            ops.div(_sum_weighted(((0.5, one[3]), (-2.0, one[4]), (1.5, one[5]))), h),
        ]
    middle = ops.div(ops.sub(slice_along(x, d, 2, n), slice_along(x, d, 0, n - 2)), 2 * h) if n > 2 else None
    return ops.cat(*[p for p in (ends[0], middle, ends[1]) if p is not None], dim=d)


def _differentiate_uneven(x: Tensor, d: int, at: Tensor, order: int) -> Tensor:
    """By the parabola through three points."""
    n = x.shape[d]
    if not x.is_floating_point() and not x.is_complex():
        x = ops.cast(x, dtype=at._array.dtype)
    # Distances broadcast along the other dims.
    steps = ops.reshape(diff(at), shape=tuple(n - 1 if a == d else 1 for a in range(x.ndim)))
    pieces = []
    if order == 1:
        ends = [
            ops.div(ops.sub(slice_along(x, d, b, b + 1), slice_along(x, d, b - 1, b)), slice_along(steps, d, b - 1, b)) for b in (1, n - 1)
        ]
    else:
        ends = [_edge_slope(x, steps, d, 0, True), _edge_slope(x, steps, d, n - 3, False)]
    if n > 2:
        left, right = slice_along(steps, d, 0, n - 2), slice_along(steps, d, 1, n - 1)
        both = ops.add(left, right)
        a = ops.neg(ops.div(right, ops.mul(left, both)))
        b = ops.div(ops.sub(right, left), ops.mul(left, right))
        c = ops.div(left, ops.mul(right, both))
        pieces = [_sum_weighted(((a, slice_along(x, d, 0, n - 2)), (b, slice_along(x, d, 1, n - 1)), (c, slice_along(x, d, 2, n))))]
    return ops.cat(ends[0], *pieces, ends[1], dim=d)


def _edge_slope(x: Tensor, steps: Tensor, d: int, first: int, at_first: bool) -> Tensor:
    """The parabola's slope at the first of the three points from `first` on, or at the last."""
    left, right = slice_along(steps, d, first, first + 1), slice_along(steps, d, first + 1, first + 2)
    both = ops.add(left, right)
    middle = ops.div(both, ops.mul(left, right))
    if at_first:
        weights = ops.neg(ops.div(ops.add(both, left), ops.mul(left, both))), middle, ops.neg(ops.div(left, ops.mul(right, both)))
    else:
        weights = ops.div(right, ops.mul(left, both)), ops.neg(middle), ops.div(ops.add(both, right), ops.mul(right, both))
    return _sum_weighted([(w, slice_along(x, d, first + k, first + k + 1)) for k, w in enumerate(weights)])


# Integrals
def _find_widths(name: str, y: Tensor, x: Tensor, dim: int) -> Tensor:
    """x[i + 1] - x[i] in a shape that broadcasts over y's along dim."""
    if y._array.dtype == np.bool_ or x._array.dtype == np.bool_:
        raise DTypeError(f"{name}: y is {y.dtype.name}, x {x.dtype.name}: bools have no width; cast them to a number type")
    n = y.shape[dim]
    if x.ndim == 1:
        if x.shape[0] != n:
            raise ShapeError(
                f"{name}: x {tuple(x.shape)}, y {tuple(y.shape)}: there must be one x for each of the {n} values along dim {dim}"
            )
        return ops.reshape(diff(x), shape=tuple(n - 1 if a == dim else 1 for a in range(y.ndim)))
    # Leading dims of size 1, so that `dim` counts alike in both.
    if x.ndim < y.ndim:
        x = ops.reshape(x, shape=(1,) * (y.ndim - x.ndim) + tuple(x.shape))
    return diff(x, 1, dim if x.ndim == y.ndim else dim - y.ndim)


def _integers_to_int64(y: Tensor) -> Tensor:
    """Integers in int64, in which the sum of two neighbours does not wrap."""
    return ops.cast(y, dtype=np.dtype(np.int64)) if y._array.dtype.kind in "iu" else y


def _double_areas(name: str, y: Tensor, x: Tensor | None, dx: Any, dim: int) -> Tensor | None:
    """Twice the area under each step, None where there are no samples."""
    if x is not None and dx is not None:
        raise TypeError(f"{name}: x and dx={dx} both say how far apart the samples are; give one")
    n = y.shape[dim]
    if n == 0:
        return None
    if y._array.dtype == np.bool_:
        raise DTypeError(f"{name}: y is bool; cast it to a number type")
    y = _integers_to_int64(y)
    sums = ops.add(slice_along(y, dim, 1, n), slice_along(y, dim, 0, n - 1))
    width = dx if x is None else _find_widths(name, y, x, dim)
    return sums if width is None else ops.mul(sums, width)


@function(method=False, names=("trapz",))
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integral of y over dim by the trapezoid rule, sum of (y[i] + y[i + 1]) / 2 times the width: x[i + 1] - x[i], or dx (1). 0 of no samples.

    x has y's shape, one that broadcasts to it, or one value for each along dim.
    """
    axis = sized_dim("trapezoid", dim, y.ndim)
    n = y.shape[axis]
    if x is None and n > 2 and y._array.dtype != np.bool_ and not isinstance(dx, Tensor):  # of one width: all but the ends count twice
        y = _integers_to_int64(y)
        ends = ops.add(slice_along(y, axis, 0, 1), slice_along(y, axis, n - 1, n))
        inner = ops.sum(slice_along(y, axis, 1, n - 1), dim=(axis,), keepdim=True)
        twice = ops.sum(ops.add(ops.mul(inner, 2), ends), dim=(axis,), keepdim=False)
        return ops.div(twice if dx is None else ops.mul(twice, dx), 2.0)
    areas = _double_areas("trapezoid", y, x, dx, axis)
    if areas is None:
        # In the graph of y, and 0 in its shape.
        return ops.cast(ops.sum(y, dim=(axis,), keepdim=False), dtype=y._array.dtype)
    return ops.div(ops.sum(areas, dim=(axis + areas.ndim - y.ndim,), keepdim=False), 2.0)


@function(method=False)
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integral of y up to each sample but the first along dim, by the trapezoid rule (see `trapezoid`)."""
    axis = sized_dim("cumulative_trapezoid", dim, y.ndim)
    areas = _double_areas("cumulative_trapezoid", y, x, dx, axis)
    if areas is None:
        return ops.div(y, 2.0) if y._array.dtype.kind in "iu" else y.clone()
    return ops.div(ops.cumsum(areas, dim=axis + areas.ndim - y.ndim, reverse=False), 2.0)
