"""Group normalisation on the CPU: in machine code a group at a time, its rows lying apart; one channel a group as planes of channels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.kernels.normalization import rows_cpu
from tritensor.kernels.normalization.channels_cpu import as_given
from tritensor.kernels.normalization.channels_llvm import COMBINED, LONG, Planes
from tritensor.kernels.parts.cpu.summation import centred, total
from tritensor.llvm.loops import takes_rows
from tritensor.llvm.passes.row_programs import Operand

Arrays = tuple[Any, ...]


def _rows(x: np.ndarray, groups: int) -> np.ndarray:
    """(batch * groups, channels of a group, elements of a channel), C-ordered."""
    # channels-last images are copied: a group's channels have to lie together
    return np.ascontiguousarray(x).reshape(x.shape[0] * groups, x.shape[1] // groups, math.prod(x.shape[2:]))


def _per_row(v: np.ndarray | None, rows: np.ndarray, groups: int, kept: np.dtype) -> Any:
    """One number for each channel beside rows of a batch: (batch * groups, channels of a group, 1)."""
    if v is None:
        return None
    wide = v.astype(kept, copy=False).reshape(1, groups, rows.shape[1])
    return np.broadcast_to(wide, (rows.shape[0] // groups, groups, rows.shape[1])).reshape(rows.shape[0], rows.shape[1], 1)


# Machine code.
class _Group:
    """One group of all instances: where its rows and its numbers begin."""

    def __init__(self, rows: np.ndarray, groups: int, g: int) -> None:
        self.groups, self.g = groups, g
        self.channels, self.elements = rows.shape[1:]
        self.n = self.channels * self.elements
        self.shape = (rows.shape[0] // groups, 1, self.n)

    def row(self, x: np.ndarray | None) -> Operand | None:
        return None if x is None else Operand(x.reshape(-1)[self.g * self.n :], self.groups * self.n)

    def single(self, v: np.ndarray) -> Operand:
        return Operand(v.reshape(-1)[self.g :], self.groups, one="row")

    def vector(self, v: np.ndarray | None) -> Operand | None:
        if v is None:
            return None
        return Operand(np.repeat(v[self.g * self.channels : (self.g + 1) * self.channels], self.elements), 0)


def _instances(v: np.ndarray | None, batch: int) -> np.ndarray | None:
    return None if v is None else np.tile(v, batch)


def _machine_forward(
    rows: np.ndarray, weight: Any, bias: Any, groups: int, eps: float, y: np.ndarray, mean: np.ndarray, var: np.ndarray
) -> bool:
    n, channels, elements = rows.shape
    w, b = (_instances(v, n // groups) for v in (weight, bias))
    # one channel a group: each row has one weight, as a plane of batch normalisation has
    if channels == 1:
        return Planes((1, n, elements)).forward(rows, w, b, eps, y, mean.reshape(-1), var.reshape(-1))
    # long channels are parts of their group's row, each part with a weight of its own
    if elements >= LONG:
        given, made = (Operand(v, channels * elements, elements) for v in (rows, y))
        vectors = [None if v is None else Operand(v, channels, 1, one="part") for v in (w, b)]
        moments = [Operand(mean, 1, one="row"), None, Operand(var, 1, one="row")]
        return rows_cpu.FORWARD((n, channels, elements), (given, *vectors, made, *moments), (eps,))
    # short ones: one group of all instances at a time, so that one vector of weights serves all its rows
    for g in range(groups):
        one = _Group(rows, groups, g)
        operands = [one.row(rows), one.vector(weight), one.vector(bias), one.row(y), one.single(mean), None, one.single(var)]
        if not rows_cpu.FORWARD(one.shape, operands, (eps,)):
            return False
    return True


def _machine_backward(
    up: np.ndarray, rows: np.ndarray, weight: Any, mean: np.ndarray, var: np.ndarray, groups: int, eps: float, dx: np.ndarray | None,
    needs: tuple[bool, ...],
) -> Arrays | None:  # fmt: skip
    """dw and db."""
    batch, channels = rows.shape[0] // groups, rows.shape[1]
    # each row has one weight: the sums of a row are the gradients of an instance's channel, added up here
    if channels == 1:
        planes = Planes((1, rows.shape[0], rows.shape[2]))
        found = planes.backward(up, rows, mean.reshape(-1), var.reshape(-1), _instances(weight, batch), eps, dx)
        return None if found is None else tuple(v.reshape(batch, groups).sum(0) for v in found)
    rstd = 1 / np.sqrt(var + var.dtype.type(eps))
    # sums of each channel in machine code, the few of a group by numpy
    if rows.shape[2] >= LONG:
        return _by_planes(up, rows, batch, weight, mean, rstd, dx)
    n = channels * rows.shape[2]
    sums = [np.zeros((groups, n)) if need else None for need in needs]
    for g in range(groups):
        one = _Group(rows, groups, g)
        onto = [None if s is None else Operand(s[g], 0) for s in sums]
        if not rows_cpu.BACKWARD(
            one.shape, (one.row(up), one.row(rows), one.vector(weight), one.single(mean), one.single(rstd), one.row(dx), *onto)
        ):
            return None
    return tuple(None if s is None else s.reshape(groups * channels, -1).sum(1) for s in sums)


def _by_planes(
    up: np.ndarray, rows: np.ndarray, batch: int, weight: Any, mean: np.ndarray, rstd: np.ndarray, dx: np.ndarray | None
) -> Arrays | None:
    """dw and db: the sums of every instance's channel; of what numpy makes of those, dx."""
    n, channels, elements = rows.shape
    planes = Planes((1, n * channels, elements))
    means, r = np.repeat(mean.reshape(-1), channels), rstd.reshape(-1, 1)
    found = planes.products(up, rows, means)
    if found is None:
        return None
    s, sc = (v.reshape(n, channels) for v in found)
    if dx is not None:
        w = np.ones((n, channels)) if weight is None else np.tile(weight, batch).reshape(n, channels)
        along, level = ((v * w).sum(1, keepdims=True) / (channels * elements) for v in (sc, s))
        beside = [np.broadcast_to(v, (n, channels)).astype(mean.dtype).reshape(-1) for v in (r * w, -(r * r * r) * along, -r * level)]
        COMBINED(planes.shape, (*map(planes.array, (up, rows)), *map(planes.vector, (means, *beside)), planes.array(dx)))
    return tuple(v.reshape(batch, -1).sum(0) for v in (sc * r, s))


