"""Layer normalisation's kernels over rows, centred or not: a row in registers or walked in tiles."""

from __future__ import annotations

import math

import numpy as np
import triton
import triton.language as tl

from tritensor import dtypes
from tritensor.array import CudaArray
from tritensor.cuda.launch import launch
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import dense
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.parts.reduction import upcast
from tritensor.kernels.parts.rows.row_tiles import RowTiles, align, row_tunable, tiles_for

row_tunable("layer_norm")


@triton.jit
def row_tile(x, row, col, n, inside):
    """A tile of a C-ordered (rows, n), in float32 or wider, 0 outside."""
    return upcast(tl.load(x + row[:, None] * n + col[None, :], mask=inside, other=0.0))


@triton.jit
def vector(w, col, n):
    return upcast(tl.load(w + col, mask=col < n, other=0.0))[None, :]


# y = (x - mean) / sqrt(mean((x - mean)^2) + eps) * w + b; without `means` the mean is taken to be 0
@triton.jit(do_not_specialize=["rows", "n"])
def _forward_kernel(
    x, weight, bias, y, means, rstds, rows, n, eps, WHOLE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    row = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    n = n // ALIGN * ALIGN
    kind: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    here = row < rows
    if WHOLE:
        col = tl.arange(0, BN)
        inside = here[:, None] & (col < n)[None, :]
        value = row_tile(x, row, col, n, inside)  # (BM, BN)
        mean = tl.zeros((BM,), kind)
        if means is not None:
            mean = maths.div(tl.sum(value, axis=1), n)
            value = tl.where(inside, value - mean[:, None], 0.0)
        rstd = maths.rsqrt(maths.div(tl.sum(value * value, axis=1), n) + eps.to(kind))
        out = value * rstd[:, None]
        if weight is not None:
            out *= vector(weight, col, n)
        if bias is not None:
            out += vector(bias, col, n)
        tl.store(y + row[:, None] * n + col[None, :], out.to(y.dtype.element_ty), mask=inside)
    else:
        mean = tl.zeros((BM,), kind)
        if means is not None:
            sums = tl.zeros((BM, BN), kind)
            for start in range(0, n, BN):
                col = start + tl.arange(0, BN)
                sums += row_tile(x, row, col, n, here[:, None] & (col < n)[None, :])
            mean = maths.div(tl.sum(sums, axis=1), n)
        squares = tl.zeros((BM, BN), kind)
        for start in range(0, n, BN):
            col = start + tl.arange(0, BN)
            inside = here[:, None] & (col < n)[None, :]
            value = tl.where(inside, row_tile(x, row, col, n, inside) - mean[:, None], 0.0)
            squares += value * value
        rstd = maths.rsqrt(maths.div(tl.sum(squares, axis=1), n) + eps.to(kind))
        for start in range(0, n, BN):
            col = start + tl.arange(0, BN)
            inside = here[:, None] & (col < n)[None, :]
            out = (row_tile(x, row, col, n, inside) - mean[:, None]) * rstd[:, None]
            if weight is not None:
                out *= vector(weight, col, n)
            if bias is not None:
                out += vector(bias, col, n)
            tl.store(y + row[:, None] * n + col[None, :], out.to(y.dtype.element_ty), mask=inside)
    if means is not None:
        tl.store(means + row, mean, mask=here)
    tl.store(rstds + row, rstd, mask=here)


@triton.jit
def normal_tile(x, g, weight, row, col, n, inside, mean, rstd):
    """The normalised values h and the gradient u that arrives at them, tiles (BM, BN), 0 outside."""
    h = tl.where(inside, (row_tile(x, row, col, n, inside) - mean[:, None]) * rstd[:, None], 0.0)
    u = row_tile(g, row, col, n, inside)
    if weight is not None:
        u *= vector(weight, col, n)
    return h, u


@triton.jit
def means_of(means, row, here, KIND: tl.constexpr):
    if means is not None:
        mean = tl.load(means + row, mask=here, other=0.0)
    else:
        mean = tl.zeros_like(row).to(KIND)
    return mean


# dx = rstd (u - mean(u) - h mean(u h)), h = (x - mean) rstd, u = g w; without `means` dx = rstd (u - h mean(u h))
@triton.jit(do_not_specialize=["n"])
def _backward_kernel(
    x, weight, means, rstds, g, dx, rows, n, WHOLE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    row = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    n = n // ALIGN * ALIGN
    kind: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    here = row < rows
    mean = means_of(means, row, here, kind)
    rstd = tl.load(rstds + row, mask=here, other=0.0)
    if WHOLE:
        col = tl.arange(0, BN)
        inside = here[:, None] & (col < n)[None, :]
        h, u = normal_tile(x, g, weight, row, col, n, inside, mean, rstd)
        along = maths.div(tl.sum(u * h, axis=1), n)[:, None]
        if means is not None:
            u -= maths.div(tl.sum(u, axis=1), n)[:, None]
        out = (u - h * along) * rstd[:, None]
        tl.store(dx + row[:, None] * n + col[None, :], out.to(dx.dtype.element_ty), mask=inside)
    else:
        products = tl.zeros((BM, BN), kind)
        sums = tl.zeros((BM, BN), kind)
        for start in range(0, n, BN):
            col = start + tl.arange(0, BN)
            h, u = normal_tile(x, g, weight, row, col, n, here[:, None] & (col < n)[None, :], mean, rstd)
            products += u * h
            sums += u
        along = maths.div(tl.sum(products, axis=1), n)[:, None]
        level = maths.div(tl.sum(sums, axis=1), n)[:, None] if means is not None else 0.0
        for start in range(0, n, BN):
            col = start + tl.arange(0, BN)
            inside = here[:, None] & (col < n)[None, :]
            h, u = normal_tile(x, g, weight, row, col, n, inside, mean, rstd)
            out = (u - level - h * along) * rstd[:, None]
            tl.store(dx + row[:, None] * n + col[None, :], out.to(dx.dtype.element_ty), mask=inside)


def split(shape: tuple[int, ...], axes: int) -> tuple[int, int]:
    """(rows, elements of a row)."""
    k = len(shape) - axes
    return math.prod(shape[:k]), math.prod(shape[k:])


def forward_rows(
    x: CudaArray, weight: CudaArray | None, bias: CudaArray | None, eps: float, axes: int, on: RowTiles, centred: bool = True
) -> tuple[CudaArray, CudaArray | None, CudaArray]:
    """Launch the forward kernel with a given tile: the result, means and 1 / sqrt(var + eps); not `centred`, there are no means, and all counts from 0."""
    y = allocate(x.shape, x.dtype, x)
    rows, n = split(x.shape, axes)
    acc_type = dtypes.accumulator(x.dtype)
    lead = x.shape[: len(x.shape) - axes]
    means, rstds = allocate(lead, acc_type, x) if centred else None, allocate(lead, acc_type, x)
    w, b = (None if v is None else dense(v) for v in (weight, bias))
    launch(
        _forward_kernel, (cdiv(rows, on.BM),), dense(x), w, b, y, means, rstds, rows, n, np.float64(eps), WHOLE=on.whole, BM=on.BM, BN=on.BN,
        ALIGN=align(n), num_warps=on.warps,
    )  # fmt: skip
    return y, means, rstds


def tile(x: CudaArray, axes: int) -> RowTiles:
    """The tile of (rows, elements of a row)."""
    return tiles_for("layer_norm", split(x.shape, axes), 1, x.dtype)


def backward_rows(
    g: CudaArray, x: CudaArray, weight: CudaArray | None, mean: CudaArray | None, rstd: CudaArray, axes: int, on: RowTiles
) -> CudaArray:
    """Launch the kernel of dx with a given tile."""
    rows, n = split(x.shape, axes)
    dx = allocate(x.shape, x.dtype, x)
    launch(
        _backward_kernel, (cdiv(rows, on.BM) if n else 0,), dense(x), None if weight is None else dense(weight), mean, rstd, dense(g), dx,
        rows, n, WHOLE=on.whole, BM=on.BM, BN=on.BN, ALIGN=align(n), num_warps=on.warps,
    )  # fmt: skip
    return dx
