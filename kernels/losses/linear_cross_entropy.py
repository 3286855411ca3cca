"""Cross-entropy of a linear map against class labels, by chunks of rows: at no time are there logits of all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.kernels.losses.cross_entropy import cpu
from tritensor.kernels.losses.cross_entropy import op as cross_entropy
from tritensor.kernels.losses.cross_entropy.arguments import check_labels, is_labels, no_class
from tritensor.kernels.losses.cross_entropy.gpu import label_backward, loss_rows, reduced_losses
from tritensor.kernels.parts import elementwise
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import convert, to_c_order
from tritensor.kernels.parts.cpu.blocks import upcast
from tritensor.kernels.parts.cpu.summation import summed
from tritensor.kernels.parts.filling import filled
from tritensor.kernels.parts.gemm import gemm
from tritensor.kernels.parts.indices.error_reports import watch
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.parts.reduction import ReductionFunctions, add, fold, value, zero
from tritensor.kernels.parts.rows.row_tiles import tiles_for
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, op, ops, refuse_mixed, registry

Arrays = tuple[Any, ...]
BUDGET = 1 << 28  # bytes of a chunk's logits
WIDE = 16  # to a multiple of which classes are padded: Triton knows sizes as divisible by 16, or reads 2 bytes at a time


def rows_of_chunk(rows: int, classes: int, chunk: int) -> int:
    """The number of rows that have logits at a time: `chunk`, or where that is 0 what the budget holds, in whole tiles."""
    return min(chunk or max(BUDGET // (4 * max(classes, 1)) // 128, 1) * 128, max(rows, 1))


def _shape(
    x: Any, weight: Any, target: Any, bias: Any = None, *,
    reduction: str = "mean", ignore_index: int = -100, label_smoothing: float = 0.0, chunk: int = 0,
) -> tuple[Spec, Spec, Spec]:  # fmt: skip
    name = "linear_cross_entropy"
    if len(x.shape) != 2:
        raise ShapeError(f"{name}: x {tuple(x.shape)} has {len(x.shape)} dims; give (rows, features)")
    if not is_labels(target):
        raise DTypeError(
            f"{name}: target is {dtypes.of(target.dtype).name}; give integer labels (of probabilities: cross_entropy of linear)"
        )
    if chunk < 0:
        raise ArgumentError(f"{name}: chunk is {chunk}; give a number of rows, or 0 for what fits")
    refuse_mixed(name, ("x", x), ("weight", weight), ("bias", bias))
    logits = registry["linear"].shape(x, weight, bias)
    loss, peaks, total = cross_entropy.shape(
        logits, target, None, reduction=reduction, ignore_index=ignore_index, label_smoothing=label_smoothing
    )
    return Spec(loss.shape, peaks.dtype), peaks, total


def _bad_label(start: int, ignore_index: int, value: int, position: int, classes: int) -> str:
    """The words for a label of a chunk that begins at row `start`."""
    return no_class("cross_entropy", classes, ignore_index, value, start + position)


def _padded(v: CudaArray | None, classes: int) -> Any:
    """Weight or bias with rows of zeros up to a number that divides by WIDE: products of 50257 columns would read and write 2 bytes at a time."""
    if v is None or v.shape[0] == classes:
        return v
    wide = filled((classes, *v.shape[1:]), v.dtype, v.device, 0.0)
    convert(v, wide[(slice(0, v.shape[0]),)])
    return wide


def _forward(
    x: CudaArray, weight: CudaArray, target: CudaArray, bias: CudaArray | None = None, *,
    reduction: str = "mean", ignore_index: int = -100, label_smoothing: float = 0.0, chunk: int = 0,
) -> Arrays:  # fmt: skip
    rows, classes, kept = x.shape[0], weight.shape[0], dtypes.accumulator(x.dtype)
    wide, step = cdiv(classes, WIDE) * WIDE, rows_of_chunk(rows, classes, chunk)
    losses = allocate((rows,), kept, x)
    peaks, shares = allocate((rows, 2), kept, x), allocate((rows,), kept, x)
    w, b, room, labels = _padded(weight, wide), _padded(bias, wide), allocate((step, wide), kept, x), to_c_order(target)
    for start in range(0, rows, step):
        part = (slice(start, min(start + step, rows)),)
        logits = room[(slice(0, part[0].stop - start),)]
        gemm(x[part], w.transpose((1, 0)), logits, b)
        logits = logits[(slice(None), slice(0, classes))]
        watching = watch("linear_cross_entropy", x, _bad_label, start, ignore_index)
        on = tiles_for("cross_entropy", logits.shape, 1, kept)
        loss_rows(logits, labels[part], None, ignore_index, label_smoothing, losses[part], peaks[part], shares[part], on, watching)
    loss, whole = reduced_losses(losses, shares, reduction, True, kept, classes)
    return loss, peaks, whole


_SUM = ReductionFunctions(value, add, None, zero)


@triton.jit
def _added(a, b):
    return a + b


def _backward(
    g: CudaArray, x: CudaArray, weight: CudaArray, target: CudaArray, bias: CudaArray | None, peaks: CudaArray, total: CudaArray, reduction: str,
    ignore_index: int, label_smoothing: float, chunk: int, needs: tuple[bool, ...],
) -> Arrays:  # fmt: skip
    """Logits are computed again, chunk by chunk; the products of the weight's gradient are added in float32, in order."""
    rows, classes, kept = x.shape[0], weight.shape[0], dtypes.accumulator(x.dtype)
    wide, step = cdiv(classes, WIDE) * WIDE, rows_of_chunk(rows, classes, chunk)
    starts = range(0, rows, step)
    w, b, room, labels = _padded(weight, wide), _padded(bias, wide), allocate((step, wide), kept, x), to_c_order(target)
    slopes = allocate((step, wide), x.dtype, x) if wide == classes else filled((step, wide), x.dtype, x.device, 0.0)
    dx = allocate(x.shape, x.dtype, x) if needs[0] else None
    dw = allocate(w.shape, kept if len(starts) > 1 else weight.dtype, x) if needs[1] else None
    product = allocate(w.shape, kept, x) if dw is not None and len(starts) > 1 else None
    b_parts = allocate((len(starts), classes), kept, x) if needs[3] else None
    for i, start in enumerate(starts):
        part = (slice(start, min(start + step, rows)),)
        here = (slice(0, part[0].stop - start),)
        all_down, down = slopes[here], slopes[(*here, slice(0, classes))]
        gemm(x[part], w.transpose((1, 0)), room[here], b)
        logits = room[(*here, slice(0, classes))]
        on = tiles_for("cross_entropy", logits.shape, 1, kept)
        up = g[part] if reduction == "none" else g
        label_backward(up, logits, labels[part], None, peaks[part], total, reduction, ignore_index, label_smoothing, down, on)
        if dx is not None:
            gemm(all_down, w, dx[part])
        if dw is not None:
            gemm(all_down.transpose((1, 0)), x[part], dw if i == 0 or product is None else product)
            if i:
                elementwise.run((_added,), ((0, 1),), (dw, product), (dw,), kept)
        if b_parts is not None:
            fold(_SUM, (down,), (0,), (b_parts[(i,)],), (kept,))
    db = None if b_parts is None else allocate((classes,), x.dtype, x)
    if db is not None:
        fold(_SUM, (b_parts,), (0,), (db,), (kept,))  # type: ignore[arg-type]
    return dx, None if dw is None else _weight_result(dw, weight, rows), None, db


