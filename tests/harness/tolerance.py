"""The one table of tolerances, and the one comparison: by element, relative to the element and to the array's size."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor import dtypes
from tritensor.table import Op

# Two computations of one formula in the type named: a few roundings apart. The 16-bit types compute in float32 and
# round once, so they get about one unit in the last place. What is promised more tightly is in test_accuracy.py.
TABLE = {
    "float64": 1e-12,
    "float32": 4e-6,
    "float16": 1.5e-3,
    "bfloat16": 1.2e-2,
}
GRADIENT = 4  # a gradient formula chains several operations, and its 16-bit outputs were rounded before it used them
DEGENERATE = 8  # times more where equal inputs make sums cancel (layout "broadcast"), and a result counts as at least 1 there
SATURATED = 0.01  # least size of a gradient: where it vanishes (softmax of large logits) it is a difference of terms like g
DIFFERENCES = 2e-7  # central differences of fourth order in float64, step 1e-4: truncation 1e-16, rounding 1e-12 / step


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


def mismatch(got: Any, want: Any, relative: float, *, dtype: bool = True, least: float = 0.0) -> str | None:
    """What differs between two arrays, or None. `want` may be a wider type when `dtype` is False: it is rounded first.

    Floats: same NaNs, same infinities, and elsewhere |got - want| <= relative * (|want| + rms(want)) plus a few of the
    type's smallest steps; `least` is a lower bound for the rms. Other types: equal.
    """
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if dtype and got.dtype != want.dtype:
        return f"dtype {got.dtype}, expected {want.dtype}"
    if dtypes.of(got.dtype).kind not in ("float", "float8"):
        return _first(got, want, got != want)
    if dtypes.of(want.dtype).kind not in ("float", "float8"):
        return f"dtype {got.dtype}, expected {want.dtype}"
    step = float(dtypes_finfo(got.dtype).smallest_subnormal)
    g, w = wide(got), wide(want.astype(got.dtype))
    finite = np.isfinite(w)
    bad = np.where(finite, False, ~((g == w) | (np.isnan(g) & np.isnan(w))))
    scale = np.sqrt(np.mean(np.square(w[finite]))) if finite.any() else 0.0
    allowed = relative * (np.abs(np.where(finite, w, 0)) + max(scale, least)) + (4 * step if relative else 0.0)
    bad |= finite & ~(np.abs(g - np.where(finite, w, 0)) <= allowed)
    return _first(g, w, bad, f" (allowed {relative:g} relative)")


def _first(got: np.ndarray, want: np.ndarray, bad: np.ndarray, remark: str = "") -> str | None:
    if not bad.any():
        return None
    if got.ndim == 0:
        return f"got {got!s}, expected {want!s}{remark}"
    with np.errstate(all="ignore"):
        error = np.abs(got.astype(np.float64) - want.astype(np.float64))
    where = np.unravel_index(int(np.argmax(np.where(bad, np.where(np.isnan(error), np.inf, error), -1.0))), got.shape)
    at = ", ".join(str(int(i)) for i in where)
    return f"{int(bad.sum())} of {bad.size} elements differ; at [{at}] got {got[where]!s}, expected {want[where]!s}{remark}"


def dtypes_finfo(dtype: np.dtype) -> Any:
    """numpy's or ml_dtypes' description of a floating type."""
    import ml_dtypes

    return ml_dtypes.finfo(dtype)
