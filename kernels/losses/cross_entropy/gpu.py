"""Cross-entropy's kernels: losses in one pass over the logits by a running maximum and sum, gradients by one read and one write."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.kernels.losses.cross_entropy.arguments import class_axis, is_labels, per_row
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import to_c_order
from tritensor.kernels.parts.indices.error_reports import Watch, first, report
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.parts.reduction import ReductionFunctions, add, add_pairs, fold, value, zero
from tritensor.kernels.parts.rows import row_tiles
from tritensor.kernels.parts.rows.row_softmax import online_columns, power, rest
from tritensor.kernels.parts.rows.row_tiles import RowTiles, as_rows, row_tunable, unit
from tritensor.kernels.parts.rows.unaligned_rows import align, body, edges, known, last, load, phase, place, programs, store, vector_length
from tritensor.ops.array import CudaArray

row_tunable("cross_entropy")


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
def _class_weight(weight, col, shift, within):
    """Weights of a tile's classes, (1, cols); (1, 1) where all weigh the same."""
    if weight is not None:
        w = tl.load(weight + (col - shift), mask=within, other=0.0)
        w = (w if w.dtype == tl.float64 else w.to(tl.float32))[None, :]
    else:
        w = tl.full((1, 1), 1.0, tl.float32)
    return w


@triton.jit
def _spread_loss(value, probability, w, m, excess, lanes, s, even):
    """sum_c w_c ((1 - s) t_c + s / C) (lse - x_c) over a tile; without probabilities t is left out."""
    q = even if probability is None else even + (1 - s) * probability
    away = (m[:, None] - value) + excess[:, None]
    return tl.sum(tl.where(lanes, q * w * away, 0.0), axis=1)


# loss = sum_c q_c (lse - x_c), lse = log sum_c e^x_c, q_c = w_c ((1 - s) t_c + s / C), t the target (one-hot for a label)
@triton.jit(do_not_specialize=["columns"])
def _forward_kernel(
    x, target, weight, losses, peaks, shares, rows, columns, x_strides, t_strides, smoothing, even, ignore_index, errors, site,
    PROBS: tl.constexpr, SMOOTH: tl.constexpr, X_UNIT: tl.constexpr, T_UNIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr,
    ONE: tl.constexpr, VECTOR: tl.constexpr, WHOLE: tl.constexpr, FULL: tl.constexpr,
):  # fmt: skip
    b, row, inside = place(rows, BM, ONE, VECTOR)
    columns, x_strides = tl.full((), BN, tl.int32) if FULL else columns // ALIGN * ALIGN, known(x_strides, ALIGN)
    shift = phase(x_strides, VECTOR)
    HALF: tl.constexpr = x.dtype.element_ty.primitive_bitwidth == 16
    kind: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    at = b * rows + row
    m = tl.full((BM,), float("-inf"), kind)
    totals = tl.zeros((BM, BN), kind)
    if VECTOR > 1:
        edge_col, on_edge = edges(shift, columns, VECTOR)
        edge_lanes = inside[:, None] & on_edge[None, :]
        edge = load(x, b, row, edge_col, x_strides, shift, edge_lanes, float("-inf"), X_UNIT, VECTOR)  # (BM, 2 VECTOR)
        m = tl.max(edge, axis=1)
    if WHOLE:
        col, within = body(0, shift, columns, BN, VECTOR)
        lanes = inside[:, None] & within[None, :]
        value = load(x, b, row, col, x_strides, shift, lanes, float("-inf"), X_UNIT, VECTOR)
        m = tl.maximum(m, tl.max(value, axis=1))
        totals = power(rest(value, m[:, None]), HALF)
    else:
        for start in range(0, last(shift, columns, VECTOR), BN):
            col, within = body(start, shift, columns, BN, VECTOR)
            lanes = inside[:, None] & within[None, :]
            m, totals = online_columns(m, totals, load(x, b, row, col, x_strides, shift, lanes, float("-inf"), X_UNIT, VECTOR), HALF)
    total = tl.sum(totals, axis=1)
    if VECTOR > 1:
        total += tl.sum(power(rest(edge, m[:, None]), HALF), axis=1)
    excess = tl.log(total)  # (BM,); lse = m + excess, never added: their rounded sum would cost large logits their digits
    tl.store(peaks + 2 * at, m, mask=inside)
    tl.store(peaks + 2 * at + 1, total, mask=inside)
    s = smoothing.to(kind)
    even = even.to(kind)  # s / C
    loss = tl.zeros((BM,), kind)
    if PROBS or SMOOTH:
        for start in range(0, last(shift, columns, VECTOR), BN):
            col, within = body(start, shift, columns, BN, VECTOR)
            lanes = inside[:, None] & within[None, :]
            probability = row_tiles.load(target, b, row, col, t_strides, lanes, 0.0, T_UNIT) if PROBS else None
            w = _class_weight(weight, col, shift, within).to(kind)
            loss += _spread_loss(
                load(x, b, row, col, x_strides, shift, lanes, 0.0, X_UNIT, VECTOR), probability, w, m, excess, lanes, s, even
            )
        if VECTOR > 1:
            loss += _spread_loss(edge, None, _class_weight(weight, edge_col, shift, on_edge).to(kind), m, excess, edge_lanes, s, even)
    if not PROBS:
        label, known_label, share = _label(target, weight, at, inside, columns, ignore_index)
        share = share.to(kind)
        chosen = x + b * x_strides[0] + row * x_strides[1] + label * x_strides[2]
        chosen = tl.load(chosen, mask=inside & known_label, other=0.0).to(kind)
        loss += (1 - s) * share * ((m - chosen) + excess)
        loss = tl.where(share != share, float("nan"), tl.where(label != ignore_index, loss, 0.0))
        tl.store(shares + at, share, mask=inside)
        if errors is not None:
            bad = first(inside & (label != ignore_index) & ~known_label, BM)
            if bad < BM:
                wrong = tl.min(at, 0) + bad * VECTOR
                report(errors, site, tl.load(target + wrong), wrong, columns)
    tl.store(losses + at, loss.to(losses.dtype.element_ty), mask=inside)


