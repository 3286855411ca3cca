"""Cross-entropy of logits against class labels or class probabilities; the softmax is never written out in the forward."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor import dtypes
from tritensor.array import CudaArray
from tritensor.cuda.launch import launch
from tritensor.errors import ArgumentError, DTypeError, ShapeError
from tritensor.kernels.losses.cross_entropy.cpu import (
    class_axis,
    gradient_scales,
    is_labels,
    no_class,
    per_row,
    reference,
    reference_backward,
)
from tritensor.kernels.losses.cross_entropy.samples import samples, sizes, work
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import dense
from tritensor.kernels.parts.indices.error_reports import Watch, first, report, spot, watch
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.parts.reduction import ReductionFunctions, add, fold, spread, value, zero
from tritensor.kernels.parts.rows.row_softmax import exp_nonpositive, online
from tritensor.kernels.parts.rows.row_tiles import RowTiles, align, as_rows, load, place, row_tunable, store, tiles_for, unit
from tritensor.table import Spec, op, ops, refuse_kind, registry

row_tunable("cross_entropy")

REDUCTIONS = ("none", "mean", "sum")
_I64 = np.dtype(np.int64)


# What each row has: its label, whether it counts, its class's weight.
@triton.jit
def _label(target, weight, at, inside, columns, ignore_index):
    """(label, whether it is a class, weight of the row): one out of range makes the row NaN and is never followed."""
    label = tl.load(target + at, mask=inside, other=0).to(tl.int64)
    counts = label != ignore_index
    known = (label >= 0) & (label < columns)
    if weight is not None:
        share = tl.load(weight + label, mask=inside & known, other=0.0)
        share = share if share.dtype == tl.float64 else share.to(tl.float32)
    else:
        share = tl.where(inside, 1.0, 0.0)
    share = tl.where(counts, tl.where(known, share, float("nan")), 0.0)
    return label, known, share


@triton.jit
def _class_weight(weight, col, columns):
    """Weights of a tile's classes, (1, cols); (1, 1) where all weigh the same."""
    if weight is not None:
        w = tl.load(weight + col, mask=col < columns, other=0.0)
        w = (w if w.dtype == tl.float64 else w.to(tl.float32))[None, :]
    else:
        w = tl.full((1, 1), 1.0, tl.float32)
    return w


