"""grid_sample on the CPU: the taps of every axis as tables, then reads and sums by them, in machine code or by numpy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.kernels.images.grid_sampling import cpu_llvm
from tritensor.kernels.parts.cpu.blocks import SILENT

POSITIONS = 16384  # positions whose taps are computed at a time
_CUBIC = -0.75


class AxisTaps(NamedTuple):
    """One axis: the cells (K, P) that each position takes, their weights (0 outside), and the weights' derivatives by the grid's number."""

    cells: np.ndarray
    weights: np.ndarray
    slopes: np.ndarray | None


def _reflect(at: np.ndarray, n: int, align: bool) -> tuple[np.ndarray, np.ndarray]:
    """Positions mirrored into the axis, and the sign of each mirroring."""
    low, span = (0.0, n - 1.0) if align else (-0.5, float(n))
    # one cell: every position is it, and no position moves it
    if span == 0:
        return np.zeros_like(at), np.zeros_like(at)
    sign = np.where(at < low, -1, 1).astype(at.dtype)
    away = np.abs(at - at.dtype.type(low))
    flips = np.floor(away / at.dtype.type(span))
    rest = away - flips * at.dtype.type(span)
    odd = np.remainder(flips, 2) != 0
    return np.where(odd, span - rest + low, rest + low).astype(at.dtype), np.where(odd, -sign, sign)


def _show(at: np.ndarray, n: int, padding: str, align: bool) -> tuple[np.ndarray, np.ndarray | float]:
    """Positions as the padding shows them, and their derivative."""
    if padding == "zeros":
        return at, 1.0
    slope: np.ndarray | float = 1.0
    if padding == "reflection":
        at, slope = _reflect(at, n, align)
    inside = (at > 0) & (at < n - 1)
    return np.fmin(np.fmax(at, 0), n - 1).astype(at.dtype), slope * inside


def axis_taps(u: np.ndarray, n: int, mode: str, padding: str, align: bool, sloped: bool = False, given: bool = False) -> AxisTaps:
    """The taps of grid numbers u (P,) on an axis of n cells; their slopes where `sloped`. `given`: the weights are of what cells are given, and a position
    that is NaN, whose weights are, gives nothing to a cell that it does not name."""
    half = (n - 1) / 2 if align else n / 2
    at = (u + 1) * u.dtype.type(half) if align else ((u + 1) * u.dtype.type(n) - 1) * u.dtype.type(0.5)
    slopes = None
    # padding moves the cells of a cubic, not its position: weights stay those of the position
    if mode == "bicubic":
        low = np.floor(at)
        t = at - low
        ks = np.arange(-1, 3).astype(u.dtype)[:, None]
        cells, _ = _show(low + ks, n, padding, align)
        d = np.abs(t - ks)
        weights = _keys(d)
        if sloped:
            slopes = _keys_slope(d) * np.sign(t - ks) * half
    else:
        at, slope = _show(at, n, padding, align)
        if mode == "nearest":
            cells, weights = np.rint(at)[None], np.ones((1, *u.shape), u.dtype)
        else:
            low = np.floor(at)
            t = at - low
            if sloped:
                step = np.broadcast_to(np.asarray(slope * half, u.dtype), u.shape)
                slopes = np.stack([-step, step])
            if not sloped and at.min() >= 0 and at.max() <= n - 1:  # every tap is inside, but for one of weight 0
                first = low.astype(np.int64)
                return AxisTaps(np.stack([first, first + 1]), np.stack([1 - t, t]), None)
            cells, weights = np.stack([low, low + 1]), np.stack([1 - t, t])
    there = (cells >= 0) & (cells < n)
    whole = np.where(there, cells, 0).astype(np.int64)
    kept = None if slopes is None else (slopes * there).astype(u.dtype, copy=False)
    # a NaN position makes NaN of what it reads; it must not reach the cells of an image that it does not name
    weights = np.where(there, weights, 0) if given else weights * there
    return AxisTaps(whole, weights.astype(u.dtype, copy=False), kept)


def _keys(d: np.ndarray) -> np.ndarray:
    """Keys's kernel at distances d."""
    a = _CUBIC  # unlike axis_maps' it is asked below 2 alone, and a NaN stays one
    return np.where(d <= 1, ((a + 2) * d - (a + 3)) * d * d + 1, ((a * d - 5 * a) * d + 8 * a) * d - 4 * a)


