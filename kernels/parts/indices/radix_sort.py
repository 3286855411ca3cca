"""A stable sort of integer keys on the device: radix 16, of a few keys 256, least digit first, linear in their number and free of atomics."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.configs.spaces import numbers_space
from tritensor.kernels.parts.launch_rules import config_of
from tritensor.ops.array import CudaArray
from tritensor.ops.tuning.tunables import powers, tunable

tunable("radix_sort", int, numbers_space, powers)
tunable("radix_scan", int, numbers_space, powers)
tunable("radix_sort_few", int, numbers_space, powers)

BITS = 4  # of one digit
BLOCK = 256
FEW_BITS = 8  # of one digit where each program counts the blocks before its own by itself
FEW_BLOCK = 128
FEW_HELD = 16  # keys of a block whose digits are held at a time: more spill
FEW = 256  # blocks of a row at most for that
INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)


@triton.jit
def _one_hot(keys, row, block, n, shift, BLOCK: tl.constexpr, BINS: tl.constexpr):
    """Row i says which bin element i of a block falls into; none beyond the end. First where the block's row begins."""
    start = row.to(tl.int64) * n
    i = block * BLOCK + tl.arange(0, BLOCK)  # (BLOCK,)
    key = tl.load(keys + start + i, mask=i < n, other=0)
    digit = ((key >> shift) & (BINS - 1)).to(tl.int32)
    bins = tl.arange(0, BINS)
    return start, i, key, ((digit[:, None] == bins[None, :]) & (i < n)[:, None]).to(tl.int32)  # (BLOCK, BINS)


# counts[row, digit, block] = how many keys of the block have that digit
@triton.jit(do_not_specialize=["blocks", "shift"])
def _count_kernel(keys, counts, n, blocks, shift, BLOCK: tl.constexpr, BINS: tl.constexpr):
    row, block = tl.program_id(0) // blocks, tl.program_id(0) % blocks
    _, _, _, hot = _one_hot(keys, row, block, n, shift, BLOCK, BINS)
    tl.store(counts + (row * BINS + tl.arange(0, BINS)) * blocks + block, tl.sum(hot, 0))


# before[row, digit, block] = sum of counts[row, digit, :block]; totals[row, digit] = sum of counts[row, digit, :]
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
    row, block = tl.program_id(0) // blocks, tl.program_id(0) % blocks
    start, i, key, hot = _one_hot(keys, row, block, n, shift, BLOCK, BINS)
    bins = tl.arange(0, BINS)
    total = tl.load(totals + row * BINS + bins)  # (BINS,)
    base = tl.cumsum(total, 0) - total + tl.load(before + (row * BINS + bins) * blocks + block)
    rank = tl.cumsum(hot, 0) - hot  # (BLOCK, BINS)
    to = start + tl.sum(hot * (rank + base[None, :]), 1)  # (BLOCK,)
    tl.store(new_keys + to, key, mask=i < n)
    if FIRST:
        tl.store(new_order + to, i.to(tl.int64), mask=i < n)
    else:
        tl.store(new_order + to, tl.load(order + start + i, mask=i < n, other=0), mask=i < n)


