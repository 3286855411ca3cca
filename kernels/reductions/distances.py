"""cdist: the p-norm distance of every row of one matrix to every row of another, in batches."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.ground.errors import ShapeError
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import to_c_order
from tritensor.kernels.parts.launch_rules import cdiv
from tritensor.kernels.parts.reduction import upcast
from tritensor.llvm import products
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, op, ops, refuse_kind, refuse_mixed

TILE = 16  # rows, and other rows, of a tile of distances; or rows and coordinates of a tile of a gradient
_BLOCK = 131072  # differences that the CPU holds at a time
DEPTH = 16  # coordinates that are compared at a time; or other rows that a gradient is summed over


def _depth(p: float, kept: np.dtype) -> int:
    """Of a power, and of float64, fewer, so that nothing spills."""
    return max(DEPTH // (4 if _case(p) == 4 else 1) // (4 if kept.itemsize == 8 else 1), 2)


# What a norm is made of: P 0, 1, 2, and 3 for infinity, 4 for any other number
@triton.jit
def _term(d, p, P: tl.constexpr):
    if P == 0:
        t = (d != 0).to(d.dtype)
    elif P == 2:
        t = d * d
    elif P == 4:
        t = maths.pow(d, tl.zeros_like(d) + p.to(d.dtype))
    else:
        t = d
    return t


@triton.jit
def _rows_of(x, b, row, rows, m, depth, batch_stride, row_stride):
    """A tile (rows, coordinates), 0 outside."""
    return upcast(
        tl.load(x + b * batch_stride + row[:, None] * row_stride + m[None, :], mask=(row < rows)[:, None] & (m < depth)[None, :], other=0)
    )


@triton.jit
def _fold(
    x, z, b, i, j, rows, columns, depth, p, P: tl.constexpr, KIND: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """Of each pair of a tile's rows the largest difference, or the sum over the coordinates of what a norm is made of."""
    acc = tl.zeros((BM, BN), KIND)
    for start in range(0, depth, BK):
        m = start + tl.arange(0, BK)
        a = _rows_of(x, b, i, rows, m, depth, depth * rows, depth).to(KIND)
        c = _rows_of(z, b, j, columns, m, depth, depth * columns, depth).to(KIND)
        d = tl.abs(a[:, None, :] - c[None, :, :])  # (BM, BN, BK)
        if P == 3:
            acc = maths.maximum(acc, tl.reduce(d, 2, maths.maximum))
        else:
            acc += tl.sum(_term(d, p, P), axis=2)
    return acc


