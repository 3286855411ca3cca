"""Cross-entropy on the CPU: rows of logits in blocks, small batches in few calls, machine code for what has labels."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.kernels.losses.cross_entropy import cpu_llvm, labels_llvm
from tritensor.kernels.losses.cross_entropy.arguments import check_labels, class_axis, is_labels, per_row
from tritensor.kernels.parts.cpu.summation import total
from tritensor.kernels.parts.rows.row_softmax import CACHE, by_rows, softmax_block


# logits as rows (n, C) in the accumulator's type
def _as_columns(x: np.ndarray) -> np.ndarray:
    """(N, C, ...) or (C,) as (rows, C)."""
    if x.ndim == 2:
        return x
    return x.reshape(1, -1) if x.ndim == 1 else np.moveaxis(x, 1, -1).reshape(math.prod(per_row(x.shape)), x.shape[1])


def _as_given(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Rows (n, C) back in the logits' shape."""
    if len(shape) < 3:
        return x.reshape(shape)
    return np.ascontiguousarray(np.moveaxis(x.reshape(shape[0], *shape[2:], shape[1]), -1, 1))


def _peaks_block(x: np.ndarray, out: np.ndarray, axis: int) -> None:
    """The largest logit m of every row, and sum e^(x - m): log sum e^x in two parts, because added they would cost large logits their digits."""
    m = np.maximum.reduce(x, axis=1, keepdims=True, initial=-np.inf)
    power = np.subtract(x, m)
    np.exp(power, out=power)
    out[:, :1] = m
    np.add.reduce(power, axis=1, out=out[:, 1])


