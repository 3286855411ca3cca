"""softmax and log_softmax along any dim: a row in registers where it fits, else online in two passes; backward kernels of their own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import triton
import triton.language as tl

from tritensor.array import CudaArray, is_contiguous, reshape_strides
from tritensor.cuda.launch import launch
from tritensor.kernels import copy
from tritensor.kernels.launch_rules import cdiv, next_power_of_2
from tritensor.kernels.reduction import blank, refuse_kind, wide
from tritensor.table import Sample, Spec, Work, normal_dim, op, ops

WHOLE = 16384  # columns a program keeps in registers; longer rows are walked twice
TILE = 4096  # elements of one step of that walk, and of a tile of several short rows
CACHE = 65536  # elements that numpy works on at a time


# How rows lie.
class Rows(NamedTuple):
    """An array as (batch, rows, columns) with three strides; `rows` is the direction in which memory runs where columns do not."""

    array: CudaArray
    strides: tuple[int, int, int]


class Grid(NamedTuple):
    """Sizes of (batch, rows, columns), and the tile: rows BM, columns BN; WHOLE if BN holds a row."""

    batch: int
    rows: int
    columns: int
    BM: int
    BN: int
    whole: bool
    warps: int


def split_shape(shape: tuple[int, ...], dim: int) -> tuple[int, int, int]:
    """(elements before dim, along dim, after it); a 0-d array is one row of one."""
    if not shape:
        return 1, 1, 1
    return math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :])


def dense(x: CudaArray) -> CudaArray:
    """x itself where it lies in C order, else a copy that does."""
    found = x if is_contiguous(x) else copy.contiguous(x)
    assert isinstance(found, CudaArray)
    return found


def as_rows(x: CudaArray, dim: int) -> Rows:
    """x seen along dim, without a copy where its strides allow."""
    before, n, after = split_shape(x.shape, dim)
    strides = reshape_strides(x.shape, x.strides, (before, n, after))
    if strides is None:
        x = dense(x)
        strides = (n * after, after, 1)
    outer, along, inner = strides
    return Rows(x, (0, outer, along) if after == 1 else (outer, inner, along))


def grid(shape: tuple[int, ...], dim: int, size: int, limit: int = WHOLE, tile: int = TILE) -> Grid:
    """The tile of a shape of elements of `size` bytes. `limit` and `tile` are arguments so that a test reaches long rows with short ones."""
    limit, tile = (limit // 2, tile // 2) if size > 4 else (limit, tile)
    before, n, after = split_shape(shape, dim)
    batch, rows = (1, before) if after == 1 else (before, after)
    columns = max(next_power_of_2(n), 1)
    if columns <= limit and (after == 1 or columns * min(next_power_of_2(rows), 16) <= limit):
        high = min(
            next_power_of_2(rows), max(tile // columns, 1) if after == 1 else max(min(tile // columns, 128), min(16, next_power_of_2(rows)))
        )
        while batch * cdiv(rows, high) < 264 and high * columns > 512 and high > (1 if after == 1 else 16):
            high //= 2
        return Grid(batch, rows, n, high, columns, True, max(4, min(16, high * columns // (256 if size > 4 else 512))))
    high = 1 if after == 1 else min(next_power_of_2(rows), 32)
    return Grid(batch, rows, n, high, max(tile // high, 1), False, 8)


# Device functions.
@triton.jit
def exp(x):
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
def quotient(a, b):
    """a / b rounded to nearest."""
    if a.dtype == tl.float64:
        q = a / b
    else:
        q = tl.div_rn(a, b)
    return q


@triton.jit
def rest(x, m):
    """x - m, where m is the row's maximum; 0 for a row of -inf, whose maximum says nothing yet."""
    return x - tl.where(m == float("-inf"), 0.0, m)


