"""Convolution on the CPU: channels-height-width-batch layout inside, rows gathered into a kept buffer, BLAS over them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

_BLOCK = 4 << 20  # bytes of gathered rows at a time
_KEEP = 64 << 20  # larger buffers are not kept
_LONG = 128  # elements of one output row (width times batch) from which a product for each row is worth its call
_local = threading.local()


class Geometry(NamedTuple):
    """Sizes of one convolution: (N, C, H, W) with (O, C / groups, kh, kw) to (N, O, OH, OW)."""

    batch: int
    channels: int
    height: int
    width: int
    out: int
    kh: int
    kw: int
    rows: int  # OH
    cols: int  # OW
    sh: int
    sw: int
    ph: int
    pw: int
    dh: int
    dw: int
    groups: int

    @property
    def long(self) -> bool:
        """Whether output rows are gathered once and shared by the kernel's rows (else every tap is gathered)."""
        return self.dh == 1 and self.cols * self.batch >= _LONG

    @property
    def taps(self) -> int:
        """Length of the summed dimension: kh * (C / groups) * kw."""
        return self.kh * (self.channels // self.groups) * self.kw


def scratch(name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Uninitialised memory that is used again by the next call of the same name: fresh pages cost more than the work on them."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if size > _KEEP:
        return np.empty(shape, dtype)
    held = getattr(_local, name, None)
    if held is None or held.nbytes < size:
        held = np.empty(max(size, 1), np.uint8)
        setattr(_local, name, held)
    return held[:size].view(dtype).reshape(shape)


def _batch_last(x: np.ndarray) -> np.ndarray:
    """x (N, C, H, W) as a dense (C, H, W, N); no copy where it lies so already, as this file's own results do."""
    return np.require(x.transpose(1, 2, 3, 0), requirements="C")


def _padded(x: np.ndarray, s: Geometry) -> np.ndarray:
    """x (N, C, H, W) as (C, H + 2 ph, W + 2 pw, N) with zeros around."""
    if not (s.ph or s.pw):
        return _batch_last(x)
    out = scratch("padded", (s.channels, s.height + 2 * s.ph, s.width + 2 * s.pw, s.batch), x.dtype)
    out[:, : s.ph] = 0
    out[:, s.ph + s.height :] = 0
    out[:, s.ph : s.ph + s.height, : s.pw] = 0
    out[:, s.ph : s.ph + s.height, s.pw + s.width :] = 0
    out[:, s.ph : s.ph + s.height, s.pw : s.pw + s.width] = x.transpose(1, 2, 3, 0)
    return out


def _weights(w: np.ndarray, s: Geometry) -> np.ndarray:
    """weight (O, C / G, kh, kw) as (G, O / G, taps), taps ordered kernel row, channel, kernel column."""
    return w.reshape(s.groups, s.out // s.groups, -1, s.kh, s.kw).transpose(0, 1, 3, 2, 4).reshape(s.groups, s.out // s.groups, s.taps)


def _gathered(x: np.ndarray, s: Geometry) -> Iterator[tuple[int, int, np.ndarray]]:
    """Blocks of output rows [low, high) with the taps they sum over, (G, rows, taps, OW * N), or (G, 1, taps, rows * OW * N) for short rows.

    For long rows each input row is gathered once for every kernel column; an output row then reads kh consecutive
    gathered rows as one matrix, so the gathered memory is kh times smaller than im2col's.
    """
    per_group = s.channels // s.groups
    item = x.itemsize
    xc, xh, xw, xn = x.strides
    run = s.cols * s.batch
    if s.kh == s.kw == s.sh == s.sw == 1:
        yield 0, s.rows, x.reshape(s.groups, 1, per_group, s.rows * run)
        return
    row = per_group * s.kw * run
    if s.long:
        count = max(1, (_BLOCK // (s.groups * row * item) - s.kh) // s.sh + 1)
    else:
        count = max(1, _BLOCK // (s.groups * s.taps * run * item))
    for low in range(0, s.rows, count):
        high = min(low + count, s.rows)
        block = x[:, low * s.sh :]
        if s.long:
            taken = (high - low - 1) * s.sh + s.kh
            block = block[:, :taken]
            cols = scratch("cols", (s.groups, taken, per_group, s.kw, s.cols, s.batch), x.dtype)
            strides = (per_group * xc, xh, xc, s.dw * xw, s.sw * xw, xn)
            np.copyto(cols, np.lib.stride_tricks.as_strided(block, (s.groups, block.shape[1], *cols.shape[2:]), strides))
            yield (
                low,
                high,
                np.lib.stride_tricks.as_strided(
                    cols, (s.groups, high - low, s.taps, run), (cols.strides[0], s.sh * row * item, run * item, item)
                ),
            )
        else:
            cols = scratch("cols", (s.groups, s.kh, per_group, s.kw, high - low, s.cols, s.batch), x.dtype)
            every_tap = (per_group * xc, s.dh * xh, xc, s.dw * xw, s.sh * xh, s.sw * xw, xn)
            np.copyto(cols, np.lib.stride_tricks.as_strided(block, cols.shape, every_tap))
            yield low, high, cols.reshape(s.groups, 1, s.taps, (high - low) * run)


def _rows_of(y: np.ndarray, low: int, high: int, s: Geometry, merged: bool) -> np.ndarray:
    """Rows [low, high) of y (O, OH, OW, N) as (G, rows, O / G, OW * N), or (G, 1, O / G, rows * OW * N)."""
    part = y.reshape(s.groups, s.out // s.groups, s.rows, s.cols * s.batch)[:, :, low:high]
    if merged:
        return part.reshape(s.groups, 1, s.out // s.groups, (high - low) * s.cols * s.batch)
    return part.transpose(0, 2, 1, 3)


def correlate(x: np.ndarray, w: np.ndarray, bias: np.ndarray | None, s: Geometry) -> np.ndarray:
    """y[n, o, r, q] = sum x[n, c, sh r + dh i - ph, sw q + dw j - pw] w[o, c, i, j] + bias[o]; returns (N, O, OH, OW), batch innermost in memory."""
    y = np.empty((s.out, s.rows, s.cols, s.batch), x.dtype)
    if y.size == 0:
        return y.transpose(3, 0, 1, 2)
    weights = _weights(w, s)[:, None]  # (G, 1, O / G, taps)
    for low, high, taps in _gathered(_padded(x, s), s):
        merged = taps.shape[1] == 1 and high - low > 1
        np.matmul(weights, taps, out=_rows_of(y, low, high, s, merged))
    if bias is not None:
        y += bias[:, None, None, None]
    return y.transpose(3, 0, 1, 2)


def weight_gradient(x: np.ndarray, g: np.ndarray, s: Geometry) -> np.ndarray:
    """dw[o, c, i, j] = sum over n, r, q of g[n, o, r, q] x[n, c, sh r + dh i - ph, sw q + dw j - pw]."""
    g = _batch_last(g)
    total = np.zeros((s.groups, s.out // s.groups, s.taps), x.dtype)
    if g.size == 0:
        return np.zeros((s.out, s.channels // s.groups, s.kh, s.kw), x.dtype)
    at_once = _BLOCK // max(total.nbytes, 1)  # products of rows held before they are summed
    for low, high, taps in _gathered(_padded(x, s), s):
        merged = taps.shape[1] == 1 and high - low > 1
        rows = _rows_of(g, low, high, s, merged)
        if rows.shape[1] <= at_once:
            total += np.matmul(rows, taps.transpose(0, 1, 3, 2)).sum(1)
        else:
            for r in range(rows.shape[1]):
                total += np.matmul(rows[:, r], taps[:, r].transpose(0, 2, 1))
    per_group = s.channels // s.groups
    dw = total.reshape(s.groups, s.out // s.groups, s.kh, per_group, s.kw).transpose(0, 1, 3, 2, 4)
    return np.ascontiguousarray(dw).reshape(s.out, per_group, s.kh, s.kw)


def input_gradient(g: np.ndarray, w: np.ndarray, s: Geometry) -> np.ndarray:
    """dx[n, c, h, v] = sum of g[n, o, r, q] w[o, c, i, j] over h = sh r + dh i - ph, v = sw q + dw j - pw; returns (N, C, H, W), batch innermost."""
    if g.size == 0:
        return np.zeros((s.batch, s.channels, s.height, s.width), g.dtype)
    g = _batch_last(g).reshape(s.groups, s.out // s.groups, s.rows, s.cols * s.batch)
    weights = np.ascontiguousarray(_weights(w, s).transpose(0, 2, 1))  # (G, taps, O / G)
    per_group = s.channels // s.groups
    run = s.cols * s.batch
    if s.kh == s.kw == s.sh == s.sw == 1 and not (s.ph or s.pw):
        flat = np.matmul(weights, g.reshape(s.groups, s.out // s.groups, -1))
        return flat.reshape(s.channels, s.height, s.width, s.batch).transpose(3, 0, 1, 2)
    # rows of dx before their columns are folded: one product for each output row lands on kh of them
    reach = max((s.rows - 1) * s.sh + (s.kh - 1) * s.dh + 1, s.ph + s.height)
    folded = scratch("folded", (s.groups, reach, per_group * s.kw, run), g.dtype)
    folded.fill(0)
    part = scratch("part", (s.groups, s.kh, per_group * s.kw, run), g.dtype)
    for r in range(s.rows):
        np.matmul(weights, g[:, :, r], out=part.reshape(s.groups, s.taps, run))
        onto = folded[:, r * s.sh : r * s.sh + (s.kh - 1) * s.dh + 1 : s.dh]
        np.add(onto, part, out=onto)
    dx = np.zeros((s.channels, s.height, s.width, s.batch), g.dtype)
    into = dx.reshape(s.groups, per_group, s.height, s.width, s.batch)
    rows = folded[:, s.ph : s.ph + s.height].reshape(s.groups, s.height, per_group, s.kw, s.cols, s.batch).transpose(3, 0, 2, 1, 4, 5)
    for j in range(s.kw):
        shift = j * s.dw - s.pw
        first = max(0, -(shift // s.sw))  # the first output column that lands inside
        last = min(s.cols, (s.width - 1 - shift) // s.sw + 1)
        if last > first:
            at = first * s.sw + shift
            onto = into[:, :, :, at : at + (last - first - 1) * s.sw + 1 : s.sw]
            np.add(onto, rows[j, :, :, :, first:last], out=onto)
    return dx.transpose(3, 0, 1, 2)
