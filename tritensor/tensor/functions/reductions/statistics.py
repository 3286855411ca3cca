"""Statistics: covariance and correlation, histograms, counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.call_site import warn
from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.ops.table import ops
from tritensor.tensor.casting import to_accumulator
from tritensor.tensor.core import Tensor
from tritensor.tensor.derivatives import refuse_derivative
from tritensor.tensor.functions.reductions.differences import diff
from tritensor.tensor.functions.reductions.reductions import cast_if_given
from tritensor.tensor.functions.shaping.reshaping import reshape_to
from tritensor.tensor.public_api.publish import function
from tritensor.tensor.return_types import return_type

builtin_range = range  # which is the name of an argument below


class Histogram(NamedTuple):
    """What histogram returns."""

    hist: Tensor
    bin_edges: Tensor


class HistogramDD(NamedTuple):
    """What histogramdd returns."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


# Covariance
def _check_weights(name: str, weights: Tensor | None, count: int, kinds: str, whose: str) -> None:
    if weights is None:
        return
    if weights.ndim > 1 or weights.numel() != count:
        raise ShapeError(f"{name}: {whose} {tuple(weights.shape)}; give one for each of the {count} observations, in one dimension")
    if weights._array.dtype.kind not in kinds and not (kinds == "fV" and weights.is_floating_point()):
        raise DTypeError(f"{name}: {whose} are {weights.dtype.name}; {'cast them to int64' if kinds == 'iu' else 'cast them to float32'}")
    if count and bool(ops.any(ops.lt(weights, 0), dim=tuple(range(weights.ndim)), keepdim=False).item()):
        raise ArgumentError(f"{name}: {whose} has a negative weight; give numbers that are not negative")