@triton.jit
def place(batch, rows, columns, strides, BM: tl.constexpr):
    """Base offset and rows of this program: (offset of the batch, row numbers, inside)."""
    blocks = tl.cdiv(rows, BM)
    pid = tl.program_id(0)
    row = (pid % blocks) * BM + tl.arange(0, BM)
    return (pid // blocks).to(tl.int64), row.to(tl.int64), row < rows


@triton.jit
def load(x, b, row, col, strides, inside, other, UNIT: tl.constexpr):
    """A tile (rows, cols) in float32 or wider. UNIT names the stride known to be 1: 1 along rows, 2 along columns."""
    if UNIT == 2:
        pointers = x + b * strides[0] + (row * strides[1])[:, None] + col[None, :]
    elif UNIT == 1:
        pointers = x + b * strides[0] + row[:, None] + (col.to(tl.int64) * strides[2])[None, :]
    else:
        pointers = x + b * strides[0] + (row * strides[1])[:, None] + (col.to(tl.int64) * strides[2])[None, :]
    return wide(tl.load(pointers, mask=inside, other=other))


@triton.jit
def store(y, value, b, row, col, strides, inside, UNIT: tl.constexpr):
    """A tile (rows, cols), rounded once."""
    if UNIT == 2:
        pointers = y + b * strides[0] + (row * strides[1])[:, None] + col[None, :]
    elif UNIT == 1:
        pointers = y + b * strides[0] + row[:, None] + (col.to(tl.int64) * strides[2])[None, :]
    else:
        pointers = y + b * strides[0] + (row * strides[1])[:, None] + (col.to(tl.int64) * strides[2])[None, :]
    tl.store(pointers, value.to(y.dtype.element_ty), mask=inside)


@triton.jit
def online(m, total, x):
    """The running maximum m and total = sum e^(x - m) of each row, after one more tile: e^(old m - new m) rescales what was summed."""
    new = tl.maximum(m, tl.max(x, axis=1))
    total = total * exp(rest(m, new)) + tl.sum(exp(rest(x, new[:, None])), axis=1)
    return new, total


# y = e^(x - m) / sum e^(x - m), m = max x;  log: y = x - m - log sum e^(x - m)
@triton.jit(do_not_specialize=["batch", "columns"])
def _forward_kernel(
    x, y, batch, rows, columns, x_strides, y_strides, LOG: tl.constexpr, WHOLE: tl.constexpr, X_UNIT: tl.constexpr, Y_UNIT: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    b, row, inside = place(batch, rows, columns, x_strides, BM)
    columns = columns // ALIGN * ALIGN
    if WHOLE:
        col = tl.arange(0, BN)
        lanes = inside[:, None] & (col < columns)[None, :]
        value = load(x, b, row, col, x_strides, lanes, float("-inf"), X_UNIT)  # (BM, BN)
        value = value - tl.max(value, axis=1)[:, None]
        power = tl.where(lanes, exp(value), 0.0)
        total = tl.sum(power, axis=1)[:, None]
        out = value - tl.log(total) if LOG else quotient(power, total)
        store(y, out, b, row, col, y_strides, lanes, Y_UNIT)
    else:
        kind: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
        m = tl.full((BM,), float("-inf"), kind)
        total = tl.zeros((BM,), kind)
        for start in range(0, columns, BN):
            col = start + tl.arange(0, BN)
            lanes = inside[:, None] & (col < columns)[None, :]
            value = load(x, b, row, col, x_strides, lanes, float("-inf"), X_UNIT)
            m, total = online(m, total, value)
        for start in range(0, columns, BN):
            col = start + tl.arange(0, BN)
            lanes = inside[:, None] & (col < columns)[None, :]
            value = load(x, b, row, col, x_strides, lanes, float("-inf"), X_UNIT) - m[:, None]
            out = value - tl.log(total)[:, None] if LOG else quotient(exp(value), total[:, None])
            store(y, out, b, row, col, y_strides, lanes, Y_UNIT)


# dx = y (g - sum g y);  log: dx = g - e^y sum g
@triton.jit(do_not_specialize=["batch", "columns"])
def _backward_kernel(
    y, g, dx, batch, rows, columns, y_strides, g_strides, dx_strides, LOG: tl.constexpr, WHOLE: tl.constexpr, Y_UNIT: tl.constexpr,
    G_UNIT: tl.constexpr, DX_UNIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    b, row, inside = place(batch, rows, columns, y_strides, BM)
    columns = columns // ALIGN * ALIGN
    if WHOLE:
        col = tl.arange(0, BN)
        lanes = inside[:, None] & (col < columns)[None, :]
        out = load(y, b, row, col, y_strides, lanes, 0.0, Y_UNIT)
        up = load(g, b, row, col, g_strides, lanes, 0.0, G_UNIT)
        if LOG:
            down = up - exp(out) * tl.sum(up, axis=1)[:, None]
        else:
            down = out * (up - tl.sum(up * out, axis=1)[:, None])
        store(dx, down, b, row, col, dx_strides, lanes, DX_UNIT)
    else:
        kind: tl.constexpr = tl.float64 if y.dtype.element_ty == tl.float64 else tl.float32
        total = tl.zeros((BM, BN), kind)
        for start in range(0, columns, BN):
            col = start + tl.arange(0, BN)
            lanes = inside[:, None] & (col < columns)[None, :]
            up = load(g, b, row, col, g_strides, lanes, 0.0, G_UNIT)
            total += up if LOG else up * load(y, b, row, col, y_strides, lanes, 0.0, Y_UNIT)
        sums = tl.sum(total, axis=1)[:, None]
        for start in range(0, columns, BN):
            col = start + tl.arange(0, BN)
            lanes = inside[:, None] & (col < columns)[None, :]
            out = load(y, b, row, col, y_strides, lanes, 0.0, Y_UNIT)
            up = load(g, b, row, col, g_strides, lanes, 0.0, G_UNIT)
            down = up - exp(out) * sums if LOG else out * (up - sums)
            store(dx, down, b, row, col, dx_strides, lanes, DX_UNIT)


def unit(strides: tuple[int, int, int]) -> int:
    """Which stride is 1: 2 that of columns, 1 that of rows, 0 neither."""
    return 2 if strides[2] == 1 else 1 if strides[1] == 1 else 0


def align(columns: int, *strides: tuple[int, int, int]) -> int:
    """A power of two that divides the number of columns: with it a masked access stays wide."""
    return math.gcd(8, columns)


def forward_rows(x: CudaArray, dim: int, log: bool, on: Grid) -> CudaArray:
    """Launch the forward kernel with a given tile."""
    y = blank(x.shape, x.dtype, x)
    a, c = as_rows(x, dim), as_rows(y, dim)
    launch(
        _forward_kernel, (on.batch * cdiv(on.rows, on.BM) if on.columns else 0,), a.array, y, on.batch, on.rows, on.columns, a.strides, c.strides,
        LOG=log, WHOLE=on.whole, X_UNIT=unit(a.strides), Y_UNIT=unit(c.strides), BM=on.BM, BN=on.BN, ALIGN=align(on.columns), num_warps=on.warps,
    )  # fmt: skip
    return y


def backward_rows(g: CudaArray, y: CudaArray, dim: int, log: bool, on: Grid) -> CudaArray:
    """Launch the backward kernel with a given tile."""
    dx = blank(y.shape, y.dtype, y)
    a, u, c = as_rows(y, dim), as_rows(g, dim), as_rows(dx, dim)
    launch(
        _backward_kernel, (on.batch * cdiv(on.rows, on.BM) if on.columns else 0,), a.array, u.array, dx, on.batch, on.rows, on.columns, a.strides,
        u.strides, c.strides, LOG=log, WHOLE=on.whole, Y_UNIT=unit(a.strides), G_UNIT=unit(u.strides), DX_UNIT=unit(c.strides),
        BM=on.BM, BN=on.BN, ALIGN=align(on.columns), num_warps=on.warps,
    )  # fmt: skip
    return dx


# The CPU side.
def by_rows(function: Callable[..., None], arrays: tuple[np.ndarray, ...], out: np.ndarray, axis: int) -> np.ndarray:
    """function(*blocks, out block, axis) in blocks of leading rows that fit the cache; 16-bit floats through float32."""
    narrow = out.dtype.itemsize == 2
    if not narrow and (out.size <= CACHE or axis == 0 or out.ndim < 2):
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
        if narrow:
            room = np.empty(out[part].shape, np.float32)
            function(*(a[part].astype(np.float32) for a in arrays), room, axis)
            out[part] = room
        else:
            function(*(a[part] for a in arrays), out[part], axis)
    return out


def softmax_block(x: np.ndarray, out: np.ndarray, axis: int) -> None:
    np.subtract(x, np.maximum.reduce(x, axis=axis, keepdims=True), out=out)
    np.exp(out, out=out)
    np.true_divide(out, np.add.reduce(out, axis=axis, keepdims=True), out=out)


def _log_softmax_block(x: np.ndarray, out: np.ndarray, axis: int) -> None:
    np.subtract(x, np.maximum.reduce(x, axis=axis, keepdims=True), out=out)
    total = np.add.reduce(np.exp(out), axis=axis, keepdims=True)
    np.subtract(out, np.log(total, out=total), out=out)


def _softmax_backward_block(g: np.ndarray, y: np.ndarray, out: np.ndarray, axis: int) -> None:
    np.multiply(g, y, out=out)
    total = np.add.reduce(out, axis=axis, keepdims=True)
    np.subtract(g, total, out=out)
    np.multiply(out, y, out=out)


def _log_softmax_backward_block(g: np.ndarray, y: np.ndarray, out: np.ndarray, axis: int) -> None:
    np.exp(y, out=out)
    np.multiply(out, np.add.reduce(g, axis=axis, keepdims=True), out=out)
    np.subtract(g, out, out=out)


def _apply(block: Callable[..., None], arrays: tuple[np.ndarray, ...], name: str, dim: int) -> np.ndarray:
    x = arrays[-1]
    axis = normal_dim(name, dim, x.ndim)
    if x.ndim == 0:
        return by_rows(block, tuple(a.reshape(1) for a in arrays), np.empty(1, x.dtype), 0).reshape(())
    out = np.empty(x.shape, x.dtype)
    return by_rows(block, arrays, out, axis) if out.size else out


def _softmax(x: np.ndarray, *, dim: int) -> np.ndarray:
    """e^x / sum e^x along dim."""
    with np.errstate(invalid="ignore"):
        return _apply(softmax_block, (x,), "softmax", dim)


def _log_softmax(x: np.ndarray, *, dim: int) -> np.ndarray:
    """x - log sum e^x along dim."""
    with np.errstate(invalid="ignore"):
        return _apply(_log_softmax_block, (x,), "log_softmax", dim)


# Registration.
def _softmax_rule(g: Any, y: Any, dim: int) -> Any:
    dims = (normal_dim("softmax", dim, len(y.shape)),) if y.shape else ()
    return ops.mul(y, ops.sub(g, ops.sum(ops.mul(g, y), dim=dims, keepdim=True)))


def _log_softmax_rule(g: Any, y: Any, dim: int) -> Any:
    dims = (normal_dim("log_softmax", dim, len(y.shape)),) if y.shape else ()
    return ops.sub(g, ops.mul(ops.exp(y), ops.sum(g, dim=dims, keepdim=True)))


def samples(rng: np.random.Generator) -> list[Sample]:
    """Last dim, first, a middle one, large values, a row of one, no rows, one row longer than registers hold."""
    return [
        Sample(rng.normal(size=(5, 7)), dim=1),
        Sample(rng.normal(size=(6, 5)) * 4, dim=0),
        Sample(rng.normal(size=(3, 4, 5)), dim=1),
        Sample(rng.normal(size=(3, 4)) * 2 + 100, dim=1, smooth=False),
        Sample(rng.normal(size=(4, 1)), dim=1),
        Sample(rng.normal(size=(0, 3)), dim=1),
        Sample(rng.normal(size=(70, 3)), dim=1),
        Sample(rng.normal(size=(1, WHOLE + 3)), dim=1, smooth=False),
    ]


def _sizes(rng: np.random.Generator) -> list[Sample]:
    return [Sample(rng.standard_normal(s, np.float32), dim=1) for s in ((32768, 256), (8192, 4096), (1024, 65536))]


def _work(x: Any, *, dim: int) -> Work:
    return Work(5 * x.size, 2 * x.size * x.dtype.itemsize)


def _register(name: str, log: bool, reference: Any, rule: Any, block: Callable[..., None]) -> None:
    def shape(x: Any, *, dim: int) -> Spec:
        refuse_kind(name, x.dtype, ("float",))
        normal_dim(name, dim, len(x.shape))
        return Spec(x.shape, x.dtype)

    def forward(x: CudaArray, *, dim: int) -> CudaArray:
        axis = normal_dim(name, dim, len(x.shape))
        return forward_rows(x, axis, log, grid(x.shape, axis, x.itemsize))

    def backward(g: CudaArray, y: CudaArray, dim: int) -> CudaArray:
        axis = normal_dim(name, dim, len(y.shape))
        return backward_rows(g, y, axis, log, grid(y.shape, axis, y.itemsize))

    def reference_backward(g: np.ndarray, y: np.ndarray, dim: int) -> np.ndarray:
        return _apply(block, (g, y), name, dim)

    op(
        name, reference, shape=shape, forward=forward, rule=(rule,), backward=(backward,), reference_backward=(reference_backward,),
        samples=samples, sizes=_sizes, work=_work,
    )  # fmt: skip


_register("softmax", False, _softmax, _softmax_rule, _softmax_backward_block)
_register("log_softmax", True, _log_softmax, _log_softmax_rule, _log_softmax_backward_block)
