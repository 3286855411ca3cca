"""Negative log-likelihood: minus the log-probability of each label, weighed by its class."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.kernels.losses.cross_entropy.arguments import check_labels, no_class, per_row
from tritensor.kernels.losses.cross_entropy.cpu_llvm import places
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import to_c_order
from tritensor.kernels.parts.cpu.summation import total as sum_of
from tritensor.kernels.parts.grid_indices import long_offsets, positions, tile, tile_of
from tritensor.kernels.parts.indices.error_reports import first, report, spot, watch
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.parts.reduction import ReductionFunctions, add_pairs, fold, zero
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, op, ops, refuse_kind

BLOCK = 256
_I64 = np.dtype(np.int64)


# loss[r] = -w[t] x[o, t, j] for row r = (o, j) of label t, 0 where it is ignored; NaN where it is no class, which is reported
@triton.jit
def _forward_kernel(
    x, target, weight, losses, shares, rows, classes, inner, ignore_index, errors, site, LONG_OFFSETS: tl.constexpr, BLOCK: tl.constexpr
):
    row = positions(LONG_OFFSETS, BLOCK)
    inside = row < rows
    kind: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    label = tl.load(target + row, mask=inside, other=0).to(tl.int64)
    counts = inside & (label != ignore_index)
    known = (label >= 0) & (label < classes)
    outer = row // inner
    chosen = tl.load(x + ((outer * classes + label) * inner + (row - outer * inner)), mask=counts & known, other=0.0).to(kind)
    if weight is not None:
        share = tl.load(weight + label, mask=counts & known, other=0.0).to(kind)
    else:
        share = tl.full((BLOCK,), 1.0, kind)
    share = tl.where(counts, tl.where(known, share, float("nan")), 0.0)
    loss = tl.where(counts, -chosen * share, 0.0)
    tl.store(losses + row, loss.to(losses.dtype.element_ty), mask=inside)
    tl.store(shares + row, share, mask=inside)
    bad = first(counts & ~known, BLOCK)
    if bad < BLOCK:
        wrong = tl.min(row, 0) + bad
        report(errors, site, tl.load(target + wrong), wrong, classes)


# dx[o, c, j] = -g w[c] where c is the label of (o, j), else 0; g divided by the total weight for a mean
@triton.jit(do_not_specialize=["rows", "width", "classes", "inner", "ignore_index"])
def _backward_kernel(
    target, weight, g, whole, dx, rows, width, classes, inner, ignore_index,
    PER_ROW: tl.constexpr, ONE: tl.constexpr, EVEN: tl.constexpr, LONG_OFFSETS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    outer, col, inside, at = tile_of(rows, width // EVEN * EVEN, LONG_OFFSETS, ROWS, COLS)
    kind: tl.constexpr = tl.float64 if dx.dtype.element_ty == tl.float64 else tl.float32
    if ONE:  # classes lie innermost: a row has one label
        c, row, seen = col, outer, outer < rows
    else:
        c = col // inner
        row, seen = outer * inner + (col - c * inner), inside
    label = tl.load(target + row, mask=seen, other=0).to(tl.int64)
    label = tl.where((label == ignore_index) | (label < 0) | (label >= classes), -1, label.to(tl.int32))
    hit = inside & (label == c)
    up = tl.load(g + row, mask=seen, other=0.0).to(kind) if PER_ROW else tl.zeros((1, 1), kind) + tl.load(g).to(kind)
    if whole is not None:
        up = maths.div(up, tl.zeros((1, 1), kind) + tl.load(whole).to(kind))
    if weight is not None:
        up = up * tl.load(weight + c, mask=inside, other=0.0).to(kind)
    tl.store(dx + at, tl.broadcast_to(tl.where(hit, -up, 0.0), (ROWS, COLS)).to(dx.dtype.element_ty), mask=inside)


@triton.jit
def _pair(loss, share, index):
    return loss, share


@triton.jit
def _mean(loss, share):
    return maths.div(loss, share), share


def _cube(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """(outer, classes, inner) of (classes,) or (batch, classes, ...)."""
    return (1, shape[0], 1) if len(shape) == 1 else (shape[0], shape[1], math.prod(shape[2:]))


def _bad_label(ignore_index: int, shape: tuple[int, ...], value: int, position: int, classes: int) -> str:
    return no_class("nll_loss", classes, ignore_index, value, spot(position, shape))


def _shape(x: Any, target: Any, weight: Any = None, *, reduction: str = "mean", ignore_index: int = -100) -> tuple[Spec, Spec]:
    if reduction not in ("none", "mean", "sum"):
        raise ArgumentError(f"nll_loss: reduction is {reduction!r}; it is 'mean', 'sum' or 'none'")
    refuse_kind("nll_loss", x.dtype, ("float",))
    if dtypes.of(target.dtype).kind not in ("int", "uint"):
        raise DTypeError(f"nll_loss: target is {dtypes.of(target.dtype).name}; class labels are integers, cast it with .long()")
    if not x.shape:
        raise ShapeError("nll_loss: input () has no classes; give (batch, classes, ...) or (classes,)")
    rows, classes = per_row(tuple(x.shape)), _cube(tuple(x.shape))[1]
    if tuple(target.shape) != rows:
        raise ShapeError(
            f"nll_loss: input {tuple(x.shape)} and target {tuple(target.shape)}: target has input's shape without its classes, {rows}; reshape it"
        )
    if weight is not None and tuple(weight.shape) != (classes,):
        raise ShapeError(f"nll_loss: weight {tuple(weight.shape)}: give a vector with a number for each class, ({classes},)")
    if weight is not None and weight.dtype != x.dtype:
        raise DTypeError(f"nll_loss: weight is {dtypes.of(weight.dtype).name}, input {dtypes.of(x.dtype).name}; cast one of them")
    return Spec(rows if reduction == "none" else (), x.dtype), Spec((), dtypes.accumulator(x.dtype))


def _reference(
    x: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None, *, reduction: str = "mean", ignore_index: int = -100
) -> Any:
    """-x at each label times its class's weight; a mean divides by the sum of those weights."""
    axis, counts = min(x.ndim - 1, 1), target != ignore_index
    label = np.where(counts, target, 0)
    share = np.where(counts, 1.0 if weight is None else weight[label], 0)
    losses = np.where(counts, -np.take_along_axis(x, np.expand_dims(label, axis), axis).squeeze(axis) * share, 0)
    return (losses if reduction == "none" else np.sum(losses) / (np.sum(share) if reduction == "mean" else 1)), np.sum(share)


