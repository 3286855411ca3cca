"""Kernels of indices, counts, atomics and integers, as authors write them; each beside copies with one planted error."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from tests.sabotage.planted.kernels import ROWS, X, blocks, planted, rng, sound

ZEROS = np.zeros_like(X)
KEYS = np.array([3, 0, -1, 4, 4, -5, 2], np.int64)
PICKED = np.zeros((7, 37), np.float32)


@triton.jit
def picks(x, keys, y, rows, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    k = tl.load(keys + r)
    k = tl.where(k < 0, k + rows, k)
    tl.store(y + r * n + c, tl.load(x + k * n + c, mask=c < n), mask=c < n)


sound(picks, (7,), (ROWS, KEYS, PICKED, 5, 37), {"y": ROWS[KEYS]}, BLOCK=64)


@triton.jit
def picks_negative(x, keys, y, rows, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    tl.store(y + r * n + c, tl.load(x + tl.load(keys + r) * n + c, mask=c < n), mask=c < n)


planted("negative indices that are not wrapped", picks_negative, (7,), (ROWS, KEYS, PICKED, 5, 37), {"y": ROWS[KEYS]}, BLOCK=64)


@triton.jit
def picks_by_halves(x, keys, y, rows, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    k = tl.load(keys.to(tl.pointer_type(tl.int32)) + r)
    k = tl.where(k < 0, k + rows, k)
    tl.store(y + r * n + c, tl.load(x + k * n + c, mask=c < n), mask=c < n)


planted("int64 indices read as int32", picks_by_halves, (7,), (ROWS, KEYS, PICKED, 5, 37), {"y": ROWS[KEYS]}, BLOCK=64)


@triton.jit
def adds_rows(g, keys, dx, rows, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    k = tl.load(keys + r)
    k = tl.where(k < 0, k + rows, k)
    tl.atomic_add(dx + k * n + c, tl.load(g + r * n + c, mask=c < n), mask=c < n)


SCATTERED = rng.standard_normal((7, 37)).astype(np.float32)
ADDED = np.zeros((5, 37), np.float32)
np.add.at(ADDED, KEYS, SCATTERED)
DX = np.zeros((5, 37), np.float32)
sound(adds_rows, (7,), (SCATTERED, KEYS, DX, 5, 37), {"dx": ADDED}, updates=("dx",), BLOCK=64, atol=1e-6)


@triton.jit
def puts_rows(g, keys, dx, rows, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    k = tl.load(keys + r)
    k = tl.where(k < 0, k + rows, k)
    tl.store(dx + k * n + c, tl.load(g + r * n + c, mask=c < n), mask=c < n)


planted("equal indices that are put and not added", puts_rows, (7,), (SCATTERED, KEYS, DX, 5, 37), {"dx": ADDED}, updates=("dx",), BLOCK=64)
COUNTED = np.array([1, 2, 2, 7, 5], np.int32)
BINS = np.bincount(COUNTED, minlength=8).astype(np.int32)


@triton.jit
def counts(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + tl.arange(0, 8), tl.histogram(tl.load(x + i, mask=i < n, other=0), 8))


planted("padding in a histogram", counts, (1,), (COUNTED, np.zeros(8, np.int32), 5), {"y": BINS}, BLOCK=8)


@triton.jit
def counts_inside(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + tl.arange(0, 8), tl.histogram(tl.load(x + i, mask=i < n), 8, mask=i < n))


sound(counts_inside, (1,), (COUNTED, np.zeros(8, np.int32), 5), {"y": BINS}, BLOCK=8)
SIGNED = np.arange(-8, 8, dtype=np.int32)


@triton.jit
def remainders(x, y, by, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i) % by)


planted("a remainder with the sign of what is divided", remainders, (1,), (SIGNED, 0 * SIGNED, 3), {"y": SIGNED % 3}, BLOCK=16)


@triton.jit
def quotients(x, y, by, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i) // by)


planted("a division towards zero", quotients, (1,), (SIGNED, 0 * SIGNED, 3), {"y": SIGNED // 3}, BLOCK=16)
BYTES = np.array([3, 200, 7, 255], np.uint8)


@triton.jit
def distances(x, y, of, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    d = tl.load(x + i) - of.to(tl.uint8)
    tl.store(y + i, tl.where(d > 0, d, -d))


FAR = np.abs(BYTES.astype(np.int32) - 100).astype(np.uint8)
planted("a difference of unsigned numbers", distances, (1,), (BYTES, 0 * BYTES, 100), {"y": FAR}, BLOCK=4)


@triton.jit
def means_of_bytes(x, z, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, (tl.load(x + i) + tl.load(z + i)) // 2)


MEANS = ((BYTES.astype(np.int32) + 200) // 2).astype(np.uint8)
planted("a sum that leaves eight bits", means_of_bytes, (1,), (BYTES, np.full(4, 200, np.uint8), 0 * BYTES), {"y": MEANS}, BLOCK=4)
LARGE = np.array([2**31 + 5, -(2**40), 7, 2**53 + 1], np.int64)


@triton.jit
def narrowed(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i).to(tl.int32) + 1)


planted("int64 numbers computed in int32", narrowed, (1,), (LARGE, 0 * LARGE), {"y": LARGE + 1}, BLOCK=4)


@triton.jit
def through_floats(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, (tl.load(x + i).to(tl.float64) + 1.0).to(tl.int64))


planted("int64 numbers computed in float64", through_floats, (1,), (LARGE, 0 * LARGE), {"y": LARGE + 1}, BLOCK=4)


@triton.jit
def truncated(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n, other=0.0).to(tl.int32), mask=i < n)


planted(
    "floats cut where they are to be rounded",
    truncated,
    (1,),
    (X, np.zeros(37, np.int32), 37),
    {"y": np.rint(X).astype(np.int32)},
    BLOCK=64,
)
DOUBLES = np.linspace(1, 2, 16)


@triton.jit
def doubles_by_floats(x, y, by, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i) * by)


planted("a Python float beside float64", doubles_by_floats, (1,), (DOUBLES, 0 * DOUBLES, 0.1), {"y": 0.1 * DOUBLES}, BLOCK=16)
sound(doubles_by_floats, (1,), (DOUBLES, 0 * DOUBLES, np.float64(0.1)), {"y": 0.1 * DOUBLES}, BLOCK=16)


@triton.jit
def doubles_through_float32(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.exp(tl.load(x + i).to(tl.float32)))


planted("float64 computed in float32", doubles_through_float32, (1,), (DOUBLES, 0 * DOUBLES), {"y": np.exp(DOUBLES)}, BLOCK=16)


@triton.jit
def places(x, y, count, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=-1.0)
    at = tl.atomic_add(count, tl.sum((v > 0).to(tl.int32), 0))
    tl.store(y + at + tl.cumsum((v > 0).to(tl.int32), 0) - 1, v, mask=v > 0)


POSITIVE = X[X > 0]
planted(
    "an order that depends on who comes first", places, blocks, (X, np.zeros_like(POSITIVE), np.zeros(1, np.int32), 37),
    {"y": POSITIVE, "count": np.array([POSITIVE.size], np.int32)}, updates=("count",), BLOCK=8,
)  # fmt: skip


@triton.jit
def maximum_from_zero(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_max(y, tl.max(tl.load(x + i, mask=i < n, other=-float("inf")), 0))


NEGATIVE = -np.abs(X) - 1
planted(
    "a maximum that begins at 0", maximum_from_zero, blocks, (NEGATIVE, np.zeros(1, np.float32), 37), {"y": NEGATIVE.max(keepdims=True)},
    updates=("y",), BLOCK=8,
)  # fmt: skip
sound(
    maximum_from_zero, blocks, (NEGATIVE, np.full(1, -np.inf, np.float32), 37), {"y": NEGATIVE.max(keepdims=True)}, updates=("y",), BLOCK=8
)


@triton.jit
def never_unlocks(x, y, lock, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    s = tl.sum(tl.load(x + i, mask=i < n, other=0.0), 0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(y, tl.load(y) + s)


planted(
    "a lock that nobody opens", never_unlocks, blocks, (X, np.zeros(1, np.float32), np.zeros(1, np.int32), 37),
    {"y": X.sum(keepdims=True), "lock": np.zeros(1, np.int32)}, updates=("y", "lock"), BLOCK=16, atol=1e-5,
)  # fmt: skip


@triton.jit
def clamped(x, y, n, BLOCK: tl.constexpr):
    i = tl.minimum(tl.arange(0, BLOCK), n - 1)
    tl.store(y + i, tl.load(x + i) * 2)


sound(clamped, (1,), (X, ZEROS, 37), {"y": 2 * X}, BLOCK=64)


@triton.jit
def turned(x, y, half, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < half)
    tl.store(x + i, -tl.load(x + half + i, mask=i < half), mask=i < half)
    tl.store(x + half + i, tl.load(x + i, mask=i < half), mask=i < half)
    tl.store(y + i, a, mask=i < half)


TURNED = np.concatenate([-X[18:36], X[:18]])
planted(
    "a value loaded again after it was overwritten", turned, (1,), (X[:36].copy(), np.zeros(18, np.float32), 18), {"x": TURNED, "y": X[:18]},
    updates=("x",), BLOCK=32,
)  # fmt: skip


@triton.jit
def noise(x, y, seed, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, tl.arange(0, BLOCK)) > 0.5
    tl.store(y + i, tl.where(keep, tl.load(x + i, mask=i < n), 0.0), mask=i < n)


@triton.jit
def uniform(y, seed, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.rand(seed, i), mask=i < n)


def drawn(seed: int) -> np.ndarray:
    """What tl.rand gives: the first word of Philox in its block i, 31 bits of it as a fraction."""
    from tritensor.kernels.parts.random_words.philox import numpy_words

    first = numpy_words(seed, 0, 4 * 37).reshape(37, 4)[:, 0].view(np.int32).astype(np.int64)
    return (np.where(first < 0, -first - 1, first).astype(np.float32) * np.float32(4.6566127342e-10)).astype(np.float32)


sound(uniform, blocks, (ZEROS, 7, 37), {"y": drawn(7)}, BLOCK=16)
planted("the same random numbers in every program", noise, blocks, (X, ZEROS, 7, 37), {"y": np.where(drawn(7) > 0.5, X, 0)}, BLOCK=16)


@triton.jit
def strides_in_bytes(x, y, row, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    tl.store(y + r, tl.sum(tl.load(x + r * row + c, mask=c < n, other=0.0), 0))


planted(
    "a stride in bytes", strides_in_bytes, (5,), (ROWS, np.zeros(5, np.float32), lambda x: x.stride(0) * x.element_size(), 37), {"y": ROWS.sum(1)},
    BLOCK=64, atol=1e-5,
)  # fmt: skip
sound(
    strides_in_bytes, (5,), (ROWS, np.zeros(5, np.float32), 37, 37), {"y": ROWS.sum(1)}, BLOCK=64, atol=1e-5
)  # fmt: skip
