"""Kernels of tiles in two dimensions, products and persistent loops, as authors write them; each beside copies with one planted error."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import triton
import triton.language as tl

from tests.sabotage.planted.kernels import ROWS, X, planted, rng, sound

M, N, K = 20, 35, 50
A = rng.standard_normal((M, K)).astype(np.float32)
B = rng.standard_normal((K, N)).astype(np.float32)
C = np.zeros((M, N), np.float32)
PRODUCT = {"c": A.astype(np.float64) @ B}
TILE = {"BM": 16, "BN": 32, "BK": 16}
CALLED = (A, B, C, M, N, K)
CLOSE = {"atol": 1e-5}


def tiles(meta: dict) -> tuple[int, ...]:
    return triton.cdiv(M, meta["BM"]), triton.cdiv(N, meta["BN"])


@triton.jit
def product(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    col = (tl.program_id(1) * BN + tl.arange(0, BN))[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        i = start + tl.arange(0, BK)
        left = tl.load(a + row * k + i[None, :], mask=(row < m) & (i[None, :] < k), other=0.0)
        right = tl.load(b + i[:, None] * n + col, mask=(i[:, None] < k) & (col < n), other=0.0)
        acc = tl.dot(left, right, acc, input_precision="ieee")
    tl.store(c + row * n + col, acc, mask=(row < m) & (col < n))


sound(product, tiles, CALLED, PRODUCT, **TILE, **CLOSE)


@triton.jit
def product_in_tf32(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    col = (tl.program_id(1) * BN + tl.arange(0, BN))[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        i = start + tl.arange(0, BK)
        left = tl.load(a + row * k + i[None, :], mask=(row < m) & (i[None, :] < k), other=0.0)
        right = tl.load(b + i[:, None] * n + col, mask=(i[:, None] < k) & (col < n), other=0.0)
        acc = tl.dot(left, right, acc)
    tl.store(c + row * n + col, acc, mask=(row < m) & (col < n))


planted("float32 that tensor cores round", product_in_tf32, tiles, CALLED, PRODUCT, **TILE, **CLOSE)


@triton.jit
def tail_of_k(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    col = (tl.program_id(1) * BN + tl.arange(0, BN))[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        i = start + tl.arange(0, BK)
        left = tl.load(a + row * k + i[None, :], mask=row < m, other=0.0)
        right = tl.load(b + i[:, None] * n + col, mask=col < n, other=0.0)
        acc = tl.dot(left, right, acc, input_precision="ieee")
    tl.store(c + row * n + col, acc, mask=(row < m) & (col < n))


planted("the tail of k unmasked", tail_of_k, tiles, CALLED, PRODUCT, **TILE, **CLOSE)


@triton.jit
def stands_still(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    col = (tl.program_id(1) * BN + tl.arange(0, BN))[None, :]
    i = tl.arange(0, BK)
    at = a + row * k + i[None, :]
    bt = b + i[:, None] * n + col
    acc = tl.zeros((BM, BN), tl.float32)
    for left in range(k, 0, -BK):
        x = tl.load(at, mask=(row < m) & (i[None, :] < left), other=0.0)
        y = tl.load(bt, mask=(i[:, None] < left) & (col < n), other=0.0)
        acc = tl.dot(x, y, acc, input_precision="ieee")
        at += BK
    tl.store(c + row * n + col, acc, mask=(row < m) & (col < n))


planted("a pointer that is not moved on", stands_still, tiles, CALLED, PRODUCT, **TILE, **CLOSE)


@triton.jit
def masks_exchanged(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    col = (tl.program_id(1) * BN + tl.arange(0, BN))[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        i = start + tl.arange(0, BK)
        left = tl.load(a + row * k + i[None, :], mask=(row < m) & (i[None, :] < k), other=0.0)
        right = tl.load(b + i[:, None] * n + col, mask=(i[:, None] < k) & (col < n), other=0.0)
        acc = tl.dot(left, right, acc, input_precision="ieee")
    tl.store(c + row * n + col, acc, mask=(row < n) & (col < m))


planted("bounds of rows and columns exchanged", masks_exchanged, tiles, CALLED, PRODUCT, **TILE, **CLOSE)


@triton.jit
def axes_exchanged(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = (tl.program_id(1) * BM + tl.arange(0, BM))[:, None]
    col = (tl.program_id(0) * BN + tl.arange(0, BN))[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        i = start + tl.arange(0, BK)
        left = tl.load(a + row * k + i[None, :], mask=(row < m) & (i[None, :] < k), other=0.0)
        right = tl.load(b + i[:, None] * n + col, mask=(i[:, None] < k) & (col < n), other=0.0)
        acc = tl.dot(left, right, acc, input_precision="ieee")
    tl.store(c + row * n + col, acc, mask=(row < m) & (col < n))


WIDE = rng.standard_normal((K, 130)).astype(np.float32)
planted(
    "axes of the grid exchanged", axes_exchanged, (2, 5), (A, WIDE, np.zeros((M, 130), np.float32), M, 130, K), {"c": A.astype(np.float64) @ WIDE},
    **TILE, **CLOSE,
)  # fmt: skip
HALF_A, HALF_B = A.astype(np.float16), B.astype(np.float16)


@triton.jit
def sixteen_bits(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    col = (tl.program_id(1) * BN + tl.arange(0, BN))[None, :]
    acc = tl.zeros((BM, BN), tl.float16)
    for start in range(0, k, BK):
        i = start + tl.arange(0, BK)
        left = tl.load(a + row * k + i[None, :], mask=(row < m) & (i[None, :] < k), other=0.0)
        right = tl.load(b + i[:, None] * n + col, mask=(i[:, None] < k) & (col < n), other=0.0)
        acc += tl.dot(left, right, out_dtype=tl.float16)
    tl.store(c + row * n + col, acc, mask=(row < m) & (col < n))


planted(
    "a product summed in float16", sixteen_bits, tiles, (HALF_A, HALF_B, C.astype(np.float16), M, N, K),
    {"c": HALF_A.astype(np.float64) @ HALF_B.astype(np.float64)}, **TILE, **CLOSE,
)  # fmt: skip


@triton.jit
def parts_of_k(a, b, c, m, n, k, PARTS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    col = (tl.program_id(1) * BN + tl.arange(0, BN))[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(tl.program_id(2) * BK, k, BK * PARTS):
        i = start + tl.arange(0, BK)
        left = tl.load(a + row * k + i[None, :], mask=(row < m) & (i[None, :] < k), other=0.0)
        right = tl.load(b + i[:, None] * n + col, mask=(i[:, None] < k) & (col < n), other=0.0)
        acc = tl.dot(left, right, acc, input_precision="ieee")
    tl.atomic_add(c + row * n + col, acc, mask=(row < m) & (col < n))


def three_parts(meta: dict) -> tuple[int, ...]:
    return *tiles(meta), meta["PARTS"]


sound(parts_of_k, three_parts, CALLED, PRODUCT, updates=("c",), PARTS=3, **TILE, **CLOSE)
planted(
    "a part of k that nobody sums", parts_of_k, lambda meta: (*tiles(meta), 2), CALLED, PRODUCT, updates=("c",), PARTS=3, **TILE, **CLOSE
)  # fmt: skip


@triton.jit
def persistent(x, y, n, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    for tile in range(tl.program_id(0), tl.cdiv(n, BLOCK), PROGRAMS):
        i = tile * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


sound(persistent, (3,), (X, np.zeros_like(X), 37), {"y": 2 * X}, PROGRAMS=3, BLOCK=8)
planted("fewer programs than a persistent loop counts on", persistent, (2,), (X, np.zeros_like(X), 37), {"y": 2 * X}, PROGRAMS=3, BLOCK=8)
planted("more programs than a persistent loop counts on", persistent, (4,), (X, np.zeros_like(X), 37), {"y": 2 * X}, PROGRAMS=3, BLOCK=8)


@triton.jit
def transposed(x, y, m, n, BM: tl.constexpr, BN: tl.constexpr):
    row = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    col = (tl.program_id(1) * BN + tl.arange(0, BN))[None, :]
    v = tl.load(x + row * n + col, mask=(row < m) & (col < n))
    tl.store(y + col * m + row, v, mask=(row < m) & (col < n))


SQUARE = rng.standard_normal((16, 16)).astype(np.float32)
sound(transposed, (2, 3), (ROWS, np.zeros((37, 5), np.float32), 5, 37), {"y": ROWS.T}, BM=4, BN=16)


@triton.jit
def not_transposed(x, y, n, BLOCK: tl.constexpr):
    row = tl.arange(0, BLOCK)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    tl.store(y + row * n + col, tl.load(x + row * n + col))


planted("a transpose of a square that is none", not_transposed, (1,), (SQUARE, np.zeros_like(SQUARE), 16), {"y": SQUARE.T}, BLOCK=16)


@triton.jit
def through_memory(x, between, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(between + i, tl.load(x + i) * 2)
    tl.store(y + i, tl.load(between + (BLOCK - 1 - i)))


LINE = np.arange(64, dtype=np.float32)
BACK = {"y": 2 * LINE[::-1], "between": 2 * LINE}
planted("threads of a program that do not wait", through_memory, (1,), (LINE, 0 * LINE, 0 * LINE), BACK, BLOCK=64)


@triton.jit
def through_memory_waiting(x, between, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(between + i, tl.load(x + i) * 2)
    tl.debug_barrier()
    tl.store(y + i, tl.load(between + (BLOCK - 1 - i)))


sound(through_memory_waiting, (1,), (LINE, 0 * LINE, 0 * LINE), BACK, BLOCK=64)


@triton.jit
def row_in_two_places(x, y, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    tl.store(y + r * n + c, tl.load(x + r * n + c, mask=c < n), mask=c < n)
    tl.store(y + r * n, tl.sum(tl.load(y + r * n + c, mask=c < n, other=0.0), 0))


SUMMED = ROWS.copy()
SUMMED[:, 0] = ROWS.sum(1)
sound(row_in_two_places, (5,), (ROWS, np.zeros_like(ROWS), 37), {"y": SUMMED}, BLOCK=64, **CLOSE)


@triton.jit
def partial_sums_too_early(x, parts, y, n, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    i = p * BLOCK + tl.arange(0, BLOCK)
    tl.store(parts + p, tl.sum(tl.load(x + i, mask=i < n, other=0.0), 0))
    if p == PROGRAMS - 1:
        k = tl.arange(0, 4)
        tl.store(y, tl.sum(tl.load(parts + k, mask=k < PROGRAMS, other=0.0), 0))


PARTS = {"parts": np.array([X[:16].sum(), X[16:32].sum(), X[32:].sum()]), "y": X.sum(keepdims=True)}
planted(
    "a sum of what other programs may not have stored", partial_sums_too_early, (3,), (X, np.zeros(3, np.float32), np.zeros(1, np.float32), 37),
    PARTS, PROGRAMS=3, BLOCK=16, **CLOSE,
)  # fmt: skip


@triton.jit
def last_one_sums(x, parts, y, count, n, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    i = p * BLOCK + tl.arange(0, BLOCK)
    tl.store(parts + p, tl.sum(tl.load(x + i, mask=i < n, other=0.0), 0))
    if tl.atomic_add(count, 1) == PROGRAMS - 1:
        k = tl.arange(0, 4)
        tl.store(y, tl.sum(tl.load(parts + k, mask=k < PROGRAMS, other=0.0), 0))


sound(
    last_one_sums, (3,), (X, np.zeros(3, np.float32), np.zeros(1, np.float32), np.zeros(1, np.int32), 37), PARTS | {"count": np.array([3], np.int32)},
    updates=("count",), PROGRAMS=3, BLOCK=16, **CLOSE,
)  # fmt: skip


@triton.jit
def maximum_of_all(x, y, top, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    every = tl.arange(0, 64)
    m = tl.max(tl.load(x + every, mask=every < n, other=-float("inf")), 0)
    tl.store(top, m)
    tl.store(y + i, tl.load(x + i, mask=i < n) - m, mask=i < n)


LOWERED = {"y": X - X.max(), "top": X.max(keepdims=True)}
sound(maximum_of_all, (3,), (X, np.zeros_like(X), np.zeros(1, np.float32), 37), LOWERED, repeats=("top",), BLOCK=16)


@triton.jit
def every_program_all_rows(x, y, rows, n, BLOCK: tl.constexpr):
    c = tl.program_id(0) * 16 + tl.arange(0, BLOCK)
    for r in range(rows):
        tl.store(y + r * n + c, tl.load(x + r * n + c, mask=c < n) * 2, mask=c < n)


planted("tiles that overlap with equal values", every_program_all_rows, (3,), (ROWS, np.zeros_like(ROWS), 5, 37), {"y": 2 * ROWS}, BLOCK=32)
BF16 = (rng.standard_normal(64) * 3).astype(ml_dtypes.bfloat16)


@triton.jit
def gelu_in_bfloat16(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    square = v * v
    tl.store(y + i, (v * square).to(tl.bfloat16))


planted(
    "arithmetic in bfloat16 as it is loaded",
    gelu_in_bfloat16,
    (1,),
    (BF16, np.zeros_like(BF16)),
    {"y": BF16.astype(np.float64) ** 3},
    BLOCK=64,
)
