"""A stable sort of integer keys on the device: radix 16, least digit first, linear in their number and free of atomics."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.array import CudaArray
from tritensor.cuda.launch import launch
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.launch_rules import config_of

BITS = 4  # of one digit
BINS = 1 << BITS
BLOCK = 256
INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)


@triton.jit
def _one_hot(keys, n, shift, BLOCK: tl.constexpr, BINS: tl.constexpr):
    """Row i says which bin element i of this program's block falls into; none beyond the end."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK,)
    key = tl.load(keys + i, mask=i < n, other=0)
    digit = ((key >> shift) & (BINS - 1)).to(tl.int32)
    bins = tl.arange(0, BINS)
    return i, key, ((digit[:, None] == bins[None, :]) & (i < n)[:, None]).to(tl.int32)  # (BLOCK, BINS)


# counts[digit, block] = how many keys of the block have that digit
@triton.jit(do_not_specialize=["blocks", "shift"])
def _count_kernel(keys, counts, n, blocks, shift, BLOCK: tl.constexpr, BINS: tl.constexpr):
    _, _, hot = _one_hot(keys, n, shift, BLOCK, BINS)
    tl.store(counts + tl.arange(0, BINS) * blocks + tl.program_id(0), tl.sum(hot, 0))


# counts[digit, block] = sum of counts[digit, :block]; totals[digit] = sum of counts[digit, :]
@triton.jit
def _scan_kernel(counts, before, totals, blocks, BLOCK: tl.constexpr):
    row = tl.program_id(0) * blocks
    total = tl.zeros((), tl.int32)
    for first in range(0, blocks, BLOCK):
        i = first + tl.arange(0, BLOCK)
        c = tl.load(counts + row + i, mask=i < blocks, other=0)
        tl.store(before + row + i, total + tl.cumsum(c, 0) - c, mask=i < blocks)
        total += tl.sum(c, 0)
    tl.store(totals + tl.program_id(0), total)


# each key goes to: keys of smaller digits + equal digits in earlier blocks + equal digits earlier in this block
@triton.jit(do_not_specialize=["blocks", "shift"])
def _move_kernel(
    keys, order, new_keys, new_order, before, totals, n, blocks, shift, FIRST: tl.constexpr, BLOCK: tl.constexpr, BINS: tl.constexpr
):
    i, key, hot = _one_hot(keys, n, shift, BLOCK, BINS)
    bins = tl.arange(0, BINS)
    total = tl.load(totals + bins)  # (BINS,)
    base = tl.cumsum(total, 0) - total + tl.load(before + bins * blocks + tl.program_id(0))
    rank = tl.cumsum(hot, 0) - hot  # (BLOCK, BINS)
    to = tl.sum(hot * (rank + base[None, :]), 1)  # (BLOCK,)
    tl.store(new_keys + to, key, mask=i < n)
    if FIRST:
        tl.store(new_order + to, i.to(tl.int64), mask=i < n)
    else:
        tl.store(new_order + to, tl.load(order + i, mask=i < n, other=0), mask=i < n)


def sort_keys(keys: CudaArray, bits: int) -> tuple[CudaArray, CudaArray]:
    """Sorted keys and the positions they came from (equal keys in their first order).

    `keys` is int64 of shape (n,), contiguous, n < 2^31; only its lowest `bits` bits count, as an unsigned number.
    Three launches for every four bits.
    """
    n, on = keys.size, keys.device
    block, scanned = config_of("radix_sort", (n,), BLOCK), config_of("radix_scan", (n,), 1024)
    blocks = triton.cdiv(n, block)
    counts, before = (allocate((BINS, blocks), INT32, on) for _ in range(2))
    totals = allocate((BINS,), INT32, on)
    order: Any = keys  # not read in the first pass
    common: Any = {"BLOCK": block, "BINS": BINS}
    for shift in range(0, max(bits, 1), BITS):
        new_keys, new_order = (allocate((n,), INT64, on) for _ in range(2))
        launch(_count_kernel, (blocks,), keys, counts, n, blocks, shift, **common)
        launch(_scan_kernel, (BINS if blocks else 0,), counts, before, totals, blocks, BLOCK=scanned)
        launch(_move_kernel, (blocks,), keys, order, new_keys, new_order, before, totals, n, blocks, shift, FIRST=shift == 0, **common)
        keys, order = new_keys, new_order
    return keys, order
