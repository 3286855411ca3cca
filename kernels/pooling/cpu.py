"""Pooling on the CPU: whole planes at a time through strided views, in whichever dense layout the image lies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from tritensor.kernels.parts.indices.sliding_windows import Windows
from tritensor.kernels.pooling import cpu_llvm

_COUNTED = 1 << 16  # cells whose sums are held at a time
_FEW_TAPS = 64  # of windows whose slices are kept between calls


def _layouts(dims: int) -> tuple[tuple[int, ...], ...]:
    """N, C, axes; batch innermost; channels innermost."""
    axes = tuple(range(2, dims))
    return (0, 1, *axes), (1, *axes, 0), (0, *axes, 1)


def layout_of(x: np.ndarray) -> tuple[int, ...]:
    """The order of x's axes (N, C, *size) in memory, as they are named where it is none of the three."""
    layouts = _layouts(x.ndim)
    for axes in layouts:
        if x.transpose(axes).flags.c_contiguous:
            return axes
    return layouts[0]


def as_planes(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """x (N, C, *size) as (P, *size, L), dense, axes in the given order: P outer planes, L inner elements that move together."""
    dense = np.ascontiguousarray(x.transpose(axes))
    # planes are contiguous: taps move along rows alone
    if axes == _layouts(x.ndim)[0]:
        return dense.reshape(x.shape[0] * x.shape[1], *x.shape[2:], 1)
    return dense


def as_image(y: np.ndarray, axes: tuple[int, ...], x: np.ndarray, dtype: np.dtype | None = None) -> np.ndarray:
    """(P, *outs, L) back as (N, C, *outs) of x's images, and in x's type where no other is given."""
    y = y.astype(dtype or x.dtype, copy=False)
    if axes == _layouts(len(axes))[0]:
        return y.reshape(*x.shape[:2], *y.shape[1:-1])
    return y.transpose(np.argsort(axes))


def _span(size: int, out: int, k: int, stride: int, padding: int) -> tuple[int, int, int]:
    """Outputs [low, high) whose tap at offset k lies inside the image, and the cell of the first."""
    low = max(0, -((k - padding) // stride))
    high = min(out, (size - 1 - k + padding) // stride + 1)
    return low, high, low * stride + k - padding


def _cell_numbers(cells: list[np.ndarray], size: tuple[int, ...]) -> np.ndarray:
    """Flat numbers of the cells of an image, given along each axis: (*lengths, 1)."""
    total = np.zeros((1,) * len(size), np.int64)
    for axis, at in enumerate(cells):
        total = total * size[axis] + at.reshape(-1, *(1,) * (len(size) - 1 - axis))
    return total[..., None]


Tap = tuple[tuple[slice, ...], tuple[slice, ...], int]


def _taps_of(s: Windows) -> Iterable[Tap]:
    """For each place in the window: which outputs have it inside the image, which cells those are, and the place's number."""
    return _kept_taps(s) if math.prod(s.kernel) <= _FEW_TAPS else _make_taps(s)


def _make_taps(s: Windows) -> Iterator[Tap]:
    for number, tap in enumerate(np.ndindex(*s.kernel)):
        axes = zip(s.size, s.outs, tap, s.stride, s.padding, s.dilation, strict=True)
        spans = [_span(n, m, i * d, step, p) for n, m, i, step, p, d in axes]
        # a dilated tap may pass every image by
        if any(low >= high for low, high, _ in spans):
            continue
        outs = [slice(low, high) for low, high, _ in spans]
        cells = [slice(at, at + (high - low - 1) * step + 1, step) for (low, high, at), step in zip(spans, s.stride, strict=True)]
        yield (slice(None), *outs), (slice(None), *cells), number


@lru_cache(maxsize=128)
def _kept_taps(s: Windows) -> tuple[Tap, ...]:
    return tuple(_make_taps(s))


def _first_taps(s: Windows) -> np.ndarray:
    """The number of each window's first tap inside the image, (*outs, 1)."""
    firsts = []
    for m, step, p, d in zip(s.outs, s.stride, s.padding, s.dilation, strict=True):
        at = np.arange(m) * step - p
        firsts.append(np.where(at < 0, -(at // d), 0))
    return _cell_numbers(firsts, s.kernel)


def largest(x: np.ndarray, s: Windows) -> tuple[np.ndarray, np.ndarray]:
    """The largest of each window of x (P, *size, L) and its flat place, both (P, *outs, L): the first of equals, NaN above all."""
    found = cpu_llvm.largest(x[..., 0], s) if x.shape[-1] == 1 else None
    return _by_taps(x, s) if found is None else (found[0][..., None], found[1][..., None])


def _by_taps(x: np.ndarray, s: Windows) -> tuple[np.ndarray, np.ndarray]:
    """The same, tap by tap. Which tap was the largest is noted in as few bytes as it takes."""
    shape = (x.shape[0], *s.outs, x.shape[-1])
    y = np.full(shape, -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min, x.dtype)
    which = np.empty(shape, np.min_scalar_type(math.prod(s.kernel)))
    which[...] = _first_taps(s)
    nan = x.dtype.kind == "f" and bool(np.isnan(np.add.reduce(x, axis=None)))
    for out, cells, tap in _taps_of(s):
        value, best = x[cells], y[out]
        take = value > best
        # numpy's maximum keeps a NaN it has, not the last one: where there is any, taps are compared one by one
        if nan:
            take |= value != value
            np.copyto(best, value, where=take)
        else:
            np.maximum(best, value, out=best)
        np.copyto(which[out], tap, where=take)
    starts = _cell_numbers([np.arange(m) * step - p for m, step, p in zip(s.outs, s.stride, s.padding, strict=True)], s.size)
    steps = _cell_numbers([np.arange(k) * d for k, d in zip(s.kernel, s.dilation, strict=True)], s.size).reshape(-1)
    index = steps[which]
    index += starts
    return y, index


def blind(s: Windows) -> np.ndarray | None:
    """Which windows see no cell, (*outs, 1), whose index names none: those whose dilated taps pass the image by. None where all see some."""
    if max(s.dilation) == 1:  # padding is at most half of the window: without gaps each sees a cell
        return None
    seen = np.zeros((*s.outs, 1), bool)
    for out, _, _ in _taps_of(s):
        seen[out[1:]] = True
    return None if seen.all() else ~seen


def scatter(g: np.ndarray, index: np.ndarray, s: Windows) -> np.ndarray:
    """dx (P, *size, L): each cell gets the gradients of the windows that chose it."""
    count, inner, cells_of_one = g.shape[0], g.shape[-1], math.prod(s.size)
    unseeing = blind(s)
    if unseeing is not None:
        g, index = (np.where(unseeing, v.dtype.type(0), v) for v in (g, index))
    if inner == 1 and unseeing is None:
        found = cpu_llvm.scatter(g[..., 0], index[..., 0], s.size)
        if found is not None:
            return found[..., None]
    dx = np.zeros((count, *s.size, inner), g.dtype)
    if s.apart and unseeing is None:  # no cell is chosen twice: each gradient is written to its place
        at = index + np.arange(count).reshape(-1, *(1,) * (g.ndim - 1)) * cells_of_one
        dx.reshape(-1)[at if inner == 1 else at * inner + np.arange(inner)] = g
        return dx
    one = cells_of_one * inner
    step = max(_COUNTED // one, 1) if g.dtype.kind == "f" else count
    for first in range(0, count, step):  # the sums of some planes at a time, in float64, stay in the cache
        chosen, given, into = index[first : first + step], g[first : first + step], dx[first : first + step]
        at = chosen * inner + np.arange(inner) + np.arange(len(chosen)).reshape(-1, *(1,) * (g.ndim - 1)) * one
        if g.dtype.kind != "f":  # float64 does not hold every sum of integers
            np.add.at(into.reshape(-1), at, given)
            continue
        into[...] = np.bincount(at.reshape(-1), weights=given.reshape(-1), minlength=into.size).reshape(into.shape)
    return dx


@lru_cache(maxsize=128)
def divisors(s: Windows, count_include_pad: bool, divisor: int | None, dtype: np.dtype) -> np.ndarray:
    """What each window's sum is divided by, (*outs, 1): `divisor`, or the number of its cells, with the padding where that is asked for."""
    if divisor is not None:
        return np.full((1,) * (len(s.size) + 1), divisor, dtype)
    total: Any = np.ones((1,) * (len(s.size) + 1), np.int64)
    for axis, (m, n, k, step, p) in enumerate(zip(s.outs, s.size, s.kernel, s.stride, s.padding, strict=True)):
        low = np.arange(m) * step - p
        high = np.minimum(low + k, n + p)
        extent = high - low if count_include_pad else np.minimum(high, n) - np.maximum(low, 0)
        total = total * extent.reshape(-1, *(1,) * (len(s.size) - axis))
    return total.astype(dtype)  # type: ignore[no-any-return]


def average(x: np.ndarray, s: Windows, count_include_pad: bool, divisor: int | None) -> np.ndarray:
    """Means of the windows."""
    # tap by tap, each a strided view: the sum of a window's copy would write every cell as often as windows hold it
    y = np.zeros((x.shape[0], *s.outs, x.shape[-1]), x.dtype)
    for out, cells, _ in _taps_of(s):
        part = y[out]
        np.add(part, x[cells], out=part)
    y /= divisors(s, count_include_pad, divisor, x.dtype)
    return y


def spread(g: np.ndarray, s: Windows, count_include_pad: bool, divisor: int | None) -> np.ndarray:
    """The gradient of `average`: every cell of a window gets an equal share."""
    share = g / divisors(s, count_include_pad, divisor, g.dtype)
    dx = np.zeros((g.shape[0], *s.size, g.shape[-1]), g.dtype)
    for out, cells, _ in _taps_of(s):
        part = dx[cells]
        np.add(part, share[out], out=part)
    return dx
