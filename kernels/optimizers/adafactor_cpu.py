"""A step of Adafactor on numpy arrays, in a dozen passes; on a GPU the optimizer is made of operations on tensors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tritensor.kernels.parts.cpu.float_conversions import as_float32, is_half


class Settings(NamedTuple):
    """lr and weight_decay; `weight` of the new squares in their running means; the smallest and the largest relative step; what limits an update."""

    lr: float
    weight_decay: float
    weight: float
    eps1: float
    eps2: float
    relative: float
    d: float
    maximize: bool


def _mean_square(x: np.ndarray) -> float:
    line = x.reshape(-1)
    return float(np.dot(line, line)) / max(x.size, 1)


def _means(squares: np.ndarray, dim: int) -> np.ndarray:
    """Means along one of the last two dims, kept, by products with ones: a plain sum along columns would add one by one."""
    n = squares.shape[dim]
    ones = np.full((n, 1) if dim == -1 else (1, n), 1.0, squares.dtype)
    total: np.ndarray = squares @ ones if dim == -1 else ones @ squares
    total /= n
    return total


# v = v + w (g^2 - v), or rows and columns of it; u = g / sqrt(max(v, eps1^2)); p = (1 - lr decay) p - size u / max(1, rms(u) / d)
def step(p: np.ndarray, g: np.ndarray, moments: tuple[np.ndarray, ...], s: Settings) -> None:
    """One step, in place. moments: the running means over rows (..., n, 1) and columns (..., 1, m), or the whole (of p's shape)."""
    # squares of 16-bit gradients overflow or vanish: all is computed in float32 and rounded once
    if is_half(p.dtype):
        wide = [as_float32(x) for x in (p, *moments)]
        step(wide[0], as_float32(g), tuple(wide[1:]), s)
        for x, y in zip((p, *moments), wide, strict=True):
            x[...] = y
        return
    size = max(s.eps2, _mean_square(p) ** 0.5) * s.relative
    squares = np.multiply(g, g, out=np.empty_like(g))  # an array, also without dimensions
    for v, seen in zip(moments, (_means(squares, -1), _means(squares, -2)) if len(moments) == 2 else (squares,), strict=True):
        v += s.weight * (seen - v)
    if len(moments) == 2:
        rows, columns = moments
        np.multiply(rows / np.maximum(rows.mean(axis=-2, keepdims=True), s.eps1), columns, out=squares)
        np.maximum(squares, s.eps1 * s.eps1, out=squares)
    else:
        np.maximum(moments[0], s.eps1 * s.eps1, out=squares)
    update = np.divide(g, np.sqrt(squares, out=squares), out=squares)
    size /= max(1.0, _mean_square(update) ** 0.5 / s.d)
    if s.weight_decay:
        p *= 1 - s.lr * s.weight_decay
    update *= size if s.maximize else -size
    p += update
