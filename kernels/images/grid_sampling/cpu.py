"""grid_sample on the CPU: the taps of every axis as tables, rows of cells taken position by position in blocks that stay in the cache."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.kernels.images.grid_sampling import cpu_llvm
from tritensor.kernels.parts.cpu.blocks import SILENT

POSITIONS = 16384  # positions whose taps are computed at a time
ROW_ELEMENTS = 65536  # elements of the rows that are taken at a time
FEW = 6  # channels below which planes are read element by element
_CUBIC = -0.75


class AxisTaps(NamedTuple):
    """One axis: the cells (K, P) that each position takes, their weights (0 outside), and the weights' derivatives by the grid's number."""

    cells: np.ndarray
    weights: np.ndarray
    slopes: np.ndarray | None


def _reflected(at: np.ndarray, n: int, align: bool) -> tuple[np.ndarray, np.ndarray]:
    """Positions mirrored into the axis, and the sign of each mirroring."""
    low, span = (0.0, n - 1.0) if align else (-0.5, float(n))
    if span == 0:
        return np.zeros_like(at), np.zeros_like(at)
    sign = np.where(at < low, -1, 1).astype(at.dtype)
    away = np.abs(at - at.dtype.type(low))
    flips = np.floor(away / at.dtype.type(span))
    rest = away - flips * at.dtype.type(span)
    odd = np.remainder(flips, 2) != 0
    return np.where(odd, span - rest + low, rest + low).astype(at.dtype), np.where(odd, -sign, sign)


def _kept(at: np.ndarray, n: int, padding: str, align: bool) -> tuple[np.ndarray, np.ndarray | float]:
    """Positions as the padding shows them, and their derivative."""
    if padding == "zeros":
        return at, 1.0
    slope: np.ndarray | float = 1.0
    if padding == "reflection":
        at, slope = _reflected(at, n, align)
    inside = (at > 0) & (at < n - 1)
    return np.fmin(np.fmax(at, 0), n - 1).astype(at.dtype), slope * inside


def axis_taps(u: np.ndarray, n: int, mode: str, padding: str, align: bool, sloped: bool = False, given: bool = False) -> AxisTaps:
    """The taps of grid numbers u (P,) on an axis of n cells; their slopes where `sloped`. `given`: the weights are of what cells are given, and a position
    that is NaN, whose weights are, gives nothing to a cell that it does not name."""
    half = (n - 1) / 2 if align else n / 2
    at = (u + 1) * u.dtype.type(half) if align else ((u + 1) * u.dtype.type(n) - 1) * u.dtype.type(0.5)
    slopes = None
    if mode == "bicubic":
        low = np.floor(at)
        t = at - low
        ks = np.arange(-1, 3).astype(u.dtype)[:, None]
        cells, _ = _kept(low + ks, n, padding, align)
        d = np.abs(t - ks)
        weights = _keys(d)
        if sloped:
            slopes = _keys_slope(d) * np.sign(t - ks) * half
    else:
        at, slope = _kept(at, n, padding, align)
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
    weights = np.where(there, weights, 0) if given else weights * there
    return AxisTaps(whole, weights.astype(u.dtype, copy=False), kept)


def _keys(d: np.ndarray) -> np.ndarray:
    """Keys's kernel at distances d."""
    a = _CUBIC
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


def _rows(x: np.ndarray) -> np.ndarray:
    """An image (C, *sizes) as rows of channels (cells, C), so that a tap takes one run of memory."""
    return np.ascontiguousarray(x.reshape(x.shape[0], math.prod(x.shape[1:])).T)