@triton.jit
def _powers(logits, m, HALF: tl.constexpr):
    return power(logits - m[:, None], HALF)


@triton.jit
def _label_gradient(logits, m, scale, label, hit, up, even, weight, counted, col, shift, within, SMOOTH: tl.constexpr, HALF: tl.constexpr):
    """g (scale e^(x - m) - q), q being hit at the label's class, and w s / C at every class of a row that counts: of one class exactly 0."""
    q = tl.where((col - shift)[None, :] == label[:, None], hit[:, None], 0.0)
    if SMOOTH:
        q += tl.where(counted[:, None], even * _class_weight(weight, col, shift, within).to(q.dtype), 0.0)
    return up[:, None] * (_powers(logits, m, HALF) * scale[:, None] - q)


# dx_c = g (e^(x_c - m) / power sum_c q_c - q_c) for labels, one read and one write;  g divided by the total weight for a mean
@triton.jit(do_not_specialize=["columns"])
def _label_backward_kernel(
    x, target, weight, peaks, g, whole, weights, dx, rows, columns, x_strides, dx_strides, smoothing, even, ignore_index,
    SMOOTH: tl.constexpr, PER_ROW: tl.constexpr, X_UNIT: tl.constexpr, DX_UNIT: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr, ONE: tl.constexpr, VECTOR: tl.constexpr,
):  # fmt: skip
    b, row, inside = place(rows, BM, ONE, VECTOR)
    columns, x_strides, dx_strides = columns // ALIGN * ALIGN, known(x_strides, ALIGN), known(dx_strides, ALIGN)
    shift = phase(x_strides, VECTOR)
    HALF: tl.constexpr = dx.dtype.element_ty.primitive_bitwidth == 16
    kind: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    at = b * rows + row
    m = tl.load(peaks + 2 * at, mask=inside, other=0.0).to(kind)
    total = tl.load(peaks + 2 * at + 1, mask=inside, other=1.0).to(kind)
    s = smoothing.to(kind)
    even = even.to(kind)  # s / C
    up = tl.load(g + at, mask=inside, other=0.0).to(kind) if PER_ROW else tl.broadcast_to(tl.load(g).to(kind), (BM,))
    if whole is not None:
        up = maths.div(up, tl.load(whole).to(kind))
    label, _, share = _label(target, weight, at, inside, columns, ignore_index)
    share = share.to(kind)
    counted = label != ignore_index
    spread_q = even * (tl.load(weights).to(kind) if weights is not None else columns)
    total_q = tl.where(counted, (1 - s) * share + tl.where(even > 0, spread_q, 0.0), 0.0)
    up = tl.where(counted, up, 0.0)  # of a mean over no rows up is infinite
    hit = tl.where(counted, (1 - s) * share, 0.0)
    scale = maths.div(total_q, total)
    for start in range(0, last(shift, columns, VECTOR), BN):
        col, within = body(start, shift, columns, BN, VECTOR)
        lanes = inside[:, None] & within[None, :]
        logits = load(x, b, row, col, x_strides, shift, lanes, 0.0, X_UNIT, VECTOR)
        down = _label_gradient(logits, m, scale, label, hit, up, even, weight, counted, col, shift, within, SMOOTH, HALF)
        store(dx, down, b, row, col, dx_strides, shift, lanes, DX_UNIT, VECTOR)
    if VECTOR > 1:
        edge_col, on_edge = edges(shift, columns, VECTOR)
        edge_lanes = inside[:, None] & on_edge[None, :]
        logits = load(x, b, row, edge_col, x_strides, shift, edge_lanes, 0.0, X_UNIT, VECTOR)
        down = _label_gradient(logits, m, scale, label, hit, up, even, weight, counted, edge_col, shift, on_edge, SMOOTH, HALF)
        store(dx, down, b, row, edge_col, dx_strides, shift, edge_lanes, DX_UNIT, VECTOR)