def forward(x: np.ndarray, weight: np.ndarray | None = None, bias: np.ndarray | None = None, *, groups: int, eps: float = 1e-5) -> Arrays:
    """The result, and means and variances (batch, groups)."""
    kept = dtypes.accumulator(x.dtype)
    rows = _rows(x, groups)
    n, lead = kept.type(rows.shape[1] * rows.shape[2]), (x.shape[0], groups)
    if takes_rows(rows):
        made, moments = np.empty(x.shape, x.dtype), (np.empty(lead, kept), np.empty(lead, kept))
        if _machine_forward(rows, weight, bias, groups, eps, made, *moments):
            return made, *moments
    y, mean = centred(rows.astype(kept, copy=False), (1, 2))
    var = total(y * y, (1, 2), True) / n
    y *= 1 / np.sqrt(var + kept.type(eps))
    if weight is not None:
        y *= _per_row(weight, rows, groups, kept)
    if bias is not None:
        y += _per_row(bias, rows, groups, kept)
    return y.astype(x.dtype, copy=False).reshape(x.shape), mean.reshape(lead), var.reshape(lead)


def backward(
    g: np.ndarray, x: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None, mean: np.ndarray, var: np.ndarray, groups: int, eps: float,
    needs: tuple[bool, ...],
) -> Arrays:  # fmt: skip
    """Gradients of x, weight and bias."""
    rows, up = _rows(x, groups), _rows(g, groups)
    dx = np.empty(x.shape, x.dtype) if needs[0] else None
    found = _machine_backward(up, rows, weight, mean, var, groups, eps, dx, needs[1:]) if takes_rows(rows) else None
    if found is None:
        found = _numpy_backward(up, rows, weight, mean.reshape(-1, 1, 1), var.reshape(-1, 1, 1), groups, eps, dx)
    return dx, *as_given(found, (weight, bias), needs[1:])


def _numpy_backward(
    up: np.ndarray, rows: np.ndarray, weight: Any, mean: np.ndarray, var: np.ndarray, groups: int, eps: float, dx: np.ndarray | None
) -> Arrays:
    """dw and db."""
    kept = mean.dtype
    n, up = kept.type(rows.shape[1] * rows.shape[2]), up.astype(kept, copy=False)
    c = rows.astype(kept, copy=False) - mean
    rstd = 1 / np.sqrt(var + kept.type(eps))
    sums, products = total(up, (2,)), total(up * c, (2,))  # (batch * groups, channels of a group)
    # weights differ within a group, so the channels' sums are weighed before they are added
    if dx is not None:
        w = _per_row(weight, rows, groups, kept)
        su, suc = (total(v if w is None else v * w[:, :, 0], (1,)).reshape(-1, 1, 1) for v in (sums, products))
        c *= -(rstd * rstd) * (suc / n)
        c += up if w is None else up * w
        c -= su / n
        c *= rstd
        dx[...] = c.reshape(dx.shape)
    products = products * rstd[:, :, 0]
    return tuple(total(v.reshape(-1, groups * rows.shape[1]), (0,)) for v in (products, sums))
