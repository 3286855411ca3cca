"""Cross-entropy of many logits and labels on the CPU: powers by machine code, the numbers of a row or of a pixel in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.llvm.loops import MANY
from tritensor.llvm.passes import softmaxes


def cube_of(x: np.ndarray) -> np.ndarray | None:
    """x as (outer, classes, inner) where machine code takes it; None where it does not."""
    if x.ndim < 2 or x.size < MANY or not x.flags.c_contiguous:
        return None
    cube = x.reshape(x.shape[0], x.shape[1], -1)
    return cube if softmaxes.takes(cube) else None


def places(cube: np.ndarray, target: np.ndarray, counts: np.ndarray | None) -> np.ndarray:
    """Where in the flat logits each label's is; that of class 0 for one that does not count."""
    outer, classes, inner = cube.shape
    labels = target.reshape(outer, inner)
    if counts is not None:
        labels = np.where(counts.reshape(outer, inner), labels, 0)
    begins = np.arange(outer, dtype=np.int64)[:, None] * (classes * inner) + np.arange(inner)
    return (begins + labels * inner if inner > 1 else begins + labels).reshape(-1)


def losses(
    cube: np.ndarray, target: np.ndarray, counts: np.ndarray | None, weight: np.ndarray | None, smoothing: float
) -> tuple[np.ndarray, np.ndarray, Any]:
    """(losses, peaks (rows, 2), what a mean divides by): (m - x[label]) + log sum e^(x - m), smoothed with the mean of that over all classes."""
    m, total_powers, away = softmaxes.peaks(cube)
    lost = np.log(total_powers).reshape(-1)
    picked = cube.reshape(-1)[places(cube, target, counts)].astype(m.dtype, copy=False)
    made = (m.reshape(-1) - picked) + lost
    share: Any = made.size if counts is None else np.count_nonzero(counts)
    if weight is not None:
        labels = target.reshape(-1) if counts is None else np.where(counts, target.reshape(-1), 0)
        weights = weight.astype(m.dtype)[labels]
        made *= weights
        share = (weights if counts is None else weights[counts]).sum()
    if smoothing:
        made *= m.dtype.type(1 - smoothing)
        made += m.dtype.type(smoothing) * (lost - away.reshape(-1) / m.dtype.type(cube.shape[1]))
    if counts is not None:
        made = np.where(counts, made, m.dtype.type(0))
    return made, np.stack((m.reshape(-1), total_powers.reshape(-1)), 1), share


def _ups(
    g: np.ndarray, target: np.ndarray, weight: np.ndarray | None, reduction: str, ignore_index: int, acc_type: np.dtype
) -> tuple[np.ndarray, np.ndarray | None]:
    """The factor of each row's gradient, (rows,), and the rows that count; None where all do."""
    flat = target.reshape(-1)
    counts = flat != ignore_index
    every = bool(counts.all())
    weights = None if weight is None else weight.astype(acc_type)[flat if every else np.where(counts, flat, 0)]
    if reduction == "none":
        up = g.reshape(-1).astype(acc_type)
    else:
        share: Any = 1
        if reduction == "mean":
            share = np.count_nonzero(counts) if weights is None else (weights if every else weights[counts]).sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            up = np.full(flat.shape, np.true_divide(g, share, dtype=acc_type))
    if weights is not None:
        up *= weights
    return (up, None) if every else (np.where(counts, up, acc_type.type(0)), counts)


def gradients(
    g: np.ndarray, cube: np.ndarray, target: np.ndarray, weight: np.ndarray | None, peaks: np.ndarray, reduction: str, ignore_index: int, smoothing: float
) -> np.ndarray:  # fmt: skip
    """up (softmax - q), q one-hot or smoothed, as the logits lie."""
    outer, classes, inner = cube.shape
    kind = peaks.dtype
    up, counts = _ups(g, target, weight, reduction, ignore_index, kind)
    m, sums = (np.ascontiguousarray(p).reshape(outer, inner) for p in peaks.reshape(-1, 2).T)
    with np.errstate(divide="ignore", invalid="ignore"):
        k = (up / sums.reshape(-1)).reshape(outer, inner)
    if counts is not None:  # wild rows that do not count
        m, k = (np.where(counts.reshape(outer, inner), v, kind.type(0)) for v in (m, k))
        cube = np.where(counts.reshape(outer, 1, inner), cube, cube.dtype.type(0))
    even = up * kind.type(smoothing / classes)
    made = softmaxes.powers(cube, m, k, even.reshape(outer, inner))
    flat, at = made.reshape(-1), places(cube, target, counts)
    rest = up * kind.type(1 - smoothing)
    if made.dtype == kind:
        flat[at] -= rest
    else:  # of 16-bit floats rounded once
        flat[at] = np.exp(cube.reshape(-1)[at].astype(kind) - m.reshape(-1)) * k.reshape(-1) - even - rest
    return made
