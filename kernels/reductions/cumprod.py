"""cumprod: running products along a dim; the gradient divides by nothing, so that it is exact at zeros, at every order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.kernels.parts.cpu.scanning import accumulated, backwards
from tritensor.kernels.parts.reduction import NUMBERS
from tritensor.kernels.parts.rows.recurrence import TILE, new_like, recur, scan_kept, scan_shape, there_weighs
from tritensor.kernels.parts.rows.row_tiles import row_tunable, tiles_for
from tritensor.kernels.parts.rows.scan_parts import Scan, scan_rows
from tritensor.kernels.reductions.linear_scan import neighbour, scanned, shifted
from tritensor.kernels.reductions.scan import scan_result
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, normal_dim, op, ops

row_tunable("cumprod")
_TINY = {t: float(np.finfo(t).tiny) for t in "fd"}


@triton.jit
def _times(a, b):
    return a * b


@triton.jit
def _factor(value, col):
    return (value,)


@triton.jit
def _products(states):
    return (tl.associative_scan(states[0], 1, _times),)


@triton.jit
def _product(before, states):
    return (states[0] * before[0],)


@triton.jit
def _itself(states):
    return states


def _cumprod(x: np.ndarray, *, dim: int) -> np.ndarray:
    """Running product along dim; integers and bools in int64, 16-bit floats in float32, float32 in float64."""
    return np.cumprod(x, axis=dim, dtype=np.int64 if x.dtype.kind in "bui" else None) if x.ndim else x


def _cumprod_cpu(x: np.ndarray, *, dim: int) -> np.ndarray:
    result = scan_result(x.dtype)
    axis = normal_dim("cumprod", dim, x.ndim)
    if x.ndim == 0:
        return np.asarray(x, result).copy()
    return np.ascontiguousarray(accumulated(np.multiply, x, axis, scan_kept(x.dtype), result))


def _forward(x: CudaArray, *, dim: int) -> CudaArray:
    axis, y, kept = normal_dim("cumprod", dim, len(x.shape)), new_like(x, scan_result(x.dtype)), scan_kept(x.dtype)
    on = tiles_for("cumprod", x.shape, axis, x.dtype, limit=TILE, tile=TILE, size=kept.itemsize)
    scan_rows(x, (y,), axis, on, Scan(_factor, _products, _product, _itself, (1,), (kept,), 1))
    return y


# y_i = x_i y_(i-1) is a recurrence: with s_i = g_i + x_(i+1) s_(i+1), dx_i = s_i y_(i-1)
def _rule(g: Any, x: Any, y: Any, dim: int) -> Any:
    axis = normal_dim("cumprod", dim, len(x.shape))
    s = ops.linear_scan(shifted(x, axis, 1, 0.0), g, dim=axis, reverse=True)
    return ops.mul(s, shifted(y, axis, -1, 1.0))


@triton.jit
def _times_before(s, place, y):
    return (s * tl.where(place == 0, 1, y),)


def _backward(g: CudaArray, x: CudaArray, y: CudaArray, dim: int) -> CudaArray:
    axis, dx = normal_dim("cumprod", dim, len(x.shape)), new_like(x)
    recur(
        "cumprod", x, g, (y,), (dx,), axis, weight=there_weighs, finish=_times_before, reverse=True, shifts=(-1,), kind=scan_kept(x.dtype)
    )
    return dx


def _cpu_backward(g: np.ndarray, x: np.ndarray, y: np.ndarray, dim: int) -> np.ndarray:
    axis, kept = normal_dim("cumprod", dim, x.ndim), scan_kept(x.dtype)
    if x.ndim == 0:
        return g.copy()
    values = x.astype(kept, copy=False)
    products = np.multiply.accumulate(values, axis=axis)
    size = np.abs(products)
    least, most = (ufunc.reduce(size, axis=None, initial=1) for ufunc in (np.minimum, np.maximum))
    if least > _TINY[kept.char] and math.isfinite(most):  # no zero and none too small: sums of g y, divided by x
        products *= g
        sums = backwards(np.add.accumulate(backwards(products, axis), axis=axis), axis)
        return np.divide(sums, values, out=products).astype(x.dtype, copy=False)
    # a zero or a product that left the range: the recurrence divides by nothing
    s = scanned(neighbour(values, axis, 1, 0.0), g.astype(kept, copy=False), axis, True)
    return np.asarray(s * neighbour(products, axis, -1, 1.0)).astype(x.dtype)


def _samples(rng: np.random.Generator) -> list[Sample]:
    """Last dim, first, a middle one, zeros, rows longer than a tile, no elements."""
    zeros = rng.normal(size=(4, 6)) + 1.5
    zeros[1, 2] = zeros[2, 1] = zeros[2, 3] = zeros[3, 0] = 0
    return [
        Sample(rng.normal(size=(5, 7)) + 1, dim=1),
        Sample(rng.normal(size=(6, 5)) + 1, dim=0),
        Sample(rng.normal(size=(3, 4, 5)) + 1, dim=1),
        Sample(zeros, dim=1),
        Sample(1 + 1e-2 * rng.normal(size=(1, 1100)), dim=1, smooth=False),
        Sample(1 + 1e-2 * rng.normal(size=(1030, 2)), dim=0, smooth=False),
        Sample(rng.normal(size=(3, 0)), dim=1),
    ]


op(
    "cumprod", _cumprod, cpu=_cumprod_cpu, forward=_forward, rule=(_rule,), backward=(_backward,), cpu_backward=(_cpu_backward,),
    dtypes=("float16", "bfloat16", "float32", "float64", "int64", "uint8", "bool"), samples=_samples,
    shape=lambda x, *, dim: scan_shape("cumprod", NUMBERS, x, dim, scan_result(x.dtype)),
)  # fmt: skip