def _weight_result(dw: CudaArray, weight: CudaArray, rows: int) -> CudaArray:
    """The weight's gradient without padding, in its type."""
    if not rows or 0 in weight.shape:
        return filled(weight.shape, weight.dtype, weight.device, 0.0)
    if dw.shape == weight.shape and dw.dtype == weight.dtype:
        return dw
    found = allocate(weight.shape, weight.dtype, weight)
    convert(dw[(slice(0, weight.shape[0]),)], found)
    return found


# The CPU side.
def _reference(
    x: np.ndarray, weight: np.ndarray, target: np.ndarray, bias: np.ndarray | None = None, *,
    reduction: str = "mean", ignore_index: int = -100, label_smoothing: float = 0.0, chunk: int = 0,
) -> Arrays:  # fmt: skip
    """cross_entropy(x @ weight^T + bias, target), `chunk` rows at a time, in float32 of 16-bit inputs.

    x (rows, features), weight (classes, features), labels (rows,), bias (classes,).

    The idea of Wijmans et al. ("Cut Your Losses in Large-Vocabulary Language Models", 2024) and of Liger: logits of a chunk live as long as its loss.
    """
    logits = x @ weight.T + (0 if bias is None else bias)
    return cross_entropy.reference(logits, target, reduction=reduction, ignore_index=ignore_index, label_smoothing=label_smoothing)


