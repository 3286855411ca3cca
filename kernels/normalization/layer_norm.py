"""Layer normalisation over the last dims: a row in registers or walked in tiles; gradients of weight and bias by partial sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor import dtypes
from tritensor.array import CudaArray
from tritensor.cuda.launch import launch
from tritensor.errors import ShapeError
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.axes import Blocks
from tritensor.kernels.parts.copying import dense
from tritensor.kernels.parts.cpu.summation import row_sums, total
from tritensor.kernels.parts.launch_rules import cdiv, config_of
from tritensor.kernels.parts.reduction import ReductionFunctions, fold, upcast, zero
from tritensor.kernels.parts.rows.row_tiles import RowTiles, align, tiles_for
from tritensor.table import Sample, Spec, Work, op, ops, refuse_kind

PARTIALS = 264  # partial sums of weight and bias gradients: two programs for each multiprocessor of the largest GPU
COLUMNS = 128  # columns of one of them
CACHE = 131072  # elements that numpy works on at a time: calls on less cost more than what leaves the second-level cache
FEW = 32  # rows that one BLAS call adds
SHORT = 4096  # columns up to which BLAS multiplies and adds a row


@triton.jit
def _row_tile(x, row, col, n, inside):
    """A tile of a C-ordered (rows, n), in float32 or wider, 0 outside."""
    return upcast(tl.load(x + row[:, None] * n + col[None, :], mask=inside, other=0.0))


@triton.jit
def _vector(w, col, n):
    return upcast(tl.load(w + col, mask=col < n, other=0.0))[None, :]


# y = (x - mean) / sqrt(mean((x - mean)^2) + eps) * w + b
@triton.jit(do_not_specialize=["rows", "n"])
def _forward_kernel(
    x, weight, bias, y, means, rstds, rows, n, eps, WHOLE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    row = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    n = n // ALIGN * ALIGN
    kind: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    here = row < rows
    if WHOLE:
        col = tl.arange(0, BN)
        inside = here[:, None] & (col < n)[None, :]
        value = _row_tile(x, row, col, n, inside)  # (BM, BN)
        mean = maths.div(tl.sum(value, axis=1), n)
        value = tl.where(inside, value - mean[:, None], 0.0)
        rstd = maths.rsqrt(maths.div(tl.sum(value * value, axis=1), n) + eps.to(kind))
        out = value * rstd[:, None]
        if weight is not None:
            out *= _vector(weight, col, n)
        if bias is not None:
            out += _vector(bias, col, n)
        tl.store(y + row[:, None] * n + col[None, :], out.to(y.dtype.element_ty), mask=inside)
    else:
        sums = tl.zeros((BM, BN), kind)
        for start in range(0, n, BN):
            col = start + tl.arange(0, BN)
            sums += _row_tile(x, row, col, n, here[:, None] & (col < n)[None, :])
        mean = maths.div(tl.sum(sums, axis=1), n)
        squares = tl.zeros((BM, BN), kind)
        for start in range(0, n, BN):
            col = start + tl.arange(0, BN)
            inside = here[:, None] & (col < n)[None, :]
            value = tl.where(inside, _row_tile(x, row, col, n, inside) - mean[:, None], 0.0)
            squares += value * value
        rstd = maths.rsqrt(maths.div(tl.sum(squares, axis=1), n) + eps.to(kind))
        for start in range(0, n, BN):
            col = start + tl.arange(0, BN)
            inside = here[:, None] & (col < n)[None, :]
            out = (_row_tile(x, row, col, n, inside) - mean[:, None]) * rstd[:, None]
            if weight is not None:
                out *= _vector(weight, col, n)
            if bias is not None:
                out += _vector(bias, col, n)
            tl.store(y + row[:, None] * n + col[None, :], out.to(y.dtype.element_ty), mask=inside)
    tl.store(means + row, mean, mask=here)
    tl.store(rstds + row, rstd, mask=here)


@triton.jit
def _normal_tile(x, g, weight, row, col, n, inside, mean, rstd):
    """The normalised values h and the gradient u that arrives at them, tiles (BM, BN), 0 outside."""
    h = tl.where(inside, (_row_tile(x, row, col, n, inside) - mean[:, None]) * rstd[:, None], 0.0)
    u = _row_tile(g, row, col, n, inside)
    if weight is not None:
        u *= _vector(weight, col, n)
    return h, u


# dx = rstd (u - mean(u) - h mean(u h)), h = (x - mean) rstd, u = g w
@triton.jit(do_not_specialize=["n"])
def _backward_kernel(
    x, weight, means, rstds, g, dx, rows, n, WHOLE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    row = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    n = n // ALIGN * ALIGN
    kind: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    here = row < rows
    mean = tl.load(means + row, mask=here, other=0.0)
    rstd = tl.load(rstds + row, mask=here, other=0.0)
    if WHOLE:
        col = tl.arange(0, BN)
        inside = here[:, None] & (col < n)[None, :]
        h, u = _normal_tile(x, g, weight, row, col, n, inside, mean, rstd)
        along = maths.div(tl.sum(u * h, axis=1), n)[:, None]
        level = maths.div(tl.sum(u, axis=1), n)[:, None]
        out = (u - level - h * along) * rstd[:, None]
        tl.store(dx + row[:, None] * n + col[None, :], out.to(dx.dtype.element_ty), mask=inside)
    else:
        products = tl.zeros((BM, BN), kind)
        sums = tl.zeros((BM, BN), kind)
        for start in range(0, n, BN):
            col = start + tl.arange(0, BN)
            h, u = _normal_tile(x, g, weight, row, col, n, here[:, None] & (col < n)[None, :], mean, rstd)
            products += u * h
            sums += u
        along = maths.div(tl.sum(products, axis=1), n)[:, None]
        level = maths.div(tl.sum(sums, axis=1), n)[:, None]
        for start in range(0, n, BN):
            col = start + tl.arange(0, BN)
            inside = here[:, None] & (col < n)[None, :]
            h, u = _normal_tile(x, g, weight, row, col, n, inside, mean, rstd)
            out = (u - level - h * along) * rstd[:, None]
            tl.store(dx + row[:, None] * n + col[None, :], out.to(dx.dtype.element_ty), mask=inside)


# dw = sum over rows of g h, db = sum over rows of g: here the sums of every p-th block of rows
@triton.jit(do_not_specialize=["parts", "n"])
def _weight_kernel(
    x, means, rstds, g, dw, db, rows, n, parts, BM: tl.constexpr, BN: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    part, block = tl.program_id(0) % parts, tl.program_id(0) // parts
    n = n // ALIGN * ALIGN
    kind: tl.constexpr = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    col = block.to(tl.int64) * BN + tl.arange(0, BN)
    w_sums = tl.zeros((BM, BN), kind)
    b_sums = tl.zeros((BM, BN), kind)
    for start in range(part * BM, rows, parts * BM):
        row = (start + tl.arange(0, BM)).to(tl.int64)
        here = row < rows
        inside = here[:, None] & (col < n)[None, :]
        mean = tl.load(means + row, mask=here, other=0.0)
        rstd = tl.load(rstds + row, mask=here, other=0.0)
        h, u = _normal_tile(x, g, None, row, col, n, inside, mean, rstd)
        w_sums += u * h
        b_sums += u
    at = part.to(tl.int64) * n + col
    tl.store(dw + at, tl.sum(w_sums, axis=0), mask=col < n)
    tl.store(db + at, tl.sum(b_sums, axis=0), mask=col < n)


@triton.jit
def _two(a, b, index):
    return a, b


@triton.jit
def _add_two(a, b, a_, b_):
    return a + a_, b + b_


def _split(shape: tuple[int, ...], axes: int) -> tuple[int, int]:
    """(rows, elements of a row)."""
    k = len(shape) - axes
    return math.prod(shape[:k]), math.prod(shape[k:])


def _shape(x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5, axes: int = 1) -> tuple[Spec, Spec, Spec]:
    refuse_kind("layer_norm", x.dtype, ("float",))
    if not 1 <= axes <= len(x.shape):
        raise ShapeError(f"layer_norm: x {tuple(x.shape)} has {len(x.shape)} dims, normalising the last {axes} of them is not possible")
    tail = tuple(x.shape[len(x.shape) - axes :])
    for label, w in (("weight", weight), ("bias", bias)):
        if w is not None and tuple(w.shape) != tail:
            raise ShapeError(f"layer_norm: x {tuple(x.shape)} with {label} {tuple(w.shape)}: {label} must have the normalised shape {tail}")
    rows, acc_type = tuple(x.shape[: len(x.shape) - axes]), dtypes.accumulator(x.dtype)
    return Spec(x.shape, x.dtype), Spec(rows, acc_type), Spec(rows, acc_type)


def forward_rows(
    x: CudaArray, weight: CudaArray | None, bias: CudaArray | None, eps: float, axes: int, on: RowTiles
) -> tuple[CudaArray, CudaArray, CudaArray]:
    """Launch the forward kernel with a given tile."""
    y = allocate(x.shape, x.dtype, x)
    rows, n = _split(x.shape, axes)
    acc_type = dtypes.accumulator(x.dtype)
    lead = x.shape[: len(x.shape) - axes]
    means, rstds = allocate(lead, acc_type, x), allocate(lead, acc_type, x)
    w, b = (None if v is None else dense(v) for v in (weight, bias))
    launch(
        _forward_kernel, (cdiv(rows, on.BM),), dense(x), w, b, y, means, rstds, rows, n, np.float64(eps), WHOLE=on.whole, BM=on.BM, BN=on.BN,
        ALIGN=align(n), num_warps=on.warps,
    )  # fmt: skip
    return y, means, rstds


def tile(x: CudaArray, axes: int) -> RowTiles:
    """The tile of (rows, elements of a row)."""
    return tiles_for("layer_norm", _split(x.shape, axes), 1, x.itemsize)


def _forward(x: CudaArray, weight: CudaArray | None = None, bias: CudaArray | None = None, *, eps: float = 1e-5, axes: int = 1) -> Any:
    return forward_rows(x, weight, bias, eps, axes, tile(x, axes))


def backward_rows(
    g: CudaArray, x: CudaArray, weight: CudaArray | None, mean: CudaArray, rstd: CudaArray, axes: int, on: RowTiles
) -> CudaArray:
    """Launch the kernel of dx with a given tile."""
    rows, n = _split(x.shape, axes)
    dx = allocate(x.shape, x.dtype, x)
    launch(
        _backward_kernel, (cdiv(rows, on.BM) if n else 0,), dense(x), None if weight is None else dense(weight), mean, rstd, dense(g), dx,
        rows, n, WHOLE=on.whole, BM=on.BM, BN=on.BN, ALIGN=align(n), num_warps=on.warps,
    )  # fmt: skip
    return dx


def weight_gradients(
    g: CudaArray, x: CudaArray, mean: CudaArray, rstd: CudaArray, like: tuple[Any, ...], axes: int
) -> tuple[CudaArray, CudaArray]:
    """dw and db: partial sums by a fixed number of programs, added in order by the shared reduction; the same every time."""
    rows, n = _split(x.shape, axes)
    acc_type = dtypes.accumulator(x.dtype)
    high = 16 if rows > 8 else 4
    rule = Blocks(high, COLUMNS, max(min(PARTIALS // max(cdiv(n, COLUMNS), 1), cdiv(rows, high)), 1))
    high, columns, parts = config_of("layer_norm_weight", (rows, n), rule)
    dw, db = allocate((parts, n), acc_type, x), allocate((parts, n), acc_type, x)
    launch(
        _weight_kernel, (parts * cdiv(n, columns),), dense(x), mean, rstd, dense(g), dw, db, rows, n, parts, BM=high, BN=columns, ALIGN=align(n)
    )  # fmt: skip
    outs = tuple(allocate(x.shape[len(x.shape) - axes :], d, x) for d in like)
    fold(ReductionFunctions(_two, _add_two, None, zero), (dw, db), (0,), outs, (acc_type, acc_type))
    return outs  # type: ignore[return-value]


def _backward(
    g: CudaArray,
    x: CudaArray,
    weight: CudaArray | None,
    bias: CudaArray | None,
    mean: CudaArray,
    rstd: CudaArray,
    axes: int,
    needs: tuple[bool, ...],
) -> tuple[Any, Any, Any]:
    dx = backward_rows(g, x, weight, mean, rstd, axes, tile(x, axes)) if needs[0] else None
    if not (needs[1] or needs[2]):
        return dx, None, None
    dw, db = weight_gradients(g, x, mean, rstd, tuple(x.dtype if v is None else v.dtype for v in (weight, bias)), axes)
    return dx, dw if needs[1] else None, db if needs[2] else None


# The CPU side: blocks of rows that fit the cache, each worked on in place.
def _blocks(rows: int, n: int) -> list[slice]:
    step = max(CACHE // max(n, 1), 1)
    return [slice(i, min(i + step, rows)) for i in range(0, rows, step)]


def _row_dots(x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The mean of x * v over every row, v one row, as a column."""
    sums = (x.dot(v) if x.shape[1] <= SHORT else row_sums(x * v))[:, None]
    return np.true_divide(sums, x.dtype.type(x.shape[1]), out=sums)


