"""Rows on the CPU: layer and root mean square normalisation in machine code, and in numpy, in blocks that fit the cache, where there is none."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.kernels.normalization.row_kernels import split
from tritensor.kernels.parts.cpu.summation import centred, row_sums, total
from tritensor.llvm.loops import takes_rows
from tritensor.llvm.objects.functions import ObjectFunction
from tritensor.llvm.objects.rows import NEW_ROW, NEW_ROWS, NEW_SUMS, ROW, ROWS, VECTOR
from tritensor.llvm.passes.row_programs import Operand, RowProgram
from tritensor.llvm.simd_functions import sqrt

Arrays = tuple[Any, ...]
CACHE = 131072  # elements that numpy works on at a time: calls on less cost more than what leaves the second-level cache
SHORT = 4096  # columns up to which BLAS multiplies and adds a row


# Machine code.
def _forward_program(p: Any, x: Any, w: Any, b: Any, y: Any, means: Any, rstds: Any, variances: Any, eps: Any) -> None:
    """y = (x - mean) / sqrt(mean((x - mean)^2) + eps) * w + b; without `means` the mean is taken to be 0."""
    # the root mean square counts from 0: no walk for a mean
    if means is None:
        squares = p.sum(lambda x: x * x, x)
    else:
        mean = p.mean(x)
        p.keep(means, mean)
        squares = p.sum(lambda x, m: (x - m) * (x - m), x, mean)
    # group normalisation keeps variances, layer normalisation their inverse roots: both run this program
    p.keep(variances, squares / p.count)
    r = 1.0 / sqrt(squares / p.count + eps)
    p.keep(rstds, r)
    given = [v for v in (w, b) if v is not None]

    def normal(x: Any, r: Any, *rest: Any) -> Any:
        m, vectors = (0, rest) if means is None else (rest[0], rest[1:])
        y = (x if means is None else x - m) * r
        if w is not None:
            y = y * vectors[0]
        return y if b is None else y + vectors[-1]

    p.each(normal, x, r, *([] if means is None else [mean]), *given, into=(y,))


def _backward_program(p: Any, g: Any, x: Any, w: Any, means: Any, rstds: Any, dx: Any, dw: Any, db: Any) -> None:
    """dx = r (u - mean(u) - c r^2 mean(u c)), c = x - mean, u = g w; dw += g c r, db += g. Without `means` dx = r (u - x r^2 mean(u x))."""
    r = p.read(rstds)
    beside = [r] if means is None else [r, means]
    vectors = [] if w is None else [w]

    def parts(g: Any, x: Any, rest: tuple[Any, ...]) -> tuple[Any, Any]:
        c = x if means is None else x - rest[0]
        return (g if w is None else g * rest[-1]), c

    # only weight and bias learn: their gradients need no sums over the row, so one walk is enough
    if dx is None:
        p.each(
            lambda g, x, r, *rest: (g * (x if means is None else x - rest[0]) * r, g)[: (dw is not None) + (db is not None)] if dw is not None else (g,),
            g, x, *beside, onto=[v for v in (dw, db) if v is not None],
        )  # fmt: skip
        return

    def sums(g: Any, x: Any, *rest: Any) -> Any:
        u, c = parts(g, x, rest)
        return u * c if means is None else (u * c, u)

    found = p.sum(sums, g, x, *beside[1:], *vectors)
    along, level = (found, None) if means is None else found
    slope = along * r * r / p.count
    numbers = [slope] if level is None else [slope, level / p.count]

    def gradients(g: Any, x: Any, slope: Any, *rest: Any) -> tuple[Any, ...]:
        if level is not None:
            level_, *rest = rest
        r, *rest = rest
        u, c = parts(g, x, tuple(rest))
        away = u - c * slope
        made = [(away if level is None else away - level_) * r]
        if dw is not None:
            made.append(g * c * r)
        return (*made, g) if db is not None else tuple(made)

    p.each(gradients, g, x, *numbers, *beside, *vectors, into=(dx,), onto=[v for v in (dw, db) if v is not None])


# operands: x, weight, bias, y, means, rstds, variances; g, x, weight, means, rstds, dx, dw, db
FORWARD = RowProgram(_forward_program, (ROWS, VECTOR, VECTOR, NEW_ROWS, NEW_ROW, NEW_ROW, NEW_ROW), axes=True)
BACKWARD = RowProgram(_backward_program, (ROWS, ROWS, VECTOR, ROW, ROW, NEW_ROWS, NEW_SUMS, NEW_SUMS), axes=True)


def _row(v: np.ndarray | None, n: int) -> Operand | None:
    return None if v is None else Operand(v, n)


def _vector(v: np.ndarray | None) -> Operand | None:
    return None if v is None else Operand(np.ascontiguousarray(v), 0)


def _single(v: np.ndarray | None) -> Operand | None:
    return None if v is None else Operand(v, 1, one="row")


def forward(
    x: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None, eps: float, axes: int, centred: bool
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """The result, means and 1 / sqrt(var + eps); not `centred`, there are no means, and all counts from 0."""
    return _forward_function(centred).call(x, weight, bias, eps, axes)[:3]  # type: ignore[no-any-return]


@functools.cache
def _forward_function(centred: bool) -> ObjectFunction:
    """Of rows in C's order, and few enough for one thread; others by addresses."""

    def otherwise(x: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None, eps: float, axes: int) -> Arrays:
        (rows, n), lead = split(x.shape, axes), x.shape[: x.ndim - axes]
        kept = dtypes.accumulator(x.dtype)
        # row programs want rows that lie one behind the other
        x = np.ascontiguousarray(x)
        y, rstds = np.empty(x.shape, x.dtype), np.empty(lead, kept)
        means = np.empty(lead, kept) if centred else None
        operands = [_row(x, n), _vector(weight), _vector(bias), _row(y, n), _single(means), _single(rstds), None]
        if not (takes_rows(x, 1) and FORWARD((rows, 1, n), operands, (eps,))):
            columns = [None if v is None else v.reshape(rows, 1) for v in (means, rstds)]
            _numpy_forward(x.reshape(rows, n), weight, bias, eps, y.reshape(rows, n), *columns)  # type: ignore[arg-type]
        return y, means, rstds

    return FORWARD.as_function("normalised_rows", otherwise, (True, centred, True, False))