def _keys_slope(d: np.ndarray) -> np.ndarray:
    a = _CUBIC
    return np.where(d <= 1, (3 * (a + 2) * d - 2 * (a + 3)) * d, (3 * a * d - 10 * a) * d + 8 * a)


def _combined(taps: Sequence[AxisTaps], sizes: Sequence[int]) -> list[tuple[tuple[int, ...], np.ndarray]]:
    """Every combination of taps, and the flat cells (P,) that it takes."""
    found: list[tuple[tuple[int, ...], np.ndarray]] = [((k,), cells) for k, cells in enumerate(taps[0].cells)]
    for t, n in zip(taps[1:], sizes[1:], strict=True):
        rows = [(chosen, flat * n) for chosen, flat in found]
        found = [((*chosen, k), row + cells) for chosen, row in rows for k, cells in enumerate(t.cells)]
    return found


def _product(taps: Sequence[AxisTaps], chosen: tuple[int, ...], slope_of: int = -1) -> np.ndarray:
    """The weight of a combination; with `slope_of`, its derivative by that axis's number."""
    out: Any = None
    for d, (k, t) in enumerate(zip(chosen, taps, strict=True)):
        by = t.weights if d != slope_of or t.slopes is None else t.slopes
        out = by[k] if out is None else out * by[k]
    return np.asarray(out)


def _axes(
    grid: np.ndarray, sizes: Sequence[int], mode: str, padding: str, align: bool, sloped: bool = False, given: bool = False
) -> list[AxisTaps]:
    """Taps of all axes of positions grid (P, axes), whose numbers stand in the order width, height, depth."""
    last = len(sizes) - 1
    return [axis_taps(np.array(grid[:, last - d]), n, mode, padding, align, sloped, given) for d, n in enumerate(sizes)]


class Taken(NamedTuple):
    """What positions of some images take: the cells (T, images * P), their weights, and the taps of each axis with the combinations of them."""

    cells: np.ndarray
    weights: np.ndarray
    axes: list[AxisTaps]
    chosen: list[tuple[int, ...]]