def _cpu(
    x: np.ndarray, weight: np.ndarray, target: np.ndarray, bias: np.ndarray | None = None, *,
    reduction: str = "mean", ignore_index: int = -100, label_smoothing: float = 0.0, chunk: int = 0,
) -> Arrays:  # fmt: skip
    kept, step = dtypes.accumulator(x.dtype), rows_of_chunk(len(x), len(weight), chunk)
    losses, peaks = np.empty(len(x), kept), np.empty((len(x), 2), kept)
    check_labels("cross_entropy", target, len(weight), ignore_index)
    rows, w, b = upcast(x), upcast(weight), upcast(bias)
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        logits = registry["linear"].cpu(rows[part], w, b)
        found = cpu.cpu(logits, target[part], reduction="none", ignore_index=ignore_index, label_smoothing=label_smoothing)
        losses[part], peaks[part] = found[:2]
    if reduction == "none":
        return losses, peaks, np.empty(0, kept)
    count = np.asarray((target != ignore_index).sum(), kept)
    with np.errstate(invalid="ignore", divide="ignore"):
        loss = losses.sum() / count if reduction == "mean" else losses.sum()
    return np.asarray(loss, kept), peaks, count if reduction == "mean" else np.empty(0, kept)


def _cpu_backward(
    g: np.ndarray, x: np.ndarray, weight: np.ndarray, target: np.ndarray, bias: np.ndarray | None, peaks: np.ndarray, reduction: str,
    ignore_index: int, label_smoothing: float, chunk: int, needs: tuple[bool, ...],
) -> Arrays:  # fmt: skip
    """Logits are computed again, chunk by chunk, and with them their part of each gradient."""
    kept, step = dtypes.accumulator(x.dtype), rows_of_chunk(len(x), len(weight), chunk)
    rows, w, b = upcast(x), upcast(weight), upcast(bias)
    share = np.count_nonzero(target != ignore_index) if reduction == "mean" else 1
    up = np.empty(len(x), kept)
    up[...] = np.true_divide(g, share, dtype=kept)
    dx, dw, db = np.empty(x.shape, x.dtype), np.zeros(w.shape, kept), np.zeros(len(w), kept)
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        logits = registry["linear"].cpu(rows[part], w, b)
        down, _, _ = cpu.cpu_backward(
            up[part], logits, target[part], None, up[part], peaks[part], "none", ignore_index, label_smoothing, (True, False, False)
        )
        if needs[0]:
            dx[part] = down @ w
        if needs[1]:
            dw += down.T @ rows[part]
        if needs[3]:
            db += summed(down, (0,))
    return (
        dx if needs[0] else None,
        dw.astype(weight.dtype, copy=False) if needs[1] else None,
        None,
        db.astype(x.dtype) if needs[3] else None,
    )


