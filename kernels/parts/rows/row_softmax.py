"""The softmax of rows: its running maximum and sum in kernels, and blocks of rows on the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import triton
import triton.language as tl

from tritensor.kernels.parts.cpu.summation import row_sums
from tritensor.kernels.parts.half_precision import functions as half

CACHE = 65536  # elements that numpy works on at a time


# In kernels.
@triton.jit
def exp_nonpositive(x):
    """e^x for x <= 0: the product with log2(e) is carried in two parts, so large |x| loses nothing."""
    if x.dtype == tl.float64:
        y = tl.exp(x)
    else:
        high = x * 1.4426950408889634
        low = tl.fma(x, 1.4426950408889634, -high) + x * 1.925963033500e-8
        finite = tl.abs(high) < 1e30
        y = tl.exp2(high) * (1.0 + tl.where(finite, low, 0.0) * 0.6931471805599453)
    return y


@triton.jit
def rest(x, m):
    """x - m, where m is the row's maximum; 0 for a row of -inf, whose maximum says nothing yet."""
    return x - tl.where(m == float("-inf"), 0.0, m)


@triton.jit
def power(x, HALF: tl.constexpr = False):
    """e^x for x <= 0. HALF: for results of 16 bits."""
    return half.exp(x) if HALF else exp_nonpositive(x)


@triton.jit
def online(m, total, x):
    """The running maximum m and total = sum e^(x - m) of each row, after one more tile: e^(old m - new m) rescales what was summed."""
    new = tl.maximum(m, tl.max(x, axis=1))
    total = total * exp_nonpositive(rest(m, new)) + tl.sum(exp_nonpositive(rest(x, new[:, None])), axis=1)
    return new, total


@triton.jit
def online_columns(m, totals, x, HALF: tl.constexpr):
    """The same with a total for each column of the tile (rows, cols), to be summed at the end: one sum across threads, and none for every tile."""
    new = tl.maximum(m, tl.max(x, axis=1))
    return new, totals * power(rest(m, new), HALF)[:, None] + power(rest(x, new[:, None]), HALF)


# On the CPU.
def by_rows(function: Callable[..., None], arrays: tuple[np.ndarray, ...], out: np.ndarray, axis: int) -> np.ndarray:
    """function(*blocks, out block, axis) in blocks of leading rows that fit the cache; 16-bit floats through float32."""
    is_half_precision = out.dtype.itemsize == 2
    if not is_half_precision and (out.size <= CACHE or axis == 0 or out.ndim < 2):
        function(*arrays, out, axis)
        return out
    if axis == 0 or out.ndim < 2:
        room = np.empty(out.shape, np.float32)
        function(*(a.astype(np.float32) for a in arrays), room, axis)
        out[...] = room
        return out
    step = max(CACHE // max(math.prod(out.shape[1:]), 1), 1)
    for start in range(0, out.shape[0], step):
        part = slice(start, start + step)
        if is_half_precision:
            room = np.empty(out[part].shape, np.float32)
            function(*(a[part].astype(np.float32) for a in arrays), room, axis)
            out[part] = room
        else:
            function(*(a[part] for a in arrays), out[part], axis)
    return out


def softmax_block(x: np.ndarray, out: np.ndarray, axis: int) -> None:
    """out = e^x / sum e^x along an axis. Where every row's maximum is small and not negative, e^x itself overflows no sum and loses nothing."""
    largest = np.maximum.reduce(x, axis=axis, keepdims=True)
    if x.ndim and largest.min(initial=_SAFE) >= 0 and largest.max(initial=0) <= _SAFE:
        np.exp(x, out=out)
    else:
        np.subtract(x, largest, out=out)
        np.exp(out, out=out)
    if axis == out.ndim - 1 and out.flags.c_contiguous and out.size:
        sums = row_sums(out.reshape(-1, out.shape[-1])).reshape(largest.shape)
    else:
        sums = np.add.reduce(out, axis=axis, keepdims=True)
    np.true_divide(out, sums, out=out)


_SAFE = 32.0  # e^32 is 8e13
