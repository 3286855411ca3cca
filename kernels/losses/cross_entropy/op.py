"""Cross-entropy of logits against class labels or class probabilities; the softmax is never written out in the forward."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.kernels.losses.cross_entropy.arguments import class_axis, is_labels, no_class, per_row
from tritensor.kernels.losses.cross_entropy.cpu import cpu, cpu_backward, gradient_scales
from tritensor.kernels.losses.cross_entropy.gpu import backward_rows, forward_rows
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.indices.error_reports import spot, watch
from tritensor.kernels.parts.reduction import ReductionFunctions, fold, spread, zero
from tritensor.kernels.parts.rows.row_tiles import tiles_for
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, op, ops, refuse_kind, registry

REDUCTIONS = ("none", "mean", "sum")
_I64 = np.dtype(np.int64)


def shape(
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


def _forward(
    x: CudaArray, target: CudaArray, weight: CudaArray | None = None, *, reduction: str = "mean", ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    labels = is_labels(target)
    watching = watch("cross_entropy", x, _bad_label, ignore_index, target.shape) if labels else None
    on = tiles_for("cross_entropy", x.shape, class_axis(x), x.dtype, few_warps=labels)
    return forward_rows(x, target, weight, reduction, ignore_index, label_smoothing, on, watching)


def _bad_label(ignore_index: int, shape: tuple[int, ...], value: int, position: int, classes: int) -> str:
    """The words for a label that `_forward_kernel` reports."""
    return no_class("cross_entropy", classes, ignore_index, value, spot(position, shape))


def _backward(
    g: CudaArray, x: CudaArray, target: CudaArray, weight: CudaArray | None, loss: CudaArray, peaks: CudaArray, total: CudaArray, reduction: str,
    ignore_index: int, label_smoothing: float, needs: tuple[bool, ...],
) -> tuple[Any, Any, Any]:  # fmt: skip
    on = tiles_for("cross_entropy", x.shape, class_axis(x), x.dtype)
    dx, dt = backward_rows(g, x, target, weight, peaks, total, reduction, ignore_index, label_smoothing, needs, on)
    if weight is None or not needs[2]:
        return dx, dt, None
    return dx, dt, weight_gradient(g, x, target, weight, loss, peaks, total, reduction, ignore_index, label_smoothing)


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
    """The array that an op without inputs makes, on the device of another array."""
    run = registry[name].forward
    assert run is not None
    found = run(device=like.device, **attrs)
    assert isinstance(found, CudaArray)
    return found


def rule(
    g: Any, x: Any, target: Any, weight: Any, loss: Any, reduction: str, ignore_index: int, label_smoothing: float, needs: tuple[bool, ...]
) -> tuple[Any, Any, Any]:
    """The gradient in our own ops, from the softmax and the aims q."""
    axis, labels = class_axis(x), not target.dtype.is_floating_point
    classes = x.shape[axis]
    acc_type = dtypes.accumulator(x._array.dtype)
    given, x = x._array.dtype, ops.cast(x, dtype=acc_type)
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
        dw = ops.cast(ops.neg(ops.sum(ops.mul(up, share_of_row), dim=others, keepdim=False)), dtype=weight._array.dtype)
    if needs[1] and not labels:
        dt = ops.mul(ops.mul(up, label_smoothing - 1), ops.log_softmax(x, dim=axis))
        dt = ops.cast(dt if w is None else ops.mul(dt, w), dtype=target._array.dtype)
    return ops.cast(dx, dtype=given), dt, dw


def _aims(x: np.ndarray, target: np.ndarray, weight: Any, ignore_index: int, smoothing: float) -> tuple[np.ndarray, Any]:
    """The smoothed and weighed target of every row, (..., classes), and what a mean divides by."""
    classes = x.shape[class_axis(x)]
    w = 1.0 if weight is None else weight
    if not is_labels(target):
        q = np.moveaxis(target, class_axis(x), -1)
        return (q * (1 - smoothing) + smoothing / classes) * w, np.prod(q.shape[:-1])
    counts = target != ignore_index
    q = (np.arange(classes) == target[..., None]) * counts[..., None]
    return (q * (1 - smoothing) + smoothing / max(classes, 1) * counts[..., None]) * w, np.sum(q * w)


def reference(
    x: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None, *,
    reduction: str = "mean", ignore_index: int = -100, label_smoothing: float = 0.0,
) -> tuple[Any, np.ndarray, np.ndarray]:  # fmt: skip
    """Cross-entropy -sum_c t_c log softmax(x)_c per row; a mean divides by the labels' weights, or by the rows for probabilities."""
    rows = np.moveaxis(x, class_axis(x), -1)
    top = np.max(rows, axis=-1, keepdims=True, initial=-np.inf)
    powers = np.sum(np.exp(rows - top), axis=-1, keepdims=True)
    q, share = _aims(x, target, weight, ignore_index, label_smoothing)
    losses = np.sum(np.where(q == 0, 0, q * (top - rows + np.log(powers))), axis=-1)
    whole = np.asarray(share if reduction == "mean" and is_labels(target) else [])
    return (
        (losses if reduction == "none" else np.sum(losses) / (share if reduction == "mean" else 1)),
        np.concatenate([top, powers], axis=-1),
        whole,
    )


