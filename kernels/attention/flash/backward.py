"""The backward kernels of flash attention: row sums first, then one pass over keys for dk and dv, one over queries for dq; no atomics, so it repeats."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.kernels.attention.flash.key_walk import keys_kernel
from tritensor.kernels.attention.flash.mask_gradient import mask_gradient
from tritensor.kernels.attention.flash.operands import Call, dropout_args, mask_as_numbers, mask_strides, rows_in_pieces
from tritensor.kernels.attention.flash.parts import LOG2E, factor_of, kept_weights, load_rows, mask_scores, offset_of, weight_of, words_of
from tritensor.kernels.attention.flash.tiles import tiles_of
from tritensor.kernels.attention.layout import strides_like
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.parts.random_words.philox import draw_origin
from tritensor.ops.array import CudaArray

ROWS = 64  # queries of a program that sums rows


# d[i] = sum_j g[i, j] y[i, j]; base[i] = log2(e) (m + log sum e^(s - m)), or where numbers are added m, and rest what is left of it
@triton.jit(do_not_specialize=["sizes"])
def _sums_kernel(
    g, y, peak, log_sum, d, base, rest, queries, sizes, g_steps, y_steps,
    G_ROW: tl.constexpr, Y_ROW: tl.constexpr, V_SIZE: tl.constexpr, V_WIDE: tl.constexpr, BM: tl.constexpr, MASK: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(queries, BM)
    outer = tl.program_id(0) // tiles
    tile = tl.program_id(0) % tiles
    row = tile * BM + tl.arange(0, BM)
    inside = row < queries
    kept = outer.to(tl.int64) * queries + row
    up = load_rows(g + offset_of(outer, sizes, g_steps, 1), tile * BM, G_ROW, queries, BM, V_WIDE, V_SIZE, True)
    out = load_rows(y + offset_of(outer, sizes, y_steps, 1), tile * BM, Y_ROW, queries, BM, V_WIDE, V_SIZE, True)
    tl.store(d + kept, tl.sum(up.to(ACC) * out.to(ACC), axis=1), mask=inside)
    m = tl.load(peak + kept, mask=inside, other=0.0)
    log = tl.load(log_sum + kept, mask=inside, other=0.0)
    # numbers may be -inf, and m + log would lose what is small beside m: both are kept apart
    if MASK == 2:
        tl.store(base + kept, m, mask=inside)
        tl.store(rest + kept, log * LOG2E, mask=inside)
    else:
        tl.store(base + kept, (m + log) * LOG2E, mask=inside)


# ds = w (dw - d), dw = g v^T, dq = sum over tiles of keys of ds k
@triton.jit
def _walk(
    dq, q, up, base, rest, d, k, v, mask, row, low, high, queries, keys, m_row, m_col, factor, first, width, k0, k1, threshold,
    kept_scale, K_ROW: tl.constexpr, V_ROW: tl.constexpr, SIZE: tl.constexpr, V_SIZE: tl.constexpr,
    WIDE: tl.constexpr, V_WIDE: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr, MASK: tl.constexpr, M_UNIT: tl.constexpr,
    M_ROWS: tl.constexpr, DROP: tl.constexpr, EDGE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    for start in range(low, high, BN):
        col = start + tl.arange(0, BN)
        k_tile = load_rows(k, start, K_ROW, keys, BN, WIDE, SIZE, EDGE)
        v_tile = load_rows(v, start, V_ROW, keys, BN, V_WIDE, V_SIZE, EDGE)
        s = tl.dot(q, tl.trans(k_tile), input_precision=PRECISION, out_dtype=dq.dtype)
        s = mask_scores(s, mask, row[:, None], col[None, :], queries, keys, m_row, m_col, factor, CAUSAL, MASK, M_UNIT, M_ROWS, EDGE)
        w = weight_of(s, base[:, None], rest[:, None], factor, MASK, EDGE)
        dw = tl.dot(up, tl.trans(v_tile), input_precision=PRECISION, out_dtype=dq.dtype)
        if DROP:
            dw = tl.where(kept_weights(first, width, row, start, k0, k1, threshold, BN) != 0, dw * kept_scale, 0.0)
        ds = w * (dw - d[:, None])
        dq = tl.dot(ds.to(k_tile.dtype), k_tile, dq, input_precision=PRECISION, out_dtype=dq.dtype)
    return dq


@triton.jit(do_not_specialize=["keys", "sizes"])
def _queries_kernel(
    q, k, v, g, mask, dq, base, rest, d, queries, keys, sizes, q_steps, k_steps, v_steps, g_steps, dq_steps, m_steps, m_row, m_col,
    scale, k0, k1, offset, state, threshold, kept_scale,
    Q_ROW: tl.constexpr, K_ROW: tl.constexpr, V_ROW: tl.constexpr, G_ROW: tl.constexpr, DQ_ROW: tl.constexpr,
    SIZE: tl.constexpr, V_SIZE: tl.constexpr, WIDE: tl.constexpr, V_WIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr,
    CAUSAL: tl.constexpr, TAIL: tl.constexpr, MASK: tl.constexpr, M_UNIT: tl.constexpr, M_ROWS: tl.constexpr, DROP: tl.constexpr,
    PRECISION: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(queries, BM)
    tile = tl.program_id(0) % tiles
    outer = tl.program_id(0) // tiles
    if CAUSAL:
        tile = tiles - 1 - tile  # the longest walks first
    row = tile * BM + tl.arange(0, BM)
    inside = row < queries
    kept = outer.to(tl.int64) * queries + row
    q_tile = load_rows(q + offset_of(outer, sizes, q_steps, 1), tile * BM, Q_ROW, queries, BM, WIDE, SIZE, True)
    up = load_rows(g + offset_of(outer, sizes, g_steps, 1), tile * BM, G_ROW, queries, BM, V_WIDE, V_SIZE, True)
    k += offset_of(outer, sizes, k_steps, GROUP)
    v += offset_of(outer, sizes, v_steps, GROUP)
    if MASK != 0:
        mask += offset_of(outer, sizes, m_steps, 1)
    bases = tl.load(base + kept, mask=inside, other=0.0)
    rests = tl.load(rest + kept, mask=inside, other=0.0) if MASK == 2 else bases
    ds = tl.load(d + kept, mask=inside, other=0.0)
    first, width = words_of(outer, queries, keys)
    if DROP:
        k0, k1, offset = draw_origin(k0, k1, offset, state)
        first += offset
    factor = factor_of(scale, MASK, ACC)
    kept_scale = kept_scale.to(ACC)
    acc = tl.zeros((BM, WIDE), ACC)
    high = tl.minimum(keys, (tile + 1) * BM) if CAUSAL else keys
    whole = tl.minimum(keys, tile * BM + 1) // BN * BN if CAUSAL else keys // BN * BN  # tiles of keys that every query of the block sees
    acc = _walk(
        acc, q_tile, up, bases, rests, ds, k, v, mask, row, 0, whole, queries, keys, m_row, m_col, factor, first, width, k0, k1,
        threshold, kept_scale, K_ROW, V_ROW, SIZE, V_SIZE, WIDE, V_WIDE, BN, CAUSAL, MASK, M_UNIT, M_ROWS, DROP, False, PRECISION,
    )  # fmt: skip
    # as in the forward kernel: masks for the last tiles alone
    if TAIL:
        acc = _walk(
            acc, q_tile, up, bases, rests, ds, k, v, mask, row, whole, high, queries, keys, m_row, m_col, factor, first, width, k0,
            k1, threshold, kept_scale, K_ROW, V_ROW, SIZE, V_SIZE, WIDE, V_WIDE, BN, CAUSAL, MASK, M_UNIT, M_ROWS, DROP, True, PRECISION,
        )  # fmt: skip
    cols = tl.arange(0, WIDE)
    out = (acc * scale.to(ACC)).to(dq.dtype.element_ty)
    dq += offset_of(outer, sizes, dq_steps, 1)
    tl.store(dq + row.to(tl.int64)[:, None] * DQ_ROW + cols[None, :], out, mask=inside[:, None] & (cols < SIZE)[None, :])


def _sums(g: CudaArray, y: CudaArray, peak: CudaArray, log_sum: CudaArray, on: Call) -> tuple[CudaArray, CudaArray, CudaArray]:
    """(base, rest, d) of each query."""
    d, base, rest = (allocate(peak.shape, peak.dtype, peak) for _ in range(3))
    sizes, (g_steps, y_steps, _) = on.by_query((g, y), None)
    launch(
        _sums_kernel, (cdiv(on.queries, ROWS) * on.outer,), g, y, peak, log_sum, d, base, rest, on.queries, sizes, g_steps, y_steps,
        G_ROW=g.strides[-2], Y_ROW=y.strides[-2], V_SIZE=g.shape[-1], V_WIDE=on.v_wide, BM=ROWS, MASK=on.kind, ACC=on.constants["ACC"], num_warps=4,
    )  # fmt: skip
    return base, rest, d


def backward(
    g: CudaArray, q: CudaArray, k: CudaArray, v: CudaArray, mask: CudaArray | None, y: CudaArray, peak: CudaArray, log_sum: CudaArray, scale: float,
    causal: bool, p: float, seed: int, offset: int, needs: tuple[bool, ...],
) -> tuple[Any, ...]:  # fmt: skip
    mask = mask_as_numbers(mask, q.dtype)
    on = Call.of(q, k, v, mask, causal, p)
    g = rows_in_pieces(g)
    stats = _sums(g, y, peak, log_sum, on)
    kind, m_row, m_col = mask_strides(mask, on.scores)
    shared = {**on.constants, "MASK": kind, "CAUSAL": on.causal, "M_UNIT": m_col == 1, "M_ROWS": m_row != 0}
    shared |= {"Q_ROW": on.q.strides[-2], "K_ROW": on.k.strides[-2], "V_ROW": on.v.strides[-2], "G_ROW": g.strides[-2]}
    numbers = (m_row, m_col, np.float64(scale), *dropout_args(p, seed, offset))
    dq, dk, dv = None, None, None
    if needs[0]:
        dq = allocate(q.shape, q.dtype, q, strides_like(q, q.shape[-1]))
        t = tiles_of("flash_dq", on)
        sizes, steps = on.by_query((on.q, on.k, on.v, g, dq), mask)
        launch(
            _queries_kernel, (cdiv(on.queries, t.block_m) * on.outer,), on.q, on.k, on.v, g, g if mask is None else mask, dq, *stats, on.queries, on.keys,
            sizes, *steps, *numbers, **shared, DQ_ROW=dq.strides[-2], BM=t.block_m, BN=t.block_n,
            TAIL=on.causal or on.keys % t.block_n != 0, num_warps=t.warps, num_stages=t.stages,
        )  # fmt: skip
    # one walk over queries makes both: their weights are computed once
    if needs[1] or needs[2]:
        dk, dv = (allocate(x.shape, x.dtype, x, strides_like(x, x.shape[-1])) for x in (k, v))
        t = tiles_of("flash_dkv", on)
        sizes, (q_steps, g_steps, m_steps) = on.by_query((on.q, g), mask)
        key_sizes, key_steps = on.by_key((on.k, on.v, dk, dv))
        launch(
            keys_kernel, (cdiv(on.keys, t.block_n) * (on.outer // on.group),), on.q, on.k, on.v, g, g if mask is None else mask, dk, dv, *stats, on.queries,
            on.keys, sizes, key_sizes, q_steps, *key_steps, g_steps, m_steps, *numbers, **shared, DK_ROW=dk.strides[-2], DV_ROW=dv.strides[-2],
            BM=t.block_m, BN=t.block_n, TAIL=on.queries % t.block_m != 0, num_warps=t.warps, num_stages=t.stages,
        )  # fmt: skip
    found = dq, dk if needs[1] else None, dv if needs[2] else None
    if len(needs) < 4 or not needs[3]:
        return (*found, None)[: len(needs)]
    assert mask is not None
    return *found, mask_gradient(g, q, k, v, mask, scale, causal, p, seed, offset)