# loss = sum_c q_c (lse - x_c), lse = log sum_c e^x_c, q_c = w_c ((1 - s) t_c + s / C), t the target (one-hot for a label)
@triton.jit(do_not_specialize=["columns"])
def _forward_kernel(
    x, target, weight, losses, peaks, shares, rows, columns, x_strides, t_strides, smoothing, even, ignore_index, errors, site,
    PROBS: tl.constexpr, SMOOTH: tl.constexpr, X_UNIT: tl.constexpr, T_UNIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    b, row, inside = place(rows, BM)
    columns = columns // ALIGN * ALIGN
    kind: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    at = b * rows + row
    m = tl.full((BM,), float("-inf"), kind)
    power = tl.zeros((BM,), kind)
    for start in range(0, columns, BN):
        col = start + tl.arange(0, BN)
        lanes = inside[:, None] & (col < columns)[None, :]
        m, power = online(m, power, load(x, b, row, col, x_strides, lanes, float("-inf"), X_UNIT))
    excess = tl.log(power)  # (BM,); lse = m + excess, never added: their rounded sum would cost large logits their digits
    tl.store(peaks + 2 * at, m, mask=inside)
    tl.store(peaks + 2 * at + 1, power, mask=inside)
    s = smoothing.to(kind)
    even = even.to(kind)  # s / C
    loss = tl.zeros((BM,), kind)
    if PROBS or SMOOTH:
        for start in range(0, columns, BN):
            col = start + tl.arange(0, BN)
            lanes = inside[:, None] & (col < columns)[None, :]
            q = tl.zeros((BM, BN), kind) + even
            if PROBS:
                q += (1 - s) * load(target, b, row, col, t_strides, lanes, 0.0, T_UNIT)
            q *= _class_weight(weight, col, columns).to(kind)
            away = (m[:, None] - load(x, b, row, col, x_strides, lanes, 0.0, X_UNIT)) + excess[:, None]
            loss += tl.sum(tl.where(lanes, q * away, 0.0), axis=1)
    if not PROBS:
        label, known, share = _label(target, weight, at, inside, columns, ignore_index)
        share = share.to(kind)
        chosen = x + b * x_strides[0] + row * x_strides[1] + label * x_strides[2]
        chosen = tl.load(chosen, mask=inside & known, other=0.0).to(kind)
        loss += (1 - s) * share * ((m - chosen) + excess)
        loss = tl.where(share != share, float("nan"), tl.where(label != ignore_index, loss, 0.0))
        tl.store(shares + at, share, mask=inside)
        if errors is not None:
            bad = first(inside & (label != ignore_index) & ~known, BM)
            if bad < BM:
                wrong = tl.min(at, 0) + bad
                report(errors, site, tl.load(target + wrong), wrong, columns)
    tl.store(losses + at, loss.to(losses.dtype.element_ty), mask=inside)


# dx_c = g (e^(x_c - m) / power sum_c q_c - q_c);  dt_c = g (1 - s) w_c (lse - x_c);  g divided by the total weight for a mean
@triton.jit(do_not_specialize=["columns"])
def _backward_kernel(
    x, target, weight, peaks, g, whole, weights, dx, dt, rows, columns, x_strides, t_strides, dx_strides, smoothing, even, ignore_index, divisor,
    PROBS: tl.constexpr, PER_ROW: tl.constexpr, X_UNIT: tl.constexpr, T_UNIT: tl.constexpr, DX_UNIT: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    b, row, inside = place(rows, BM)
    columns = columns // ALIGN * ALIGN
    kind: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    at = b * rows + row
    m = tl.load(peaks + 2 * at, mask=inside, other=0.0).to(kind)
    power = tl.load(peaks + 2 * at + 1, mask=inside, other=1.0).to(kind)
    s = smoothing.to(kind)
    even = even.to(kind)  # s / C
    up = tl.load(g + at, mask=inside, other=0.0).to(kind) if PER_ROW else tl.load(g).to(kind)
    up = maths.div(up, tl.load(whole).to(kind)) if whole is not None else maths.div(up, divisor)
    if PROBS:
        total_q = tl.zeros((BM,), kind)
        for start in range(0, columns, BN):
            col = start + tl.arange(0, BN)
            lanes = inside[:, None] & (col < columns)[None, :]
            q = even + (1 - s) * load(target, b, row, col, t_strides, lanes, 0.0, T_UNIT)
            total_q += tl.sum(tl.where(lanes, q * _class_weight(weight, col, columns).to(kind), 0.0), axis=1)
    else:
        label, _, share = _label(target, weight, at, inside, columns, ignore_index)
        share = share.to(kind)
        counted = label != ignore_index
        spread_q = even * (tl.load(weights).to(kind) if weights is not None else columns)
        total_q = tl.where(counted, (1 - s) * share + tl.where(even > 0, spread_q, 0.0), 0.0)
        up = tl.where(counted, up, 0.0)  # of a mean over no rows up is infinite
    for start in range(0, columns, BN):
        col = start + tl.arange(0, BN)
        lanes = inside[:, None] & (col < columns)[None, :]
        logits = load(x, b, row, col, x_strides, lanes, 0.0, X_UNIT)
        w = _class_weight(weight, col, columns).to(kind)
        if PROBS:
            q = w * (even + (1 - s) * load(target, b, row, col, t_strides, lanes, 0.0, T_UNIT))
        else:
            q = tl.where(even > 0, even * w, 0.0) + tl.where(col[None, :] == label[:, None], ((1 - s) * share)[:, None], 0.0)
            q = tl.where(counted[:, None], q, 0.0)  # of a class that is not asked for an infinite weight counts nothing
        up_rows = tl.broadcast_to(up, (BM,))[:, None]
        if dx is not None:
            p = exp_nonpositive(logits - m[:, None]) * maths.div(total_q, power)[:, None]
            store(dx, up_rows * (p - q), b, row, col, dx_strides, lanes, DX_UNIT)
        if dt is not None:
            store(dt, up_rows * (1 - s) * w * ((m[:, None] - logits) + tl.log(power)[:, None]), b, row, col, dx_strides, lanes, DX_UNIT)


# loss = sum of losses / sum of shares
@triton.jit
def _pair(loss, share, index):
    return loss, share


@triton.jit
def _add_pairs(a, w, a_, w_):
    return a + a_, w + w_


@triton.jit
def _mean_of(a, w):
    return maths.div(a, w), w


def _shape(
    x: Any, target: Any, weight: Any = None, *, reduction: str = "mean", ignore_index: int = -100, label_smoothing: float = 0.0
) -> tuple[Spec, Spec, Spec]:
    name = "cross_entropy"
    refuse_kind(name, x.dtype, ("float",))
    if reduction not in REDUCTIONS:
        raise ArgumentError(f"{name}: reduction {reduction!r} is none of {', '.join(REDUCTIONS)}; give one of these")
    if not 0 <= label_smoothing <= 1:
        raise ArgumentError(f"{name}: label_smoothing {label_smoothing} is not between 0 and 1")
    if not x.shape:
        raise ShapeError(f"{name}: x () has no dim of classes; give (C,), (N, C) or (N, C, ...)")
    classes, rows = x.shape[class_axis(x)], per_row(x.shape)
    if dtypes.of(target.dtype).kind in ("int", "uint"):
        if target.shape != rows:
            raise ShapeError(
                f"{name}: x {tuple(x.shape)} with labels {tuple(target.shape)}: labels must have shape {rows}, x's without its classes"
            )
    elif dtypes.is_float(target.dtype):
        if target.shape != x.shape:
            raise ShapeError(
                f"{name}: x {tuple(x.shape)} with probabilities {tuple(target.shape)}: they must have x's shape; for labels give integers of shape {rows}"
            )
    else:
        raise DTypeError(f"{name}: target is {dtypes.of(target.dtype).name}; give integer labels or probabilities of x's type")
    if weight is not None and weight.shape != (classes,):
        raise ShapeError(
            f"{name}: x {tuple(x.shape)} with weight {tuple(weight.shape)}: weight must have shape ({classes},), one per class"
        )
    acc_type = dtypes.accumulator(x.dtype)
    by_weight = reduction == "mean" and is_labels(target)
    return Spec(rows if reduction == "none" else (), x.dtype), Spec((*rows, 2), acc_type), Spec(() if by_weight else (0,), acc_type)


def forward_rows(
    x: CudaArray, target: CudaArray, weight: CudaArray | None, reduction: str, ignore_index: int, smoothing: float, on: RowTiles,
    watching: Watch | None = None,
) -> Any:  # fmt: skip
    """Losses, peaks (the largest logit m of each row and sum e^(x - m)) and total weight with a given tile."""
    axis, rows, acc_type, labels = class_axis(x), per_row(x.shape), dtypes.accumulator(x.dtype), is_labels(target)
    losses = allocate(rows, x.dtype if reduction == "none" else acc_type, x)
    peaks = allocate((*rows, 2), acc_type, x)
    shares = allocate(rows if labels else (0,), acc_type, x)
    whole = allocate(() if labels and reduction == "mean" else (0,), acc_type, x)
    a, t = as_rows(x, axis), None if labels else as_rows(target, axis)
    errors, site = watching or (None, None)
    launch(
        _forward_kernel, (on.batch * cdiv(on.rows, on.BM),), a.array, dense(target) if t is None else t.array,
        None if weight is None else dense(weight), losses, peaks, shares, on.rows, on.columns, a.strides, (0, 0, 0) if t is None else t.strides,
        np.float64(smoothing), np.float64(smoothing / max(on.columns, 1)), np.int64(ignore_index), errors, site, PROBS=not labels, SMOOTH=smoothing > 0,
        X_UNIT=unit(a.strides), T_UNIT=0 if t is None else unit(t.strides), BM=on.BM, BN=on.BN, ALIGN=align(on.columns), num_warps=on.warps,
    )  # fmt: skip
    if reduction == "none":
        return losses, peaks, whole
    loss = allocate((), x.dtype, x)
    every = tuple(range(len(rows)))
    if labels and reduction == "mean":
        fold(ReductionFunctions(_pair, _add_pairs, _mean_of, zero), (losses, shares), every, (loss, whole), (acc_type, acc_type))
    else:
        divisor = np.float64(math.prod(rows) * (on.columns > 0) if reduction == "mean" else 1)  # of no classes the mean is NaN
        fold(ReductionFunctions(value, add, maths.div, zero), (losses,), every, (loss,), (acc_type,), (divisor,))
    return loss, peaks, whole


def _forward(
    x: CudaArray,
    target: CudaArray,
    weight: CudaArray | None = None,
    *,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:
    watching = watch("cross_entropy", x, _bad_label, ignore_index, target.shape) if is_labels(target) else None
    return forward_rows(
        x,
        target,
        weight,
        reduction,
        ignore_index,
        label_smoothing,
        tiles_for("cross_entropy", x.shape, class_axis(x), x.dtype),
        watching,
    )


def _bad_label(ignore_index: int, shape: tuple[int, ...], value: int, position: int, classes: int) -> str:
    """The words for a label that `_forward_kernel` reports."""
    return no_class(classes, ignore_index, value, spot(position, shape))


def backward_rows(
    g: CudaArray, x: CudaArray, target: CudaArray, weight: CudaArray | None, peaks: CudaArray, whole: CudaArray, reduction: str, ignore_index: int,
    smoothing: float, needs: tuple[bool, ...], on: RowTiles,
) -> tuple[Any, Any]:  # fmt: skip
    """Gradients of logits and probabilities with a given tile."""
    axis, labels, acc_type = class_axis(x), is_labels(target), dtypes.accumulator(x.dtype)
    dx = allocate(x.shape, x.dtype, x) if needs[0] else None
    dt = allocate(target.shape, target.dtype, target) if needs[1] and not labels else None
    weights = None
    if weight is not None and labels:
        weights = allocate((), acc_type, x)
        fold(ReductionFunctions(value, add, None, zero), (weight,), (0,), (weights,), (acc_type,))
    a, t = as_rows(x, axis), None if labels else as_rows(target, axis)
    model = dx if dx is not None else dt
    if model is None:
        return None, None
    c = as_rows(model, axis)
    divisor = math.prod(per_row(x.shape)) if reduction == "mean" and not labels else 1
    launch(
        _backward_kernel, (on.batch * cdiv(on.rows, on.BM) if on.columns else 0,), a.array, dense(target) if t is None else t.array,
        None if weight is None else dense(weight), peaks, dense(g), whole if reduction == "mean" and labels else None, weights, dx, dt,
        on.rows, on.columns, a.strides, (0, 0, 0) if t is None else t.strides, c.strides, np.float64(smoothing),
        np.float64(smoothing / max(on.columns, 1)), np.int64(ignore_index), np.float64(divisor), PROBS=not labels, PER_ROW=reduction == "none",
        X_UNIT=unit(a.strides), T_UNIT=0 if t is None else unit(t.strides), DX_UNIT=unit(c.strides),
        BM=on.BM, BN=on.BN, ALIGN=align(on.columns), num_warps=on.warps,
    )  # fmt: skip
    return dx, dt


def _backward(
    g: CudaArray, x: CudaArray, target: CudaArray, weight: CudaArray | None, loss: CudaArray, peaks: CudaArray, total: CudaArray, reduction: str,
    ignore_index: int, label_smoothing: float, needs: tuple[bool, ...],
) -> tuple[Any, Any, Any]:  # fmt: skip
    on = tiles_for("cross_entropy", x.shape, class_axis(x), x.dtype)
    dx, dt = backward_rows(g, x, target, weight, peaks, total, reduction, ignore_index, label_smoothing, needs, on)
    dw = (
        weight_gradient(g, x, target, weight, loss, peaks, total, reduction, ignore_index, label_smoothing)
        if weight is not None and needs[2]
        else None
    )
    return dx, dt, dw


# dw_c = sum over rows of g ((1 - s) t_c + s / C) (lse - x_c), less g t_c loss where the mean divides by the weights
@triton.jit
def _weighed_label(x, m, power, label, place, up, loss, ignored, index):
    hit = (label == place) & (label != ignored)
    away = up * ((m - x) + tl.log(power))
    return tl.where(hit, away, 0.0), tl.where(label != ignored, away, 0.0), tl.where(hit, up * loss, 0.0)


@triton.jit
def _weighed_probability(x, m, power, t, up, index):
    away = up * ((m - x) + tl.log(power))
    return t * away, away, away * 0


@triton.jit
def _add_three(a, b, c, a_, b_, c_):
    return a + a_, b + b_, c + c_


@triton.jit
def _join(hits, every, mean, sharp, even):
    return sharp.to(hits.dtype) * hits + even.to(hits.dtype) * every - mean


@triton.jit
def _quotient(g, whole, index):
    return maths.div(g, whole)


@triton.jit
def _share(g, index, n):
    return maths.div(g, n)


def weight_gradient(
    g: CudaArray, x: CudaArray, target: CudaArray, weight: CudaArray, loss: CudaArray, peaks: CudaArray, whole: CudaArray, reduction: str,
    ignore_index: int, smoothing: float,
) -> CudaArray:  # fmt: skip
    """The gradient of the class weights: the shared reduction over all dims but the classes'."""
    axis, labels, acc_type, classes = class_axis(x), is_labels(target), dtypes.accumulator(x.dtype), x.shape[class_axis(x)]
    kept = tuple(1 if a == axis else n for a, n in enumerate(x.shape))

    def stretched(a: CudaArray) -> CudaArray:
        return a.reshape(kept).expand(x.shape) if a.shape == per_row(x.shape) else a.reshape((1,) * len(kept)).expand(x.shape)

    up = allocate(g.shape, acc_type, x)
    if reduction == "mean" and labels:
        spread(_quotient, (g, whole), (), (up,))
    else:
        spread(_share, (g,), (), (up,), (np.float64(math.prod(kept) if reduction == "mean" else 1),))
    if not x.size:
        return _made("full", x, shape=weight.shape, value=0.0, dtype=weight.dtype)
    dw = allocate(weight.shape, weight.dtype, x)
    m, power = (stretched(peaks[(*(slice(None) for _ in per_row(x.shape)), k)]) for k in (0, 1))
    xs: tuple[CudaArray, ...] = (x, m, power, target, stretched(up))
    functions = ReductionFunctions(_weighed_probability, _add_three, _join, zero)
    if labels:
        places = _made("arange", x, start=0, end=classes, step=1, dtype=_I64).reshape(
            tuple(classes if a == axis else 1 for a in range(len(kept)))
        )
        ignored = _made("full", x, shape=(), value=ignore_index, dtype=_I64)
        mean = loss if reduction == "mean" else _made("full", x, shape=(), value=0.0, dtype=acc_type)
        xs = (x, m, power, stretched(target), places.expand(x.shape), stretched(up), stretched(mean), stretched(ignored))
        functions = ReductionFunctions(_weighed_label, _add_three, _join, zero)
    others = tuple(a for a in range(len(x.shape)) if a != axis)
    fold(functions, xs, others, (dw,), (acc_type,) * 3, (np.float64(1 - smoothing), np.float64(smoothing / max(classes, 1))))
    return dw


def _made(name: str, like: CudaArray, **attrs: Any) -> CudaArray:
    """What an op without inputs makes on the device of another array."""
    run = registry[name].forward
    assert run is not None
    found = run(device=like.device, **attrs)
    assert isinstance(found, CudaArray)
    return found


def _rule(
    g: Any, x: Any, target: Any, weight: Any, loss: Any, reduction: str, ignore_index: int, label_smoothing: float, needs: tuple[bool, ...]
) -> tuple[Any, Any, Any]:
    """The gradient in our own ops, from the softmax and the aims q."""
    axis, labels = class_axis(x), not target.dtype.is_floating_point
    classes = x.shape[axis]
    acc_type = dtypes.accumulator(x.array.dtype)
    given, x = x.array.dtype, ops.cast(x, dtype=acc_type)
    row = tuple(classes if a == axis else 1 for a in range(len(x.shape)))
    kept = tuple(1 if a == axis else n for a, n in enumerate(x.shape))
    w = None if weight is None else ops.reshape(ops.cast(weight, dtype=acc_type), shape=row)
    share: Any = float(math.prod(kept))
    if labels:
        label = ops.reshape(target, shape=kept)
        places = ops.reshape(ops.arange(start=0, end=classes, step=1, dtype=_I64, device=x.device), shape=row)
        counted = ops.ne(label, ignore_index)
        asked = ops.logical_and(ops.eq(places, ops.cast(label, dtype=_I64)), counted)
        hit, even = ops.cast(asked, dtype=acc_type), ops.mul(ops.cast(counted, dtype=acc_type), label_smoothing / max(classes, 1))
        weighed = hit if w is None else ops.where(asked, w, 0.0)
        bare = ops.add(ops.mul(hit, 1 - label_smoothing), even)
        q = ops.mul(weighed, 1 - label_smoothing)
        q = ops.add(q, even if w is None else ops.mul(even, w)) if label_smoothing else q
        share = ops.sum(ops.cast(counted, dtype=acc_type) if w is None else weighed, dim=tuple(range(len(x.shape))), keepdim=False)
    else:
        bare = ops.add(ops.mul(ops.cast(target, dtype=acc_type), 1 - label_smoothing), label_smoothing / max(classes, 1))
        q = bare if w is None else ops.mul(bare, w)
    up = ops.cast(g, dtype=acc_type)
    up = ops.reshape(up, shape=kept) if reduction == "none" else ops.div(up, share) if reduction == "mean" else up
    if labels:  # of a mean over no rows up is infinite
        up = ops.where(counted, up, 0.0)
    dx = ops.mul(up, ops.sub(ops.mul(ops.softmax(x, dim=axis), ops.sum(q, dim=(axis,), keepdim=True)), q))
    dt = dw = None
    if needs[2]:
        others = tuple(a for a in range(len(x.shape)) if a != axis)
        share_of_row = ops.mul(bare, ops.log_softmax(x, dim=axis))
        if labels and reduction == "mean":
            share_of_row = ops.add(share_of_row, ops.mul(hit, ops.cast(loss, dtype=acc_type)))
        dw = ops.cast(ops.neg(ops.sum(ops.mul(up, share_of_row), dim=others, keepdim=False)), dtype=weight.array.dtype)
    if needs[1] and not labels:
        dt = ops.mul(ops.mul(up, label_smoothing - 1), ops.log_softmax(x, dim=axis))
        dt = ops.cast(dt if w is None else ops.mul(dt, w), dtype=target.array.dtype)
    return ops.cast(dx, dtype=given), dt, dw


op(
    "cross_entropy", reference, shape=_shape, forward=_forward, rule=_rule, backward=_backward, reference_backward=reference_backward,
    outputs=("loss", "peaks", "total"), residuals=("peaks", "total"), samples=samples, sizes=sizes, work=work, reports=True,
    condition=("measured", gradient_scales),
)  # fmt: skip
