"""Resampling on the CPU: axis by axis, rows taken where there is one tap, else small matrix products along the band of the map."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from tritensor.kernels.images.axis_maps import AREA, CUBIC_AA, LINEAR_AA, UNIT, Axis, Taps, taps_of
from tritensor.kernels.parts.cpu.blocks import SILENT, is_half
from tritensor.kernels.parts.cpu.summation import row_sums
from tritensor.llvm import products

RUN = 32  # results of one product along the last axis: few, so that the band's matrix is mostly full
RUN_ROWS = 16  # results of one product of whole rows
Blocks = list[tuple[int, int, int, int, np.ndarray]]


@lru_cache(maxsize=64)
def _bands(axis: Axis, mode: int, align_corners: bool, double: bool, adjoint: bool, run: int) -> Blocks:
    """A map's matrices."""
    return bands_of(taps_of(axis, mode, align_corners, double, adjoint), run)


def bands_of(t: Taps, run: int) -> Blocks:
    """Tables as matrices: results [r0, r1) are cells [c0, c1) times (c1 - c0, r1 - r0)."""
    found = []
    for r0 in range(0, len(t.cells), run):
        cells, weights, used = (x[r0 : r0 + run] for x in t)
        r1 = r0 + len(cells)
        c0, c1 = (int(cells[used].min()), int(cells[used].max()) + 1) if used.any() else (0, 0)
        band = np.zeros((c1 - c0, r1 - r0), weights.dtype)
        row, _ = np.nonzero(used)
        np.add.at(band, (cells[used] - c0, row), weights[used])
        found.append((r0, r1, c0, c1, band))
    return found


def _by_taps(x: np.ndarray, t: Taps, out: np.ndarray) -> None:
    """Tap after tap, for numbers that a product with 0 would spread: infinities and NaN stay where they are taken."""
    out[...] = 0
    with SILENT():
        for k in range(t.cells.shape[1]):
            term = x[:, t.cells[:, k]] * t.weights[:, k, None]
            np.add(out, term, out=out, where=t.used[:, k, None])


def _along(x: np.ndarray, dim: int, axis: Axis, mode: int, align_corners: bool, adjoint: bool, finite: bool) -> np.ndarray:
    """x, C-ordered, with one axis mapped."""
    outer, n, inner = int(np.prod(x.shape[:dim])), x.shape[dim], int(np.prod(x.shape[dim + 1 :]))
    m = axis.size if adjoint else axis.out
    flat = x.reshape(outer, n, inner)
    out = np.empty((outer, m, inner), x.dtype)
    double = x.dtype == np.float64
    if out.size == 0:
        pass
    # nothing is weighted: cells are taken, whatever they hold
    elif mode in UNIT and not adjoint:
        np.take(flat, taps_of(axis, mode, align_corners, double, False).cells[:, 0], 1, out=out, mode="clip")
    # a band's matrix multiplies cells that are not taken by 0, which is NaN of an infinity
    elif not finite:
        _by_taps(flat, taps_of(axis, mode, align_corners, double, adjoint), out)
    else:
        out = along_bands(flat, m, _bands(axis, mode, align_corners, double, adjoint, RUN if inner == 1 else RUN_ROWS))
    return out.reshape(*x.shape[:dim], m, *x.shape[dim + 1 :])


def along_bands(x: np.ndarray, m: int, bands: Blocks) -> np.ndarray:
    """x (outer, n, inner) with n mapped to m by matrices."""
    out = np.empty((x.shape[0], m, x.shape[2]), x.dtype)
    for r0, r1, c0, c1, band in bands:
        # along the last axis rows are vectors: the band stands on the right
        if x.shape[2] == 1:
            products.matmul(x[:, c0:c1, 0], band, out=out[:, r0:r1, 0])
        else:
            products.matmul(band.T, x[:, c0:c1], out=out[:, r0:r1])
    return out


def channels_last(x: np.ndarray) -> bool:
    """Whether the channels of (N, C, H, W) or (N, C, D, H, W) lie innermost."""
    return x.ndim > 3 and not x.flags.c_contiguous and np.moveaxis(x, 1, -1).flags.c_contiguous


def resample_axes(x: np.ndarray, axes: Sequence[Axis], mode: int, align_corners: bool, adjoint: bool = False) -> np.ndarray:
    """x (N, C, one to three axes) under a map or its adjoint, in float32 at least, rounded once."""
    last = channels_last(x)
    y = np.ascontiguousarray(np.moveaxis(x, 1, -1) if last else x)
    exact, lead = mode in UNIT and not adjoint, 1 if last else 2
    # sums are rounded once: 16-bit floats and bytes go through float32
    if not exact and (is_half(x.dtype) or x.dtype.kind in "iu"):
        y = y.astype(np.float32)
    # global average pooling, the end of most nets: a plain sum of rows
    if mode == AREA and not adjoint and not last and all(a.out == 1 for a in axes) and y.size:  # the mean of all
        rows = y.reshape(-1, int(np.prod(y.shape[lead:])))
        mean = row_sums(rows) / rows.dtype.type(rows.shape[1])
        return mean.astype(x.dtype, copy=False).reshape(*x.shape[:2], *(1,) * len(axes))
    with SILENT():
        # one pass over the image: a sum is finite only where everything is
        finite = exact or bool(np.isfinite(y.sum()))
    # The axis that shrinks most goes first, the one that grows most last; of equal ones the last axis first, which costs more an element.
    order = sorted(range(len(axes)), key=lambda d: ((axes[d].out / axes[d].size) ** (-1 if adjoint else 1), -d))
    for d in order:
        a = axes[d]
        if a.size != a.out or a.scale != 1 or a.shift or mode in (LINEAR_AA, CUBIC_AA):
            y = _along(y, lead + d, a, mode, align_corners, adjoint, finite)
    if y.dtype != x.dtype:
        y = y.astype(x.dtype)
    elif y is x or np.may_share_memory(x, y):
        y = y.copy()
    return np.moveaxis(y, -1, 1) if last else y


def padded_cells(axis: Axis, mode: int) -> np.ndarray:
    """The cell that each place of a padded axis shows."""
    return taps_of(axis, mode, False, False, False).cells[:, 0]


def as_slice(numbers: np.ndarray) -> slice | np.ndarray:
    """Numbers in steps of 1 or -1 as the slice that they are, which copies by runs."""
    step = int(numbers[1] - numbers[0]) if numbers.size > 1 else 1
    # a replicated border names one cell again and again: no slice
    if step not in (1, -1) or (np.diff(numbers) != step).any():
        return numbers
    stop = int(numbers[-1]) + step
    return slice(int(numbers[0]), None if stop < 0 else stop, step)
