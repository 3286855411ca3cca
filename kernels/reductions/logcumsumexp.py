"""logcumsumexp: log of the running sum of e^x along a dim, from the largest so far down, so that nothing overflows."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.ground import dtypes
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.rows.recurrence import TILE, new_like, recur, scan_kept, scan_shape
from tritensor.kernels.parts.rows.row_tiles import row_tunable, tiles_for
from tritensor.kernels.parts.rows.scan_parts import Scan, scan_rows
from tritensor.kernels.reductions.linear_scan import neighbour, scanned, shifted
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, normal_dim, op, ops

row_tunable("logcumsumexp")


@triton.jit
def _finite(m):
    """The origin that exponents are counted from: 0 where the largest is no number."""
    return tl.where(tl.abs(m) < float("inf"), m, 0)


# of (m, s), which stand for s e^m: (M, s e^(m - M) + s' e^(m' - M)) with M the larger
@triton.jit
def _join(m, s, m_, s_):
    top = maths.maximum(m, m_)
    origin = _finite(top)
    return top, s * maths.exp(m - origin) + s_ * maths.exp(m_ - origin)


# y_i = log(sum of e^(x_j) over j <= i)
@triton.jit
def _term(value, col):
    return value, tl.where(value == value, tl.full(value.shape, 1, value.dtype), value)  # NaN stays, whatever it is compared with


@triton.jit
def _running(states):
    return tl.associative_scan(states, 1, _join)


@triton.jit
def _joined(before, states):
    return _join(before[0], before[1], states[0], states[1])


@triton.jit
def _logarithm(states):
    return (_finite(states[0]) + maths.log(states[1]),)


def _logcumsumexp(x: np.ndarray, *, dim: int) -> np.ndarray:
    """log of the running sum of e^x along dim; -inf and inf are what they are in sums, NaN stays."""
    if x.ndim == 0:
        return x
    add = np.frompyfunc(_log_add, 2, 1) if x.dtype.kind == "c" else np.logaddexp
    return add.accumulate(x, axis=dim).astype(x.dtype)


def _log_add(a: complex, b: complex) -> complex:
    """log(e^a + e^b), from the larger down."""
    a, b = (a, b) if a.real > b.real else (b, a)
    return a if np.isinf(a.real) else a + np.log1p(np.exp(b - a))


_RISE = 600.0  # of the largest so far along a row, below which e^(x - the largest of all) keeps its digits in float64


def _logcumsumexp_cpu(x: np.ndarray, *, dim: int) -> np.ndarray:
    axis = normal_dim("logcumsumexp", dim, x.ndim)
    if x.ndim == 0 or x.size == 0:
        return x.copy()
    kept = scan_kept(x.dtype)
    values = np.ascontiguousarray(x.swapaxes(axis, -1)).astype(np.float64 if x.dtype.itemsize < 8 else kept, copy=False)
    # one exponential instead of two for each element: float64 has the range to spare where the result is rounded to float32
    found = _from_largest(values) if x.dtype.itemsize < 8 and x.dtype.kind != "c" else None
    if found is None:
        found = _from_running(values)
    return np.ascontiguousarray(found.swapaxes(axis, -1)).astype(x.dtype, copy=False)


def _from_largest(x: np.ndarray) -> np.ndarray | None:
    """By one exponential and one logarithm of each element; None where the first element lies too far below the largest."""
    top = np.maximum.reduce(x, axis=-1, keepdims=True)
    if not ((top - x[..., :1]) < _RISE).all():  # NaN and infinities, too
        return None
    out = x - top
    np.exp(out, out=out)
    np.add.accumulate(out, axis=-1, out=out)
    np.log(out, out=out)
    out += top
    return out


def _from_running(x: np.ndarray) -> np.ndarray:
    """From the largest so far: s_i = s_(i-1) e^(m_(i-1) - m_i) + e^(x_i - m_i)."""
    axis = x.ndim - 1
    top = np.maximum.accumulate(x.real, axis=axis)
    origin: Any = top
    if x.dtype.kind == "c":  # counted from the element itself, so that the imaginary part is not wound back to -pi..pi
        places = np.where(x.real == top, np.arange(x.shape[axis]), 0)
        origin = np.take_along_axis(x, np.maximum.accumulate(places, axis=axis), axis=axis)
    origin = np.where(np.isfinite(origin), origin, 0)
    fall = np.exp(neighbour(origin, axis, -1, 0.0) - origin)
    s = scanned(fall, np.exp(x - origin), axis, False)
    wild = np.isposinf(top) | np.isnan(top)
    return np.where(wild, top, origin + np.log(s))


def _forward(x: CudaArray, *, dim: int) -> CudaArray:
    axis, y, kept = normal_dim("logcumsumexp", dim, len(x.shape)), new_like(x), dtypes.accumulator(x.dtype)
    on = tiles_for("logcumsumexp", x.shape, axis, x.dtype, limit=TILE, tile=TILE, size=8)
    scan_rows(x, (y,), axis, on, Scan(_term, _running, _joined, _logarithm, (float("-inf"), 0), (kept, kept), float("-inf")))
    return y


# Gradient: dx_i = e^(x_i - y_i) s_i, s_i = g_i + e^(y_i - y_(i+1)) s_(i+1): every exponent is at most 0. A y of -inf weighs nothing, one of inf what
# its own g does: after an infinite x no later y says more.
def _rule(g: Any, x: Any, y: Any, dim: int) -> Any:
    axis = normal_dim("logcumsumexp", dim, len(x.shape))
    nothing = ops.eq(y, float("-inf"))
    level = ops.where(nothing, 0.0, y)
    fall = ops.where(ops.eq(ops.abs(y), float("inf")), 0.0, ops.exp(ops.sub(level, shifted(level, axis, 1, float("inf")))))
    s = ops.linear_scan(fall, g, dim=axis, reverse=True)
    return ops.mul(ops.exp(ops.sub(x, level)), s)


@triton.jit
def _fall(here, there):
    return tl.where(tl.abs(here) == float("inf"), 0, maths.exp(here - there))


@triton.jit
def _share(s, place, x, y):
    return (s * maths.exp(x - tl.where(y == float("-inf"), 0, y)),)


def _backward(g: CudaArray, x: CudaArray, y: CudaArray, dim: int) -> CudaArray:
    axis, dx = normal_dim("logcumsumexp", dim, len(x.shape)), new_like(x)
    recur("logcumsumexp", y, g, (x, y), (dx,), axis, weight=_fall, finish=_share, reverse=True, kind=dtypes.accumulator(x.dtype))
    return dx


def _cpu_backward(g: np.ndarray, x: np.ndarray, y: np.ndarray, dim: int) -> np.ndarray:
    axis, kept = normal_dim("logcumsumexp", dim, x.ndim), scan_kept(x.dtype)
    if x.size == 0:
        return g.copy()
    values, out = x.astype(kept, copy=False), y.astype(kept, copy=False)
    level = np.where(out == -np.inf, 0, out)
    fall = np.exp(level - neighbour(level, axis, 1, np.inf))
    s = scanned(np.where(np.isinf(out), 0, fall), g.astype(kept, copy=False), axis, True)
    return np.asarray(s * np.exp(values - level)).astype(x.dtype)


def _samples(rng: np.random.Generator) -> list[Sample]:
    """Last dim, first, a middle one, a steep rise, infinities, NaN, rows longer than a tile, no elements."""
    steep = np.array([[-900.0, -3.0, 800.0, 5.0], [3.0, -700.0, 1.0, 2.0]])
    wild = rng.normal(size=(4, 6))
    wild[0, :2] = wild[1, 2] = -np.inf
    wild[2, 3] = np.inf
    wild[3, 2] = np.nan
    return [
        Sample(rng.normal(size=(5, 7)), dim=1),
        Sample(rng.normal(size=(6, 5)), dim=0),
        Sample(3 * rng.normal(size=(3, 4, 2)), dim=1),
        Sample(steep, dim=1, smooth=False),
        Sample(wild, dim=1, smooth=False),
        Sample(rng.normal(size=(1, 1100)), dim=1, smooth=False),
        Sample(rng.normal(size=(3, 0)), dim=1),
    ]


op(
    "logcumsumexp", _logcumsumexp, cpu=_logcumsumexp_cpu, forward=_forward, rule=(_rule,), backward=(_backward,),
    cpu_backward=(_cpu_backward,), samples=_samples, shape=lambda x, *, dim: scan_shape("logcumsumexp", ("float", "complex"), x, dim, x.dtype),
)  # fmt: skip