def _row_products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The mean of a * b over every row, as a column."""
    sums = np.vecdot(a, b)[:, None] if a.shape[1] <= SHORT else np.add.reduce(a * b, axis=1, keepdims=True)
    return np.true_divide(sums, a.dtype.type(a.shape[1]), out=sums)


def _weighed_rows(scale: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The sum of all rows of x (rows, n), each times its number: BLAS adds a few at a time, so that no sum is one long sequence."""
    rows, n = x.shape
    if rows <= 2 * FEW:
        return scale @ x
    whole = rows // FEW * FEW
    parts = np.matmul(scale[:whole].reshape(-1, 1, FEW), x[:whole].reshape(-1, FEW, n)).reshape(-1, n)
    return total(parts, (0,)) + scale[whole:] @ x[whole:]


def reference(
    x: np.ndarray, weight: np.ndarray | None = None, bias: np.ndarray | None = None, *, eps: float = 1e-5, axes: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(x - mean) / sqrt(var + eps) * weight + bias over the last `axes` dims; also mean and 1 / sqrt(var + eps)."""
    rows, n = _split(x.shape, axes)
    acc_type = dtypes.accumulator(x.dtype)
    flat, lead = x.reshape(rows, n), x.shape[: x.ndim - axes]
    y, means, rstds = np.empty((rows, n), x.dtype), np.empty((rows, 1), acc_type), np.empty((rows, 1), acc_type)
    w, b = (None if v is None else v.reshape(-1).astype(acc_type, copy=False) for v in (weight, bias))
    ones = np.ones(n, acc_type)
    with np.errstate(invalid="ignore", divide="ignore"):
        for part in _blocks(rows, n):
            value = flat[part].astype(acc_type, copy=False)
            mean = means[part] = _row_dots(value, ones)
            out = np.subtract(value, mean, out=y[part] if x.dtype == acc_type else None)
            rstd = _row_products(out, out)
            rstd += acc_type.type(eps)
            np.sqrt(rstd, out=rstd)
            rstds[part] = np.true_divide(1, rstd, out=rstd)
            out *= rstd
            if w is not None:
                out *= w
            if b is not None:
                out += b
            if x.dtype != acc_type:
                y[part] = out
    return y.reshape(x.shape), means.reshape(lead), rstds.reshape(lead)


def _reference_backward(
    g: np.ndarray, x: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None, eps: float, axes: int, needs: tuple[bool, ...]
) -> tuple[Any, Any, Any]:
    """As the kernels do it, with c = x - mean and p = g c: dw = sum of rstd p, and the means of u and u h are products of g and p with w."""
    rows, n = _split(x.shape, axes)
    acc_type = dtypes.accumulator(x.dtype)
    flat, up = x.reshape(rows, n), g.reshape(rows, n)
    dx, parts = np.empty((rows, n), x.dtype), _blocks(rows, n)
    dws, dbs = np.empty((len(parts), n), acc_type), np.empty((len(parts), n), acc_type)
    w = np.ones(n, acc_type) if weight is None else weight.reshape(-1).astype(acc_type, copy=False)
    high = parts[0].stop if parts else 0
    ones, room = np.ones(max(high, n), acc_type), np.empty((3, high, n), acc_type)
    with np.errstate(invalid="ignore", divide="ignore"):
        for i, part in enumerate(parts):
            value, u = flat[part].astype(acc_type, copy=False), up[part].astype(acc_type, copy=False)
            c, p, out = room[:, : len(value)]
            np.subtract(value, _row_dots(value, ones[:n]), out=c)
            scale = _row_products(c, c)
            scale += acc_type.type(eps)
            np.sqrt(scale, out=scale)
            np.true_divide(1, scale, out=scale)
            np.multiply(u, c, out=p)
            if needs[2]:
                dbs[i] = _weighed_rows(ones[: len(u)], u)
            if needs[1]:
                dws[i] = _weighed_rows(scale[:, 0], p)
            if needs[0]:
                c *= _row_dots(p, w) * (scale * scale)
                out = u if weight is None else np.multiply(u, w, out=out)
                np.subtract(out, c, out=c)
                c -= _row_dots(u, w)
                np.multiply(c, scale, out=dx[part], casting="same_kind")
    tail = x.shape[x.ndim - axes :]
    dw = total(dws, (0,)).reshape(tail).astype(weight.dtype, copy=False) if needs[1] and weight is not None else None
    db = total(dbs, (0,)).reshape(tail).astype(bias.dtype, copy=False) if needs[2] and bias is not None else None
    return dx.reshape(x.shape) if needs[0] else None, dw, db


def _rule(g: Any, x: Any, weight: Any, bias: Any, eps: float, axes: int, needs: tuple[bool, ...]) -> tuple[Any, Any, Any]:
    """The gradient in our own ops, from x alone, so that it can be differentiated again."""
    ndim, given = len(x.shape), x.array.dtype
    acc_type = dtypes.accumulator(given)
    last, lead = tuple(range(ndim - axes, ndim)), tuple(range(ndim - axes))
    x, g = ops.cast(x, dtype=acc_type), ops.cast(g, dtype=acc_type)
    centred = ops.sub(x, ops.mean(x, dim=last, keepdim=True))
    rstd = ops.rsqrt(ops.add(ops.mean(ops.mul(centred, centred), dim=last, keepdim=True), eps))
    h = ops.mul(centred, rstd)
    dx = dw = db = None
    if needs[0]:
        u = g if weight is None else ops.mul(g, ops.cast(weight, dtype=acc_type))
        away = ops.sub(ops.sub(u, ops.mean(u, dim=last, keepdim=True)), ops.mul(h, ops.mean(ops.mul(u, h), dim=last, keepdim=True)))
        dx = ops.cast(ops.mul(away, rstd), dtype=given)
    if needs[1]:
        dw = ops.cast(ops.sum(ops.mul(g, h), dim=lead, keepdim=False), dtype=weight.array.dtype)
    if needs[2]:
        db = ops.cast(ops.sum(g, dim=lead, keepdim=False), dtype=bias.array.dtype)
    return dx, dw, db


def _gradient_scales(g: np.ndarray, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> tuple[np.ndarray, ...]:
    """dx takes two projections from u, and keeps the roundings of all three however much they cancel; dw and db are sums."""
    x, weight = inputs[:2]
    last, lead = tuple(range(x.ndim - attrs["axes"], x.ndim)), tuple(range(x.ndim - attrs["axes"]))
    rstd = 1 / np.sqrt(x.var(last, keepdims=True) + attrs["eps"])
    h = (np.abs(x) + np.abs(x.mean(last, keepdims=True))) * rstd
    u = np.abs(g if weight is None else g * weight)
    dx = (u + u.mean(last, keepdims=True) + h * (u * h).mean(last, keepdims=True)) * rstd
    return dx, (np.abs(g) * h).sum(lead), np.abs(g).sum(lead)


def samples(rng: np.random.Generator) -> list[Sample]:
    """With and without weight and bias, one and several dims, many rows, long rows."""
    return [
        Sample(rng.normal(size=(5, 7)) + 1, 1 + 0.3 * rng.normal(size=7), rng.normal(size=7), eps=1e-5, axes=1),
        Sample(rng.normal(size=(4, 6)), None, None, eps=1e-3, axes=1),
        Sample(rng.normal(size=(3, 2, 4, 5)), rng.normal(size=(4, 5)), None, eps=1e-5, axes=2),
        Sample(rng.normal(size=(3, 5)), None, rng.normal(size=5), eps=1e-5, axes=1),
        Sample(rng.normal(size=(70, 9)) * 3, rng.normal(size=9), rng.normal(size=9), eps=1e-5, axes=1),
        Sample(rng.normal(size=(2, 6)), rng.normal(size=(2, 6)), rng.normal(size=(2, 6)), eps=1e-5, axes=2),
        Sample(rng.normal(size=(2, 140)), rng.normal(size=140), rng.normal(size=140), eps=1e-5, axes=1),
        Sample(rng.normal(size=(1, 4200)), rng.normal(size=4200), None, eps=1e-5, axes=1, smooth=False),
        Sample(rng.normal(size=(700, 3)), rng.normal(size=3), rng.normal(size=3), eps=1e-5, axes=1, smooth=False),
    ]


def _sizes(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(
            rng.standard_normal((r, n)),
            rng.standard_normal(n),
            rng.standard_normal(n),
            eps=1e-5,
            axes=1,
        )
        for r, n in ((8192, 768), (4096, 4096), (512, 65536))
    ]


def _work(x: Any, weight: Any = None, bias: Any = None, **attrs: Any) -> Work:
    return Work(8 * x.size, 2 * x.size * x.dtype.itemsize)


op(
    "layer_norm", reference, shape=_shape, forward=_forward, rule=_rule, backward=_backward, reference_backward=_reference_backward,
    outputs=("y", "mean", "rstd"), residuals=("mean", "rstd"), samples=samples, sizes=_sizes, work=_work,
    condition=("measured", _gradient_scales),
)  # fmt: skip