def backward(
    g: np.ndarray, x: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None, mean: np.ndarray | None, rstd: np.ndarray, axes: int,
    needs: tuple[bool, ...],
) -> Arrays:  # fmt: skip
    """Gradients of x, weight and bias."""
    # sums come in x's type
    if all([v is None or v.dtype is x.dtype for v in (weight, bias)]) and any(needs):
        return _backward_function(needs).call(g, x, weight, mean, rstd, axes)  # type: ignore[no-any-return]
    return _backward_by_addresses(g, x, weight, bias, mean, rstd, axes, needs)


@functools.cache
def _backward_function(needs: tuple[bool, ...]) -> ObjectFunction:
    def otherwise(g: np.ndarray, x: np.ndarray, weight: np.ndarray | None, mean: np.ndarray | None, rstd: np.ndarray, axes: int) -> Arrays:
        tail = np.empty(x.shape[x.ndim - axes :], x.dtype)
        return _backward_by_addresses(g, x, weight, tail, mean, rstd, axes, needs)

    return BACKWARD.as_function("normalised_rows_backward", otherwise, needs)


def _backward_by_addresses(
    g: np.ndarray, x: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None, mean: np.ndarray | None, rstd: np.ndarray, axes: int,
    needs: tuple[bool, ...],
) -> Arrays:  # fmt: skip
    """Of many rows, and such as lie apart."""
    rows, n = split(x.shape, axes)
    x, g = np.ascontiguousarray(x), np.ascontiguousarray(g)
    dx = np.empty(x.shape, x.dtype) if needs[0] else None
    # sums over all rows, which may be thousands: float64 keeps their error below float32's rounding
    dw, db = (np.zeros(n, np.float64) if need else None for need in needs[1:])
    if not takes_rows(x, 1) or not _machine_backward(g, x, weight, mean, rstd, dx, (dw, db)):
        dw, db = _numpy_backward(
            g.reshape(rows, n), x.reshape(rows, n), weight, mean, rstd, None if dx is None else dx.reshape(rows, n), needs
        )
    return dx, _like(dw, weight), _like(db, bias)


