"""Kernels with one planted error each, and sound ones beside them: what each is called with and what it should make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import triton
import triton.language as tl


class Called(NamedTuple):
    """A kernel, and what `check_kernel` is given beside it."""

    kernel: Any
    grid: Any
    args: Any
    expected: Any
    more: dict[str, Any]


PLANTED: dict[str, Callable[[], Called]] = {}
SOUND: dict[str, Callable[[], Called]] = {}
rng = np.random.default_rng(0)
X = rng.standard_normal(37).astype(np.float32)
ROWS = rng.standard_normal((5, 37)).astype(np.float32)


def planted(error: str, kernel: Any, grid: Any, args: Any, expected: Any, **more: Any) -> None:
    PLANTED[error] = lambda: Called(kernel, grid, args, expected, more)


def sound(kernel: Any, grid: Any, args: Any, expected: Any, **more: Any) -> None:
    SOUND[kernel.__name__] = lambda: Called(kernel, grid, args, expected, more)


def blocks(meta: dict[str, Any]) -> tuple[int, ...]:
    return (triton.cdiv(37, meta["BLOCK"]),)


TWICE = {"y": X * 2}


@triton.jit
def twice(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


sound(twice, blocks, (X, np.zeros_like(X), 37), TWICE, BLOCK=16)


@triton.jit
def unmasked_load(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i) * 2, mask=i < n)


planted("reads past the end", unmasked_load, blocks, (X, np.zeros_like(X), 37), TWICE, BLOCK=16)


@triton.jit
def unmasked_store(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2)


planted("writes past the end", unmasked_store, blocks, (X, np.zeros_like(X), 37), TWICE, BLOCK=16)


@triton.jit
def row_sums(x, y, columns, stride, y_stride, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    tl.store(y + r * y_stride, tl.sum(tl.load(x + r * stride + c, mask=c < columns, other=0.0), 0))


SUMS = {"y": ROWS.sum(1)}
sound(row_sums, (5,), (ROWS, np.zeros(5, np.float32), 37, 37, 1), SUMS, BLOCK=64, atol=1e-5)


@triton.jit
def sums_without_other(x, y, columns, stride, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    tl.store(y + r, tl.sum(tl.load(x + r * stride + c, mask=c < columns), 0))


planted("a mask without other in a sum", sums_without_other, (5,), (ROWS, np.zeros(5, np.float32), 37, 37), SUMS, BLOCK=64, atol=1e-5)


@triton.jit
def max_without_other(x, y, columns, stride, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    tl.store(y + r, tl.max(tl.load(x + r * stride + c, mask=c < columns, other=0.0), 0))


planted(
    "other=0 in a maximum",
    max_without_other,
    (5,),
    (-np.abs(ROWS), np.zeros(5, np.float32), 37, 37),
    {"y": (-np.abs(ROWS)).max(1)},
    BLOCK=64,
)


@triton.jit
def total_without_atomic(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y, tl.load(y) + tl.sum(tl.load(x + i, mask=i < n, other=0.0), 0))


ONE = np.zeros(1, np.float32)
planted("a missing atomic", total_without_atomic, blocks, (X, ONE, 37), {"y": X.sum(keepdims=True)}, BLOCK=16, updates=("y",), atol=1e-5)


@triton.jit
def total(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y, tl.sum(tl.load(x + i, mask=i < n, other=0.0), 0))


sound(total, blocks, (X, ONE, 37), {"y": X.sum(keepdims=True)}, BLOCK=16, updates=("y",), atol=1e-5)
planted("adds into an output that nobody zeroed", total, blocks, (X, ONE, 37), {"y": X.sum(keepdims=True)}, BLOCK=16, atol=1e-5)


@triton.jit
def total_counts_tail_twice(x, y, n, BLOCK: tl.constexpr):
    i = tl.minimum(tl.program_id(0) * BLOCK, n - BLOCK) + tl.arange(0, BLOCK)
    tl.atomic_add(y, tl.sum(tl.load(x + i), 0))


planted(
    "counts the tail twice", total_counts_tail_twice, blocks, (X, ONE, 37), {"y": X.sum(keepdims=True)}, BLOCK=16, updates=("y",), atol=1e-5
)


@triton.jit
def shift_in_place(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i + 1, mask=i + 1 < n, other=0.0)
    tl.store(x + i, v, mask=i < n)


planted("loads what another program stores", shift_in_place, blocks, (X, 37), {"x": np.append(X[1:], 0)}, BLOCK=16, updates=("x",))


@triton.jit
def overlapping(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * (BLOCK - 1) + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


planted("programs overlap", overlapping, (3,), (X, np.zeros_like(X), 37), TWICE, BLOCK=16)


@triton.jit
def all_rows(x, y, columns, x_row, x_column, y_row, y_column, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + r * x_row + c * x_column, mask=c < columns)
    tl.store(y + r * y_row + c * y_column, v * 2, mask=c < columns)


STRIDES = (lambda x: x.stride(0), lambda x: x.stride(1), lambda y: y.stride(0), lambda y: y.stride(1))
sound(all_rows, (5,), (ROWS, np.zeros_like(ROWS), 37, *STRIDES), lambda x: {"y": 2 * x}, BLOCK=64)


@triton.jit
def ignores_stride(x, y, columns, x_row, x_column, y_row, y_column, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + r * x_row + c, mask=c < columns)
    tl.store(y + r * y_row + c * y_column, v * 2, mask=c < columns)


planted("ignores a stride", ignores_stride, (5,), (ROWS, np.zeros_like(ROWS), 37, *STRIDES), lambda x: {"y": 2 * x}, BLOCK=64)


@triton.jit
def ignores_stride_of_result(x, y, columns, x_row, x_column, y_row, y_column, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + r * x_row + c * x_column, mask=c < columns)
    tl.store(y + r * y_row + c, v * 2, mask=c < columns)


planted(
    "ignores a stride of its result",
    ignores_stride_of_result,
    (5,),
    (ROWS, np.zeros_like(ROWS), 37, *STRIDES),
    lambda x: {"y": 2 * x},
    BLOCK=64,
)


@triton.jit
def wrong_axis(x, y, rows, columns, BLOCK: tl.constexpr):
    c = tl.program_id(0)
    r = tl.arange(0, BLOCK)
    tl.store(y + c, tl.sum(tl.load(x + r * columns + c, mask=r < rows, other=0.0), 0))


planted("sums along the wrong axis", wrong_axis, (5,), (ROWS, np.zeros(5, np.float32), 5, 37), SUMS, BLOCK=8, atol=1e-5)


@triton.jit
def leaves_last(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n - 1)


planted("leaves an element unwritten", leaves_last, blocks, (X, np.zeros_like(X), 37), TWICE, BLOCK=16)


@triton.jit
def leaves_a_bool(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, v > 0, mask=(i < n) & (v > 0))


planted("leaves what is False unwritten", leaves_a_bool, blocks, (X, X > 0, 37), {"y": X > 0}, BLOCK=16)
planted("a grid of one program too few", twice, lambda meta: (37 // meta["BLOCK"],), (X, np.zeros_like(X), 37), TWICE, BLOCK=16)


@triton.jit
def whole_blocks_only(x, y, n, BLOCK: tl.constexpr):
    for start in range(0, n // BLOCK * BLOCK, BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(y + i, tl.load(x + i) * 2)


planted("right only for sizes divisible by 16", whole_blocks_only, (1,), (X, np.zeros_like(X), 37), TWICE, BLOCK=16)


@triton.jit
def lanes_disagree(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i // 2, tl.load(x + i, mask=i < n), mask=i < n)


planted("two lanes store different values", lanes_disagree, blocks, (X, np.zeros(19, np.float32), 37), {"y": X[::2]}, BLOCK=16)


@triton.jit
def false_multiple(x, y, n, first, BLOCK: tl.constexpr):
    i = tl.multiple_of(first + tl.program_id(0) * BLOCK, 16) + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


planted("a false multiple_of", false_multiple, blocks, (X, X * 2, 37, 8), TWICE, BLOCK=16, updates=("y",))


@triton.jit
def false_contiguous(x, y, n, rows, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = tl.max_contiguous(i % rows, BLOCK)
    tl.store(y + i, tl.load(x + k, mask=i < n) * 2, mask=i < n)


planted("a false max_contiguous", false_contiguous, blocks, (X[:20], np.zeros_like(X), 37, 20), {"y": 2 * X[np.arange(37) % 20]}, BLOCK=16)


@triton.jit
def false_assumption(x, y, n, BLOCK: tl.constexpr):
    tl.assume(n % 16 == 0)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


planted("a false assumption", false_assumption, blocks, (X, np.zeros_like(X), 37), TWICE, BLOCK=16)


@triton.jit
def offset_wraps(x, y, n, row, width, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + (row * width + i) % n, mask=i < n), mask=i < n)


planted(
    "an offset that wraps around int32", offset_wraps, (1,), (X, np.zeros_like(X), 37, 70_000, 40_000),
    {"y": X[(70_000 * 40_000 + np.arange(37)) % 37]}, BLOCK=64,
)  # fmt: skip


@triton.jit
def sum_in_sixteen_bits(x, y, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    held = tl.zeros((BLOCK,), y.dtype.element_ty)
    for start in range(0, n, BLOCK):
        held = (held + tl.load(x + r * n + start + tl.arange(0, BLOCK))).to(y.dtype.element_ty)
    tl.store(y + r, tl.sum(held.to(tl.float32), 0))


@triton.jit
def sum_in_float32(x, y, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    held = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        held += tl.load(x + r * n + start + tl.arange(0, BLOCK)).to(tl.float32)
    tl.store(y + r, tl.sum(held, 0))


MANY = rng.uniform(0.5, 1.5, (16, 1024)).astype(ml_dtypes.bfloat16)
BF16 = np.zeros(16, ml_dtypes.bfloat16)
MANY_SUMS = {"y": MANY.astype(np.float64).sum(1)}
planted("a sum kept in 16 bits", sum_in_sixteen_bits, (16,), (MANY, BF16, 1024), MANY_SUMS, BLOCK=16)
sound(sum_in_float32, (16,), (MANY, BF16, 1024), MANY_SUMS, BLOCK=16)


@triton.jit
def biased(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n).to(tl.float32)
    tl.store(y + i, v * 1.01 * v, mask=i < n)


HALF = rng.standard_normal(300).astype(ml_dtypes.bfloat16)
planted("1 % off in bfloat16", biased, (2,), (HALF, np.zeros_like(HALF), 300), {"y": HALF.astype(np.float64) ** 2}, BLOCK=256)


@triton.jit
def truncates(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, ((v + 0.5).to(tl.int32)).to(tl.float32), mask=i < n)


HALVES = np.array([-2.6, -1.2, 0.4, 1.6, 2.7, -3.3, 1.1], np.float32)
planted("rounds towards zero where it is negative", truncates, (1,), (HALVES, np.zeros_like(HALVES), 7), {"y": np.rint(HALVES)}, BLOCK=8)


@triton.jit
def norm_without_eps(x, y, columns, eps, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + r * columns + c, mask=c < columns, other=0.0)
    tl.store(y + r * columns + c, v / tl.sqrt(tl.sum(v * v, 0) / columns), mask=c < columns)


def rms(x: np.ndarray, eps: float) -> dict[str, np.ndarray]:
    return {"y": x / np.sqrt((x.astype(np.float64) ** 2).mean(1, keepdims=True) + eps)}


planted("a forgotten eps", norm_without_eps, (5,), (ROWS * 1e-3, np.zeros_like(ROWS), 37, 1e-5), rms, BLOCK=64)


@triton.jit
def drops_nan(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)


WITH_NAN = np.array([1.0, np.nan, -2.0], np.float32)
planted("NaN becomes 0", drops_nan, (1,), (WITH_NAN, np.zeros(3, np.float32), 3), {"y": np.maximum(WITH_NAN, 0)}, BLOCK=4)


@triton.jit
def writes_input(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n) * 2
    tl.store(x + i, v, mask=i < n)
    tl.store(y + i, v, mask=i < n)


planted("writes its input", writes_input, blocks, (X, np.zeros_like(X), 37), TWICE, BLOCK=16)


@triton.jit
def transposes(x, y, rows, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    r, c = i // columns, i % columns
    tl.store(y + c * columns + r, tl.load(x + i, mask=i < rows * columns), mask=i < rows * columns)


planted("a transpose by the wrong width", transposes, (12,), (ROWS, np.zeros((37, 5), np.float32), 5, 37), {"y": ROWS.T}, BLOCK=16)


@triton.jit
def second_axis_of_the_grid(x, y, columns, stride, BLOCK: tl.constexpr):
    r = tl.program_id(1)
    c = tl.arange(0, BLOCK)
    tl.store(y + r * stride + c, tl.load(x + r * stride + c, mask=c < columns) * 2, mask=c < columns)


planted("the wrong axis of the grid", second_axis_of_the_grid, (5,), (ROWS, np.zeros_like(ROWS), 37, 37), {"y": 2 * ROWS}, BLOCK=64)