def _cpu(
    x: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None, *, reduction: str = "mean", ignore_index: int = -100
) -> tuple[np.ndarray, np.ndarray]:
    acc_type = dtypes.accumulator(x.dtype)
    cube = np.ascontiguousarray(x).reshape(_cube(x.shape))
    flat, counts = _counted(target, cube.shape[1], ignore_index)
    if not cube.shape[1]:  # no class, and so no label that counts: one that is there is read in its place
        cube, weight = np.zeros((cube.shape[0], 1, cube.shape[2]), x.dtype), None
    losses = -cube.reshape(-1)[places(cube, target, counts)].astype(acc_type, copy=False)
    share: Any = flat.size if counts is None else np.count_nonzero(counts)
    if weight is not None:
        weights = weight.astype(acc_type)[flat]
        losses *= weights
        share = sum_of(weights if counts is None else weights[counts], (0,))
    if counts is not None:
        losses = np.where(counts, losses, acc_type.type(0))
    whole = np.asarray(share, acc_type)
    if reduction == "none":
        return losses.reshape(target.shape).astype(x.dtype, copy=False), whole
    loss = sum_of(losses, (0,))
    return np.asarray(np.true_divide(loss, whole) if reduction == "mean" else loss, x.dtype), whole


def _counted(target: np.ndarray, classes: int, ignore_index: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Flat labels, 0 for those that do not count, and which do; None where all do. IndexError for one that is no class."""
    flat = target.reshape(-1)
    if not check_labels("nll_loss", target, classes, ignore_index):
        return flat, None
    counts = flat != ignore_index
    return np.where(counts, flat, 0), counts


def _forward(x: CudaArray, target: CudaArray, weight: CudaArray | None = None, *, reduction: str = "mean", ignore_index: int = -100) -> Any:
    outer, classes, inner = _cube(x.shape)
    rows, acc_type = per_row(x.shape), dtypes.accumulator(x.dtype)
    errors, site = watch("nll_loss", x, _bad_label, ignore_index, target.shape)
    losses, shares = allocate(rows, x.dtype if reduction == "none" else acc_type, x), allocate(rows, acc_type, x)
    x, whole = to_c_order(x), allocate((), acc_type, x)
    launch(
        _forward_kernel, (cdiv(outer * inner, BLOCK),), x, to_c_order(target), None if weight is None else to_c_order(weight), losses, shares, outer * inner,
        classes, inner, np.int64(ignore_index), errors, site, LONG_OFFSETS=long_offsets(x), BLOCK=BLOCK,
    )  # fmt: skip
    loss = allocate((), x.dtype, x)
    functions = ReductionFunctions(_pair, add_pairs, _mean if reduction == "mean" else None, zero)
    fold(functions, (losses, shares), tuple(range(len(rows))), (loss, whole), (acc_type, acc_type))
    return (losses if reduction == "none" else loss), whole


# the loss is linear in x: its gradient holds -g w / total at the labels
def _rule(g: Any, target: Any, weight: Any, x_shape: tuple[int, ...], reduction: str, ignore_index: int) -> Any:
    axis = 1 if len(x_shape) > 1 else 0
    kept = tuple(1 if a == axis else n for a, n in enumerate(x_shape))
    row = tuple(n if a == axis else 1 for a, n in enumerate(x_shape))
    kind = dtypes.accumulator(g._array.dtype)
    label = ops.reshape(ops.cast(target, dtype=_I64), shape=kept)
    numbers = ops.reshape(ops.arange(start=0, end=x_shape[axis], step=1, dtype=_I64, device=g.device), shape=row)
    hit = ops.logical_and(ops.eq(numbers, label), ops.ne(label, ignore_index))
    shares = ops.cast(hit, dtype=kind)
    if weight is not None:
        shares = ops.mul(shares, ops.reshape(ops.cast(weight, dtype=kind), shape=row))
    up = ops.cast(g, dtype=kind)
    if reduction == "mean":
        up = ops.div(up, ops.sum(shares, dim=tuple(range(len(x_shape))), keepdim=False))
    elif reduction == "none":
        up = ops.reshape(up, shape=kept)
    return ops.cast(ops.where(hit, ops.neg(ops.mul(shares, up)), 0.0), dtype=g._array.dtype)


def _backward(
    g: CudaArray, target: CudaArray, weight: CudaArray | None, total: CudaArray, x_shape: tuple[int, ...], reduction: str, ignore_index: int
) -> CudaArray:
    outer, classes, inner = _cube(x_shape)
    dx = allocate(x_shape, g.dtype, g)
    t = tile((outer, classes * inner))
    launch(
        _backward_kernel, (t.programs,), to_c_order(target), None if weight is None else to_c_order(weight), to_c_order(g),
        total if reduction == "mean" else None, dx, t.rows, t.width, classes, inner, np.int64(ignore_index), PER_ROW=reduction == "none",
        ONE=inner == 1, LONG_OFFSETS=long_offsets(dx), **t.constants,
    )  # fmt: skip
    return dx


def _cpu_backward(
    g: np.ndarray, target: np.ndarray, weight: np.ndarray | None, total: np.ndarray, x_shape: tuple[int, ...], reduction: str,
    ignore_index: int,
) -> np.ndarray:  # fmt: skip
    acc_type = dtypes.accumulator(g.dtype)
    dx = np.zeros(x_shape, g.dtype)
    if not dx.size:
        return dx
    cube = dx.reshape(_cube(x_shape))
    flat, counts = _counted(target, cube.shape[1], ignore_index)
    up: Any = np.true_divide(g, total, dtype=acc_type) if reduction == "mean" else g
    if reduction == "none":
        up = g.reshape(-1).astype(acc_type)
    if weight is not None:
        up = up * weight.astype(acc_type)[flat]
    at = places(cube, target, counts)
    if counts is not None:
        at, up = at[counts], up[counts] if np.ndim(up) else up
    dx.reshape(-1)[at] = np.negative(up)
    return dx


def _samples(rng: np.random.Generator) -> list[Sample]:
    x, t = rng.normal(size=(5, 7)), rng.integers(0, 7, 5)
    ignored = t.copy()
    ignored[1] = ignored[3] = -100
    weight = 0.5 + rng.random(7)
    return [
        Sample(x, t, None, reduction="mean", ignore_index=-100),
        Sample(x, t.astype(np.int32), weight, reduction="none", ignore_index=-100),
        Sample(x, ignored, weight, reduction="mean", ignore_index=-100),
        Sample(x, t, None, reduction="sum", ignore_index=int(t[0])),
        Sample(rng.normal(size=(2, 5, 3)), rng.integers(0, 5, (2, 3)), weight[:5], reduction="mean", ignore_index=-100),
        Sample(rng.normal(size=(2, 3, 2, 2)), rng.integers(0, 3, (2, 2, 2)), None, reduction="none", ignore_index=1),
        Sample(x[0], np.asarray(t[0]), None, reduction="mean", ignore_index=-100),
        Sample(rng.normal(size=(700, 2)), rng.integers(0, 2, 700), weight[:2], reduction="mean", ignore_index=-100, smooth=False),
    ]


def _work(x: Any, target: Any, weight: Any = None, **attrs: Any) -> Work:
    """Of x one element for each target, the targets, and a loss for each where they stay apart."""
    losses = target.size if attrs["reduction"] == "none" else 1
    return Work(2 * target.size, target.nbytes + (target.size + losses) * x.dtype.itemsize)


op(
    "nll_loss", _reference, cpu=_cpu, shape=_shape, forward=_forward, rule=(_rule, None, None), backward=(_backward, None, None),
    cpu_backward=(_cpu_backward, None, None), outputs=("loss", "total"), residuals=("total",), samples=_samples, reports=True,
    borrows=("target",),
    sizes=lambda rng: [Sample(rng.standard_normal((2048, 32768)), rng.integers(0, 32768, 2048), None, reduction="mean", ignore_index=-100)],
    work=_work,
)  # fmt: skip
