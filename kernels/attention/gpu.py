"""Attention on the GPU by four launches: product, softmax of masked rows, product; a flash kernel can take the place of all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.kernels.attention.layout import mask_dims, result_strides
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import reshape_or_copy, to_strides
from tritensor.kernels.parts.gemm import gemm
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.parts.rows.row_softmax import exp_nonpositive, online, rest
from tritensor.kernels.parts.rows.row_tiles import align, place, row_tunable, tiles_for
from tritensor.kernels.parts.view_arithmetic import transposed_dims
from tritensor.ops.array import CudaArray, expand
from tritensor.ops.table import registry

row_tunable("softmax")

WHOLE = 2048  # keys that a program keeps in registers; longer rows are walked twice


@triton.jit
def _scores(
    x, mask, row, col, inside, queries, columns, scale, sizes, steps, m_row, m_col,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, M_UNIT: tl.constexpr,
):  # fmt: skip
    """A tile of scale x + mask; -inf where a key is not seen. MASK: 0 none, 1 of booleans, 2 of numbers."""
    value = tl.load(x + (row * columns)[:, None] + col[None, :], mask=inside, other=float("-inf"))
    value = value * scale.to(value.dtype)
    if MASK != 0:
        left = row // queries
        at = (row % queries) * m_row
        for d in tl.static_range(len(sizes)):  # the innermost batch dimension comes first
            at += (left % sizes[d]) * steps[d]
            left = left // sizes[d]
        places = mask + at[:, None] + (col[None, :] if M_UNIT else (col * m_col)[None, :])
        said = tl.load(places, mask=inside, other=0)
        if MASK == 1:
            value = tl.where(said != 0, value, float("-inf"))
        else:
            value += said.to(value.dtype)
    if CAUSAL:
        value = tl.where(col[None, :] <= (row % queries)[:, None], value, float("-inf"))
    return tl.where(inside, value, float("-inf"))


# y = e^(s - m) / sum e^(s - m), s = scale x + mask, m = max s; 0 where m = -inf
@triton.jit(do_not_specialize=["columns"])
def _weights_kernel(
    x, mask, y, rows, queries, columns, scale, sizes, steps, m_row, m_col, CAUSAL: tl.constexpr, MASK: tl.constexpr, M_UNIT: tl.constexpr,
    WHOLE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    _, row, there = place(rows, BM)
    columns = columns // ALIGN * ALIGN
    # a row that registers hold is read once; a longer one is walked twice, for its sum and for its weights
    if WHOLE:
        col = tl.arange(0, BN)
        inside = there[:, None] & (col < columns)[None, :]
        s = _scores(x, mask, row, col, inside, queries, columns, scale, sizes, steps, m_row, m_col, CAUSAL, MASK, M_UNIT)
        power = exp_nonpositive(rest(s, tl.max(s, axis=1)[:, None]))
        total = tl.sum(power, axis=1)[:, None]
        out = maths.div(power, tl.where(total == 0.0, 1.0, total))
        tl.store(y + (row * columns)[:, None] + col[None, :], out.to(y.dtype.element_ty), mask=inside)
    else:
        m = tl.full((BM,), float("-inf"), x.dtype.element_ty)
        total = tl.zeros((BM,), x.dtype.element_ty)
        for start in range(0, columns, BN):
            col = start + tl.arange(0, BN)
            inside = there[:, None] & (col < columns)[None, :]
            s = _scores(x, mask, row, col, inside, queries, columns, scale, sizes, steps, m_row, m_col, CAUSAL, MASK, M_UNIT)
            m, total = online(m, total, s)
        total = tl.where(total == 0.0, 1.0, total)
        for start in range(0, columns, BN):
            col = start + tl.arange(0, BN)
            inside = there[:, None] & (col < columns)[None, :]
            s = _scores(x, mask, row, col, inside, queries, columns, scale, sizes, steps, m_row, m_col, CAUSAL, MASK, M_UNIT)
            out = maths.div(exp_nonpositive(rest(s, m[:, None])), total[:, None])
            tl.store(y + (row * columns)[:, None] + col[None, :], out.to(y.dtype.element_ty), mask=inside)


# ds = scale w (dw - sum w dw)
@triton.jit(do_not_specialize=["columns"])
def _backward_kernel(
    w, dw, ds, rows, columns, scale, BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr
):  # fmt: skip
    _, row, there = place(rows, BM)
    columns = columns // ALIGN * ALIGN
    kind: tl.constexpr = dw.dtype.element_ty
    first = (row * columns)[:, None]
    total = tl.zeros((BM, BN), kind)
    for start in range(0, columns, BN):
        col = start + tl.arange(0, BN)
        inside = there[:, None] & (col < columns)[None, :]
        total += tl.load(w + first + col[None, :], mask=inside, other=0).to(kind) * tl.load(dw + first + col[None, :], mask=inside, other=0)
    sums = tl.sum(total, axis=1)[:, None]
    for start in range(0, columns, BN):
        col = start + tl.arange(0, BN)
        inside = there[:, None] & (col < columns)[None, :]
        weight = tl.load(w + first + col[None, :], mask=inside, other=0).to(kind)
        down = weight * (tl.load(dw + first + col[None, :], mask=inside, other=0) - sums)
        tl.store(ds + first + col[None, :], (down * scale.to(kind)).to(ds.dtype.element_ty), mask=inside)


def swap(x: CudaArray) -> CudaArray:
    return x.transpose(transposed_dims(x.ndim))


def _mask_steps(mask: CudaArray | None, shape: tuple[int, ...]) -> tuple[int, tuple[int, ...], tuple[int, ...], int, int]:
    """(kind, sizes and strides of the batch dimensions, innermost first, strides of queries and keys) of a mask over scores of `shape`."""
    if mask is None:
        return 0, (1,), (0,), 0, 1
    steps = expand(mask, shape).strides
    sizes = tuple(reversed(shape[:-2])) or (1,)
    return 1 if mask.dtype == np.bool_ else 2, sizes, tuple(reversed(steps[:-2])) or (0,), steps[-2], steps[-1]


def weights_of(q: CudaArray, k: CudaArray, mask: CudaArray | None, scale: float, causal: bool) -> CudaArray:
    """softmax(scale q @ k^T + mask), rounded to q's type."""
    shape = (*q.shape[:-1], k.shape[-2])
    x = allocate(shape, dtypes.accumulator(q.dtype), q)
    gemm(q, swap(k), x)
    y = allocate(shape, q.dtype, q)
    kind, sizes, steps, m_row, m_col = _mask_steps(mask, shape)
    on = tiles_for("softmax", shape, len(shape) - 1, x.dtype, WHOLE)
    launch(
        _weights_kernel, (cdiv(on.rows, on.BM) if on.columns else 0,), x, y if mask is None else mask, y, on.rows, shape[-2], on.columns,
        np.float64(scale), sizes, steps, m_row, m_col, CAUSAL=bool(causal), MASK=kind, M_UNIT=m_col == 1, WHOLE=on.whole, BM=on.BM, BN=on.BN,
        ALIGN=align(on.columns), num_warps=on.warps,
    )  # fmt: skip
    return y


