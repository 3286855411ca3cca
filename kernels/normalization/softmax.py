"""softmax and log_softmax along any dim: a row in registers where it fits, else online in two passes; backward kernels of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.kernels.normalization.softmax_llvm import BACKWARD, FORWARD, along_rows
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.cpu.blocks import SILENT
from tritensor.kernels.parts.half_precision import functions as half
from tritensor.kernels.parts.rows.row_softmax import by_rows, online_columns, power, rest, softmax_block
from tritensor.kernels.parts.rows.row_tiles import WHOLE, RowTiles, as_rows, row_tunable, tiles_for, unit
from tritensor.kernels.parts.rows.unaligned_rows import align, body, edges, known, last, load, phase, place, programs, store, vector_length
from tritensor.llvm.passes.row_programs import RowProgram
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, normal_dim, op, ops, refuse_kind

row_tunable("softmax")


# Device functions. Rows are read in accesses of 16 bytes: see parts/rows/unaligned_rows.py.
@triton.jit
def _quotient(power, total, HALF: tl.constexpr):
    """Shares of a total, a number for each row; half ones by its reciprocal."""
    if HALF:
        share = power * half.reciprocal(total)
    else:
        share = maths.div(power, total)
    return share


# y = e^(x - m) / sum e^(x - m), m = max x;  log: y = x - m - log sum e^(x - m)
@triton.jit(do_not_specialize=["columns"])
def _forward_kernel(
    x, y, rows, columns, x_strides, y_strides, LOG: tl.constexpr, WHOLE: tl.constexpr, X_UNIT: tl.constexpr, Y_UNIT: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr, ONE: tl.constexpr, VECTOR: tl.constexpr,
):  # fmt: skip
    b, row, inside = place(rows, BM, ONE, VECTOR)
    columns, x_strides, y_strides = columns // ALIGN * ALIGN, known(x_strides, ALIGN), known(y_strides, ALIGN)
    shift = phase(x_strides, VECTOR)
    HALF: tl.constexpr = y.dtype.element_ty.primitive_bitwidth == 16
    kind: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    # the edges' maximum comes first, so that the walk over the body starts from it
    m = tl.full((BM,), float("-inf"), kind)
    if VECTOR > 1:
        edge_col, on_edge = edges(shift, columns, VECTOR)
        edge_lanes = inside[:, None] & on_edge[None, :]
        edge = load(x, b, row, edge_col, x_strides, shift, edge_lanes, float("-inf"), X_UNIT, VECTOR)  # (BM, 2 VECTOR)
        m = tl.max(edge, axis=1)
    # a row that registers hold is read once, a longer one twice: for the total with a running maximum, then for the result
    if WHOLE:
        col, within = body(0, shift, columns, BN, VECTOR)
        lanes = inside[:, None] & within[None, :]
        value = load(x, b, row, col, x_strides, shift, lanes, float("-inf"), X_UNIT, VECTOR)  # (BM, BN)
        m = tl.maximum(m, tl.max(value, axis=1))
        value = value - m[:, None]  # -inf outside
        powers = power(value, HALF)
        total = tl.sum(powers, axis=1)
        if VECTOR > 1:
            total += tl.sum(power(edge - m[:, None], HALF), axis=1)
        out = value - tl.log(total)[:, None] if LOG else _quotient(powers, total[:, None], HALF)
        store(y, out, b, row, col, y_strides, shift, lanes, Y_UNIT, VECTOR)
    else:
        totals = tl.zeros((BM, BN), kind)
        for start in range(0, last(shift, columns, VECTOR), BN):
            col, within = body(start, shift, columns, BN, VECTOR)
            lanes = inside[:, None] & within[None, :]
            value = load(x, b, row, col, x_strides, shift, lanes, float("-inf"), X_UNIT, VECTOR)
            m, totals = online_columns(m, totals, value, HALF)
        total = tl.sum(totals, axis=1)
        if VECTOR > 1:
            total += tl.sum(power(rest(edge, m[:, None]), HALF), axis=1)
        for start in range(0, last(shift, columns, VECTOR), BN):
            col, within = body(start, shift, columns, BN, VECTOR)
            lanes = inside[:, None] & within[None, :]
            value = load(x, b, row, col, x_strides, shift, lanes, float("-inf"), X_UNIT, VECTOR) - m[:, None]
            out = value - tl.log(total)[:, None] if LOG else _quotient(power(value, HALF), total[:, None], HALF)
            store(y, out, b, row, col, y_strides, shift, lanes, Y_UNIT, VECTOR)
    if VECTOR > 1:
        edge -= m[:, None]
        edge = edge - tl.log(total)[:, None] if LOG else _quotient(power(edge, HALF), total[:, None], HALF)
        store(y, edge, b, row, edge_col, y_strides, shift, edge_lanes, Y_UNIT, VECTOR)


@triton.jit
def _down(up, out, sums, LOG: tl.constexpr, HALF: tl.constexpr):
    return up - power(out, HALF) * sums[:, None] if LOG else out * (up - sums[:, None])


# dx = y (g - sum g y);  log: dx = g - e^y sum g
@triton.jit(do_not_specialize=["columns"])
def _backward_kernel(
    y, g, dx, rows, columns, y_strides, g_strides, dx_strides, LOG: tl.constexpr, WHOLE: tl.constexpr, Y_UNIT: tl.constexpr,
    G_UNIT: tl.constexpr, DX_UNIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr, ONE: tl.constexpr, VECTOR: tl.constexpr,
):  # fmt: skip
    b, row, inside = place(rows, BM, ONE, VECTOR)
    columns, y_strides, g_strides, dx_strides = (
        columns // ALIGN * ALIGN,
        known(y_strides, ALIGN),
        known(g_strides, ALIGN),
        known(dx_strides, ALIGN),
    )
    shift = phase(y_strides, VECTOR)
    HALF: tl.constexpr = dx.dtype.element_ty.primitive_bitwidth == 16
    kind: tl.constexpr = tl.float64 if y.dtype.element_ty == tl.float64 else tl.float32
    sums = tl.zeros((BM,), kind)
    if VECTOR > 1:
        edge_col, on_edge = edges(shift, columns, VECTOR)
        edge_lanes = inside[:, None] & on_edge[None, :]
        edge = load(y, b, row, edge_col, y_strides, shift, edge_lanes, 0.0, Y_UNIT, VECTOR)  # (BM, 2 VECTOR)
        edge_up = load(g, b, row, edge_col, g_strides, shift, edge_lanes, 0.0, G_UNIT, VECTOR)
        sums = tl.sum(edge_up if LOG else edge_up * edge, axis=1)
    # here, too: y and g are read once, or twice
    if WHOLE:
        col, within = body(0, shift, columns, BN, VECTOR)
        lanes = inside[:, None] & within[None, :]
        out = load(y, b, row, col, y_strides, shift, lanes, 0.0, Y_UNIT, VECTOR)
        up = load(g, b, row, col, g_strides, shift, lanes, 0.0, G_UNIT, VECTOR)
        sums += tl.sum(up if LOG else up * out, axis=1)
        store(dx, _down(up, out, sums, LOG, HALF), b, row, col, dx_strides, shift, lanes, DX_UNIT, VECTOR)
    else:
        total = tl.zeros((BM, BN), kind)
        for start in range(0, last(shift, columns, VECTOR), BN):
            col, within = body(start, shift, columns, BN, VECTOR)
            lanes = inside[:, None] & within[None, :]
            up = load(g, b, row, col, g_strides, shift, lanes, 0.0, G_UNIT, VECTOR)
            total += up if LOG else up * load(y, b, row, col, y_strides, shift, lanes, 0.0, Y_UNIT, VECTOR)
        sums += tl.sum(total, axis=1)
        for start in range(0, last(shift, columns, VECTOR), BN):
            col, within = body(start, shift, columns, BN, VECTOR)
            lanes = inside[:, None] & within[None, :]
            out = load(y, b, row, col, y_strides, shift, lanes, 0.0, Y_UNIT, VECTOR)
            up = load(g, b, row, col, g_strides, shift, lanes, 0.0, G_UNIT, VECTOR)
            store(dx, _down(up, out, sums, LOG, HALF), b, row, col, dx_strides, shift, lanes, DX_UNIT, VECTOR)
    if VECTOR > 1:
        store(dx, _down(edge_up, edge, sums, LOG, HALF), b, row, edge_col, dx_strides, shift, edge_lanes, DX_UNIT, VECTOR)


def forward_rows(x: CudaArray, dim: int, log: bool, on: RowTiles) -> CudaArray:
    """Launch the forward kernel with a given tile."""
    y = allocate(x.shape, x.dtype, x)
    a, c = as_rows(x, dim), as_rows(y, dim)
    vector = vector_length(on.columns, a, c)
    launch(
        _forward_kernel, (programs(on, vector),), a.array, y, on.rows, on.columns, a.strides, c.strides, LOG=log, WHOLE=on.whole, X_UNIT=unit(a.strides),
        Y_UNIT=unit(c.strides), BM=on.BM, BN=on.BN, ALIGN=align(on.columns, a, c), ONE=on.batch == 1, VECTOR=vector,
        num_warps=on.warps,
    )  # fmt: skip
    return y


def backward_rows(g: CudaArray, y: CudaArray, dim: int, log: bool, on: RowTiles) -> CudaArray:
    """Launch the backward kernel with a given tile."""
    dx = allocate(y.shape, y.dtype, y)
    a, u, c = as_rows(y, dim), as_rows(g, dim), as_rows(dx, dim)
    vector = vector_length(on.columns, a, u, c)
    launch(
        _backward_kernel, (programs(on, vector),), a.array, u.array, dx, on.rows, on.columns, a.strides, u.strides, c.strides, LOG=log, WHOLE=on.whole,
        Y_UNIT=unit(a.strides), G_UNIT=unit(u.strides), DX_UNIT=unit(c.strides), BM=on.BM, BN=on.BN, ALIGN=align(on.columns, a, u, c), ONE=on.batch == 1,
        VECTOR=vector, num_warps=on.warps,
    )  # fmt: skip
    return dx


# References: plain mathematics.
def _softmax(x: np.ndarray, *, dim: int) -> np.ndarray:
    """e^x / sum e^x along dim."""
    powers = np.exp(x - np.max(x, axis=dim, keepdims=True, initial=-np.inf))
    return powers / np.sum(powers, axis=dim, keepdims=True)


def _log_softmax(x: np.ndarray, *, dim: int) -> np.ndarray:
    """x - log sum e^x along dim."""
    below = x - np.max(x, axis=dim, keepdims=True, initial=-np.inf)
    return below - np.log(np.sum(np.exp(below), axis=dim, keepdims=True))


# The CPU.
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


def _apply(block: Callable[..., None], program: RowProgram, arrays: tuple[np.ndarray, ...], name: str, dim: int) -> np.ndarray:
    x = arrays[-1]
    axis = normal_dim(name, dim, x.ndim)
    # rows run in machine code, columns in numpy
    if (found := along_rows(program, arrays, axis)) is not None:
        return found
    # numpy keeps no dims of a 0-d array
    if x.ndim == 0:
        return by_rows(block, tuple(a.reshape(1) for a in arrays), np.empty(1, x.dtype), 0).reshape(())
    out = np.empty(x.shape, x.dtype)
    return by_rows(block, arrays, out, axis) if out.size else out


# Registration.
def _softmax_rule(g: Any, y: Any, dim: int) -> Any:
    dims = (normal_dim("softmax", dim, len(y.shape)),) if y.shape else ()
    return ops.mul(y, ops.sub(g, ops.sum(ops.mul(g, y), dim=dims, keepdim=True)))


def _log_softmax_rule(g: Any, y: Any, dim: int) -> Any:
    dims = (normal_dim("log_softmax", dim, len(y.shape)),) if y.shape else ()
    return ops.sub(g, ops.mul(ops.exp(y), ops.sum(g, dim=dims, keepdim=True)))


def samples(rng: np.random.Generator) -> list[Sample]:
    """Last dim, first, a middle one, large values, a row of one, no rows, rows between 16-byte boundaries, one row longer than registers hold."""
    return [
        Sample(rng.normal(size=(5, 7)), dim=1),
        Sample(rng.normal(size=(6, 5)) * 4, dim=0),
        Sample(rng.normal(size=(3, 4, 5)), dim=1),
        Sample(rng.normal(size=(3, 4)) * 2 + 100, dim=1, smooth=False),
        Sample(rng.normal(size=(4, 1)), dim=1),
        Sample(rng.normal(size=(0, 3)), dim=1),
        Sample(rng.normal(size=(70, 3)), dim=1),
        Sample(rng.normal(size=(11, 67)), dim=1, smooth=False),
        Sample(rng.normal(size=(1, WHOLE + 3)), dim=1, smooth=False),
    ]


def _log_condition(x: np.ndarray, *, dim: int) -> np.ndarray:
    """|x - max| + 1: the log of a sum near 1 keeps that sum's rounding, of the size of 1, however small it is itself."""
    return np.abs(x - x.max(axis=dim, keepdims=True, initial=-np.inf)) + 1


