"""Distributions of values: histograms as tensorboard keeps them, precision-recall curves."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np

from tritensor.ground.errors import ArgumentError, EmptyError, ShapeError
from tritensor.io.protobuf import double, doubles, integer, message, singles
from tritensor.utils.tensorboard.values import DT_FLOAT, as_array, describe, encode_shape

MAX_THRESHOLDS = 127  # PyTorch's


@cache
def default_bins() -> np.ndarray:
    """tensorflow's buckets: 0, and limits that grow by a tenth from 1e-12 to 1e20 on both sides (core/lib/histogram/histogram.cc)."""
    limits, v = [], 1e-12
    while v < 1e20:
        limits.append(v)
        v *= 1.1
    return np.array([-v for v in limits[::-1]] + [0.0] + limits)


def encode_histogram(low: float, high: float, count: float, total: float, squares: float, limits: Any, counts: Any) -> bytes:
    """A HistogramProto; `limits` are the upper ends of buckets."""
    numbers = b"".join([double(i, x) for i, x in enumerate((low, high, count, total, squares), 1)])
    return numbers + doubles(6, limits) + doubles(7, counts)


def make_histogram(tag: str, values: Any, bins: Any, max_bins: int | None) -> bytes:
    """A HistogramProto of values. NaN and infinite ones are left out, with a warning.

    Raises EmptyError where no finite value is there, TypeError for what are no real numbers.
    """
    who = "SummaryWriter.add_histogram"
    given = as_array(who, tag, values)
    if given.dtype.kind == "c":
        raise TypeError(f"{who}: tag {tag!r} was given {describe(values)}, complex numbers; give their abs() or angle()")
    if not given.size:
        raise EmptyError(f"{who}: tag {tag!r} was given {describe(values)}, which has no element")
    flat = given.reshape(-1).astype(np.float64)
    finite = np.isfinite(flat)
    if not finite.all():
        lost = flat.size - int(finite.sum())
        if lost == flat.size:
            raise EmptyError(f"{who}: tag {tag!r} was given {describe(values)}, of which no value is finite")
        warnings.warn(f"{who}: {lost} of {flat.size} values of tag {tag!r} are NaN or infinite and left out", stacklevel=3)
        flat = flat[finite]
    if isinstance(bins, str) and bins == "tensorflow":
        bins = default_bins()  # the limits are the same for all: made once
    try:
        counts, limits = np.histogram(flat, bins=as_array(who, tag, bins) if not isinstance(bins, str | int) else bins)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"{who}: tag {tag!r}: bins={bins!r}: {error}; give 'tensorflow', a rule of numpy.histogram, or limits"
        ) from None
    counts, limits = _merge_bins(counts, limits, max_bins)
    counts, limits = _trim_empty_bins(counts, limits)
    if not len(counts):
        raise ArgumentError(f"{who}: tag {tag!r}: no value lies in the bins, which reach from {limits[0]:g} to {limits[-1]:g}")
    return encode_histogram(flat.min(), flat.max(), flat.size, flat.sum(), flat.dot(flat), limits, counts)


def _merge_bins(counts: np.ndarray, limits: np.ndarray, most: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Bins joined with their neighbours where there are more than `most`."""
    if most is None or len(counts) <= most:
        return counts, limits
    by = len(counts) // most  # as PyTorch joins them
    starts = np.arange(0, len(counts), by)
    return np.add.reduceat(counts, starts), np.append(limits[starts], limits[-1])


def _trim_empty_bins(counts: np.ndarray, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bins without the empty ones at both ends, but for one before the first value: tensorboard takes its limit as where that one begins."""
    filled = np.flatnonzero(counts)
    if not len(filled):
        return filled, limits
    first, last = int(filled[0]), int(filled[-1])
    return np.concatenate([[0], counts[first : last + 1]]), limits[first : last + 2]


def count_pr_curve(tag: str, labels: Any, predictions: Any, thresholds: int, weights: Any) -> tuple[np.ndarray, int]:
    """Counts of true and false positives and negatives, precision and recall: (6, thresholds); and the number of thresholds.

    A prediction p is positive at threshold t of n where floor(p (n - 1)) >= t.
    """
    who = "SummaryWriter.add_pr_curve"
    true, score = as_array(who, tag, labels).reshape(-1).astype(np.float64), as_array(who, tag, predictions).reshape(-1).astype(np.float64)
    weight = np.broadcast_to(1.0 if weights is None else as_array(who, tag, weights).reshape(-1), true.shape)
    if true.shape != score.shape:
        raise ShapeError(f"{who}: tag {tag!r} was given {true.size} labels and {score.size} predictions; give one for each")
    if true.size and not ((score >= 0) & (score <= 1)).all():
        wrong = score[~((score >= 0) & (score <= 1))][0]
        raise ArgumentError(f"{who}: tag {tag!r}: a prediction is {wrong:g}; give probabilities from 0 to 1")
    n = check_thresholds(who, tag, thresholds)
    bucket = np.floor(score * (n - 1)).astype(np.int64)
    above = [np.cumsum(np.bincount(bucket, w, minlength=n)[::-1])[::-1] for w in (true * weight, (1 - true) * weight)]
    tp, fp = above
    tn, fn = fp[0] - fp, tp[0] - tp
    least = 1e-7  # keeps 0 / 0 at 0
    return np.stack([tp, fp, tn, fn, tp / np.maximum(least, tp + fp), tp / np.maximum(least, tp + fn)]), n


def check_thresholds(who: str, tag: str, n: Any) -> int:
    """The thresholds that are kept: at most 127, as in PyTorch."""
    if not isinstance(n, int) or n < 2:
        raise ArgumentError(f"{who}: tag {tag!r}: num_thresholds is {n!r}; give an integer of at least 2")
    return min(n, MAX_THRESHOLDS)


def encode_pr_curve(data: np.ndarray, thresholds: int) -> tuple[bytes, bytes]:
    """(a TensorProto, the plugin's data) of a precision-recall curve."""
    return (integer(1, DT_FLOAT) + message(2, encode_shape(data.shape)) + singles(5, data.reshape(-1)), integer(2, thresholds))
