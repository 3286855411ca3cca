"""The gradient of grid_sample in ops, so that it can be differentiated again: what numpy and the kernels compute, tap by tap."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from tritensor.kernels.parts.view_arithmetic import reshaped
from tritensor.ops.table import ops

INT64 = np.dtype(np.int64)


class _Tap(NamedTuple):
    """One cell of every position along an axis: its number (N, P), its weight, the weight's derivative by the grid's number (None: 0), and whether
    there is such a cell: what stands in its place may be NaN, as the weights of a position that is NaN are."""

    cell: Any
    weight: Any
    slope: Any
    there: Any


def _all(like: Any, value: float) -> Any:
    return ops.full(shape=tuple(like.shape), value=value, dtype=like._array.dtype, device=like.device)


def _reflect(at: Any, n: int, align: bool) -> tuple[Any, Any]:
    low, span = (0.0, n - 1.0) if align else (-0.5, float(n))
    if span == 0:
        return _all(at, 0.0), _all(at, 0.0)
    away = ops.abs(at - low)
    flips = ops.floor(away / span)
    rest = away - flips * span
    odd = ops.ne(flips - ops.floor(flips / 2) * 2, 0)
    sign = ops.where(ops.lt(at, low), _all(at, -1.0), 1.0)
    return ops.where(odd, span - rest, rest) + low, ops.where(odd, -sign, sign)


def _show(at: Any, n: int, padding: str, align: bool) -> tuple[Any, Any]:
    """Positions as the padding shows them, and their derivative; `at` carries no graph."""
    slope = _all(at, 1.0)
    if padding == "reflection":
        at, slope = _reflect(at, n, align)
    if padding != "zeros":
        slope = ops.where(ops.logical_and(ops.gt(at, 0), ops.lt(at, n - 1)), slope, 0.0)
        at = ops.clamp(at, 0, n - 1)
    return at, slope


def _keys(away: Any) -> tuple[Any, Any]:
    """Keys's kernel (a = -0.75) at signed distances, and its derivative."""
    d = ops.abs(away)
    near = ops.le(d.detach(), 1)
    weight = ops.where(near, ((1.25 * d - 2.25) * d) * d + 1, ((-0.75 * d + 3.75) * d - 6.0) * d + 3.0)
    slope = ops.where(near, (3.75 * d - 4.5) * d, (-2.25 * d + 7.5) * d - 6.0)
    return weight, slope * ops.sign(away.detach())


def _axis(u: Any, n: int, mode: str, padding: str, align: bool) -> list[_Tap]:
    half = (n - 1) / 2 if align else n / 2
    raw = (u + 1) / 2 * (n - 1) if align else ((u + 1) * n - 1) / 2
    bare = raw.detach()
    taps: list[tuple[Any, Any, Any]] = []
    # as on the CPU: the weights are of the position, the padding moves cells alone
    if mode == "bicubic":
        low = ops.floor(bare)
        for k in range(-1, 3):
            weight, slope = _keys(raw - low - k)
            taps.append((_show(low + k, n, padding, align)[0], weight, slope * half))
    else:
        kept, slope = _show(bare, n, padding, align)
        if mode == "nearest":
            taps.append((ops.round(kept), _all(kept, 1.0), None))
        else:
            low = ops.floor(kept)
            t = kept - low + slope * (raw - bare)  # the value of `kept`, with its derivative
            taps = [(low, 1 - t, slope * -half), (low + 1, t, slope * half)]
    found = []
    for cell, weight, slope in taps:
        there = ops.logical_and(ops.ge(cell, 0), ops.lt(cell, n))
        inside = ops.cast(there, dtype=u._array.dtype)
        whole = ops.cast(ops.where(there, cell, 0.0), dtype=INT64)
        found.append(_Tap(whole, weight * inside, None if slope is None else ops.where(there, slope, 0.0), there))
    return found


def rule(g: Any, x: Any, grid: Any, mode: str, padding_mode: str, align_corners: bool, needs: tuple[bool, ...]) -> tuple[Any, Any]:
    """Each combination of taps puts its weight's share of g into the image, and sends what it took times its slope to the grid."""
    n, c, *sizes = x.shape
    p, cells = math.prod(grid.shape[1:-1]), math.prod(sizes)
    axes = len(sizes)
    numbers = reshaped(grid, (n, p, axes))
    taps = [_axis(numbers[..., axes - 1 - d], m, mode, padding_mode, align_corners) for d, m in enumerate(sizes)]
    arriving, flat = reshaped(g, (n, c, p)), reshaped(x, (n, c, cells))
    dx = ops.full(shape=(n, c, cells), value=0, dtype=x._array.dtype, device=x.device) if needs[0] else None
    along_axes: list[Any] = [None] * axes
    for chosen in itertools.product(*taps):
        cell = chosen[0].cell
        for tap, m in zip(chosen[1:], sizes[1:], strict=True):
            cell = cell * m + tap.cell
        cell = ops.expand(cell.unsqueeze(1), shape=(n, c, p))
        there = chosen[0].there
        for tap in chosen[1:]:
            there = ops.logical_and(there, tap.there)
        there = there.unsqueeze(1)
        if needs[0]:
            dx = ops.scatter_add(dx, cell, ops.where(there, arriving * _product(chosen).unsqueeze(1), 0.0), dim=2)
        if needs[1] and mode != "nearest":
            along = (arriving * ops.where(there, ops.gather(flat, cell, dim=2), 0.0)).sum(1)  # (N, P)
            for d in range(axes):
                part = along * _product(chosen, d)
                along_axes[d] = part if along_axes[d] is None else along_axes[d] + part
    return (None if dx is None else reshaped(dx, tuple(x.shape))), _grid_gradient(grid, along_axes) if needs[1] else None


def _grid_gradient(grid: Any, along_axes: list[Any]) -> Any:
    if along_axes[0] is None:
        return _all(grid, 0.0)  # the nearest cell does not change
    return reshaped(ops.stack(*reversed(along_axes), dim=2), tuple(grid.shape))


def _product(chosen: tuple[_Tap, ...], slope_of: int = -1) -> Any:
    parts = [t.slope if d == slope_of else t.weight for d, t in enumerate(chosen)]
    out = parts[0]
    for part in parts[1:]:
        out = out * part
    return out
