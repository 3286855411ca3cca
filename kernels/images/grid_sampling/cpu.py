"""grid_sample on the CPU: the taps of every axis as tables, rows of cells taken position by position in blocks that stay in the cache."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tritensor.kernels.parts.cpu.blocks import SILENT

BLOCK = 4096  # positions at a time
_CUBIC = -0.75


class AxisTaps(NamedTuple):
    """One axis: the cells (K, P) that each position takes, their weights (0 outside), and the weights' derivatives by the grid's number."""

    cells: np.ndarray
    weights: np.ndarray
    slopes: np.ndarray


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


def axis_taps(u: np.ndarray, n: int, mode: str, padding: str, align: bool) -> AxisTaps:
    """The taps of grid numbers u (P,) on an axis of n cells."""
    half = (n - 1) / 2 if align else n / 2
    at = (u + 1) / 2 * (n - 1) if align else ((u + 1) * n - 1) / 2
    if mode == "bicubic":
        low = np.floor(at)
        t = at - low
        ks = np.arange(-1, 3).astype(u.dtype)[:, None]
        cells, _ = _kept(low + ks, n, padding, align)
        d = np.abs(t - ks)
        weights, slopes = _keys(d), _keys_slope(d) * np.sign(t - ks) * half
    else:
        at, slope = _kept(at, n, padding, align)
        if mode == "nearest":
            cells, weights = np.rint(at)[None], np.ones((1, *u.shape), u.dtype)
            slopes = np.zeros_like(weights)
        else:
            low = np.floor(at)
            t = at - low
            step = np.broadcast_to(np.asarray(slope * half, u.dtype), u.shape)
            cells, weights, slopes = np.stack([low, low + 1]), np.stack([1 - t, t]), np.stack([-step, step])
    there = (cells >= 0) & (cells < n)
    whole = np.where(there, cells, 0).astype(np.int64)
    return AxisTaps(whole, (weights * there).astype(u.dtype, copy=False), (slopes * there).astype(u.dtype, copy=False))


def _keys(d: np.ndarray) -> np.ndarray:
    """Keys's kernel at distances d."""
    a = _CUBIC
    return np.where(d <= 1, ((a + 2) * d - (a + 3)) * d * d + 1, ((a * d - 5 * a) * d + 8 * a) * d - 4 * a)


def _keys_slope(d: np.ndarray) -> np.ndarray:
    a = _CUBIC
    return np.where(d <= 1, (3 * (a + 2) * d - 2 * (a + 3)) * d, (3 * a * d - 10 * a) * d + 8 * a)


def _combined(taps: Sequence[AxisTaps], sizes: Sequence[int]) -> list[tuple[tuple[int, ...], np.ndarray]]:
    """Every combination of taps, and the flat cells (P,) that it takes."""
    found = []
    for chosen in itertools.product(*[range(len(t.cells)) for t in taps]):
        flat: np.ndarray | int = 0
        for k, t, n in zip(chosen, taps, sizes, strict=True):
            flat = flat * n + t.cells[k]
        found.append((chosen, np.asarray(flat)))
    return found


def _product(taps: Sequence[AxisTaps], chosen: tuple[int, ...], slope_of: int = -1) -> np.ndarray:
    """The weight of a combination; with `slope_of`, its derivative by that axis's number."""
    parts = [t.slopes[k] if d == slope_of else t.weights[k] for d, (k, t) in enumerate(zip(chosen, taps, strict=True))]
    out = parts[0]
    for p in parts[1:]:
        out = out * p
    return out


def _axes(grid: np.ndarray, sizes: Sequence[int], mode: str, padding: str, align: bool) -> list[AxisTaps]:
    """Taps of all axes of positions grid (P, axes), whose numbers stand in the order width, height, depth."""
    return [axis_taps(grid[:, len(sizes) - 1 - d], n, mode, padding, align) for d, n in enumerate(sizes)]


def sample(x: np.ndarray, grid: np.ndarray, mode: str, padding: str, align: bool) -> np.ndarray:
    """x (N, C, *sizes) at grid (N, P, axes): (N, C, P); float32 or float64."""
    n, c, sizes = x.shape[0], x.shape[1], x.shape[2:]
    flat = np.require(x, requirements="C").reshape(n, c, math.prod(sizes))
    y = np.empty((n, c, grid.shape[1]), x.dtype)
    with SILENT():
        finite = bool(np.isfinite(flat.sum()))
        for image, start in itertools.product(range(n), range(0, grid.shape[1], BLOCK)):
            block = grid[image, start : start + BLOCK]
            taps = _axes(block, sizes, mode, padding, align)
            out = y[image, :, start : start + BLOCK]
            taken = np.empty((c, len(block)), x.dtype)
            for first, (chosen, cells) in enumerate(_combined(taps, sizes)):
                weight = _product(taps, chosen)
                np.take(flat[image], cells, 1, out=taken, mode="clip")
                if not finite:
                    taken[:, weight == 0] = 0
                if first == 0:
                    np.multiply(taken, weight, out=out)
                else:
                    taken *= weight
                    out += taken
    return y


def to_image(g: np.ndarray, grid: np.ndarray, sizes: tuple[int, ...], mode: str, padding: str, align: bool) -> np.ndarray:
    """sample's gradient to x: g (N, C, P) added up by cells, in float64, as (N, C, *sizes)."""
    n, c, count = g.shape
    cells_of_image = math.prod(sizes)
    dx = np.zeros((n, c, cells_of_image), g.dtype)
    if count == 0:
        return dx.reshape(n, c, *sizes)
    for image in range(n):
        taps = _axes(grid[image], sizes, mode, padding, align)
        combined = _combined(taps, sizes)
        cells = np.concatenate([cells for _, cells in combined])
        weights = np.stack([_product(taps, chosen) for chosen, _ in combined])  # (T, P)
        together = max(1, (1 << 16) // cells.size)  # channels of one count
        for first in range(0, c, together):
            part = g[image, first : first + together]
            keys = cells if len(part) == 1 else (np.arange(len(part))[:, None] * cells_of_image + cells).reshape(-1)
            shares = (part[:, None] * weights).reshape(-1)
            dx[image, first : first + together] = np.bincount(keys, shares, len(part) * cells_of_image).reshape(len(part), -1)
    return dx.reshape(n, c, *sizes)


def to_grid(g: np.ndarray, x: np.ndarray, grid: np.ndarray, mode: str, padding: str, align: bool) -> np.ndarray:
    """sample's gradient to the grid (N, P, axes): g times the slopes of the weights times what was taken, over channels and taps."""
    n, c, sizes = x.shape[0], x.shape[1], x.shape[2:]
    flat = np.require(x, requirements="C").reshape(n, c, math.prod(sizes))
    found = np.zeros(grid.shape, g.dtype)
    if mode == "nearest":
        return found
    for image, start in itertools.product(range(n), range(0, grid.shape[1], BLOCK)):
        part = slice(start, start + BLOCK)
        taps = _axes(grid[image, part], sizes, mode, padding, align)
        arriving = g[image, :, part]
        taken = np.empty(arriving.shape, x.dtype)
        for chosen, cells in _combined(taps, sizes):
            np.take(flat[image], cells, 1, out=taken, mode="clip")
            along = np.einsum("cp,cp->p", taken, arriving)
            for d in range(len(sizes)):
                found[image, part, len(sizes) - 1 - d] += along * _product(taps, chosen, d)
    return found