# the same where the counts of a row's blocks are few: each program adds those before its own
@triton.jit(do_not_specialize=["shift"])  # where 16 divides the blocks, counts are read wide
def _move_few_kernel(
    keys, order, new_keys, new_order, counts, n, blocks, shift, FIRST: tl.constexpr, BLOCK: tl.constexpr, HELD: tl.constexpr, BINS: tl.constexpr,
    STEP: tl.constexpr,
):  # fmt: skip
    row, block = tl.program_id(0) // blocks, tl.program_id(0) % blocks
    bins = tl.arange(0, BINS)
    total = tl.zeros((BINS,), tl.int32)
    before = tl.zeros((BINS,), tl.int32)
    for first in range(0, blocks, STEP):
        j = first + tl.arange(0, STEP)
        count = tl.load(counts + ((row * BINS + bins) * blocks)[:, None] + j[None, :], mask=(j < blocks)[None, :], other=0)  # (BINS, STEP)
        total += tl.sum(count, 1)
        before += tl.sum(tl.where((j < block)[None, :], count, 0), 1)
    base = tl.cumsum(total, 0) - total + before
    for part in range(BLOCK // HELD):
        start, i, key, hot = _one_hot(keys, row, block * (BLOCK // HELD) + part, n, shift, HELD, BINS)
        rank = tl.cumsum(hot, 0) - hot  # (HELD, BINS)
        to = start + tl.sum(hot * (rank + base[None, :]), 1)  # (HELD,)
        tl.store(new_keys + to, key, mask=i < n)
        if FIRST:
            tl.store(new_order + to, i.to(tl.int64), mask=i < n)
        else:
            tl.store(new_order + to, tl.load(order + start + i, mask=i < n, other=0), mask=i < n)
        base += tl.sum(hot, 0)


def sort_keys(keys: CudaArray, bits: int) -> tuple[CudaArray, CudaArray]:
    """Sorted keys and the positions they came from (equal keys in their first order), each row by itself.

    `keys` is of an integer type and of shape (n,) or (rows, n), contiguous, n < 2^31; only its lowest `bits` bits count, as an
    unsigned number. Three launches for every four bits; of at most 32,768 keys in a row two for every eight.
    """
    n, on = keys.shape[-1], keys.device
    rows = keys.size // max(n, 1)
    few = config_of("radix_sort_few", (rows, n, keys.dtype), FEW_BLOCK)
    if bits > BITS and triton.cdiv(n, few) <= FEW:
        return _sort_few(keys, bits, rows, n, few)
    bins = 1 << BITS
    block, scanned = config_of("radix_sort", (rows, n, keys.dtype), BLOCK), config_of("radix_scan", (rows, n, keys.dtype), 1024)
    blocks = triton.cdiv(n, block)
    counts, before = (allocate((rows, bins, blocks), INT32, on) for _ in range(2))
    totals = allocate((rows, bins), INT32, on)
    order: Any = keys  # not read in the first pass
    common: Any = {"BLOCK": block, "BINS": bins}
    for shift in range(0, max(bits, 1), BITS):
        new_keys, new_order = allocate(keys.shape, keys.dtype, on), allocate(keys.shape, INT64, on)
        launch(_count_kernel, (rows * blocks,), keys, counts, n, blocks, shift, **common)
        launch(_scan_kernel, (rows * bins if blocks else 0,), counts, before, totals, blocks, BLOCK=scanned)
        launch(
            _move_kernel, (rows * blocks,), keys, order, new_keys, new_order, before, totals, n, blocks, shift, FIRST=shift == 0, **common
        )
        keys, order = new_keys, new_order
    return keys, order


def _sort_few(keys: CudaArray, bits: int, rows: int, n: int, block: int) -> tuple[CudaArray, CudaArray]:
    """sort_keys() in blocks of so many keys, which each program counts anew."""
    blocks, bins, on = triton.cdiv(n, block), 1 << FEW_BITS, keys.device
    counts = allocate((rows, bins, blocks), INT32, on)
    order: Any = keys  # not read in the first pass
    common: Any = {"BLOCK": block, "BINS": bins, "num_warps": 8}
    for shift in range(0, bits, FEW_BITS):
        new_keys, new_order = allocate(keys.shape, keys.dtype, on), allocate(keys.shape, INT64, on)
        launch(_count_kernel, (rows * blocks,), keys, counts, n, blocks, shift, **common)
        launch(
            _move_few_kernel, (rows * blocks,), keys, order, new_keys, new_order, counts, n, blocks, shift,
            FIRST=shift == 0, HELD=min(block, FEW_HELD), STEP=16, **common,
        )  # fmt: skip
        keys, order = new_keys, new_order
    return keys, order