# dx_c = g (e^(x_c - m) / power sum_c q_c - q_c);  dt_c = g (1 - s) w_c (lse - x_c);  q by probabilities t
@triton.jit(do_not_specialize=["columns"])
def _backward_kernel(
    x, target, weight, peaks, g, dx, dt, rows, columns, x_strides, t_strides, dx_strides, smoothing, even, divisor,
    PER_ROW: tl.constexpr, X_UNIT: tl.constexpr, T_UNIT: tl.constexpr, DX_UNIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    b, row, inside = place(rows, BM, False, 1)
    columns = columns // ALIGN * ALIGN
    HALF: tl.constexpr = x.dtype.element_ty.primitive_bitwidth == 16
    kind: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    at = b * rows + row
    m = tl.load(peaks + 2 * at, mask=inside, other=0.0).to(kind)
    total = tl.load(peaks + 2 * at + 1, mask=inside, other=1.0).to(kind)
    s = smoothing.to(kind)
    even = even.to(kind)  # s / C
    up = tl.load(g + at, mask=inside, other=0.0).to(kind) if PER_ROW else tl.broadcast_to(tl.load(g).to(kind), (BM,))
    up = maths.div(up, divisor)[:, None]
    total_q = tl.zeros((BM,), kind)
    for start in range(0, columns, BN):
        col, within = body(start, 0, columns, BN, 1)
        lanes = inside[:, None] & within[None, :]
        q = even + (1 - s) * row_tiles.load(target, b, row, col, t_strides, lanes, 0.0, T_UNIT)
        total_q += tl.sum(tl.where(lanes, q * _class_weight(weight, col, 0, within).to(kind), 0.0), axis=1)
    scale = maths.div(total_q, total)[:, None]
    for start in range(0, columns, BN):
        col, within = body(start, 0, columns, BN, 1)
        lanes = inside[:, None] & within[None, :]
        logits = row_tiles.load(x, b, row, col, x_strides, lanes, 0.0, X_UNIT)
        w = _class_weight(weight, col, 0, within).to(kind)
        if dx is not None:
            q = w * (even + (1 - s) * row_tiles.load(target, b, row, col, t_strides, lanes, 0.0, T_UNIT))
            row_tiles.store(dx, up * (_powers(logits, m, HALF) * scale - q), b, row, col, dx_strides, lanes, DX_UNIT)
        if dt is not None:
            row_tiles.store(
                dt, up * (1 - s) * w * ((m[:, None] - logits) + tl.log(total)[:, None]), b, row, col, dx_strides, lanes, DX_UNIT
            )


# loss = sum of losses / sum of shares
@triton.jit
def _pair(loss, share, index):
    return loss, share


@triton.jit
def _mean_of(a, w):
    return maths.div(a, w), w


def forward_rows(
    x: CudaArray, target: CudaArray, weight: CudaArray | None, reduction: str, ignore_index: int, smoothing: float, on: RowTiles,
    watching: Watch | None = None,
) -> Any:  # fmt: skip
    """Losses, peaks (the largest logit m of each row and sum e^(x - m)) and total weight with a given tile."""
    rows, acc_type, labels = per_row(x.shape), dtypes.accumulator(x.dtype), is_labels(target)
    losses = allocate(rows, x.dtype if reduction == "none" else acc_type, x)
    peaks = allocate((*rows, 2), acc_type, x)
    shares = allocate(rows if labels else (0,), acc_type, x)
    loss_rows(x, target, weight, ignore_index, smoothing, losses, peaks, shares, on, watching)
    loss, whole = reduced_losses(losses, shares, reduction, labels, x.dtype, on.columns)
    return loss, peaks, whole


def loss_rows(
    x: CudaArray, target: CudaArray, weight: CudaArray | None, ignore_index: int, smoothing: float, losses: CudaArray, peaks: CudaArray,
    shares: CudaArray, on: RowTiles, watching: Watch | None,
) -> None:  # fmt: skip
    """Each row's loss, peaks and share of the total weight, into C-ordered arrays."""
    axis, labels = class_axis(x), is_labels(target)
    a, t = as_rows(x, axis), None if labels else as_rows(target, axis)
    errors, site = watching or (None, None)
    vector = vector_length(on.columns, a) if labels else 1
    launch(
        _forward_kernel, (on.batch * cdiv(on.rows, on.BM * vector) * vector,), a.array, to_c_order(target) if t is None else t.array,
        None if weight is None else to_c_order(weight), losses, peaks, shares, on.rows, on.columns, a.strides, (0, 0, 0) if t is None else t.strides,
        np.float64(smoothing), np.float64(smoothing / max(on.columns, 1)), np.int64(ignore_index), errors, site, PROBS=not labels, SMOOTH=smoothing > 0,
        X_UNIT=unit(a.strides), T_UNIT=0 if t is None else unit(t.strides), BM=on.BM, BN=on.BN, ALIGN=align(on.columns, a), ONE=on.batch == 1,
        VECTOR=vector, WHOLE=on.whole, FULL=on.full, num_warps=on.warps,
    )  # fmt: skip


def reduced_losses(
    losses: CudaArray, shares: CudaArray, reduction: str, labels: bool, dtype: np.dtype, classes: int
) -> tuple[CudaArray, CudaArray]:
    """(loss in `dtype`, total weight of a mean over labels) of each row's."""
    acc_type, every = shares.dtype, tuple(range(len(losses.shape)))
    whole = allocate(() if labels and reduction == "mean" else (0,), acc_type, losses)
    if reduction == "none":
        return losses, whole
    loss = allocate((), dtype, losses)
    if labels and reduction == "mean":
        fold(ReductionFunctions(_pair, add_pairs, _mean_of, zero), (losses, shares), every, (loss, whole), (acc_type, acc_type))
    else:
        divisor = np.float64(losses.size * (classes > 0) if reduction == "mean" else 1)  # of no classes the mean is NaN
        fold(ReductionFunctions(value, add, maths.div, zero), (losses,), every, (loss,), (acc_type,), (divisor,))
    return loss, whole


def backward_rows(
    g: CudaArray, x: CudaArray, target: CudaArray, weight: CudaArray | None, peaks: CudaArray, whole: CudaArray, reduction: str, ignore_index: int,
    smoothing: float, needs: tuple[bool, ...], on: RowTiles,
) -> tuple[Any, Any]:  # fmt: skip
    """Gradients of logits and probabilities with a given tile."""
    axis, labels = class_axis(x), is_labels(target)
    dx = allocate(x.shape, x.dtype, x) if needs[0] else None
    if labels:
        return None if dx is None else label_backward(g, x, target, weight, peaks, whole, reduction, ignore_index, smoothing, dx, on), None
    dt = allocate(target.shape, target.dtype, target) if needs[1] else None
    a, t, model = as_rows(x, axis), as_rows(target, axis), dx if dx is not None else dt
    if model is None:
        return None, None
    c = as_rows(model, axis)
    divisor = math.prod(per_row(x.shape)) if reduction == "mean" else 1
    launch(
        _backward_kernel, (on.batch * cdiv(on.rows, on.BM) if on.columns else 0,), a.array, t.array, None if weight is None else to_c_order(weight), peaks,
        to_c_order(g), dx, dt, on.rows, on.columns, a.strides, t.strides, c.strides, np.float64(smoothing), np.float64(smoothing / max(on.columns, 1)),
        np.float64(divisor), PER_ROW=reduction == "none", X_UNIT=unit(a.strides), T_UNIT=unit(t.strides), DX_UNIT=unit(c.strides),
        BM=on.BM, BN=on.BN, ALIGN=row_tiles.align(on.columns), num_warps=on.warps,
    )  # fmt: skip
    return dx, dt


def label_backward(
    g: CudaArray, x: CudaArray, target: CudaArray, weight: CudaArray | None, peaks: CudaArray, whole: CudaArray, reduction: str, ignore_index: int,
    smoothing: float, dx: CudaArray, on: RowTiles,
) -> CudaArray:  # fmt: skip
    """The gradient of logits by labels, into `dx`, which may be of a narrower type."""
    weights = None
    if weight is not None:
        acc_type = dtypes.accumulator(x.dtype)
        weights = allocate((), acc_type, x)
        fold(ReductionFunctions(value, add, None, zero), (weight,), (0,), (weights,), (acc_type,))
    a, c = as_rows(x, class_axis(x)), as_rows(dx, class_axis(x))
    vector = vector_length(on.columns, a, c)
    launch(
        _label_backward_kernel, (programs(on, vector),), a.array, to_c_order(target), None if weight is None else to_c_order(weight), peaks, to_c_order(g),
        whole if reduction == "mean" else None, weights, dx, on.rows, on.columns, a.strides, c.strides, np.float64(smoothing),
        np.float64(smoothing / max(on.columns, 1)), np.int64(ignore_index), SMOOTH=smoothing > 0, PER_ROW=reduction == "none",
        X_UNIT=unit(a.strides), DX_UNIT=unit(c.strides), BM=on.BM, BN=on.BN, ALIGN=align(on.columns, a, c), ONE=on.batch == 1, VECTOR=vector,
        num_warps=on.warps,
    )  # fmt: skip
    return dx