def _peaks(x: np.ndarray) -> np.ndarray:
    """The two parts, (rows, 2)."""
    out = np.empty((x.shape[0], 2), x.dtype)
    step = max(CACHE // max(x.shape[1], 1), 1)
    for start in range(0, x.shape[0], step):
        _peaks_block(x[start : start + step], out[start : start + step], 1)
    return out


def _away(peaks: np.ndarray, x: np.ndarray) -> np.ndarray:
    """log sum e^x - x, of the parts (rows, 2) and logits (rows, C)."""
    out = np.subtract(peaks[:, :1], x)
    return np.add(out, np.log(peaks[:, 1:]), out=out)


def _aims(
    target: np.ndarray, weight: np.ndarray | None, shape: tuple[int, ...], dtype: Any, smoothing: float, ignore_index: int
) -> np.ndarray:
    """q: (rows, C), the weighted and smoothed target; rows that are ignored are 0."""
    classes = shape[1]
    if is_labels(target):
        flat = target.reshape(-1)
        counts = flat != ignore_index
        q = np.full(shape, smoothing / max(classes, 1), dtype)
        if weight is not None and smoothing:
            q *= weight.astype(dtype)
        label = flat[counts]
        q[np.flatnonzero(counts), label] += dtype.type(1 - smoothing) * (1 if weight is None else weight.astype(dtype)[label])
        q[~counts] = 0
        return q
    q = _as_columns(target).astype(dtype) * dtype.type(1 - smoothing) + dtype.type(smoothing / max(classes, 1))
    if weight is not None:
        q *= weight.astype(dtype)
    return q


def _by_rows(
    x: np.ndarray, target: np.ndarray, weight: np.ndarray | None, ignored: bool, ignore_index: int, label_smoothing: float
) -> tuple[np.ndarray, np.ndarray, Any]:
    """(losses (rows,), peaks (rows, 2), what a mean divides by) in numpy."""
    labels = is_labels(target)
    acc_type = dtypes.accumulator(x.dtype)
    rows = _as_columns(x).astype(acc_type, copy=False)
    n = rows.shape[0]
    peaks = _peaks(rows)
    share: Any = n if x.shape[class_axis(x)] else 0  # of no classes the mean is NaN
    if labels and not ignored and weight is None and not label_smoothing:
        return (peaks[:, 0] - rows[np.arange(n), target.reshape(-1)]) + np.log(peaks[:, 1]), peaks, share
    away = _away(peaks, rows)
    q = _aims(target, weight, rows.shape, acc_type, label_smoothing, ignore_index)
    if not labels:
        return np.add.reduce(q * away, axis=1), peaks, share
    # a class that is not asked for counts nothing, however wild its logit; one of weight 0 counts 0 times that
    counts = target.reshape(-1) != ignore_index
    asked = counts[:, None] & ((np.arange(rows.shape[1]) == target.reshape(-1, 1)) | (label_smoothing > 0))
    share = counts.sum() if weight is None else weight.astype(acc_type)[target.reshape(-1)[counts]].sum()
    return np.add.reduce(np.where(asked, q * away, 0), axis=1), peaks, share


def cpu(
    x: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None, *,
    reduction: str = "mean", ignore_index: int = -100, label_smoothing: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """The loss, the two parts of each row's log sum e^x, and what a mean divides by."""
    if weight is None and not label_smoothing and x.dtype.char in "fd":
        return _FUNCTIONS[reduction].call(x, target, ignore_index)  # type: ignore[no-any-return]
    return _otherwise(x, target, ignore_index, weight, reduction, label_smoothing)


def _otherwise(
    x: np.ndarray,
    target: np.ndarray,
    ignore_index: int,
    weight: np.ndarray | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of many rows, of weights, of images, of probabilities."""
    labels = is_labels(target)
    acc_type = dtypes.accumulator(x.dtype)
    ignored = check_labels("cross_entropy", target, x.shape[class_axis(x)], ignore_index) if labels else False
    cube = cpu_llvm.cube_of(x) if labels and not (label_smoothing and weight is not None) else None
    with np.errstate(invalid="ignore", divide="ignore"):
        if _are_rows(x, target, weight, label_smoothing) and (found := labels_llvm.losses(x, target, ignore_index, reduction)) is not None:
            (losses, peaks), share = found, np.count_nonzero(target != ignore_index) if ignored else target.size
        elif cube is not None:
            losses, peaks, share = cpu_llvm.losses(
                cube, target, target.reshape(-1) != ignore_index if ignored else None, weight, label_smoothing
            )
        else:
            losses, peaks, share = _by_rows(x, target, weight, ignored, ignore_index, label_smoothing)
        peaks = peaks.reshape(*per_row(x.shape), 2)
        if reduction == "none":
            return losses.reshape(per_row(x.shape)).astype(x.dtype, copy=False), peaks, np.empty(0, acc_type)
        loss = np.add.reduce(losses, dtype=np.float64)
        if reduction == "sum":
            return np.asarray(loss, x.dtype), peaks, np.empty(0, acc_type)
        return np.asarray(np.true_divide(loss, share), x.dtype), peaks, np.asarray(share, acc_type) if labels else np.empty(0, acc_type)


_FUNCTIONS = {
    reduction: program.as_function("cross_entropy", functools.partial(_otherwise, reduction=reduction))
    for reduction, program in labels_llvm.LOSSES.items()
}


def _are_rows(x: np.ndarray, target: np.ndarray, weight: np.ndarray | None, label_smoothing: float) -> bool:
    """Whether these are rows of logits with a plain label each."""
    return x.ndim == 2 and x.size > 0 and target.dtype == np.int64 and weight is None and not label_smoothing


def _label_gradient(rows: np.ndarray, labels: np.ndarray, up: np.ndarray) -> np.ndarray:
    """up * (softmax - one-hot) of rows (n, C), block by block: up, (n, 1) or (1, 1), divided by the row's sum scales e^(x - max) in one pass."""
    n, classes = rows.shape
    down = np.empty_like(rows)
    step = max(CACHE // max(classes, 1), 1)
    for start in range(0, n, step):
        part = slice(start, start + step)
        x, out = rows[part], down[part]
        np.subtract(x, np.maximum.reduce(x, axis=1, keepdims=True), out=out)
        np.exp(out, out=out)
        sums = np.add.reduce(out, axis=1, keepdims=True)
        np.multiply(out, np.true_divide(up if len(up) == 1 else up[part], sums, out=sums), out=out)
    down[np.arange(n), labels] -= up[:, 0]
    return down


def cpu_backward(
    g: np.ndarray, x: np.ndarray, target: np.ndarray, weight: np.ndarray | None, loss: np.ndarray, peaks: np.ndarray, reduction: str,
    ignore_index: int, label_smoothing: float, needs: tuple[bool, ...],
) -> tuple[Any, Any, Any]:  # fmt: skip
    if reduction != "none" and _are_rows(x, target, weight, label_smoothing):
        return _GRADIENTS[reduction].call(x, target, peaks, ignore_index, float(g)), None, None
    return _backward_otherwise(g, x, target, weight, loss, peaks, reduction, ignore_index, label_smoothing, needs)


def _rows_backward(x: np.ndarray, target: np.ndarray, peaks: np.ndarray, ignore_index: int, up: float, reduction: str) -> np.ndarray:
    """Of many rows, of 16-bit logits."""
    check_labels("cross_entropy", target, x.shape[1], ignore_index)  # machine code writes where they say
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.float64(np.count_nonzero(target != ignore_index)) if reduction == "mean" else 1.0
        found = labels_llvm.gradients(x, target, peaks, ignore_index, up / share, reduction)
    if found is not None:
        return found
    needs, none = (True, False, False), np.empty(0, peaks.dtype)
    g = np.asarray(up, peaks.dtype)
    return _backward_otherwise(g, x, target, None, none, peaks, reduction, ignore_index, 0.0, needs)[0]  # type: ignore[no-any-return]


_GRADIENTS = {
    reduction: program.as_function("cross_entropy_backward", functools.partial(_rows_backward, reduction=reduction))
    for reduction, program in labels_llvm.GRADIENTS.items()
}


def _backward_otherwise(
    g: np.ndarray, x: np.ndarray, target: np.ndarray, weight: np.ndarray | None, loss: np.ndarray, peaks: np.ndarray, reduction: str,
    ignore_index: int, label_smoothing: float, needs: tuple[bool, ...],
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Of weights, of images, of probabilities."""
    acc_type, labels = dtypes.accumulator(x.dtype), is_labels(target)
    if labels and needs[0] and not needs[2] and not (label_smoothing and weight is not None):
        cube = cpu_llvm.cube_of(x)
        if cube is not None:
            return cpu_llvm.gradients(g, cube, target, weight, peaks, reduction, ignore_index, label_smoothing).reshape(x.shape), None, None
    rows = _as_columns(x).astype(acc_type, copy=False)
    flat = target.reshape(-1)
    plain = labels and weight is None and not label_smoothing
    counts = flat != ignore_index
    every = not labels or bool(counts.all())
    if reduction == "none":
        up = g.reshape(-1, 1).astype(acc_type, copy=False)
    else:
        share: Any = 1
        if reduction == "mean":
            share = len(rows) if every else np.count_nonzero(counts)
            if labels and weight is not None:
                share = weight.astype(acc_type)[flat[counts]].sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            up = np.true_divide(g, share, dtype=acc_type).reshape(1, 1)
    whole = up.reshape(-1)[:1]
    if not every:
        up = np.where(counts[:, None], up, acc_type.type(0))  # not a product: of a mean over no rows up is infinite
    dx = dt = dw = None
    if needs[0]:
        if plain and rows.size:
            down = _label_gradient(rows, flat if every else np.where(counts, flat, 0), up)
        else:
            q = _aims(target, weight, rows.shape, acc_type, label_smoothing, ignore_index)
            down = np.empty(rows.shape, acc_type)
            down = by_rows(softmax_block, (rows,), down, 1) if down.size else down
            down *= np.add.reduce(q, axis=1, keepdims=True)
            down -= q
            down *= up
        dx = _as_given(down, x.shape).astype(x.dtype, copy=False)
    if needs[1] and not labels:
        away = _away(_peaks(rows), rows)
        away *= up * acc_type.type(1 - label_smoothing)
        if weight is not None:
            away *= weight.astype(acc_type)
        dt = _as_given(away, target.shape).astype(target.dtype, copy=False)
    if needs[2] and weight is not None:
        away = _away(_peaks(rows), rows) * up
        away *= _aims(target, None, rows.shape, acc_type, label_smoothing, ignore_index)
        dw = total(away, (0,))
        if labels and reduction == "mean":
            hits = np.bincount(flat[counts], minlength=rows.shape[1]).astype(acc_type)
            dw -= np.where(hits == 0, acc_type.type(0), whole * loss.astype(acc_type) * hits)  # of a mean over no rows both are no numbers
        dw = dw.astype(weight.dtype, copy=False)
    return dx, dt, dw


# For tests: what the roundings of the gradients are measured against.
def gradient_scales(g: np.ndarray, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> tuple[np.ndarray | None, ...]:
    """dx = g (p - q) keeps the roundings of p and of q, however near they are; dt and dw are sums of lse - x, and keep those of both."""
    x, target, weight = (*inputs, None)[:3]
    axis, smoothing = class_axis(x), attrs["label_smoothing"]
    classes, kept = x.shape[axis], tuple(1 if a == axis else n for a, n in enumerate(x.shape))
    row = tuple(classes if a == axis else 1 for a in range(x.ndim))
    w = np.ones(row) if weight is None else weight.reshape(row)
    share: Any = np.prod(kept)
    if is_labels(target):
        label = target.reshape(kept)
        counts = (label != attrs["ignore_index"]).astype(np.float64)
        hit = (np.arange(classes).reshape(row) == label) * counts
        share, q = (hit * w).sum(), hit * (1 - smoothing) + counts * (smoothing / classes)
    else:
        q = target * (1 - smoothing) + smoothing / classes
    up = np.abs(g).reshape(kept) if attrs["reduction"] == "none" else np.abs(g) / (share if attrs["reduction"] == "mean" else 1)
    p = np.exp(x - x.max(axis, keepdims=True))
    total = p.sum(axis, keepdims=True)
    lse = np.abs(np.log(total)) + np.abs(x.max(axis, keepdims=True))
    dt = None if is_labels(target) else up * (1 - smoothing) * w * (lse + np.abs(x))
    away = lse + np.abs(x)  # of each term of dw; the mean's own weight takes the loss, a mean of such terms, from it
    mean = (q * w * away).sum() / share if is_labels(target) and attrs["reduction"] == "mean" else 0.0
    dw = (up * q * (away + mean)).sum(tuple(a for a in range(x.ndim) if a != axis))
    return up * (p / total * (q * w).sum(axis, keepdims=True) + q * w), dt, dw