@function
def cov(x: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    """Covariance matrix (variables, variables) of x (variables, observations); of one row of observations its variance.

    sum of w (x_i - mean_i)(x_j - mean_j) over (sum w - correction): `fweights` (integers) say how often each observation counts,
    `aweights` how much. Raises ShapeError for more than two dims or weights that do not fit, DTypeError for bool, ArgumentError for negative weights.
    """
    found = _covariance(x, correction, fweights, aweights)
    return cast_if_given(found, x.dtype) if x.is_floating_point() and (aweights is None or aweights.dtype is x.dtype) else found


def _covariance(x: Tensor, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    """cov, of 16-bit floats in float32."""
    if x.ndim > 2:
        raise ShapeError(f"cov: x {tuple(x.shape)} has {x.ndim} dimensions; give at most two, (variables, observations)")
    if x._array.dtype == np.bool_:
        raise DTypeError("cov: x is bool; cast it to a number type")
    rows = ops.reshape(x, shape=(1, x.numel())) if x.ndim < 2 else x
    count = rows.shape[1]
    _check_weights("cov", fweights, count, "iu", "fweights")
    _check_weights("cov", aweights, count, "fV", "aweights")
    if not rows.is_floating_point() and not rows.is_complex():
        rows = ops.cast(rows, dtype=dtypes.default_float().numpy)
    rows = to_accumulator(rows)
    weights = [ops.reshape(w, shape=(count,)) for w in (fweights, aweights) if w is not None]
    w = None if not weights else weights[0] if len(weights) == 1 else ops.mul(*weights)
    total = float(count) if w is None else ops.sum(w, dim=(0,), keepdim=False)
    if w is not None and count and float(total.item()) == 0:  # type: ignore[union-attr]
        raise ArgumentError("cov: the weights add up to 0; give at least one that is positive")
    centred = _subtract_mean(_subtract_mean(rows, w, total), w, total)  # twice: roundings of the first sum would be variances
    product = ops.matmul(centred if w is None else ops.mul(centred, w), ops.permute(centred, dims=(1, 0)).conj())
    out = ops.div(product, _find_divisor(total, aweights, w, correction))
    return ops.reshape(out, shape=()) if x.ndim < 2 or x.shape[0] == 1 else out


def _subtract_mean(rows: Tensor, w: Tensor | None, total: Any) -> Tensor:
    """Rows without their means, of columns that count by w."""
    if w is None:
        return ops.sub(rows, ops.mean(rows, dim=(1,), keepdim=True))
    return ops.sub(rows, ops.div(ops.sum(ops.mul(rows, w), dim=(1,), keepdim=True), total))


def _find_divisor(total: Any, aweights: Tensor | None, w: Tensor | None, correction: int) -> Any:
    """sum w - correction, with aweights less by the share that each has of it; 0 where that is negative, with a warning."""
    if aweights is not None and correction != 0:
        share = ops.div(ops.sum(ops.mul(w, ops.reshape(aweights, shape=w.shape)), dim=(0,), keepdim=False), total)  # type: ignore[union-attr]
        left = ops.sub(total, ops.mul(share, float(correction)))
    else:
        left = total - correction
    if float(left if isinstance(left, float) else left.item()) > 0:
        return left
    warn("cov: the degrees of freedom are not positive")
    return 0.0


@function
def corrcoef(x: Tensor) -> Tensor:
    """Correlation coefficients (variables, variables) of x (variables, observations), in -1..1; NaN for a variable that does not vary."""
    if x.ndim > 2:
        raise ShapeError(f"corrcoef: x {tuple(x.shape)} has {x.ndim} dimensions; give at most two, (variables, observations)")
    c = _covariance(x)
    kept = x.dtype if x.is_floating_point() else None
    if c.ndim == 0:
        return cast_if_given(ops.div(c, c), kept)
    spread = ops.sqrt(c.diagonal().real if c.is_complex() else c.diagonal())
    n = spread.shape[0]
    c = ops.div(ops.div(c, ops.reshape(spread, shape=(n, 1))), ops.reshape(spread, shape=(1, n)))
    return c if c.is_complex() else cast_if_given(c.clip(-1, 1), kept)


# Counts
@function
def bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each of 0, 1, ..., max(x) stands in a 1-d x of integers, int64; with `weights` their sums, in float32 if they are, else float64.

    At least `minlength` counts. Reads the largest element, which waits for a GPU. The same on every run: nothing is added by float atomics.
    Raises ShapeError, DTypeError and ArgumentError for other shapes and types, and for negative numbers; a derivative by weights NoDerivativeError.
    """
    given = None if weights is None else weights.shape
    if minlength < 0:
        raise ArgumentError(f"bincount: minlength {minlength} is negative; give 0 or more")
    if x._array.dtype.kind not in "iu":
        raise DTypeError(f"bincount: x is {x.dtype.name}; cast it to an integer type such as int64")
    if x.ndim != 1:
        raise ShapeError(f"bincount: x {tuple(x.shape)} has {x.ndim} dimensions; give one, as x.flatten() has")
    if x.numel() == 0:  # whatever the weights are, as in PyTorch
        return ops.full(shape=(minlength,), value=0, dtype=np.dtype(np.int64), device=x.device)
    if given is not None and given != x.shape:
        raise ShapeError(f"bincount: x {tuple(x.shape)}, weights {tuple(given)}: give one weight for each number")
    keys = ops.cast(x, dtype=np.dtype(np.int64))
    low, high = int(ops.amin(keys, dim=(0,), keepdim=False).item()), int(ops.amax(keys, dim=(0,), keepdim=False).item())
    if low < 0:
        raise ArgumentError(f"bincount: x holds {low}; only numbers that are not negative can be counted")
    size = max(high + 1, minlength)
    if weights is None:
        return ops.count_keys(keys, None, size=size)
    # Sums of weights are taken in float64 unless they are float32, as in PyTorch.
    plain = weights.detach()
    if plain._array.dtype != np.float32:
        plain = ops.cast(plain, dtype=np.dtype(np.float64))
    return refuse_derivative("bincount", ops.count_keys(keys, plain, size=size), weights)


# Histograms
def _parse_range(name: str, x: Tensor, low: float, high: float, given: bool) -> tuple[float, float]:
    """The range of the bins: what is given, or that of the elements; a range of nothing is widened."""
    if not given:
        if x.numel() and not x.is_meta:
            dims = tuple(range(x.ndim))
            low, high = float(ops.amin(x, dim=dims, keepdim=False).item()), float(ops.amax(x, dim=dims, keepdim=False).item())
        else:
            low, high = 0.0, 1.0
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ArgumentError(f"{name}: the range {low} to {high} is not finite; give one that is")
    if low > high:
        raise ArgumentError(f"{name}: the range {low} to {high} ends before it begins; give its smaller end first")
    return low, high


@function(out=True)
def histc(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements fall in each of so many bins of one width between min and max (if both are equal: of the elements), in x's type.

    The last bin is closed, elements outside do not count. Raises ArgumentError for bins < 1 and a range that is none.
    """
    if bins <= 0:
        raise ArgumentError(f"histc: bins {bins}: give at least 1")
    x = x.detach()
    if not x.is_floating_point() and x._array.dtype.kind not in "iu":
        raise DTypeError(f"histc: x is {x.dtype.name}; cast it to a number type that is not complex")
    low, high = _parse_range("histc", x, float(min), float(max), min != max)
    if low == high:
        low, high = low - 1, high + 1
    kind = x._array.dtype
    # Bin edges are fractions: integers are compared as float64.
    values = x if x.is_floating_point() else ops.cast(x, dtype=np.dtype(np.float64))
    keys = ops.uniform_bins(values, low=low, high=high, bins=float(bins))
    return ops.cast(ops.count_keys(keys, size=bins), dtype=kind)


def _make_edges(name: str, x: Tensor, bins: Any, span: Any, column: Tensor) -> tuple[Tensor, bool]:
    """Edges of bins, and whether they are evenly spaced."""
    if isinstance(bins, Tensor):
        if bins.ndim != 1 or bins.numel() < 2:
            raise ShapeError(f"{name}: bins {tuple(bins.shape)}: give at least two edges, in one dimension")
        if bins._array.dtype != x._array.dtype:
            raise DTypeError(f"{name}: bins are {bins.dtype.name}, x is {x.dtype.name}; cast one so that both are the same")
        return bins.detach(), False
    if bins <= 0:
        raise ArgumentError(f"{name}: bins {bins}: give at least 1")
    low, high = span if span is not None else (0.0, 0.0)
    low, high = _parse_range(name, column, float(low), float(high), given=span is not None)
    if low == high:
        low, high = low - 0.5, high + 0.5
    return ops.linspace(start=float(low), end=float(high), steps=int(bins) + 1, dtype=x._array.dtype, device=x.device), True


def _check_histogram(name: str, x: Tensor, weight: Tensor | None, shape: tuple[int, ...]) -> None:
    if not x.is_floating_point():
        raise DTypeError(f"{name}: x is {x.dtype.name}; {name} takes floating types; cast it with .to(float32)")
    if weight is None:
        return
    if tuple(weight.shape) != shape:
        raise ShapeError(f"{name}: x {tuple(x.shape)}, weight {tuple(weight.shape)}: give one weight for each element, {shape}")
    if weight._array.dtype != x._array.dtype:
        raise DTypeError(f"{name}: weight is {weight.dtype.name}, x {x.dtype.name}; cast one so that both are the same")


def _count_bins(x: Tensor, keys: Tensor, weight: Tensor | None, size: int) -> Tensor:
    flat = (keys.numel(),)
    counts = ops.count_keys(reshape_to(keys, flat), None if weight is None else reshape_to(weight.detach(), flat), size=size)
    return ops.cast(counts, dtype=x._array.dtype)


@function(out=True)
def histogram(
    x: Tensor, bins: Any = 100, *, range: Sequence[float] | None = None, weight: Tensor | None = None, density: bool = False
) -> Histogram:
    """(hist, bin_edges): how many elements, or how much weight, fall between neighbouring edges, in x's type; the last bin is closed.

    Args:
        bins: their number, over `range` or that of the elements; or a sorted 1-d tensor of their edges.
        density: divide by the total and by the bins' widths, so that the integral is 1.

    A derivative by x, bins or weight raises NoDerivativeError.
    """
    _check_histogram("histogram", x, weight, tuple(x.shape))
    if isinstance(bins, Tensor) and range is not None:
        raise TypeError("histogram: bins are edges, and range is given as well; give one of the two")
    if range is not None and len(range) != 2:
        raise ArgumentError(f"histogram: range {tuple(range)}: give two numbers")
    sources, x = (x, bins, weight), x.detach()
    edges, uniform = _make_edges("histogram", x, bins, range, x)
    hist = _count_bins(x, ops.bin_numbers(x, edges, uniform=uniform), weight, edges.shape[0] - 1)
    if density:
        total = ops.sum(hist, dim=(0,), keepdim=False)
        hist = ops.div(ops.div(hist, total), diff(edges))
    return return_type("histogram", Histogram)(*[refuse_derivative("histogram", y, *sources) for y in (hist, edges)])


@function(method=False)
def histogramdd(
    x: Tensor, bins: Any, range: Sequence[float] | None = None, weight: Tensor | None = None, density: bool = False
) -> HistogramDD:
    """(hist, bin_edges) of points x (..., n) in n dimensions: how many points, or how much weight, fall in each cell of the grid.

    Args:
        bins: the number of bins, one for all dims or one for each; or for each dim a sorted 1-d tensor of edges.
        range: the ends of each dim's bins, one after the other: 2n numbers.
        density: divide by the total and by the cells' volumes.

    A derivative by x, bins or weight raises NoDerivativeError.
    """
    if x.ndim < 2:
        raise ShapeError(f"histogramdd: x {tuple(x.shape)}: give points in the last of at least two dimensions")
    n = x.shape[-1]
    count = math.prod(x.shape[:-1])
    _check_histogram("histogramdd", x, weight, tuple(x.shape[:-1]))
    given = [bins] * n if isinstance(bins, int) else list(bins)
    if len(given) != n:
        raise ShapeError(f"histogramdd: {len(given)} bins for x {tuple(x.shape)}; give one for each of its last size, {n}")
    if range is not None and len(range) != 2 * n:
        raise ArgumentError(f"histogramdd: range holds {len(range)} numbers; give two for each of {n} dims")
    points = reshape_to(x.detach(), (count, n))
    edges, keys, good = [], None, None
    for d, b in enumerate(given):
        column = reshape_to(ops.index_view(points, index=(slice(0, count, 1), slice(d, d + 1, 1))), (count,))
        e, uniform = _make_edges("histogramdd", x, b, None if range is None else (range[2 * d], range[2 * d + 1]), column)
        key, size = ops.bin_numbers(column, e, uniform=uniform), e.shape[0] - 1
        inside = ops.lt(key, size)
        keys = key if keys is None else ops.add(ops.mul(keys, size), key)
        good = inside if good is None else ops.logical_and(good, inside)
        edges.append(e)
    shape = tuple(e.shape[0] - 1 for e in edges)
    # Points outside one dim belong to no cell; -1 is not counted.
    keys = ops.where(good, keys, -1)
    hist = ops.reshape(_count_bins(x, keys, weight, math.prod(shape)), shape=shape)
    if density:
        hist = ops.div(hist, ops.sum(hist, dim=tuple(builtin_range(n)), keepdim=False))
        for d, e in enumerate(edges):
            hist = ops.div(hist, ops.reshape(diff(e), shape=tuple(s if a == d else 1 for a, s in enumerate(shape))))
    sources = x, weight, *given
    found = [b if isinstance(b, Tensor) else refuse_derivative("histogramdd", e, *sources) for b, e in zip(given, edges, strict=True)]
    return return_type("histogramdd", HistogramDD)(refuse_derivative("histogramdd", hist, *sources), tuple(found))