def forward(
    q: CudaArray, k: CudaArray, v: CudaArray, mask: CudaArray | None = None, *, scale: float, causal: bool = False
) -> tuple[CudaArray, CudaArray]:
    weights = weights_of(q, k, mask, scale, causal)
    y = allocate((*q.shape[:-1], v.shape[-1]), q.dtype, q)
    gemm(weights, v, y)
    return to_strides(y, result_strides(q, k, v, mask)), weights  # type: ignore[return-value]


def slope(weights: CudaArray, dw: CudaArray, scale: float, dtype: np.dtype) -> CudaArray:
    ds = allocate(weights.shape, dtype, weights)
    on = tiles_for("softmax", weights.shape, weights.ndim - 1, dw.dtype, WHOLE)
    launch(
        _backward_kernel, (cdiv(on.rows, on.BM) if on.columns else 0,), weights, dw, ds, on.rows, on.columns, np.float64(scale),
        BM=on.BM, BN=on.BN, ALIGN=align(on.columns), num_warps=on.warps,
    )  # fmt: skip
    return ds


def backward(
    g: CudaArray, q: CudaArray, k: CudaArray, v: CudaArray, mask: CudaArray | None, weights: CudaArray, scale: float,
    needs: tuple[bool, ...],
) -> tuple[Any, ...]:  # fmt: skip
    dw = allocate(weights.shape, dtypes.accumulator(q.dtype), q)
    gemm(g, swap(v), dw)
    ds = slope(weights, dw, scale, q.dtype)
    dq, dk, dv = (allocate(x.shape, x.dtype, x) if need else None for x, need in zip((q, k, v), needs, strict=False))
    for d, a, b in ((dq, ds, k), (dk, swap(ds), q), (dv, swap(weights), g)):
        # a product for each gradient that is asked for, none for the others
        if d is not None:
            gemm(a, b, d)
    if len(needs) < 4 or not needs[3]:
        return (dq, dk, dv, None)[: len(needs)]
    assert mask is not None
    return dq, dk, dv, sum_to(slope(weights, dw, 1.0, dw.dtype), mask)


def sum_to(d: CudaArray, mask: CudaArray) -> CudaArray:
    """The gradient summed to the mask's shape, rounded once."""
    if dims := mask_dims(d, mask):
        d = registry["sum"].forward(d, dim=dims, keepdim=True)  # type: ignore[misc]
    d = reshape_or_copy(d, mask.shape)
    return d if d.dtype == mask.dtype else registry["cast"].forward(d, dtype=mask.dtype)  # type: ignore[misc]
