"""A bitonic sorting network in registers (Batcher 1968): tiles of rows of (key, place) pairs, by key and among equal keys by place."""

from __future__ import annotations

import triton
import triton.language as tl


# A tile of 2^LOG elements seen with LOG dimensions of size 2, one for each bit of an element's position.
@triton.jit
def _bit(LOG: tl.constexpr, J: tl.constexpr):
    """Bit J of every position."""
    return tl.reshape(tl.arange(0, 2), [1] * (LOG - J - 1) + [2] + [1] * J)


# positions that differ in bit J: the pair that comes first goes to the lower one, where `downwards` is 1 to the higher one
@triton.jit
def _exchange(key, place, downwards, LOG: tl.constexpr, J: tl.constexpr):
    other_key = key ^ tl.xor_sum(key, LOG - 1 - J, True)
    other_place = place ^ tl.xor_sum(place, LOG - 1 - J, True)
    behind = (key > other_key) | ((key == other_key) & (place > other_place))
    swap = behind.to(tl.int32) != (downwards ^ _bit(LOG, J))
    return tl.where(swap, other_key, key), tl.where(swap, other_place, place)


@triton.jit
def _sorted_pairs(key, place, LOG: tl.constexpr, COLUMNS: tl.constexpr):
    """Rows of 2^COLUMNS pairs in a tile of 2^LOG."""
    SHAPE: tl.constexpr = key.shape
    key = tl.reshape(key, [2] * LOG)
    place = tl.reshape(place, [2] * LOG)
    for k in tl.static_range(1, COLUMNS + 1):  # runs of 2^k, every second one downwards
        for j in tl.static_range(k):
            if k < COLUMNS:
                key, place = _exchange(key, place, _bit(LOG, k), LOG, k - 1 - j)
            else:
                key, place = _exchange(key, place, 0, LOG, k - 1 - j)
    return tl.reshape(key, SHAPE), tl.reshape(place, SHAPE)


@triton.jit
def sorted_rows(key, place, LOG: tl.constexpr, COLUMNS: tl.constexpr, FIRST: tl.constexpr):
    """Rows of 2^COLUMNS pairs (int32 or int64 keys, int32 places of 0 or more) in order; the FIRST of them where keys are int32.

    A narrow key and its place make one number. FIRST is a power of two, at least 2; all of a row where keys are int64.
    """
    if COLUMNS == 0:
        return key, place
    elif key.dtype == tl.int32:
        pair = (key.to(tl.int64) << 32) | place
        if FIRST < 1 << COLUMNS:
            pair = ~tl.topk(~pair, FIRST)
        else:
            pair = tl.sort(pair)
        return (pair >> 32).to(tl.int32), (pair & 0xFFFFFFFF).to(tl.int32)
    else:
        return _sorted_pairs(key, place, LOG, COLUMNS)