def _rule(
    g: Any, x: Any, weight: Any, target: Any, bias: Any, reduction: str, ignore_index: int, label_smoothing: float, needs: tuple[bool, ...]
) -> Arrays:
    """Cross-entropy's gradient of all logits, in our own ops: for derivatives of any order."""
    kept = dtypes.accumulator(x._array.dtype)
    rows, w = ops.cast(x, dtype=kept), ops.cast(weight, dtype=kept)
    logits = ops.linear(rows, w, None if bias is None else ops.cast(bias, dtype=kept))
    down = cross_entropy.rule(g, logits, target, None, None, reduction, ignore_index, label_smoothing, (True, False, False))[0]
    dx = ops.cast(ops.matmul(down, w), dtype=x._array.dtype) if needs[0] else None
    dw = ops.cast(ops.matmul(ops.permute(down, dims=(1, 0)), rows), dtype=weight._array.dtype) if needs[1] else None
    db = ops.cast(ops.sum(down, dim=(0,), keepdim=False), dtype=bias._array.dtype) if needs[3] else None
    return dx, dw, None, db


def _gradient_scales(g: np.ndarray, inputs: Arrays, attrs: dict[str, Any]) -> Arrays:
    """Each gradient is a sum of products with the logits' gradient, which is a difference; that is computed of logits that are sums themselves."""
    x, weight, target, bias = inputs
    attrs = {k: v for k, v in attrs.items() if k != "chunk"}
    logits = registry["linear"].cpu(x, weight, bias)
    down = cpu.gradient_scales(g, (logits, target, None), attrs)[0]
    assert down is not None
    return down @ np.abs(weight), down.T @ np.abs(x), None, down.sum(0)


def _samples(rng: np.random.Generator) -> list[Sample]:
    """Each reduction, chunks and a ragged last one, ignored rows, smoothing, with and without bias, classes off every boundary."""
    x, w, b, t = rng.normal(size=(7, 5)), rng.normal(size=(9, 5)), rng.normal(size=9), rng.integers(0, 9, 7)
    ignored = t.copy()
    ignored[2] = ignored[5] = -100
    plain: dict[str, Any] = {"ignore_index": -100, "label_smoothing": 0.0}
    return [
        Sample(x, w, t, None, reduction="mean", chunk=0, **plain),
        Sample(x, w, ignored, b, reduction="mean", chunk=3, ignore_index=-100, label_smoothing=0.1),
        Sample(x, w, ignored.astype(np.int32), b, reduction="sum", chunk=4, **plain),
        Sample(x, w, t, b, reduction="none", chunk=3, ignore_index=int(t[0]), label_smoothing=0.0),
        Sample(x[:0], w, t[:0], b, reduction="sum", chunk=0, **plain),
        Sample(
            rng.normal(size=(43, 3)), rng.normal(size=(71, 3)), rng.integers(0, 71, 43), rng.normal(size=71), reduction="mean", chunk=16,
            smooth=False, **plain,
        ),
    ]  # fmt: skip


def _sizes(rng: np.random.Generator) -> list[Sample]:
    plain: dict[str, Any] = {"reduction": "mean", "ignore_index": -100, "label_smoothing": 0.0, "chunk": 0}
    draw = rng.standard_normal
    return [Sample(draw((n, d)), draw((c, d)) * d**-0.5, rng.integers(0, c, n), None, **plain) for n, d, c in ((2048, 768, 50257),)]


def _work(x: Any, weight: Any, target: Any, bias: Any = None, **attrs: Any) -> Work:
    """A product of 2 operations for each logit and feature; x, weight and labels move once."""
    return Work(2 * x.size * weight.shape[0], (x.size + weight.size) * x.dtype.itemsize)


op(
    "linear_cross_entropy", _reference, cpu=_cpu, shape=_shape, forward=_forward, rule=_rule, backward=_backward,
    cpu_backward=_cpu_backward, outputs=("loss", "peaks", "total"),
    residuals=("peaks", "total"), samples=_samples, sizes=_sizes, work=_work, reports=True, autocast="lower",
    borrows=("x", "weight", "target", "bias"), condition=("measured", _gradient_scales, "stored"),
)  # fmt: skip
