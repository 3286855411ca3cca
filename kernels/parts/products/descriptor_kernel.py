"""The matrix product of sm_90 and later: tiles of the operands come by tensor descriptors, programs walk over tiles of the result."""

from __future__ import annotations

import triton
import triton.language as tl

from tritensor.kernels.parts.products.epilogue import apply_epilogue


# Tiles in groups of GROUP rows, column by column within a group: those that run together share rows of a and columns of b in the cache
@triton.jit
def _place(tile, tiles_m, tiles_n, GROUP: tl.constexpr):
    group = tile // (GROUP * tiles_n)
    rows_in_group = min(tiles_m - group * GROUP, GROUP)
    inside = tile % (GROUP * tiles_n)
    return group * GROUP + inside % rows_in_group, inside // rows_in_group


# One tile of an operand as (ROWS, COLS); T: it is described transposed. BATCH: 0 no batch, 1 one matrix for each, 2 the same one for all
@triton.jit
def _operand(x, batch, row, col, ROWS: tl.constexpr, COLS: tl.constexpr, T: tl.constexpr, BATCH: tl.constexpr):
    if T:
        found = (x.load([col, row]) if BATCH == 0 else x.load([batch if BATCH == 1 else 0, col, row]).reshape(COLS, ROWS)).T
    else:
        found = x.load([row, col]) if BATCH == 0 else x.load([batch if BATCH == 1 else 0, row, col]).reshape(ROWS, COLS)
    return found


# c[outer, row:, col:] = tile + bias with its epilogue, rounded once; in PARTS pieces, since the shared memory that a store passes through holds one of
# them. DESCRIBED: c is a descriptor, else a pointer: rows that are no multiple of 16 bytes long. STEPS, KINDS, more: see apply_epilogue; None without one
@triton.jit
def _put(
    c, tile, bias, more, outer, row, col, m, n,
    ROWS: tl.constexpr, COLS: tl.constexpr, PARTS: tl.constexpr, BIAS: tl.constexpr, DESCRIBED: tl.constexpr, BATCHED: tl.constexpr,
    STEPS: tl.constexpr, KINDS: tl.constexpr,
):  # fmt: skip
    if PARTS > 1:
        half: tl.constexpr = COLS // 2
        left, right = tl.split(tile.reshape(ROWS, 2, half).permute(0, 2, 1))
        _put(
            c, left, bias, more, outer, row, col, m, n,
            ROWS, half, PARTS // 2, BIAS, DESCRIBED, BATCHED, STEPS, KINDS,
        )  # fmt: skip
        _put(
            c, right, bias, more, outer, row, col + half, m, n,
            ROWS, half, PARTS // 2, BIAS, DESCRIBED, BATCHED, STEPS, KINDS,
        )  # fmt: skip
    else:
        cols = tl.arange(0, COLS)
        if BIAS:
            tile += tl.load(bias + col + cols, mask=cols < n - col, other=0).to(tl.float32)[None, :]
        rows = tl.arange(0, ROWS)
        first = (outer.to(tl.int64) * m + row) * n + col
        inside = (rows < m - row)[:, None] & (cols < n - col)[None, :]
        if STEPS is not None:
            at = (first, rows[:, None] * n, cols[None, :], (outer.to(tl.int64) * m + row + rows)[:, None], (col + cols)[None, :])
            masks = ((rows < m - row)[:, None], (cols < n - col)[None, :], inside)
            tile = apply_epilogue(tile, at, masks, more, STEPS, KINDS, c.dtype if DESCRIBED else c.dtype.element_ty)
        if DESCRIBED:
            if BATCHED:
                c.store([outer, row, col], tile.to(c.dtype).reshape(1, ROWS, COLS))
            else:
                c.store([row, col], tile.to(c.dtype))
        else:
            tl.store(c + first + rows[:, None] * n + cols[None, :], tile.to(c.dtype.element_ty), mask=inside)


# c[i, j] = sum_k a[i, k] b[k, j] + bias[j], with its epilogue, for each batch and part of k; sums[i] = sum_k a[i, k]. A program takes every `programs`-th tile.
@triton.jit(do_not_specialize=["m", "k", "k_part", "batches", "tiles", "programs", "sums_part"])
def _described_matmul_kernel(
    a, b, c, bias, sums, more, m, n, k, k_part, batches, tiles, programs, sums_part,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
    A_T: tl.constexpr, B_T: tl.constexpr, A_BATCH: tl.constexpr, B_BATCH: tl.constexpr, BATCHED: tl.constexpr, SPLIT: tl.constexpr,
    BIAS: tl.constexpr, SUMS: tl.constexpr, DESCRIBED: tl.constexpr, PARTS: tl.constexpr, FLATTEN: tl.constexpr,
    STEPS: tl.constexpr, KINDS: tl.constexpr,
):  # fmt: skip
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    for number in tl.range(tl.program_id(0), tiles, programs, flatten=FLATTEN):
        outer = number // (tiles_m * tiles_n)
        tile_m, tile_n = _place(number % (tiles_m * tiles_n), tiles_m, tiles_n, GROUP)
        row = tile_m * BLOCK_M
        col = tile_n * BLOCK_N
        batch = outer % batches
        start = outer // batches * k_part if SPLIT else 0
        steps = tl.cdiv(min(k_part, k - start), BLOCK_K) if SPLIT else tl.cdiv(k, BLOCK_K)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        total = tl.zeros((BLOCK_M, 16), dtype=tl.float32)
        for i in range(steps):
            at = start + i * BLOCK_K  # what lies beyond the arrays reads as zero
            a_tile = _operand(a, batch, row, at, BLOCK_M, BLOCK_K, A_T, A_BATCH)
            b_tile = _operand(b, batch, at, col, BLOCK_K, BLOCK_N, B_T, B_BATCH)
            acc = tl.dot(a_tile, b_tile, acc)
            if SUMS:  # by the tensor cores, which have the tile where they read it; registers would have to fetch it
                total = tl.dot(a_tile, tl.full((BLOCK_K, 16), 1.0, a_tile.dtype), total)
        _put(
            c, acc, bias, more, outer, row, col, m, n,
            BLOCK_M, BLOCK_N, PARTS, BIAS, DESCRIBED, BATCHED, STEPS, KINDS,
        )  # fmt: skip
        if SUMS:  # the columns of total are alike
            rows = row + tl.arange(0, BLOCK_M)
            found = tl.sum(tl.where(tl.arange(0, 16)[None, :] == 0, total, 0), 1)
            tl.store(sums + outer.to(tl.int64) * sums_part + rows, found.to(sums.dtype.element_ty), mask=(rows < m) & (tile_n == 0))
