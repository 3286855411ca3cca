"""Kernels that walk rows, as authors write them: softmax, norms, scans; each beside copies with one planted error."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from tests.sabotage.planted.kernels import ROWS, planted, sound

N = 37
WIDE = (ROWS * 60).astype(np.float32)  # exponentials of these overflow
OUT = np.zeros_like(ROWS)
COLUMN = np.zeros(5, np.float32)
CLOSE = {"rtol": 1e-5, "atol": 1e-6}


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@triton.jit
def softmax(x, y, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + r * n + c, mask=c < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + r * n + c, e / tl.sum(e, 0), mask=c < n)


sound(softmax, (5,), (WIDE, OUT, N), {"y": _softmax(WIDE)}, BLOCK=64, **CLOSE)


@triton.jit
def softmax_without_maximum(x, y, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    e = tl.exp(tl.load(x + r * n + c, mask=c < n, other=-float("inf")))
    tl.store(y + r * n + c, e / tl.sum(e, 0), mask=c < n)


planted("a softmax without its maximum", softmax_without_maximum, (5,), (WIDE, OUT, N), {"y": _softmax(WIDE)}, BLOCK=64, **CLOSE)


@triton.jit
def softmax_padded_with_zeros(x, y, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + r * n + c, mask=c < n, other=0.0)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + r * n + c, e / tl.sum(e, 0), mask=c < n)


planted(
    "padding that counts in a sum of exponentials",
    softmax_padded_with_zeros,
    (5,),
    (ROWS, OUT, N),
    {"y": _softmax(ROWS)},
    BLOCK=64,
    **CLOSE,
)


@triton.jit
def softmax_online(x, y, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    top = -float("inf")
    total = 0.0
    for start in range(0, n, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = tl.load(x + r * n + c, mask=c < n, other=-float("inf"))
        new = tl.maximum(top, tl.max(v, 0))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(v - new), 0)
        top = new
    for start in range(0, n, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = tl.load(x + r * n + c, mask=c < n)
        tl.store(y + r * n + c, tl.exp(v - top) / total, mask=c < n)


sound(softmax_online, (5,), (WIDE, OUT, N), {"y": _softmax(WIDE)}, BLOCK=8, **CLOSE)


@triton.jit
def softmax_not_rescaled(x, y, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    top = -float("inf")
    total = 0.0
    for start in range(0, n, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = tl.load(x + r * n + c, mask=c < n, other=-float("inf"))
        top = tl.maximum(top, tl.max(v, 0))
        total += tl.sum(tl.exp(v - top), 0)
    for start in range(0, n, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = tl.load(x + r * n + c, mask=c < n)
        tl.store(y + r * n + c, tl.exp(v - top) / total, mask=c < n)


planted("a running sum that is not rescaled", softmax_not_rescaled, (5,), (WIDE, OUT, N), {"y": _softmax(WIDE)}, BLOCK=8, **CLOSE)


@triton.jit
def softmax_stale_mask(x, y, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    top = -float("inf")
    c = tl.arange(0, BLOCK)
    inside = c < n
    for start in range(0, n, BLOCK):
        top = tl.maximum(top, tl.max(tl.load(x + r * n + start + c, mask=inside, other=-float("inf")), 0))
    tl.store(y + r, top)


planted("a mask made before the loop", softmax_stale_mask, (5,), (ROWS, COLUMN, N), {"y": ROWS.max(1)}, BLOCK=8)


def _norm(x: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    wide = x.astype(np.float64)
    return (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + eps)


SHIFTED = (ROWS + 3).astype(np.float32)
NORMED = {"y": _norm(SHIFTED)}
NORM = {"BLOCK": 64, "rtol": 1e-4, "atol": 1e-5}


@triton.jit
def layer_norm(x, y, n, eps, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + r * n + c, mask=c < n, other=0.0)
    mean = tl.sum(v, 0) / n
    away = tl.where(c < n, v - mean, 0.0)
    tl.store(y + r * n + c, away / tl.sqrt(tl.sum(away * away, 0) / n + eps), mask=c < n)


sound(layer_norm, (5,), (SHIFTED, OUT, N, 1e-5), NORMED, **NORM)


@triton.jit
def variance_of_padding(x, y, n, eps, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + r * n + c, mask=c < n, other=0.0)
    away = v - tl.sum(v, 0) / n
    tl.store(y + r * n + c, away / tl.sqrt(tl.sum(away * away, 0) / n + eps), mask=c < n)


planted("padding that counts in a variance", variance_of_padding, (5,), (SHIFTED, OUT, N, 1e-5), NORMED, **NORM)


@triton.jit
def mean_of_block(x, y, n, eps, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + r * n + c, mask=c < n, other=0.0)
    away = tl.where(c < n, v - tl.sum(v, 0) / BLOCK, 0.0)
    tl.store(y + r * n + c, away / tl.sqrt(tl.sum(away * away, 0) / n + eps), mask=c < n)


planted("a mean over the block's size", mean_of_block, (5,), (SHIFTED, OUT, N, 1e-5), NORMED, **NORM)


@triton.jit
def unbiased(x, y, n, eps, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + r * n + c, mask=c < n, other=0.0)
    away = tl.where(c < n, v - tl.sum(v, 0) / n, 0.0)
    tl.store(y + r * n + c, away / tl.sqrt(tl.sum(away * away, 0) / (n - 1) + eps), mask=c < n)


planted("a variance over n - 1", unbiased, (5,), (SHIFTED, OUT, N, 1e-5), NORMED, **NORM)


@triton.jit
def eps_outside(x, y, n, eps, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + r * n + c, mask=c < n, other=0.0)
    away = tl.where(c < n, v - tl.sum(v, 0) / n, 0.0)
    tl.store(y + r * n + c, away / (tl.sqrt(tl.sum(away * away, 0) / n) + eps), mask=c < n)


FLAT = (0.01 * ROWS).astype(np.float32)  # eps shows where the variance is small
planted("eps outside of the root", eps_outside, (5,), (FLAT, OUT, N, 1e-5), {"y": _norm(FLAT)}, **NORM)


@triton.jit
def squares_of_large_means(x, y, n, eps, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + r * n + c, mask=c < n, other=0.0)
    mean = tl.sum(v, 0) / n
    tl.store(y + r * n + c, (v - mean) / tl.sqrt(tl.sum(v * v, 0) / n - mean * mean + eps), mask=c < n)


FAR = (ROWS + 300).astype(np.float32)
planted("a variance by E[x^2] - E[x]^2", squares_of_large_means, (5,), (FAR, OUT, N, 1e-5), {"y": _norm(FAR)}, **NORM | {"rtol": 1e-3})


@triton.jit
def running_sums(x, y, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    carry = 0.0
    for start in range(0, n, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = tl.load(x + r * n + c, mask=c < n, other=0.0)
        tl.store(y + r * n + c, tl.cumsum(v, 0) + carry, mask=c < n)
        carry += tl.sum(v, 0)


SCANNED = {"y": ROWS.astype(np.float64).cumsum(1)}
sound(running_sums, (5,), (ROWS, OUT, N), SCANNED, BLOCK=8, atol=1e-5)


@triton.jit
def scan_without_carry(x, y, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    for start in range(0, n, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = tl.load(x + r * n + c, mask=c < n, other=0.0)
        tl.store(y + r * n + c, tl.cumsum(v, 0), mask=c < n)


planted("a scan that carries nothing", scan_without_carry, (5,), (ROWS, OUT, N), SCANNED, BLOCK=8, atol=1e-5)


@triton.jit
def scan_carries_last(x, y, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    carry = 0.0
    for start in range(0, n, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = tl.load(x + r * n + c, mask=c < n, other=0.0)
        tl.store(y + r * n + c, tl.cumsum(v, 0) + carry, mask=c < n)
        carry = tl.sum(v, 0)


planted("a carry that forgets", scan_carries_last, (5,), (ROWS, OUT, N), SCANNED, BLOCK=8, atol=1e-5)


@triton.jit
def sorts_padding(x, y, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    tl.store(y + r * n + c, tl.sort(tl.load(x + r * n + c, mask=c < n, other=0.0)), mask=c < n)


planted("a sort of rows padded with 0", sorts_padding, (5,), (ROWS, OUT, N), {"y": np.sort(ROWS)}, BLOCK=64)


@triton.jit
def sorts(x, y, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    tl.store(y + r * n + c, tl.sort(tl.load(x + r * n + c, mask=c < n, other=float("inf"))), mask=c < n)


sound(sorts, (5,), (ROWS, OUT, N), {"y": np.sort(ROWS)}, BLOCK=64)


@triton.jit
def loses_the_tail(x, y, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    total = 0.0
    for k in range(n // BLOCK):
        total += tl.sum(tl.load(x + r * n + k * BLOCK + tl.arange(0, BLOCK)), 0)
    tl.store(y + r, total)


planted("a loop over whole blocks of a row", loses_the_tail, (5,), (ROWS, COLUMN, N), {"y": ROWS.sum(1)}, BLOCK=8, atol=1e-5)


@triton.jit
def product_of_padding(x, y, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + r * n + c, mask=c < n, other=0.0)
    tl.store(y + r, tl.max(tl.where(v < 0, v, -v), 0))


planted("padding that is the largest", product_of_padding, (5,), (ROWS, COLUMN, N), {"y": (-np.abs(ROWS)).max(1)}, BLOCK=64)


@triton.jit
def argmin_of_padding(x, y, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    tl.store(y + r, tl.argmin(tl.load(x + r * n + c, mask=c < n, other=0.0), 0))


POSITIVE = np.abs(ROWS) + 1
planted(
    "a position in the padding", argmin_of_padding, (5,), (POSITIVE, np.zeros(5, np.int32), N), {"y": POSITIVE.argmin(1).astype(np.int32)}, BLOCK=64
)  # fmt: skip


@triton.jit
def position_in_its_tile(x, y, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    best = -float("inf")
    place = 0
    for start in range(0, n, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = tl.load(x + r * n + c, mask=c < n, other=-float("inf"))
        top = tl.max(v, 0)
        place = tl.where(top > best, tl.argmax(v, 0), place)
        best = tl.maximum(top, best)
    tl.store(y + r, place)


planted(
    "a position counted from its tile", position_in_its_tile, (5,), (ROWS, np.zeros(5, np.int32), N), {"y": ROWS.argmax(1).astype(np.int32)}, BLOCK=8
)  # fmt: skip
