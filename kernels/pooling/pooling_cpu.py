"""Pooling on the CPU: whole planes at a time through strided views, in whichever dense layout the image lies."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tritensor.kernels.parts.positions import Windows

_LAYOUTS = ((0, 1, 2, 3), (1, 2, 3, 0), (0, 2, 3, 1))  # NCHW, batch innermost, channels innermost


def layout_of(x: np.ndarray) -> tuple[int, ...]:
    """The order of x's axes (N, C, H, W) in memory, NCHW where it is none of the three."""
    for axes in _LAYOUTS:
        if x.transpose(axes).flags.c_contiguous:
            return axes
    return _LAYOUTS[0]


def planes(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """x (N, C, H, W) as (P, H, W, L), dense, axes in the given order: P outer planes, L inner elements that move together."""
    dense = np.require(x.transpose(axes), requirements="C")
    return dense.reshape(-1, *dense.shape[2:], 1) if axes == _LAYOUTS[0] and x.size else dense.reshape(planes_shape(x.shape, axes))


def planes_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The (P, H, W, L) of an image of shape (N, C, H, W)."""
    n, c, h, w = shape
    return (n * c, h, w, 1) if axes == _LAYOUTS[0] else tuple(shape[a] for a in axes)


def image(y: np.ndarray, axes: tuple[int, ...], batch: int, channels: int) -> np.ndarray:
    """(P, OH, OW, L) back as (N, C, OH, OW), a view."""
    if axes == _LAYOUTS[0]:
        return y.reshape(batch, channels, *y.shape[1:3])
    return y.transpose(np.argsort(axes))


def _span(size: int, out: int, k: int, stride: int, padding: int) -> tuple[int, int, int]:
    """Outputs [low, high) whose tap at offset k lies inside the image, and the cell of the first."""
    low = max(0, -((k - padding) // stride))
    high = min(out, (size - 1 - k + padding) // stride + 1)
    return low, high, low * stride + k - padding


def taps(s: Windows) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...], np.ndarray]]:
    """For each place in the window: which outputs have it inside the image, which cells those are, and the cells' flat numbers."""
    for i in range(s.kh):
        r0, r1, h = _span(s.height, s.rows, i * s.dh, s.sh, s.ph)
        for j in range(s.kw):
            q0, q1, v = _span(s.width, s.cols, j * s.dw, s.sw, s.pw)
            if r0 >= r1 or q0 >= q1:
                continue
            cells_h, cells_w = slice(h, h + (r1 - r0 - 1) * s.sh + 1, s.sh), slice(v, v + (q1 - q0 - 1) * s.sw + 1, s.sw)
            number = (np.arange(h, h + (r1 - r0) * s.sh, s.sh)[:, None] * s.width + np.arange(v, v + (q1 - q0) * s.sw, s.sw))[:, :, None]
            yield (slice(None), slice(r0, r1), slice(q0, q1)), (slice(None), cells_h, cells_w), number


def first_cells(s: Windows) -> np.ndarray:
    """Flat number of each window's first cell inside the image, (OH, OW, 1)."""
    h = np.arange(s.rows) * s.sh - s.ph
    v = np.arange(s.cols) * s.sw - s.pw
    h = np.where(h < 0, h + -(h // s.dh) * s.dh, h)
    v = np.where(v < 0, v + -(v // s.dw) * s.dw, v)
    return (h[:, None] * s.width + v)[:, :, None]


def max_quarters(x: np.ndarray, s: Windows) -> tuple[np.ndarray, np.ndarray]:
    """2 x 2 maxima and where they stand, first of equals; NaN is not looked for."""
    x = x[:, : 2 * s.rows, : 2 * s.cols]
    left, right = x[:, :, 0::2], x[:, :, 1::2]
    pair = np.maximum(left, right)  # (P, 2 OH, OW, L)
    is_right = np.greater(right, left)
    above, below = pair[:, 0::2], pair[:, 1::2]
    y = np.maximum(above, below)
    is_below = np.greater(below, above)
    beside = (is_below & is_right[:, 1::2]) | (is_right[:, 0::2] > is_below)
    if s.width > 255:
        index = np.multiply(is_below.view(np.uint8), s.width, dtype=np.int64, casting="unsafe")
    else:
        index = (is_below.view(np.uint8) * np.uint8(s.width)).astype(np.int64)
    index += first_cells(s)
    index += beside
    return y, index


def max_general(x: np.ndarray, s: Windows) -> tuple[np.ndarray, np.ndarray]:
    """Maxima of any windows; the first of equals, NaN above all."""
    shape = (x.shape[0], s.rows, s.cols, x.shape[3])
    y = np.full(shape, -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min, x.dtype)
    index = np.empty(shape, np.int64)
    index[...] = first_cells(s)
    for out, cells, number in taps(s):
        value, best = x[cells], y[out]
        take = (value > best) | (value != value)
        np.copyto(best, value, where=take)
        np.copyto(index[out], number, where=take)
    return y, index


def scatter(g: np.ndarray, index: np.ndarray, s: Windows) -> np.ndarray:
    """dx (P, H, W, L): each cell gets the gradients of the windows that chose it."""
    count, inner = g.shape[0], g.shape[3]
    dx = np.zeros((count, s.height, s.width, inner), g.dtype)
    if s.apart:  # no cell is chosen twice: each gradient is written to its place
        at = index + np.arange(count)[:, None, None, None] * (s.height * s.width)
        dx.reshape(-1)[at if inner == 1 else at * inner + np.arange(inner)] = g
        return dx
    for out, cells, number in taps(s):
        np.add(dx[cells], np.where(index[out] == number, g[out], 0), out=dx[cells])
    return dx


def divisors(s: Windows, count_include_pad: bool, divisor: int | None) -> np.ndarray:
    """What each window's sum is divided by, (OH, OW, 1): `divisor`, or the number of its cells, with the padding where that is asked for."""
    if divisor is not None:
        return np.full((1, 1, 1), divisor)

    def extent(out: int, size: int, k: int, stride: int, padding: int) -> np.ndarray:
        low = np.arange(out) * stride - padding
        high = np.minimum(low + k, size + padding)
        return high - low if count_include_pad else np.minimum(high, size) - np.maximum(low, 0)

    return (extent(s.rows, s.height, s.kh, s.sh, s.ph)[:, None] * extent(s.cols, s.width, s.kw, s.sw, s.pw))[:, :, None]


def average(x: np.ndarray, s: Windows, count_include_pad: bool, divisor: int | None) -> np.ndarray:
    """Means of the windows."""
    y = np.zeros((x.shape[0], s.rows, s.cols, x.shape[3]), x.dtype)
    for out, cells, _ in taps(s):
        np.add(y[out], x[cells], out=y[out])
    y /= divisors(s, count_include_pad, divisor).astype(x.dtype)
    return y


def spread(g: np.ndarray, s: Windows, count_include_pad: bool, divisor: int | None) -> np.ndarray:
    """The gradient of `average`: every cell of a window gets an equal share."""
    share = g / divisors(s, count_include_pad, divisor).astype(g.dtype)
    dx = np.zeros((g.shape[0], s.height, s.width, g.shape[3]), g.dtype)
    for out, cells, _ in taps(s):
        np.add(dx[cells], share[out], out=dx[cells])
    return dx