# y[b, i, j] = (sum over m of |x[b, i, m] - z[b, j, m]|^p)^(1/p)
@triton.jit(do_not_specialize=["rows"])
def _cdist_kernel(
    x, z, y, rows, columns, depth, p,
    P: tl.constexpr, ALIGN: tl.constexpr, KIND: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    depth = depth // ALIGN * ALIGN
    pid = tl.program_id(0).to(tl.int64)
    across, down = tl.cdiv(columns, BN), tl.cdiv(rows, BM)
    i = pid // across % down * BM + tl.arange(0, BM)
    j = pid % across * BN + tl.arange(0, BN)
    b = pid // (across * down)
    acc = _fold(x, z, b, i, j, rows, columns, depth, p, P, KIND, BM, BN, BK)
    if P == 2:
        acc = maths.sqrt(acc)
    if P == 4:
        acc = maths.pow(acc, tl.zeros_like(acc) + (1.0 / p).to(KIND))
    tl.store(
        y + b * rows * columns + i[:, None] * columns + j[None, :],
        acc.to(y.dtype.element_ty),
        mask=(i < rows)[:, None] & (j < columns)[None, :],
    )


# d distance / d difference, 0 where the difference or the distance is 0: of infinity at each of the largest
@triton.jit
def _slope(diff, dist, p, P: tl.constexpr):
    if P == 0:
        s = tl.zeros_like(diff)
    elif P == 1:
        s = maths.sign(diff)
    elif P == 2:
        s = maths.div(diff, tl.where(dist == 0, 1, dist))
    elif P == 3:
        s = tl.where(tl.abs(diff) == dist, maths.sign(diff), 0)
    else:
        none = (diff == 0) | (dist == 0)
        ratio = maths.div(tl.where(none, 1, tl.abs(diff)), tl.where(none, 1, dist))
        s = tl.where(none, 0, maths.sign(diff) * maths.pow(ratio, tl.zeros_like(ratio) + (p - 1).to(diff.dtype)))
    return s


# dx[b, i, m] = sum over j of g[b, i, j] slope(x[b, i, m] - z[b, j, m], y[b, i, j])
@triton.jit(do_not_specialize=["rows", "columns"])
def _cdist_gradient_kernel(
    g, y, x, z, dx, rows, columns, depth, steps, p, P: tl.constexpr, ALIGN: tl.constexpr, KIND: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    depth = depth // ALIGN * ALIGN
    pid = tl.program_id(0).to(tl.int64)
    across, down = tl.cdiv(depth, BK), tl.cdiv(rows, BM)
    i = pid // across % down * BM + tl.arange(0, BM)
    m = pid % across * BK + tl.arange(0, BK)
    b = pid // (across * down)
    a = _rows_of(x, b, i, rows, m, depth, depth * rows, depth).to(KIND)
    acc = tl.zeros((BM, BK), KIND)
    for start in range(0, columns, BN):
        j = start + tl.arange(0, BN)
        inside = (i < rows)[:, None] & (j < columns)[None, :]
        at = b * rows * columns + i[:, None] * steps[0] + j[None, :] * steps[1]
        arriving = tl.load(g + at, mask=inside, other=0).to(KIND)
        if P == 3:  # not the rounded y: which difference is the largest
            dist = _fold(x, z, b, i, j, rows, columns, depth, p, P, KIND, BM, BN, BK)
        else:
            dist = tl.load(y + at, mask=inside, other=0).to(KIND)
        c = _rows_of(z, b, j, columns, m, depth, depth * columns, depth).to(KIND)
        acc += tl.sum(arriving[:, :, None] * _slope(a[:, None, :] - c[None, :, :], dist[:, :, None], p, P), axis=1)
    tl.store(
        dx + (b * rows + i[:, None]) * depth + m[None, :], acc.to(dx.dtype.element_ty), mask=(i < rows)[:, None] & (m < depth)[None, :]
    )


def _case(p: float) -> int:
    return 3 if math.isinf(p) else int(p) if p in (0, 1, 2) else 4


def _constants(p: float, depth: int, kept: np.dtype) -> dict[str, Any]:
    """What both kernels are compiled for."""
    return {"P": _case(p), "ALIGN": math.gcd(8, depth), "KIND": getattr(tl, dtypes.of(kept).name)}


def _forward(x1: CudaArray, x2: CudaArray, *, p: float = 2.0, fast: bool = False) -> CudaArray:
    (batch, rows, depth), columns = x1.shape, x2.shape[1]
    y, kept = allocate((batch, rows, columns), x1.dtype, x1), dtypes.accumulator(x1.dtype)
    launch(
        _cdist_kernel, (batch * cdiv(rows, TILE) * cdiv(columns, TILE),), to_c_order(x1), to_c_order(x2), y, rows, columns, depth, np.float64(p),
        **_constants(p, depth, kept), BM=TILE, BN=TILE, BK=_depth(p, kept),
    )  # fmt: skip
    return y


def _backward(g: CudaArray, x1: CudaArray, x2: CudaArray, y: CudaArray, p: float, needs: Any) -> Any:
    g, y, x1, x2 = to_c_order(g), to_c_order(y), to_c_order(x1), to_c_order(x2)
    steps = (x2.shape[1], 1)
    return (_gradient(g, y, x1, x2, p, steps) if needs[0] else None, _gradient(g, y, x2, x1, p, steps[::-1]) if needs[1] else None)


def _gradient(g: CudaArray, y: CudaArray, x: CudaArray, z: CudaArray, p: float, steps: tuple[int, int]) -> CudaArray:
    (batch, rows, depth), dx, kept = x.shape, allocate(x.shape, x.dtype, x), dtypes.accumulator(x.dtype)
    launch(
        _cdist_gradient_kernel, (batch * cdiv(rows, TILE) * cdiv(depth, TILE),), g, y, x, z, dx, rows, z.shape[1], depth, steps, np.float64(p),
        **_constants(p, depth, kept), BM=TILE, BN=_depth(p, kept), BK=TILE,
    )  # fmt: skip
    return dx


def _shape(x1: Any, x2: Any, *, p: float = 2.0, fast: bool = False) -> Spec:
    refuse_kind("cdist", x1.dtype, ("float",), "x1")
    refuse_mixed("cdist", ("x1", x1), ("x2", x2))
    if len(x1.shape) != 3 or len(x2.shape) != 3 or x1.shape[0] != x2.shape[0] or x1.shape[2] != x2.shape[2]:
        raise ShapeError(f"cdist: x1 {x1.shape}, x2 {x2.shape}: give (batch, rows, columns) twice, with as many batches and columns")
    return Spec((*x1.shape[:2], x2.shape[1]), x1.dtype)


def _cdist(x1: np.ndarray, x2: np.ndarray, *, p: float = 2.0, fast: bool = False) -> np.ndarray:
    """(batch, rows, columns) and (batch, others, columns) -> (batch, rows, others). `fast`: Euclidean distances by a matrix product, which
    loses digits where a distance is small beside the rows' lengths."""
    d = np.abs(x1[:, :, None] - x2[:, None])  # (batch, rows, others, columns)
    if p == 0:
        return np.sum(d != 0, axis=-1, dtype=d.dtype)
    return np.max(d, axis=-1, initial=0) if math.isinf(p) else np.sum(d**p, axis=-1) ** (1 / p)


# On the CPU
def _norm(d: np.ndarray, p: float) -> np.ndarray:
    """The p-norm along the last axis of differences, which are overwritten."""
    if p == 2:
        return np.sqrt(np.einsum("...m,...m->...", d, d))
    if p == 0:
        return np.asarray(np.count_nonzero(d, axis=-1), d.dtype)
    np.abs(d, out=d)
    if math.isinf(p):
        return np.maximum.reduce(d, axis=-1, initial=0)
    if p == 1:
        return np.add.reduce(d, axis=-1)
    return np.add.reduce(np.power(d, d.dtype.type(p), out=d), axis=-1) ** d.dtype.type(1 / p)


def _by_blocks(function: Callable[..., np.ndarray], x: np.ndarray, z: np.ndarray, out: np.ndarray, *pairs: np.ndarray) -> None:
    """out[b, i] = function(x[b, i, None] - z[b, None], pairs[b, i]) for as many of b, or of i, at a time as the cache holds."""
    (batch, rows, depth), columns = x.shape, z.shape[1]
    step = max(_BLOCK // max(rows * columns * depth, 1), 1)
    some = max(rows, 1) if rows * columns * depth <= _BLOCK else max(_BLOCK // max(columns * depth, 1), 1)
    for b in range(0, batch, step):
        for i in range(0, rows, some):
            part = slice(b, b + step), slice(i, i + some)
            out[part] = function(x[part][:, :, None] - z[part[0], None], *[v[part] for v in pairs])


def _by_coordinates(x: np.ndarray, z: np.ndarray, p: float, out: np.ndarray) -> None:
    """The distances of some rows to all others, coordinate after coordinate: whole vectors of others, which many others are worth."""
    (batch, rows, depth), columns = x.shape, z.shape[1]
    some = max(_BLOCK // 8 // columns, 1)
    room = np.empty((some, columns), x.dtype)
    for b in range(batch):
        turned = np.ascontiguousarray(z[b].T)  # (depth, columns)
        for i in range(0, rows, some):
            part, d = out[b, i : i + some], room[: min(some, rows - i)]
            part[...] = 0
            for m in range(depth):
                np.subtract(x[b, i : i + some, m, None], turned[m], out=d)
                _joined(d, p, part)
            if p not in (0, 1) and not math.isinf(p):
                np.sqrt(part, out=part) if p == 2 else np.power(part, part.dtype.type(1 / p), out=part)


def _joined(d: np.ndarray, p: float, sums: np.ndarray) -> None:
    """Add to sums what the differences d, which are overwritten, add to a norm."""
    if p == 0:
        np.add(sums, d != 0, out=sums)
        return
    if p == 2:
        np.multiply(d, d, out=d)
    else:
        np.abs(d, out=d)
        if p != 1 and not math.isinf(p):
            np.power(d, d.dtype.type(p), out=d)
    (np.maximum if math.isinf(p) else np.add)(sums, d, out=sums)


_NEAR = 1e-7  # of the squared lengths of rows: below it a squared distance by a float64 product has fewer digits than float32


def _by_wide_product(x: np.ndarray, z: np.ndarray, out: np.ndarray) -> bool:
    """Euclidean distances of float32 by a product in float64, those of near rows again by their differences. False where many are near, or
    something is no number."""
    (batch, rows, _), columns = x.shape, z.shape[1]
    some = max(2 * _BLOCK // columns, 1)
    for b in range(batch):
        wide = z[b : b + 1].astype(np.float64)
        for i in range(0, rows, some):
            part = x[b : b + 1, i : i + some].astype(np.float64)
            near = _NEAR * (np.einsum("bim,bim->bi", part, part).max() + np.einsum("bim,bim->bi", wide, wide).max())
            found = _euclidean(part, wide)[0]
            if not np.isfinite(near):
                return False
            k, j = np.nonzero(found < np.sqrt(near))
            if k.size * 8 > found.size:
                return False
            found[k, j] = _norm(part[0, k] - wide[0, j], 2)
            out[b, i : i + some] = found
    return True


def _euclidean(a: np.ndarray, c: np.ndarray) -> np.ndarray:
    """By one product, |a|^2 + |c|^2 - 2 a.c, of rows that carry their squares and ones."""
    one = np.ones((len(a), 1, 1), a.dtype)
    left = np.concatenate([a * -2, np.einsum("bim,bim->bi", a, a)[..., None], np.broadcast_to(one, (*a.shape[:2], 1))], axis=2)
    right = np.concatenate([c, np.broadcast_to(one, (*c.shape[:2], 1)), np.einsum("bjm,bjm->bj", c, c)[..., None]], axis=2)
    found = products.matmul(left, right.transpose(0, 2, 1))
    np.maximum(found, 0, out=found)
    return np.sqrt(found, out=found)


def _cdist_cpu(x1: np.ndarray, x2: np.ndarray, *, p: float = 2.0, fast: bool = False) -> np.ndarray:
    kept = dtypes.accumulator(x1.dtype)
    a, c = x1.astype(kept, copy=False), x2.astype(kept, copy=False)
    with np.errstate(all="ignore"):
        # the caller accepts that |a|^2 + |c|^2 - 2 a.c cancels
        if fast and p == 2:
            return _euclidean(a, c).astype(x1.dtype, copy=False)
        out = np.empty((*a.shape[:2], c.shape[1]), kept)
        # a float64 product keeps float32's digits, but of near rows
        if p == 2 and c.shape[1] >= 64 and kept.itemsize == 4 and _by_wide_product(a, c, out):
            return out.astype(x1.dtype, copy=False)
        # enough others to work on whole vectors of them; of fewer all differences at once
        if c.shape[1] >= 64:
            _by_coordinates(a, c, p, out)
        else:
            _by_blocks(lambda d: _norm(d, p), a, c, out)
    return out.astype(x1.dtype, copy=False)


def _slopes(d: np.ndarray, dist: np.ndarray, p: float) -> np.ndarray:
    """d distance / d difference, 0 where either is 0."""
    if p == 0:
        return np.zeros_like(d)
    if p == 1:
        return np.sign(d)
    if math.isinf(p):
        size = np.abs(d)
        return np.where(size == size.max(-1, keepdims=True, initial=0), np.sign(d), 0)
    none = (d == 0) | (dist == 0)
    ratio = np.where(none, 1, np.abs(d)) / np.where(none, 1, dist)
    return np.where(none, 0, np.sign(d) * ratio ** d.dtype.type(p - 1))


def _cpu_backward(g: np.ndarray, x1: np.ndarray, x2: np.ndarray, y: np.ndarray, p: float, needs: Any) -> Any:
    kept = dtypes.accumulator(x1.dtype)
    a, c, g, y = (v.astype(kept, copy=False) for v in (x1, x2, g, y))
    found: list[Any] = [None, None]
    with np.errstate(all="ignore"):
        # of Euclidean distances both gradients are products: sum_j r_ij (a_i - c_j) = a_i sum_j r_ij - r c
        if p == 2:
            ratio = np.divide(g, y, out=np.zeros_like(g), where=y != 0)
            if needs[0]:
                found[0] = a * ratio.sum(2)[:, :, None] - products.matmul(ratio, c)
            if needs[1]:
                found[1] = c * ratio.sum(1)[:, :, None] - products.matmul(ratio.transpose(0, 2, 1), a)
        else:
            for k, (x, z, h, dist) in enumerate(((a, c, g, y), (c, a, g.transpose(0, 2, 1), y.transpose(0, 2, 1)))):
                if needs[k]:
                    found[k] = np.empty_like(x, order="C")
                    _by_blocks(lambda d, h, dist: np.einsum("bij,bijm->bim", h, _slopes(d, dist[..., None], p)), x, z, found[k], h, dist)
    return tuple(None if f is None else f.astype(x1.dtype, copy=False) for f in found)


def _rule(g: Any, x1: Any, x2: Any, y: Any, p: float, needs: Any) -> Any:
    (batch, rows, depth), columns = x1.shape, x2.shape[1]
    if p == 0 or 0 in (batch, rows, columns, depth):
        return ops.mul(x1, 0.0), ops.mul(x2, 0.0)
    d = ops.sub(ops.reshape(x1, shape=(batch, rows, 1, depth)), ops.reshape(x2, shape=(batch, 1, columns, depth)))
    dist, arriving = (ops.reshape(v, shape=(batch, rows, columns, 1)) for v in (y, g))
    if p == 1:
        slope = ops.sign(d)
    elif math.isinf(p):
        largest = ops.eq(ops.abs(d), ops.amax(ops.abs(d), dim=(3,), keepdim=True))  # y has been rounded
        slope = ops.mul(ops.sign(d), ops.cast(largest, dtype=d._array.dtype))
    else:
        none = ops.logical_or(ops.eq(d, 0.0), ops.eq(dist, 0.0))
        safe = ops.where(ops.eq(dist, 0.0), 1.0, dist)
        if p == 2:
            slope = ops.div(d, safe)
        else:
            ratio = ops.div(ops.where(none, 1.0, ops.abs(d)), ops.where(none, 1.0, dist))
            slope = ops.where(none, 0.0, ops.mul(ops.sign(d), ops.pow(ratio, float(p - 1))))
    share = ops.mul(arriving, slope)
    return ops.sum(share, dim=(2,), keepdim=False), ops.neg(ops.sum(share, dim=(1,), keepdim=False))


def _samples(rng: np.random.Generator) -> list[Sample]:
    """Every norm, several tiles, a batch, equal rows, no rows."""
    x, z = rng.normal(size=(1, 3, 4)), rng.normal(size=(1, 2, 4))
    same = np.round(rng.normal(size=(2, 2, 2)))
    return [
        *[Sample(x, z, p=p, fast=False) for p in (1.0, 2.0, 3.0, math.inf)],
        Sample(x, z, p=0.0, fast=False, smooth=False),
        Sample(x, z + 3.0, p=2.0, fast=True),
        Sample(rng.normal(size=(1, 17, 17)), rng.normal(size=(1, 2, 17)), p=2.0, fast=False, smooth=False),
        *[Sample(same, same.copy(), p=p, fast=False, smooth=False) for p in (0.5, 2.0, math.inf)],
        Sample(rng.normal(size=(1, 0, 3)), rng.normal(size=(1, 2, 3)), p=2.0, fast=False),
    ]


def _work(x1: Any, x2: Any, *, p: float = 2.0, fast: bool = False) -> Work:
    pairs = x1.shape[0] * x1.shape[1] * x2.shape[1]
    return Work(3 * pairs * x1.shape[2], (x1.size + x2.size + pairs) * x1.dtype.itemsize)


op(
    "cdist", _cdist, cpu=_cdist_cpu, shape=_shape, forward=_forward, rule=_rule, backward=_backward, cpu_backward=_cpu_backward, samples=_samples,
    work=_work,
)  # fmt: skip
