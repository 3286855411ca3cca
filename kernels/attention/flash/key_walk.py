"""The backward kernel of flash attention for keys and values: a block of keys, which walks over the queries of every head that shares it."""

from __future__ import annotations

import triton
import triton.language as tl

from tritensor.kernels.attention.flash.parts import factor_of, kept_weights, load_rows, mask_scores, offset_of, weight_of, words_of
from tritensor.kernels.parts.random_words.philox import draw_origin


# for each tile of queries: dv += w^T g, ds = w (g v^T - d), dk += ds^T q; weights stand transposed, keys by queries
@triton.jit
def _walk(
    dk, dv, k_tile, v_tile, q, g, mask, base, rest, d, first_key, low, high, queries, keys, m_row, m_col, factor, first, width, k0, k1,
    threshold, kept_scale, Q_ROW: tl.constexpr, G_ROW: tl.constexpr, SIZE: tl.constexpr, V_SIZE: tl.constexpr,
    WIDE: tl.constexpr, V_WIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr, MASK: tl.constexpr,
    M_UNIT: tl.constexpr, M_ROWS: tl.constexpr, DROP: tl.constexpr, EDGE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    col = first_key + tl.arange(0, BN)
    for start in range(low, high, BM):
        row = start + tl.arange(0, BM)
        q_tile = load_rows(q, start, Q_ROW, queries, BM, WIDE, SIZE, EDGE)
        up = load_rows(g, start, G_ROW, queries, BM, V_WIDE, V_SIZE, EDGE)
        if EDGE:
            bases = tl.load(base + row, mask=row < queries, other=0.0)
            ds = tl.load(d + row, mask=row < queries, other=0.0)
        else:
            bases = tl.load(base + row)
            ds = tl.load(d + row)
        rests = bases
        if MASK == 2:
            rests = tl.load(rest + row, mask=row < queries, other=0.0)
        s = tl.dot(k_tile, tl.trans(q_tile), input_precision=PRECISION, out_dtype=dk.dtype)
        s = mask_scores(
            s, mask, row[None, :], col[:, None], queries, keys, m_row, m_col, factor, CAUSAL, MASK, M_UNIT, M_ROWS, EDGE or MASK != 0
        )
        w = weight_of(s, bases[None, :], rests[None, :], factor, MASK, EDGE)
        dw = tl.dot(v_tile, tl.trans(up), input_precision=PRECISION, out_dtype=dk.dtype)
        kept = w
        if DROP:
            chosen = tl.trans(kept_weights(first, width, row, first_key, k0, k1, threshold, BN)) != 0
            kept = tl.where(chosen, w * kept_scale, 0.0)
            dw = tl.where(chosen, dw * kept_scale, 0.0)
        dv = tl.dot(kept.to(up.dtype), up, dv, input_precision=PRECISION, out_dtype=dv.dtype)
        w = w * (dw - ds[None, :])
        dk = tl.dot(w.to(q_tile.dtype), q_tile, dk, input_precision=PRECISION, out_dtype=dk.dtype)
    return dk, dv


@triton.jit(do_not_specialize=["keys", "sizes", "key_sizes"])
def keys_kernel(
    q, k, v, g, mask, dk, dv, base, rest, d, queries, keys, sizes, key_sizes, q_steps, k_steps, v_steps, dk_steps, dv_steps, g_steps, m_steps,
    m_row, m_col, scale, k0, k1, offset, state, threshold, kept_scale,
    Q_ROW: tl.constexpr, K_ROW: tl.constexpr, V_ROW: tl.constexpr, G_ROW: tl.constexpr, DK_ROW: tl.constexpr, DV_ROW: tl.constexpr,
    SIZE: tl.constexpr, V_SIZE: tl.constexpr, WIDE: tl.constexpr, V_WIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr,
    CAUSAL: tl.constexpr, TAIL: tl.constexpr, MASK: tl.constexpr, M_UNIT: tl.constexpr, M_ROWS: tl.constexpr, DROP: tl.constexpr,
    PRECISION: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(keys, BN)
    tile = tl.program_id(0) % tiles  # causal: the first keys, which most queries see, come first
    outer = tl.program_id(0) // tiles
    col = tile * BN + tl.arange(0, BN)
    k_tile = load_rows(k + offset_of(outer, key_sizes, k_steps, 1), tile * BN, K_ROW, keys, BN, WIDE, SIZE, True)
    v_tile = load_rows(v + offset_of(outer, key_sizes, v_steps, 1), tile * BN, V_ROW, keys, BN, V_WIDE, V_SIZE, True)
    if DROP:
        k0, k1, offset = draw_origin(k0, k1, offset, state)
    factor = factor_of(scale, MASK, ACC)
    kept_scale = kept_scale.to(ACC)
    acc_k = tl.zeros((BN, WIDE), ACC)
    acc_v = tl.zeros((BN, V_WIDE), ACC)
    low = tl.minimum(tile * BN // BM * BM, queries) if CAUSAL else 0
    seen = (
        tl.minimum(tl.cdiv((tile + 1) * BN - 1, BM) * BM, queries) if CAUSAL else 0
    )  # from there on every query sees every key of the block
    whole = tl.maximum(queries // BM * BM, seen)
    # heads that share these keys add to the same sums, in one program and one order: no atomics
    for i in range(GROUP):
        head = outer * GROUP + i
        q_at = q + offset_of(head, sizes, q_steps, 1)
        g_at = g + offset_of(head, sizes, g_steps, 1)
        m_at = mask
        if MASK != 0:
            m_at = mask + offset_of(head, sizes, m_steps, 1)
        stats = head.to(tl.int64) * queries
        first, width = words_of(head, queries, keys)
        if DROP:
            first += offset
        # the queries of the diagonal's tiles see some of the block's keys: they alone are masked
        if CAUSAL:
            acc_k, acc_v = _walk(
                acc_k, acc_v, k_tile, v_tile, q_at, g_at, m_at, base + stats, rest + stats, d + stats, tile * BN, low, seen, queries, keys, m_row,
                m_col, factor, first, width, k0, k1, threshold, kept_scale, Q_ROW, G_ROW, SIZE, V_SIZE, WIDE, V_WIDE,
                BM, BN, CAUSAL, MASK, M_UNIT, M_ROWS, DROP, True, PRECISION,
            )  # fmt: skip
        acc_k, acc_v = _walk(
            acc_k, acc_v, k_tile, v_tile, q_at, g_at, m_at, base + stats, rest + stats, d + stats, tile * BN, seen, whole, queries, keys, m_row,
            m_col, factor, first, width, k0, k1, threshold, kept_scale, Q_ROW, G_ROW, SIZE, V_SIZE, WIDE, V_WIDE,
            BM, BN, False, MASK, M_UNIT, M_ROWS, DROP, False, PRECISION,
        )  # fmt: skip
        if TAIL:
            acc_k, acc_v = _walk(
                acc_k, acc_v, k_tile, v_tile, q_at, g_at, m_at, base + stats, rest + stats, d + stats, tile * BN, whole, queries, queries, keys,
                m_row, m_col, factor, first, width, k0, k1, threshold, kept_scale, Q_ROW, G_ROW, SIZE, V_SIZE, WIDE, V_WIDE,
                BM, BN, False, MASK, M_UNIT, M_ROWS, DROP, True, PRECISION,
            )  # fmt: skip
    cols, v_cols = tl.arange(0, WIDE), tl.arange(0, V_WIDE)
    inside, row = (col < keys)[:, None], col.to(tl.int64)[:, None]
    dk += offset_of(outer, key_sizes, dk_steps, 1)
    dv += offset_of(outer, key_sizes, dv_steps, 1)
    tl.store(dk + row * DK_ROW + cols[None, :], (acc_k * scale.to(ACC)).to(dk.dtype.element_ty), mask=inside & (cols < SIZE)[None, :])
    tl.store(dv + row * DV_ROW + v_cols[None, :], acc_v.to(dv.dtype.element_ty), mask=inside & (v_cols < V_SIZE)[None, :])