def _pieces(count: int, channels: int) -> list[slice]:
    """Positions in parts whose rows stay in the cache."""
    step = max(ROW_ELEMENTS // max(channels, 1), 1)
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def _blocks(count: int) -> list[slice]:
    """The positions of an image in blocks."""
    return [slice(start, min(start + POSITIONS, count)) for start in range(0, count, POSITIONS)]


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
    some = max(1, POSITIONS // max(count, 1))
    for first in range(0, n, some):
        part = np.ascontiguousarray(grid[first : first + some])
        taps = _axes(part.reshape(-1, axes), sizes, mode, padding, align, sloped, given)
        combined = _combined(taps, sizes)
        cells = np.minimum(np.stack([cells for _, cells in combined]), math.prod(sizes) - 1)  # one beyond has weight 0
        chosen = [which for which, _ in combined]
        yield first, len(part), Taken(cells, np.stack([_product(taps, which) for which in chosen]), taps, chosen)


def _by_machine(
    what: str, planes: np.ndarray | None, given: np.ndarray | None, t: Taken, image: int, count: int, made: np.ndarray, made_step: int
) -> None:
    """machine.function over the planes (C, cells) of an image, what is given (C, P), and what is made; `image` is its number in t."""
    channels = (made if given is None else given).shape[0]
    dtype = t.weights.dtype
    start = image * count * 8
    cpu_llvm.function(dtype, len(t.cells), what)(
        0 if planes is None else planes.ctypes.data, 0 if given is None else given.ctypes.data, t.cells.ctypes.data + start,
        t.weights.ctypes.data + image * count * dtype.itemsize, made.ctypes.data, channels, count, 0 if planes is None else planes.strides[0],
        0 if given is None else given.strides[0], made_step, t.cells.shape[1],
    )  # fmt: skip


def _has_machine(x: np.ndarray, count: int) -> bool:
    return x.size > 0 and count > 0 and cpu_llvm.function(x.dtype, 1, "read") is not None


def sample(x: np.ndarray, grid: np.ndarray, mode: str, padding: str, align: bool) -> np.ndarray:
    """x (N, C, *sizes) at grid (N, P, axes): (N, C, P); float32 or float64."""
    n, c, sizes = x.shape[0], x.shape[1], x.shape[2:]
    y = np.empty((n, c, grid.shape[1]), x.dtype)
    if _has_machine(x, grid.shape[1]):
        with SILENT():
            images = np.ascontiguousarray(x).reshape(n, c, -1)
            for first, some, t in _taken(grid, sizes, mode, padding, align):
                for i in range(some):
                    _by_machine("read", images[first + i], None, t, i, grid.shape[1], y[first + i], y.strides[1])
        return y
    read = _read_planes if c < FEW else _read_rows
    with SILENT():
        finite = bool(np.isfinite(x.sum()))
        for image in range(n):
            source = x[image].reshape(c, math.prod(sizes)) if c < FEW else _rows(x[image])
            for block in _blocks(grid.shape[1]):
                taps = _axes(grid[image, block], sizes, mode, padding, align)
                combined = _combined(taps, sizes)
                read(
                    source, [cells for _, cells in combined], [_product(taps, chosen) for chosen, _ in combined], y[image, :, block], finite
                )
    return y


def _read_planes(planes: np.ndarray, cells: list[np.ndarray], weights: list[np.ndarray], out: np.ndarray, finite: bool) -> None:
    """out (C, P) = sum over taps of weights (P,) times planes (C, cells), of few channels: element by element."""
    taken = np.empty(out.shape, out.dtype)
    for k, (cell, weight) in enumerate(zip(cells, weights, strict=True)):
        np.take(planes, cell, 1, out=taken, mode="clip")
        if not finite:
            taken[:, weight == 0] = 0
        np.multiply(taken, weight, out=taken if k else out)
        if k:
            out += taken


def _read_rows(rows: np.ndarray, cells: list[np.ndarray], weights: list[np.ndarray], out: np.ndarray, finite: bool) -> None:
    """The same from rows (cells, C), of many channels: a run of memory for each tap."""
    places, by = np.stack(cells, 1), np.stack(weights, 1)  # (P, T)
    pieces = _pieces(len(places), rows.shape[1] * len(cells))
    room = np.empty((pieces[0].stop, len(cells), rows.shape[1]), rows.dtype)
    for piece in pieces:
        taken, weight = room[: piece.stop - piece.start], by[piece]
        np.take(rows, places[piece], 0, out=taken, mode="clip")
        if not finite:
            taken[weight == 0] = 0
        out[:, piece] = taken[:, 0].T if len(cells) == 1 and (weight == 1).all() else np.einsum("pt,ptc->pc", weight, taken).T


def to_image(g: np.ndarray, grid: np.ndarray, sizes: tuple[int, ...], mode: str, padding: str, align: bool) -> np.ndarray:
    """sample's gradient to x: g (N, C, P) added up by cells, in float64, as (N, C, *sizes)."""
    n, c, count = g.shape
    cells_of_image = math.prod(sizes)
    dx = np.zeros((n, c, cells_of_image), g.dtype)
    if count == 0:
        return dx.reshape(n, c, *sizes)
    if _has_machine(g, count):
        g, sums = np.ascontiguousarray(g), np.empty((c, cells_of_image))
        for first, some, t in _taken(grid, sizes, mode, padding, align, given=True):
            for i in range(some):
                sums.fill(0)
                _by_machine("add", None, g[first + i], t, i, count, sums, sums.strides[0])
                dx[first + i] = sums
        return dx.reshape(n, c, *sizes)
    for image in range(n):
        taps = _axes(grid[image], sizes, mode, padding, align, given=True)
        combined = _combined(taps, sizes)
        cells = np.minimum(np.concatenate([cells for _, cells in combined]), cells_of_image - 1)  # one beyond has weight 0
        weights = np.stack([_product(taps, chosen) for chosen, _ in combined])  # (T, P)
        together = max(1, (1 << 16) // cells.size)  # channels of one count
        for first in range(0, c, together):
            part = g[image, first : first + together]
            keys = cells if len(part) == 1 else (np.arange(len(part))[:, None] * cells_of_image + cells).reshape(-1)
            shares = np.where(weights == 0, 0, np.multiply(part[:, None], weights, dtype=np.float64)).reshape(-1)
            dx[image, first : first + together] = np.bincount(keys, shares, len(part) * cells_of_image).reshape(len(part), cells_of_image)
    return dx.reshape(n, c, *sizes)


def to_grid(g: np.ndarray, x: np.ndarray, grid: np.ndarray, mode: str, padding: str, align: bool) -> np.ndarray:
    """sample's gradient to the grid (N, P, axes): g times the slopes of the weights times what was taken, over channels and taps."""
    n, sizes = x.shape[0], x.shape[2:]
    found = np.zeros(grid.shape, g.dtype)
    if mode == "nearest":
        return found
    if _has_machine(x, grid.shape[1]):
        images, g, count = np.ascontiguousarray(x).reshape(n, x.shape[1], -1), np.ascontiguousarray(g), grid.shape[1]
        for first, some, t in _taken(grid, sizes, mode, padding, align, sloped=True):
            along = np.zeros(t.cells.shape, g.dtype)
            for i in range(some):
                _by_machine("along", images[first + i], g[first + i], t, i, count, along[:, i * count :], 0)
            for k, chosen in enumerate(t.chosen):
                for d in range(len(sizes)):
                    found[first : first + some, :, len(sizes) - 1 - d] += _shares(along[k], _product(t.axes, chosen, d)).reshape(
                        some, count
                    )
        return found
    for image in range(n):
        rows = _rows(x[image])
        for block in _blocks(grid.shape[1]):
            taps = _axes(grid[image, block], sizes, mode, padding, align, sloped=True)
            combined = _combined(taps, sizes)
            along = _along(rows, np.stack([cells for _, cells in combined], 1), g[image, :, block])
            for k, (chosen, _) in enumerate(combined):
                for d in range(len(sizes)):
                    found[image, block, len(sizes) - 1 - d] += _shares(along[:, k], _product(taps, chosen, d))
    return found


def _shares(along: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """along * slopes, 0 where there is no slope: a cell that is not taken may hold NaN."""
    return np.where(slopes == 0, 0, along * slopes)


def _along(rows: np.ndarray, cells: np.ndarray, g: np.ndarray) -> np.ndarray:
    """(P, T): for every position and tap, the sum over channels of what is taken there times g (C, P)."""
    along = np.empty(cells.shape, g.dtype)
    pieces = _pieces(len(cells), rows.shape[1] * cells.shape[1])
    room = np.empty((pieces[0].stop, cells.shape[1], rows.shape[1]), rows.dtype)
    for piece in pieces:
        taken = room[: piece.stop - piece.start]
        np.take(rows, cells[piece], 0, out=taken, mode="clip")
        np.einsum("ptc,pc->pt", taken, np.ascontiguousarray(g[:, piece].T), out=along[piece])
    return along