def _register(name: str, log: bool, reference: Any, rule: Any, blocks: tuple[Callable[..., None], ...], condition: Any = None) -> None:
    def shape(x: Any, *, dim: int) -> Spec:
        refuse_kind(name, x.dtype, ("float",))
        normal_dim(name, dim, len(x.shape))
        return Spec(x.shape, x.dtype)

    def forward(x: CudaArray, *, dim: int) -> CudaArray:
        axis = normal_dim(name, dim, len(x.shape))
        return forward_rows(x, axis, log, tiles_for("softmax", x.shape, axis, x.dtype))

    def backward(g: CudaArray, y: CudaArray, dim: int) -> CudaArray:
        axis = normal_dim(name, dim, len(y.shape))
        return backward_rows(g, y, axis, log, tiles_for("softmax", y.shape, axis, y.dtype))

    @SILENT()
    def otherwise(x: np.ndarray, dim: int = -1) -> np.ndarray:
        return _apply(blocks[0], FORWARD[log], (x,), name, dim)

    def otherwise_backward(g: np.ndarray, y: np.ndarray, dim: int = -1) -> np.ndarray:
        return _apply(blocks[1], BACKWARD[log], (g, y), name, dim)

    rows, rows_backward = FORWARD[log].as_function(name, otherwise), BACKWARD[log].as_function(name, otherwise_backward)

    def cpu(x: np.ndarray, *, dim: int) -> np.ndarray:
        return rows.call(x) if dim == -1 or dim == x.ndim - 1 else otherwise(x, dim)

    def cpu_backward(g: np.ndarray, y: np.ndarray, dim: int) -> np.ndarray:
        return rows_backward.call(g, y) if dim == -1 or dim == y.ndim - 1 else otherwise_backward(g, y, dim)

    op(
        name, reference, cpu=cpu, shape=shape, forward=forward, rule=(rule,), backward=(backward,), cpu_backward=(cpu_backward,),
        samples=samples, condition=condition,
        sizes=lambda rng: [Sample(rng.standard_normal(s), dim=1) for s in ((32768, 256), (8192, 4096), (1024, 65536), (2048, 50257))],
        work=lambda x, *, dim: Work(5 * x.size, 2 * x.size * x.dtype.itemsize),
    )  # fmt: skip


_register("softmax", False, _softmax, _softmax_rule, (softmax_block, _softmax_backward_block))
_register("log_softmax", True, _log_softmax, _log_softmax_rule, (_log_softmax_block, _log_softmax_backward_block), _log_condition)