def _samples(rng: np.random.Generator) -> list[Sample]:
    """Labels and probabilities, each reduction, weights, ignored rows, smoothing, extra dims, one unbatched row."""
    x, t = rng.normal(size=(5, 7)), rng.integers(0, 7, 5)
    ignored = t.copy()
    ignored[1] = ignored[3] = -100
    weight = 0.5 + rng.random(7)
    probs = rng.random((5, 7))
    plain: dict[str, Any] = {"ignore_index": -100, "label_smoothing": 0.0}
    return [
        Sample(x, t, None, reduction="mean", **plain),
        Sample(x, t.astype(np.int32), None, reduction="none", **plain),
        Sample(x, ignored, weight, reduction="mean", ignore_index=-100, label_smoothing=0.1),
        Sample(x, ignored, None, reduction="sum", ignore_index=-100, label_smoothing=0.2),
        Sample(x, t, weight, reduction="none", ignore_index=int(t[0]), label_smoothing=0.0),
        Sample(x, probs, None, reduction="mean", **plain),
        Sample(x, probs, weight, reduction="none", ignore_index=-100, label_smoothing=0.1),
        Sample(rng.normal(size=(2, 5, 3)), rng.integers(0, 5, (2, 3)), weight[:5], reduction="mean", **plain),
        Sample(rng.normal(size=(2, 5, 3)), rng.random((2, 5, 3)), None, reduction="sum", **plain),
        Sample(x[0], np.asarray(t[0]), None, reduction="mean", **plain),
        Sample(20 * rng.normal(size=(70, 3)), rng.integers(0, 3, 70), None, reduction="mean", smooth=False, **plain),
        Sample(rng.normal(size=(2, 4200)), rng.integers(0, 4200, 2), None, reduction="mean", smooth=False, **plain),
        Sample(
            rng.normal(size=(11, 67)), rng.integers(0, 67, 11), None, reduction="none", ignore_index=-100, label_smoothing=0.1, smooth=False
        ),
        Sample(rng.normal(size=(700, 2)), rng.integers(0, 2, 700), weight[:2], reduction="mean", smooth=False, **plain),
    ]


def _sizes(rng: np.random.Generator) -> list[Sample]:
    """Rows of classes: a small classifier, two vocabularies."""
    return [
        Sample(rng.standard_normal(s), rng.integers(0, s[1], s[0]), None, reduction="mean", ignore_index=-100, label_smoothing=0.0)
        for s in ((64, 10), (2048, 32768), (512, 131072), (2048, 50257))
    ]


def _work(x: Any, target: Any, weight: Any = None, **attrs: Any) -> Work:
    """Five operations an element, each read once."""
    return Work(5 * x.size, x.size * x.dtype.itemsize)


op(
    "cross_entropy", reference, cpu=cpu, shape=shape, forward=_forward, rule=rule, backward=_backward, cpu_backward=cpu_backward,
    outputs=("loss", "peaks", "total"), residuals=("peaks", "total"), samples=_samples, sizes=_sizes, work=_work, reports=True,
    borrows=("x", "target", "weight", "loss"), condition=("measured", gradient_scales),
)  # fmt: skip
