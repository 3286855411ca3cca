"""Parts of the flash kernels: tiles of rows, scores under masks, the weights of scores, which weights dropout keeps."""

from __future__ import annotations

import triton
import triton.language as tl

from tritensor.kernels.parts import maths
from tritensor.kernels.parts.random_words.philox import in_order, philox

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def power(x):
    """2^x; in float32 in one instruction, within 2 ULP, and 0 below 1.2e-38, beside a largest weight of 1 (tl.exp2 guards those with three more)."""
    # there is no such instruction for float64
    if x.dtype == tl.float64:
        return maths.exp2(x)
    else:
        return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def offset_of(outer, sizes, steps, GROUP: tl.constexpr):
    """Where the matrix of a (batch, head) begins. Sizes and strides innermost first; GROUP heads in a row share a matrix."""
    found = tl.full((), 0, tl.int64)
    left = outer
    for i in tl.static_range(len(sizes)):
        index = left % sizes[i]
        left = left // sizes[i]
        if i == 0:
            index = index // GROUP
        found += index.to(tl.int64) * steps[i]
    return found


@triton.jit
def load_rows(x, start, step, rows, HIGH: tl.constexpr, WIDE: tl.constexpr, SIZE: tl.constexpr, EDGE: tl.constexpr):
    """Rows `start` to `start + HIGH` of a matrix as (HIGH, WIDE), of which SIZE columns are real; EDGE: rows from `rows` on read as 0."""
    row = tl.arange(0, HIGH)
    places = (
        x + (tl.full((), 0, tl.int64) + start) * step + (row[:, None] * step + tl.arange(0, WIDE)[None, :])
    )  # offsets of 32 bits, by operands.rows_in_pieces
    row += start
    if EDGE:
        inside = (row < rows)[:, None]
        # a head whose size is no power of two fills its tile with zeros, which add nothing to a product
        if WIDE != SIZE:
            inside = inside & (tl.arange(0, WIDE) < SIZE)[None, :]
        return tl.load(places, mask=inside, other=0.0)
    elif WIDE != SIZE:
        return tl.load(places, mask=(tl.arange(0, WIDE) < SIZE)[None, :], other=0.0)
    else:
        return tl.load(places)


@triton.jit
def factor_of(scale, MASK: tl.constexpr, ACC: tl.constexpr):
    """What scores are multiplied by: log2(e) goes with the scale, but where numbers are added to the scores."""
    # added numbers are in units of e, not of log2 e: the factor goes in after they are added
    if MASK == 2:
        return scale.to(ACC)
    else:
        return (scale * LOG2E).to(ACC)


@triton.jit
def mask_scores(
    s, mask, row, col, queries, keys, m_row, m_col, factor,
    CAUSAL: tl.constexpr, MASK: tl.constexpr, M_UNIT: tl.constexpr, M_ROWS: tl.constexpr, EDGE: tl.constexpr,
):  # fmt: skip
    """The scores of a tile, -inf where a key is not seen; unscaled where nothing is masked, for one multiply-add does both later.

    row and col broadcast with s, in whichever order its dimensions are. MASK: 0 none, 1 of booleans, 2 of numbers.
    """
    if MASK != 0 or EDGE:
        s = s * factor
    if MASK != 0:
        at = tl.minimum(col, keys - 1) if EDGE else col
        at = at.to(tl.int64) if M_UNIT else at.to(tl.int64) * m_col
        if M_ROWS:
            at = at + tl.minimum(row, queries - 1).to(tl.int64) * m_row
        said = tl.load(mask + at)
        if MASK == 1:
            s = tl.where(said != 0, s, float("-inf"))
        else:
            s = s + said.to(s.dtype)
    if EDGE:
        seen = col < keys
        if CAUSAL:
            seen = seen & (col <= row)
        s = tl.where(seen, s, float("-inf"))
    return s


@triton.jit
def weight_of(s, base, rest, factor, MASK: tl.constexpr, EDGE: tl.constexpr):
    """e^(score - base) of what `mask_scores` gives. base is in units of log2 where log2(e) went with the scale; rest (MASK 2): what is taken off after it."""
    if MASK == 2:
        return power((s - base) * LOG2E - rest)
    elif MASK == 1 or EDGE:
        return power(s - base)
    else:
        return power(s * factor - base)


@triton.jit
def words_of(outer, queries, keys):
    """(first block of a head's weights, blocks of a row): a row begins with a block of its own."""
    width = tl.cdiv(keys, 4).to(tl.uint64)
    return outer.to(tl.uint64) * queries.to(tl.uint64) * width, width


@triton.jit
def kept_weights(first, width, row, start, k0, k1, threshold, BN: tl.constexpr):
    """(rows, BN) whether weights of keys from `start` on, a multiple of 4, are kept."""
    block = (
        first
        + row.to(tl.uint64)[:, None] * width
        + ((tl.full((), 0, tl.int64) + start) // 4).to(tl.uint64)
        + tl.arange(0, BN // 4).to(tl.uint64)[None, :]
    )
    w0, w1, w2, w3 = philox(block, k0, k1)
    a = (w0.to(tl.int64) >= threshold).to(tl.int8)
    b = (w1.to(tl.int64) >= threshold).to(tl.int8)
    c = (w2.to(tl.int64) >= threshold).to(tl.int8)
    d = (w3.to(tl.int64) >= threshold).to(tl.int8)
    return in_order(a, b, c, d)