def _like(v: np.ndarray | None, given: np.ndarray | None) -> np.ndarray | None:
    return None if v is None or given is None else v.reshape(given.shape).astype(given.dtype, copy=False)


def _machine_backward(
    g: np.ndarray, x: np.ndarray, weight: np.ndarray | None, means: np.ndarray | None, rstds: np.ndarray, dx: np.ndarray | None,
    sums: tuple[np.ndarray | None, ...],
) -> bool:  # fmt: skip
    n = x.size // rstds.size
    flat, singles = [_row(v, n) for v in (g, x)], [_single(v) for v in (means, rstds)]
    return BACKWARD((rstds.size, 1, n), (*flat, _vector(weight), *singles, _row(dx, n), *[_vector(v) for v in sums]))


# numpy: blocks of rows that fit the cache, each worked on in place.
def _blocks(rows: int, n: int) -> list[slice]:
    step = max(CACHE // max(n, 1), 1)
    return [slice(i, min(i + step, rows)) for i in range(0, rows, step)]


def _row_means(a: np.ndarray, b: np.ndarray | None = None) -> np.ndarray:
    """The mean of a, or of a * b, over every row, as a column."""
    if b is None:
        sums = row_sums(np.ascontiguousarray(a))[:, None]
    else:
        # BLAS adds a row one element after the other; add.reduce goes pairwise, which long rows need
        sums = np.vecdot(a, b)[:, None] if a.shape[1] <= SHORT else np.add.reduce(a * b, axis=1, keepdims=True)
    return np.true_divide(sums, a.dtype.type(a.shape[1]), out=sums)


def _numpy_forward(
    x: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None, eps: float, y: np.ndarray, means: np.ndarray | None,
    rstds: np.ndarray,
) -> None:  # fmt: skip
    kept = rstds.dtype
    w, b = (None if v is None else v.reshape(-1).astype(kept, copy=False) for v in (weight, bias))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        for part in _blocks(*x.shape):
            value = x[part].astype(kept, copy=False)
            # 16-bit results are worked on in float32 and rounded once
            out = y[part] if x.dtype == kept else np.empty(value.shape, kept)
            if means is not None:
                value, means[part] = centred(value, (1,))
            rstd = _row_means(value, value)
            rstd += kept.type(eps)
            np.sqrt(rstd, out=rstd)
            rstds[part] = np.true_divide(1, rstd, out=rstd)
            np.multiply(value, rstd, out=out)
            if w is not None:
                out *= w
            if b is not None:
                out += b
            if x.dtype != kept:
                y[part] = out


def _numpy_backward(
    g: np.ndarray, x: np.ndarray, weight: np.ndarray | None, means: np.ndarray | None, rstds: np.ndarray, dx: np.ndarray | None,
    needs: tuple[bool, ...],
) -> tuple[np.ndarray | None, np.ndarray | None]:  # fmt: skip
    (rows, n), kept = x.shape, rstds.dtype
    parts = _blocks(rows, n)
    dw, db = (np.zeros((len(parts), n), kept) if need else None for need in needs[1:])
    w = None if weight is None else weight.reshape(-1).astype(kept, copy=False)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        for i, part in enumerate(parts):
            value, up = x[part].astype(kept, copy=False), g[part].astype(kept, copy=False)
            scale = rstds.reshape(rows, 1)[part]
            c = value if means is None else value - means.reshape(rows, 1)[part]
            if db is not None:
                db[i] = total(up, (0,))
            if dw is not None:
                dw[i] = total(up * (c * scale), (0,))
            if dx is not None:
                u = up if w is None else up * w
                away = u - c * (_row_means(u, c) * (scale * scale))
                if means is not None:
                    away -= _row_means(u)
                np.multiply(away, scale, out=dx[part], casting="same_kind")
    return tuple(None if v is None else total(v, (0,)) for v in (dw, db))  # type: ignore[return-value]
