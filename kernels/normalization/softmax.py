"""softmax and log_softmax along any dim: a row in registers where it fits, else online in two passes; backward kernels of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.array import CudaArray
from tritensor.cuda.launch import launch
from tritensor.kernels.normalization.softmax_cpu import BACKWARD, FORWARD, along_rows
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.parts.rows.row_softmax import by_rows, exp_nonpositive, online, softmax_block
from tritensor.kernels.parts.rows.row_tiles import WHOLE, RowTiles, align, as_rows, load, place, row_tunable, store, tiles_for, unit
from tritensor.native.passes.row_programs import RowProgram
from tritensor.table import Sample, Spec, Work, normal_dim, op, ops, refuse_kind

row_tunable("softmax")


# Device functions.
# y = e^(x - m) / sum e^(x - m), m = max x;  log: y = x - m - log sum e^(x - m)
@triton.jit(do_not_specialize=["columns"])
def _forward_kernel(
    x, y, rows, columns, x_strides, y_strides, LOG: tl.constexpr, WHOLE: tl.constexpr, X_UNIT: tl.constexpr, Y_UNIT: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    b, row, inside = place(rows, BM)
    columns = columns // ALIGN * ALIGN
    if WHOLE:
        col = tl.arange(0, BN)
        lanes = inside[:, None] & (col < columns)[None, :]
        value = load(x, b, row, col, x_strides, lanes, float("-inf"), X_UNIT)  # (BM, BN)
        value = value - tl.max(value, axis=1)[:, None]
        power = tl.where(lanes, exp_nonpositive(value), 0.0)
        total = tl.sum(power, axis=1)[:, None]
        out = value - tl.log(total) if LOG else maths.div(power, total)
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
            out = value - tl.log(total)[:, None] if LOG else maths.div(exp_nonpositive(value), total[:, None])
            store(y, out, b, row, col, y_strides, lanes, Y_UNIT)


# dx = y (g - sum g y);  log: dx = g - e^y sum g
@triton.jit(do_not_specialize=["columns"])
def _backward_kernel(
    y, g, dx, rows, columns, y_strides, g_strides, dx_strides, LOG: tl.constexpr, WHOLE: tl.constexpr, Y_UNIT: tl.constexpr,
    G_UNIT: tl.constexpr, DX_UNIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    b, row, inside = place(rows, BM)
    columns = columns // ALIGN * ALIGN
    if WHOLE:
        col = tl.arange(0, BN)
        lanes = inside[:, None] & (col < columns)[None, :]
        out = load(y, b, row, col, y_strides, lanes, 0.0, Y_UNIT)
        up = load(g, b, row, col, g_strides, lanes, 0.0, G_UNIT)
        if LOG:
            down = up - exp_nonpositive(out) * tl.sum(up, axis=1)[:, None]
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
            down = up - exp_nonpositive(out) * sums if LOG else out * (up - sums)
            store(dx, down, b, row, col, dx_strides, lanes, DX_UNIT)


def forward_rows(x: CudaArray, dim: int, log: bool, on: RowTiles) -> CudaArray:
    """Launch the forward kernel with a given tile."""
    y = allocate(x.shape, x.dtype, x)
    a, c = as_rows(x, dim), as_rows(y, dim)
    launch(
        _forward_kernel, (on.batch * cdiv(on.rows, on.BM) if on.columns else 0,), a.array, y, on.rows, on.columns, a.strides, c.strides,
        LOG=log, WHOLE=on.whole, X_UNIT=unit(a.strides), Y_UNIT=unit(c.strides), BM=on.BM, BN=on.BN, ALIGN=align(on.columns), num_warps=on.warps,
    )  # fmt: skip
    return y


def backward_rows(g: CudaArray, y: CudaArray, dim: int, log: bool, on: RowTiles) -> CudaArray:
    """Launch the backward kernel with a given tile."""
    dx = allocate(y.shape, y.dtype, y)
    a, u, c = as_rows(y, dim), as_rows(g, dim), as_rows(dx, dim)
    launch(
        _backward_kernel, (on.batch * cdiv(on.rows, on.BM) if on.columns else 0,), a.array, u.array, dx, on.rows, on.columns, a.strides,
        u.strides, c.strides, LOG=log, WHOLE=on.whole, Y_UNIT=unit(a.strides), G_UNIT=unit(u.strides), DX_UNIT=unit(c.strides),
        BM=on.BM, BN=on.BN, ALIGN=align(on.columns), num_warps=on.warps,
    )  # fmt: skip
    return dx


# The CPU side.
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
    if (found := along_rows(program, arrays, axis)) is not None:
        return found
    if x.ndim == 0:
        return by_rows(block, tuple(a.reshape(1) for a in arrays), np.empty(1, x.dtype), 0).reshape(())
    out = np.empty(x.shape, x.dtype)
    return by_rows(block, arrays, out, axis) if out.size else out


def _softmax(x: np.ndarray, *, dim: int) -> np.ndarray:
    """e^x / sum e^x along dim."""
    with np.errstate(invalid="ignore"):
        return _apply(softmax_block, FORWARD[False], (x,), "softmax", dim)


def _log_softmax(x: np.ndarray, *, dim: int) -> np.ndarray:
    """x - log sum e^x along dim."""
    with np.errstate(invalid="ignore"):
        return _apply(_log_softmax_block, FORWARD[True], (x,), "log_softmax", dim)


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
    return [Sample(rng.standard_normal(s), dim=1) for s in ((32768, 256), (8192, 4096), (1024, 65536))]


def _work(x: Any, *, dim: int) -> Work:
    return Work(5 * x.size, 2 * x.size * x.dtype.itemsize)


def _log_condition(x: np.ndarray, *, dim: int) -> np.ndarray:
    """|x - max| + 1: the log of a sum near 1 keeps that sum's rounding, of the size of 1, however small it is itself."""
    return np.abs(x - x.max(axis=dim, keepdims=True, initial=-np.inf)) + 1


def _register(name: str, log: bool, reference: Any, rule: Any, block: Callable[..., None], condition: Any = None) -> None:
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

    def reference_backward(g: np.ndarray, y: np.ndarray, dim: int) -> np.ndarray:
        return _apply(block, BACKWARD[log], (g, y), name, dim)

    op(
        name, reference, shape=shape, forward=forward, rule=(rule,), backward=(backward,), reference_backward=(reference_backward,),
        samples=samples, sizes=_sizes, work=_work, condition=condition,
    )  # fmt: skip


_register("softmax", False, _softmax, _softmax_rule, _softmax_backward_block)
_register("log_softmax", True, _log_softmax, _log_softmax_rule, _log_softmax_backward_block, _log_condition)
