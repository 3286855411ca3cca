"""Batch normalisation in machine code: planes of channels, each read from memory once, and rows of channels, which are added up side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.llvm.passes.row_programs import Operand, RowProgram
from tritensor.llvm.simd_functions import sqrt

LONG = 64  # elements of a plane from which it is a row of its own
SHORT, MANY_PARTS, PAGE = 64, 48, 1024  # elements of a short plane, images that are many, elements of a page
WIDE = 256  # columns that a row should have: narrow ones are taken together


# A row is a channel, of as many parts as there are images.
def _planes_forward(p: Any, x: Any, w: Any, b: Any, y: Any, means: Any, variances: Any, eps: Any) -> None:
    mean = p.mean(x)
    variance = p.sum(lambda x, m: (x - m) * (x - m), x, mean) / p.count
    p.keep(means, mean)
    p.keep(variances, variance)
    scale = 1.0 / sqrt(variance + eps)
    scale = scale if w is None else scale * p.read(w)
    _affine(p, x, mean, scale, b, y)


def _planes_backward(p: Any, g: Any, x: Any, means: Any, variances: Any, w: Any, dx: Any, dw: Any, db: Any, eps: Any) -> None:
    sums, products = p.sum(lambda g, x, m: (g, g * (x - m)), g, x, means)
    r = 1.0 / sqrt(p.read(variances) + eps)
    p.keep(db, sums)
    p.keep(dw, products * r)
    if dx is not None:
        scale = r if w is None else r * p.read(w)
        _combined(p, g, x, means, scale, -(scale * r * r) * products / p.count, -scale * sums / p.count, dx)


def _planes_products(p: Any, g: Any, x: Any, means: Any, s: Any, sc: Any) -> None:
    sums, products = p.sum(lambda g, x, m: (g, g * (x - m)), g, x, means)
    p.keep(s, sums)
    p.keep(sc, products)


# By numbers of the row, or by vectors that lie beside it.
def _affine(p: Any, x: Any, mean: Any, scale: Any, shift: Any, y: Any) -> None:
    if shift is None:
        p.each(lambda x, m, a: (x - m) * a, x, mean, scale, into=(y,))
    else:
        p.each(lambda x, m, a, b: (x - m) * a + b, x, mean, scale, shift, into=(y,))


def _combined(p: Any, g: Any, x: Any, mean: Any, scale: Any, slope: Any, level: Any, dx: Any) -> None:
    p.each(lambda g, x, m, a, c, d: g * a + (x - m) * c + d, g, x, mean, scale, slope, level, into=(dx,))


def _scaled(p: Any, g: Any, scale: Any, dx: Any) -> None:
    p.each(lambda g, a: g * a, g, scale, into=(dx,))


def _column_sums(p: Any, x: Any, s: Any) -> None:
    p.each(lambda x: x, x, onto=(s,))


def _column_deviations(p: Any, x: Any, mean: Any, s: Any) -> None:
    p.each(lambda x, m: x - m, x, mean, onto=(s,))


def _column_squares(p: Any, x: Any, mean: Any, s: Any) -> None:
    p.each(lambda x, m: (x - m) * (x - m), x, mean, onto=(s,))


def _column_products(p: Any, g: Any, x: Any, mean: Any, s: Any, sc: Any) -> None:
    p.each(lambda g, x, m: (g, g * (x - m)), g, x, mean, onto=(s, sc))


PLANES_FORWARD, PLANES_BACKWARD, PLANES_PRODUCTS = RowProgram(_planes_forward), RowProgram(_planes_backward), RowProgram(_planes_products)
AFFINE, COMBINED, SCALED = RowProgram(_affine), RowProgram(_combined), RowProgram(_scaled)
SUMS, DEVIATIONS = RowProgram(_column_sums), RowProgram(_column_deviations)
SQUARES, PRODUCTS = RowProgram(_column_squares), RowProgram(_column_products)


class _Walk:
    """A walk over arrays (batch, channels, elements): `shape` as a row program takes it, an `array`, a `vector` of one number for each channel."""

    shape: tuple[int, int, int]
    array: Any
    vector: Any

    def affine(self, x: np.ndarray, mean: np.ndarray, scale: np.ndarray, shift: Any, y: np.ndarray) -> bool:
        """y = (x - mean) scale + shift."""
        return AFFINE(self.shape, (self.array(x), *map(self.vector, (mean, scale, shift)), self.array(y)))

    def scaled(self, g: np.ndarray, scale: np.ndarray, dx: np.ndarray) -> bool:
        """dx = g scale."""
        return SCALED(self.shape, (self.array(g), self.vector(scale), self.array(dx)))


class Planes(_Walk):
    """Arrays (batch, channels, elements) whose planes are long enough to be rows."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        n, c, s = shape
        self.shape, self.steps, self.channels = (c, n, s), (s, c * s), c

    def array(self, x: np.ndarray | None) -> Operand | None:
        return None if x is None else Operand(x, *self.steps)

    def vector(self, v: np.ndarray | None) -> Operand | None:
        return None if v is None else Operand(np.ascontiguousarray(v), 1, one="row")

    def forward(self, x: np.ndarray, weight: Any, bias: Any, eps: float, y: np.ndarray, mean: np.ndarray, var: np.ndarray) -> bool:
        operands = [self.array(x), *map(self.vector, (weight, bias)), self.array(y), self.vector(mean), self.vector(var)]
        return PLANES_FORWARD(self.shape, operands, (eps,))

    def products(self, g: np.ndarray, x: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """The sums of g and of g (x - mean) of every channel, in float64."""
        s, sc = np.empty(self.channels), np.empty(self.channels)
        done = PLANES_PRODUCTS(self.shape, (self.array(g), self.array(x), *map(self.vector, (mean, s, sc))))
        return (s, sc) if done else None

    def backward(
        self, g: np.ndarray, x: np.ndarray, mean: np.ndarray, var: np.ndarray, weight: Any, eps: float, dx: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """dw and db, in float64."""
        dw, db = np.empty(self.channels), np.empty(self.channels)
        operands = [self.array(g), self.array(x), *map(self.vector, (mean, var, weight)), self.array(dx), self.vector(dw), self.vector(db)]
        return (dw, db) if PLANES_BACKWARD(self.shape, operands, (eps,)) else None


class Columns(_Walk):
    """The same of short planes, or none: rows of channels, some of them side by side where they are few."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        n, c, s = shape
        self.channels, self.each, self.count, self.together = c, s, n * s, 1
        # short rows would leave most of a vector empty: images are taken side by side until a row is WIDE
        while c * s * self.together < WIDE and n % (2 * self.together) == 0:
            self.together *= 2
        self.shape = (n // self.together, 1, c * s * self.together)

    def array(self, x: np.ndarray | None) -> Operand | None:
        return None if x is None else Operand(x, self.shape[2])

    def vector(self, v: np.ndarray | None) -> Operand | None:
        """A number for each channel as a row."""
        if v is None:
            return None
        if self.each == self.together == 1:
            return Operand(np.ascontiguousarray(v), 0)
        every = np.empty((self.together, self.channels, self.each), v.dtype)
        every[...] = v[:, None]
        return Operand(every.reshape(-1), 0)

    def added(self, *sums: np.ndarray) -> tuple[np.ndarray, ...]:
        """Rows of sums as one number for each channel."""
        if self.each == self.together == 1:
            return sums
        return tuple([s.reshape(self.together, self.channels, self.each).sum((0, 2)) for s in sums])

    def empty(self) -> np.ndarray:
        return np.zeros(self.shape[2])

    def forward(self, x: np.ndarray, weight: Any, bias: Any, eps: float, y: np.ndarray, mean: np.ndarray, var: np.ndarray) -> bool:
        s, sc = self.empty(), self.empty()
        if not SUMS(self.shape, (self.array(x), Operand(s, 0))):
            return False
        mean[:] = self.added(s)[0] / self.count
        if x.dtype.itemsize == 8:  # of shorter floats the sums are exact enough
            rest = self.empty()
            DEVIATIONS(self.shape, (self.array(x), self.vector(mean), Operand(rest, 0)))
            (left,) = self.added(rest)
            mean += np.where(np.isfinite(left), left, 0) / self.count
        SQUARES(self.shape, (self.array(x), self.vector(mean), Operand(sc, 0)))
        var[:] = self.added(sc)[0] / self.count
        # once for each channel, so float64 costs nothing here
        scale = 1 / np.sqrt(var.astype(np.float64) + eps)
        return self.affine(x, mean, (scale if weight is None else scale * weight).astype(mean.dtype), bias, y)

    def products(self, g: np.ndarray, x: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        s, sc = self.empty(), self.empty()
        if not PRODUCTS(self.shape, (self.array(g), self.array(x), self.vector(mean), Operand(s, 0), Operand(sc, 0))):
            return None
        return self.added(s, sc)  # type: ignore[return-value]

    def backward(
        self, g: np.ndarray, x: np.ndarray, mean: np.ndarray, var: np.ndarray, weight: Any, eps: float, dx: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        # columns are added up over all rows first; dx is a second walk
        found = self.products(g, x, mean)
        if found is None:
            return None
        sums, products = found
        r = 1 / np.sqrt(var.astype(np.float64) + eps)
        if dx is not None:
            scale = r if weight is None else r * weight
            vectors = mean, scale, -(scale * r * r) * products / self.count, -scale * sums / self.count
            COMBINED(self.shape, (self.array(g), self.array(x), *[self.vector(v.astype(mean.dtype)) for v in vectors], self.array(dx)))
        return products * r, sums


def walk_for(shape: tuple[int, ...]) -> Planes | Columns:
    """The walk for arrays (batch, channels, elements). A channel's many short planes at distances of whole pages would all lie in the same lines of the
    cache, and drive one another out."""
    n, c, s = shape
    crowded = s <= SHORT and n > MANY_PARTS and c * s % PAGE == 0
    return Planes(shape) if s >= LONG and not crowded else Columns(shape)