def _taken(
    grid: np.ndarray, sizes: tuple[int, ...], mode: str, padding: str, align: bool, sloped: bool = False, given: bool = False
) -> Iterator[tuple[int, int, Taken]]:
    """Of a grid (N, P, axes), as many images at a time as POSITIONS allow: the first, how many, and what is taken."""
    n, count, axes = grid.shape
    # tables of taps are made for several small images at once: numpy's cost per call is shared
    some = max(1, POSITIONS // max(count, 1))
    for first in range(0, n, some):
        part = np.ascontiguousarray(grid[first : first + some])
        taps = _axes(part.reshape(-1, axes), sizes, mode, padding, align, sloped, given)
        combined = _combined(taps, sizes)
        cells = np.minimum(np.stack([cells for _, cells in combined]), math.prod(sizes) - 1)  # one beyond has weight 0
        chosen = [which for which, _ in combined]
        yield first, len(part), Taken(cells, np.stack([_product(taps, which) for which in chosen]), taps, chosen)


def _walk(what: str, planes: np.ndarray | None, given: np.ndarray | None, t: Taken, made: np.ndarray, first: int = 0) -> None:
    """Over images, their channels, positions and taps, see cpu_llvm.function: `planes` (N, C, cells), what is `given` (N, C, P), and what is `made`, for each
    image in turn or, of "along", beside each other. Their positions are those of `t` from image `first` on."""
    one = planes if given is None else given
    assert one is not None
    count = made.shape[2] if given is None else given.shape[2]
    function = cpu_llvm.function(t.weights.dtype, len(t.cells), what)
    if function is None:
        for i in range(len(one)):
            part = slice((first + i) * count, (first + i + 1) * count)
            plane, grads = (None if x is None else x[i] for x in (planes, given))
            _walk_in_numpy(what, plane, grads, t.cells[:, part], t.weights[:, part], made[:, i * count :] if what == "along" else made[i])
        return
    arrays = (planes, given, t.cells, t.weights, made)
    steps = [0 if x is None else x.strides[0] for x in (planes, given)]  # bytes from image to image
    steps += [count * 8, count * t.weights.itemsize, count * made.itemsize if what == "along" else made.strides[0]]
    starts = [0 if x is None else x.__array_interface__["data"][0] for x in arrays]
    starts[2:4] = [start + first * step for start, step in zip(starts[2:4], steps[2:4], strict=True)]
    rows = [0 if x is None else x.strides[1] for x in (planes, given, None if what == "along" else made)]
    for i in range(len(one)):
        function(*[start + i * step for start, step in zip(starts, steps, strict=True)], one.shape[1], count, *rows, t.cells.shape[1])


def _walk_in_numpy(what: str, planes: Any, given: Any, cells: np.ndarray, weights: np.ndarray, made: np.ndarray) -> None:
    if what == "read":
        made.fill(0)
    for k, (cell, weight) in enumerate(zip(cells, weights, strict=True)):
        if what == "read":  # a weight of 0 stands for a cell that is not there: what lies in its place may be NaN
            made += np.where(weight == 0, 0, planes[:, cell]) * weight
        elif what == "add":
            at: Any = slice(None), cell
            np.add.at(made, at, np.where(weight == 0, 0, np.multiply(given, weight, dtype=np.float64)))  # type: ignore[arg-type]
        else:
            made[k, : len(cell)] = (planes[:, cell] * given).sum(0)


def sample(x: np.ndarray, grid: np.ndarray, mode: str, padding: str, align: bool) -> np.ndarray:
    """x (N, C, *sizes) at grid (N, P, axes): (N, C, P); float32 or float64."""
    n, c, sizes = x.shape[0], x.shape[1], x.shape[2:]
    y = np.empty((n, c, grid.shape[1]), x.dtype)
    if y.size == 0:
        return y
    images = np.ascontiguousarray(x).reshape(n, c, -1)
    with SILENT():
        for first, some, t in _taken(grid, sizes, mode, padding, align):
            _walk("read", images[first : first + some], None, t, y[first : first + some])
    return y


def to_image(g: np.ndarray, grid: np.ndarray, sizes: tuple[int, ...], mode: str, padding: str, align: bool) -> np.ndarray:
    """sample's gradient to x: g (N, C, P) added up by cells, in float64, as (N, C, *sizes)."""
    n, c = g.shape[:2]
    dx = np.zeros((n, c, math.prod(sizes)), g.dtype)
    if g.size:
        g, sums = np.ascontiguousarray(g), np.empty((1, *dx.shape[1:]))
        for first, some, t in _taken(grid, sizes, mode, padding, align, given=True):
            for i in range(some):
                # many positions may add to one cell: in float32 their sum would drift
                sums.fill(0)
                _walk("add", None, g[first + i : first + i + 1], t, sums, i)
                dx[first + i] = sums[0]
    return dx.reshape(n, c, *sizes)


def to_grid(g: np.ndarray, x: np.ndarray, grid: np.ndarray, mode: str, padding: str, align: bool) -> np.ndarray:
    """sample's gradient to the grid (N, P, axes): g times the slopes of the weights times what was taken, over channels and taps."""
    n, sizes, count = x.shape[0], x.shape[2:], grid.shape[1]
    found = np.zeros(grid.shape, g.dtype)
    if mode == "nearest" or not g.size:
        return found
    images, g = np.ascontiguousarray(x).reshape(n, x.shape[1], -1), np.ascontiguousarray(g)
    for first, some, t in _taken(grid, sizes, mode, padding, align, sloped=True):
        along = np.zeros(t.cells.shape, g.dtype)
        _walk("along", images[first : first + some], g[first : first + some], t, along)
        for k, chosen in enumerate(t.chosen):
            for d in range(len(sizes)):
                slopes = _product(t.axes, chosen, d)
                # a cell that is not taken has no slope, and may hold NaN
                shares = np.where(slopes == 0, 0, along[k] * slopes).reshape(some, count)
                found[first : first + some, :, len(sizes) - 1 - d] += shares
    return found
