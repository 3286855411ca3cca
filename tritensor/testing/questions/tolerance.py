"""The one table of tolerances, and the one comparison: element by element, each against its own bound; and the mean error of many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tritensor.ground import dtypes
from tritensor.ops.table import Op

# Two computations of one formula in the type named: a few roundings apart. The 16-bit types compute in float32 and
# round once, so two of them differ by one unit in the last place. What is promised more tightly is in test_accuracy.py.
TABLE = {"float64": 1e-12, "float32": 4e-6, "float16": 2.0**-10, "bfloat16": 2.0**-7}
GRADIENT = 4  # a gradient formula chains several operations, and numpy rounds 16-bit results between them
PROMISED = 8  # roundings of a sum or a product of matrices, each as large as the sum of absolute values
MEASURED = 16  # roundings counted against a measured scale, which is a root of squares and not a sum
DIFFERENCES = 2e-7  # central differences of fourth order in float64, step 1e-4: truncation 1e-16, rounding 1e-12 / step
MANY = 24  # different elements from which on their mean error says something
SIGMAS = 6  # a mean error beyond so many of its standard deviations is no accident in a hundred million
# Units in the last place that a mean may be off: elements that share an intermediate (a long product) share its few roundings.
# Of 16-bit results those are computed in float32, so that next to nothing is shared.
UNBIASED = {"float64": 64.0, "float32": 32.0, "float16": 0.125, "bfloat16": 0.125}


def tolerance(op: Op, dtype: np.dtype) -> float:
    """Relative tolerance for results of `dtype`: the op's override (registered with its reason), else the table's."""
    name = dtypes.of(dtype).name
    if name in op.tolerance:
        return op.tolerance[name][0]
    if "seed" in op.attrs:
        return 0.0  # the same counter gives the same bits everywhere
    return TABLE.get(name, 0.0)


def wide(x: Any) -> np.ndarray:
    """Floats as float64 (exactly); everything else as it is."""
    x = np.asarray(x)
    return x.astype(np.float64) if dtypes.of(x.dtype).kind in ("float", "float8") else x


def unit(dtype: np.dtype) -> float:
    """One unit in the last place of 1 in the type that results of `dtype` are computed in."""
    return float(np.finfo(np.float64 if dtype == np.float64 else np.float32).eps)


class Mismatch(str):
    """The difference between two arrays, in a line; `at` is the index of the element that it shows, None where it shows none."""

    at: tuple[int, ...] | None

    def __new__(cls, said: str, at: tuple[int, ...] | None = None) -> Mismatch:
        made = super().__new__(cls, said)
        made.at = at
        return made


def mismatch(
    got: Any, want: Any, relative: float, *, dtype: bool = True, extra: Callable[[], np.ndarray | None] | None = None, mean: bool = True
) -> Mismatch | None:
    """The difference between two arrays, or None. `want` may be a wider type when `dtype` is False: it is rounded first.

    Floats: same NaNs, same infinities, and elsewhere, each for itself, |got - want| <= relative * |want| + extra, plus a few of
    the type's smallest steps. `extra` is called only where that fails without it: it gives an allowance for every element, from
    the operation's conditioning. `mean`: nor may the mean of many signed relative errors be off. Other types: equal.
    """
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return Mismatch(f"shape {got.shape}, expected {want.shape}")
    if dtype and got.dtype != want.dtype:
        return Mismatch(f"dtype {got.dtype}, expected {want.dtype}")
    if dtypes.of(got.dtype).kind == "complex":
        return _complex_mismatch(got, want)
    if dtypes.of(got.dtype).kind not in ("float", "float8"):
        return _first(got, want, got != want)
    if dtypes.of(want.dtype).kind not in ("float", "float8"):
        return Mismatch(f"dtype {got.dtype}, expected {want.dtype}")
    step = float(ml_dtypes.finfo(got.dtype).smallest_subnormal)  # near 0 a relative bound is less than one step
    g, w = wide(got), wide(want.astype(got.dtype))
    finite = np.isfinite(w)
    bad = np.where(finite, False, ~((g == w) | (np.isnan(g) & np.isnan(w))))
    expected = np.where(finite, w, 0)
    error = np.where(finite, g - expected, 0)
    allowed = relative * np.abs(expected) + (4 * step if relative else 0.0)
    worse = finite & ~(np.abs(error) <= allowed)
    added = extra() if extra is not None and worse.any() else None
    if added is not None:
        allowed = allowed + np.where(np.isfinite(added), added, 0)
        worse = finite & ~(np.abs(error) <= allowed)
    found = _first(g, w, bad | worse, allowed=np.where(finite, allowed, 0))
    if found is not None:
        beside = ""
        if added is not None and found.at is not None:
            beside = f", and {float(allowed[found.at] - relative * abs(expected[found.at])):.2g}"
        return Mismatch(f"{found} (allowed {relative:g} relative{beside})", found.at)
    if mean and relative:
        said = find_bias(error, expected, np.abs(error) <= relative * np.abs(expected), got.dtype)
        if said is not None:
            furthest = np.unravel_index(int(np.argmax(np.abs(error))), got.shape)
            return Mismatch(said, tuple(int(i) for i in furthest))
    return None


def _complex_mismatch(got: np.ndarray, want: np.ndarray) -> Mismatch | None:
    """The difference between complex arrays: each element may be off by roundings of the largest, since they are sums of products."""
    size = np.abs(want[np.isfinite(want)])
    # Of the largest, not each for itself: real and imaginary part share roundings.
    allowed = TABLE["float64" if got.dtype == np.complex128 else "float32"] * (float(size.max()) if size.size else 0.0)
    with np.errstate(invalid="ignore"):
        bad = ~((np.abs(got - want) <= allowed) | (got == want) | (np.isnan(got) & np.isnan(want)))
    if not bad.any():
        return None
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return Mismatch(
        f"{int(bad.sum())} of {bad.size} elements differ; at {list(at)} got {got[at]}, expected {want[at]} (allowed {allowed:g})", at
    )


def find_bias(error: np.ndarray, want: np.ndarray, taken: np.ndarray, dtype: np.dtype) -> str | None:
    """A complaint about the mean of the signed relative errors, or None.

    Errors of rounding have either sign: the mean of n stays within a few of its standard deviations, s / sqrt(n), where a
    factor that is off by less than the tolerance moves it. Equal elements count once, as they share their error; elements
    that needed more than the relative tolerance (`taken` is False there) count not at all.
    """
    _, once = np.unique(np.abs(want), return_index=True)  # abs: x and -x round alike
    found, size = np.asarray(error).reshape(-1)[once], np.abs(np.asarray(want)).reshape(-1)[once]
    normal = (size >= float(ml_dtypes.finfo(dtype).smallest_normal)) & np.asarray(taken).reshape(-1)[once]
    if int(normal.sum()) < MANY:
        return None
    signed = found[normal] / size[normal] * np.sign(np.asarray(want).reshape(-1)[once][normal])
    mean, spread = float(signed.mean()), float(signed.std()) / float(np.sqrt(signed.size))
    limit = UNBIASED.get(dtypes.of(dtype).name, 1.0) * float(ml_dtypes.finfo(dtype).eps)
    if abs(mean) <= max(SIGMAS * spread, limit):
        return None
    return (
        f"the mean of {signed.size} relative errors is {mean:.2g}, beyond {SIGMAS} x {spread:.2g} and {limit:.2g}: all are off the same way"
    )


def _first(got: np.ndarray, want: np.ndarray, bad: np.ndarray, remark: str = "", allowed: Any = 0) -> Mismatch | None:
    if not bad.any():
        return None
    if got.ndim == 0:
        return Mismatch(f"got {got!s}, expected {want!s}{remark}", ())
    with np.errstate(all="ignore"):
        error = np.abs(got.astype(np.float64) - want.astype(np.float64)) / np.maximum(allowed, np.finfo(np.float64).tiny)
    found = np.unravel_index(int(np.argmax(np.where(bad, np.where(np.isnan(error), np.inf, error), -1.0))), got.shape)
    at = tuple(int(i) for i in found)
    return Mismatch(f"{int(bad.sum())} of {bad.size} elements differ; at {list(at)} got {got[at]!s}, expected {want[at]!s}{remark}", at)
