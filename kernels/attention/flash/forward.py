"""The forward kernel of flash attention (Dao et al. 2022; Dao 2023): a block of queries, keys in tiles, running maximum and sum."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.kernels.attention.flash.operands import Call, dropout_args, mask_as_numbers, mask_strides
from tritensor.kernels.attention.flash.parts import (
    LOG2E,
    factor_of,
    kept_weights,
    load_rows,
    mask_scores,
    offset_of,
    power,
    weight_of,
    words_of,
)
from tritensor.kernels.attention.flash.tiles import tiles_of
from tritensor.kernels.attention.layout import result_strides
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.parts.random_words.philox import draw_origin
from tritensor.ops.array import CudaArray


# for each tile of keys: m' = max(m, max s), l = e^(m - m') l + sum e^(s - m'), acc = e^(m - m') acc + e^(s - m') v
@triton.jit
def _walk(
    acc, total, most, q, k, v, mask, row, low, high, queries, keys, m_row, m_col, factor, first, width, k0, k1, threshold,
    K_ROW: tl.constexpr, V_ROW: tl.constexpr, SIZE: tl.constexpr, V_SIZE: tl.constexpr,
    WIDE: tl.constexpr, V_WIDE: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr, MASK: tl.constexpr, M_UNIT: tl.constexpr, M_ROWS: tl.constexpr,
    DROP: tl.constexpr, EDGE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    for start in range(low, high, BN):
        col = start + tl.arange(0, BN)
        k_tile = load_rows(k, start, K_ROW, keys, BN, WIDE, SIZE, EDGE)
        s = tl.dot(q, tl.trans(k_tile), input_precision=PRECISION, out_dtype=acc.dtype)
        s = mask_scores(s, mask, row[:, None], col[None, :], queries, keys, m_row, m_col, factor, CAUSAL, MASK, M_UNIT, M_ROWS, EDGE)
        top = tl.max(s, axis=1)
        # scores come unscaled then: one multiply-add in the exponent scales them all, and the maximum must match
        if MASK == 0 and not EDGE:
            top = top * factor
        new = tl.maximum(most, top)
        base = tl.where(new == float("-inf"), 0.0, new) if MASK != 0 or EDGE else new  # a row that has seen no key yet
        p = weight_of(s, base[:, None], 0.0, factor, MASK, EDGE)
        fade = power((most - base) * LOG2E) if MASK == 2 else power(most - base)
        total = total * fade + tl.sum(p, axis=1)
        if DROP:
            p = tl.where(kept_weights(first, width, row, start, k0, k1, threshold, BN) != 0, p, 0.0)
        v_tile = load_rows(v, start, V_ROW, keys, BN, V_WIDE, V_SIZE, EDGE)
        acc = tl.dot(p.to(v_tile.dtype), v_tile, acc * fade[:, None], input_precision=PRECISION, out_dtype=acc.dtype)
        most = new
    return acc, total, most


# y = softmax(scale q k^T + mask) v; m = max s and log sum e^(s - m) are kept, 0 for a query that sees no key
@triton.jit(do_not_specialize=["keys", "sizes"])
def _forward_kernel(
    q, k, v, mask, y, peak, log_sum, queries, keys, sizes, q_steps, k_steps, v_steps, y_steps, m_steps, m_row, m_col, scale,
    k0, k1, offset, state, threshold, kept_scale,
    Q_ROW: tl.constexpr, K_ROW: tl.constexpr, V_ROW: tl.constexpr, Y_ROW: tl.constexpr,
    SIZE: tl.constexpr, V_SIZE: tl.constexpr, WIDE: tl.constexpr, V_WIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr,
    CAUSAL: tl.constexpr, TAIL: tl.constexpr, MASK: tl.constexpr, M_UNIT: tl.constexpr, M_ROWS: tl.constexpr, DROP: tl.constexpr,
    PRECISION: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(queries, BM)
    tile = tl.program_id(0) % tiles
    outer = tl.program_id(0) // tiles
    # a late block walks over most keys: begun last, it would run on alone
    if CAUSAL:
        tile = tiles - 1 - tile  # the longest walks first
    row = tile * BM + tl.arange(0, BM)
    q_tile = load_rows(q + offset_of(outer, sizes, q_steps, 1), tile * BM, Q_ROW, queries, BM, WIDE, SIZE, True)
    k += offset_of(outer, sizes, k_steps, GROUP)
    v += offset_of(outer, sizes, v_steps, GROUP)
    if MASK != 0:
        mask += offset_of(outer, sizes, m_steps, 1)
    first, width = words_of(outer, queries, keys)
    if DROP:
        k0, k1, offset = draw_origin(k0, k1, offset, state)
        first += offset
    factor = factor_of(scale, MASK, ACC)
    acc = tl.zeros((BM, V_WIDE), ACC)
    total = tl.zeros((BM,), ACC)
    most = tl.full((BM,), float("-inf"), ACC)
    high = tl.minimum(keys, (tile + 1) * BM) if CAUSAL else keys
    whole = tl.minimum(keys, tile * BM + 1) // BN * BN if CAUSAL else keys // BN * BN  # tiles of keys that every query of the block sees
    acc, total, most = _walk(
        acc, total, most, q_tile, k, v, mask, row, 0, whole, queries, keys, m_row, m_col, factor, first, width, k0, k1, threshold,
        K_ROW, V_ROW, SIZE, V_SIZE, WIDE, V_WIDE, BN, CAUSAL, MASK, M_UNIT, M_ROWS, DROP, False, PRECISION,
    )  # fmt: skip
    # only the last tiles of keys need masks: the long walk before them has none
    if TAIL:
        acc, total, most = _walk(
            acc, total, most, q_tile, k, v, mask, row, whole, high, queries, keys, m_row, m_col, factor, first, width, k0, k1,
            threshold, K_ROW, V_ROW, SIZE, V_SIZE, WIDE, V_WIDE, BN, CAUSAL, MASK, M_UNIT, M_ROWS, DROP, True, PRECISION,
        )  # fmt: skip
    # a query that sees no key gives 0, not 0 / 0
    blind = total == 0.0
    total = tl.where(blind, 1.0, total)
    most = most if MASK == 2 else most / LOG2E
    kept = (outer.to(tl.int64) * queries) + row
    tl.store(peak + kept, tl.where(blind, 0.0, most), mask=row < queries)
    tl.store(log_sum + kept, maths.log(total), mask=row < queries)
    out = acc * ((kept_scale.to(ACC) if DROP else 1.0) / total)[:, None]
    cols = tl.arange(0, V_WIDE)
    y += offset_of(outer, sizes, y_steps, 1)
    tl.store(
        y + row.to(tl.int64)[:, None] * Y_ROW + cols[None, :], out.to(y.dtype.element_ty),
        mask=(row < queries)[:, None] & (cols < V_SIZE)[None, :],
    )  # fmt: skip


def forward(
    q: CudaArray, k: CudaArray, v: CudaArray, mask: CudaArray | None = None, *, scale: float, causal: bool = False, p: float = 0.0, seed: int = 0,
    offset: int = 0,
) -> tuple[CudaArray, CudaArray, CudaArray]:  # fmt: skip
    mask = mask_as_numbers(mask, q.dtype)
    on = Call.of(q, k, v, mask, causal, p)
    y = allocate((*q.shape[:-1], v.shape[-1]), q.dtype, q, result_strides(q, k, v, mask, p))
    peak, log_sum = (allocate(q.shape[:-1], on.stats, q) for _ in range(2))
    t = tiles_of("flash_forward", on)
    sizes, steps = on.by_query((on.q, on.k, on.v, y), mask)
    kind, m_row, m_col = mask_strides(mask, on.scores)
    launch(
        _forward_kernel, (cdiv(on.queries, t.block_m) * on.outer,), on.q, on.k, on.v, y if mask is None else mask, y, peak, log_sum, on.queries, on.keys,
        sizes, *steps, m_row, m_col, np.float64(scale),
        *dropout_args(p, seed, offset), **on.constants, Q_ROW=on.q.strides[-2], K_ROW=on.k.strides[-2], V_ROW=on.v.strides[-2],
        Y_ROW=y.strides[-2], BM=t.block_m, BN=t.block_n, CAUSAL=on.causal, TAIL=on.causal or on.keys % t.block_n != 0, MASK=kind,
        M_UNIT=m_col == 1, M_ROWS=m_row != 0, num_warps=t.warps, num_stages=t.stages,
    )  # fmt: skip
    return y, peak, log_sum
