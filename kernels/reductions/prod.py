"""prod: products over dims, with a gradient that is exact at zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.ground import dtypes
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.axes import along, count, reduced
from tritensor.kernels.parts.reduction import NUMBERS, ReductionFunctions, fold, reduction, spread, value
from tritensor.kernels.parts.view_arithmetic import inverse, reshaped
from tritensor.kernels.reductions.scan import scan_result
from tritensor.llvm.passes.rows import products
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, normal_dims, ops


def _prod(x: np.ndarray, *, dim: Any, keepdim: bool = False) -> np.ndarray:
    """Product over dims; integers and bools in int64, 16-bit floats in float32."""
    return np.prod(x, axis=dim, keepdims=keepdim)


_WIDTHS = (16384, 512, 96)  # so many products of a row run side by side, first of the long rows: numpy alone takes one after the other
_MANY = 4096  # elements from which that pays


def _product(x: np.ndarray) -> np.ndarray:
    """Product over axis 1 of a C-ordered (rows, n): of stretches side by side, then of the few that are left by halves.

    Long chains would pass through the subnormal numbers, which are a hundred times slower; halves leap over most of them.
    """
    for width in _WIDTHS:
        rows, n = x.shape
        if width == _WIDTHS[-1]:  # a divisor leaves no rest
            width = next((w for w in range(width, 2 * width) if n % w == 0), width)
        if (steps := n // width) < 2:
            continue
        whole = steps * width
        parts = np.multiply.reduce(x[:, :whole].reshape(rows, steps, width), axis=1)
        if whole < n:
            parts[:, : n - whole] *= x[:, whole:]
        x = parts
    left = np.ascontiguousarray(x.T)
    while (n := len(left)) > 1:
        last, half = left[-1], n // 2
        left = left[:half] * left[half : 2 * half]
        if n % 2:
            left[0] *= last
    return left[0] if len(left) else np.ones(x.shape[0], x.dtype)


def _cpu(x: np.ndarray, *, dim: Any, keepdim: bool = False) -> np.ndarray:
    kept = dtypes.accumulator(x.dtype)
    dims = normal_dims("prod", dim, x.ndim)
    # along the last dims rows lie in memory one behind the other: machine code, or stretches side by side
    last = x.size > 0 and dims and dims == tuple(range(x.ndim - len(dims), x.ndim))
    if last and (out := products(x.reshape(-1, count(x.shape, dims)))) is not None:
        out = out.reshape(reduced(x.shape, dims, keepdim))
    elif last and x.dtype == kept and x.flags.c_contiguous and x.size > _MANY:
        out = _product(x.reshape(-1, count(x.shape, dims))).reshape(reduced(x.shape, dims, keepdim))
    else:
        out = np.multiply.reduce(x, axis=dims, dtype=kept, keepdims=keepdim)
    return np.asarray(out, _result(x.dtype)[0])


@triton.jit
def _multiply(a, b):
    return a * b


def _result(dtype: np.dtype) -> tuple[np.dtype, ...]:
    return (scan_result(dtype),)


def _rule(g: Any, x: Any, dim: Any) -> Any:
    """g times the product of all the others, by a tree of products: exact at zeros, at every order.

    Upward, level k + 1 holds the products of neighbouring pairs of level k; downward, each of a pair gets what came
    from above times its neighbour. At an infinity or NaN among no zeros it is NaN, as in PyTorch, which divides the product by it.
    """
    dims = normal_dims("prod", dim, len(x.shape))
    kept = tuple(a for a in range(len(x.shape)) if a not in dims)
    moved = ops.permute(x, dims=kept + dims)
    shape = tuple(x.shape[a] for a in kept)
    n = count(x.shape, dims)
    # a tree of nothing has no root
    if n == 0:
        return ops.mul(x, 0.0)
    levels = [reshaped(moved, (*shape, n))]
    while levels[-1].shape[-1] > 1:
        level = levels[-1]
        if level.shape[-1] % 2:
            one = ops.full(shape=(*shape, 1), value=1.0, dtype=x._array.dtype, device=x.device)
            level = levels[-1] = ops.cat(level, one, dim=len(shape))
        levels.append(ops.mul(_every_second(level, 0), _every_second(level, 1)))
    down = ops.reshape(g, shape=(*shape, 1))
    for level in reversed(levels[:-1]):
        down = _first(down, level.shape[-1] // 2)
        pair = ops.stack(ops.mul(down, _every_second(level, 1)), ops.mul(down, _every_second(level, 0)), dim=len(shape) + 1)
        down = ops.reshape(pair, shape=level.shape)
    down = ops.reshape(_first(down, n), shape=moved.shape)
    order = kept + dims
    others = ops.permute(down, dims=tuple(order.index(a) for a in range(len(order))))
    among_zeros = ops.any(ops.eq(x, 0), dim=dims, keepdim=True)
    return ops.where(ops.logical_or(ops.isfinite(x), among_zeros), others, float("nan"))


def _every_second(x: Any, parity: int) -> Any:
    """Every second element along the last dim."""
    return ops.index_view(x, index=(*(slice(None) for _ in x.shape[:-1]), slice(parity, None, 2)))


def _first(x: Any, n: int) -> Any:
    """The first n along the last dim."""
    return x if x.shape[-1] == n else ops.index_view(x, index=(*(slice(None) for _ in x.shape[:-1]), slice(0, n)))


@triton.jit
def _not_finite(x):
    """1 for an infinity or NaN."""
    return tl.where(tl.abs(x) < float("inf"), 0, 1)


@triton.jit
def _factor(x, index):
    zero = x == 0
    return tl.where(zero, 1, x), zero.to(tl.int32), _not_finite(x)


@triton.jit
def _factors(p, zeros, wild, p_, zeros_, wild_):
    return p * p_, zeros + zeros_, wild + wild_


# dx_i = g * product of the others: p / x_i without zeros, p at the only zero, else 0 (times an infinity or NaN: NaN); p is that of the nonzero
@triton.jit
def _other_factors(x, g, p, zeros, wild, index):
    zero = x == 0
    none = tl.where(wild > _not_finite(x), float("nan"), 0.0)
    others = tl.where(zero, tl.where(zeros == 1, p, none), tl.where(zeros == 0, maths.div(p, tl.where(zero, 1, x)), none))
    return g * others


def _backward(g: CudaArray, x: CudaArray, dim: Any) -> CudaArray:
    dims = normal_dims("prod", dim, len(x.shape))
    states = (dtypes.accumulator(x.dtype), np.dtype(np.int32), np.dtype(np.int32))
    found = tuple(allocate(reduced(x.shape, dims, True), d, x) for d in states)
    fold(ReductionFunctions(_factor, _factors, None, lambda states: (1, 0, 0)), (x,), dims, found, states)
    dx = allocate(x.shape, x.dtype, x)
    spread(_other_factors, (x, along(g, x.shape, dims), *(a.expand(x.shape) for a in found)), dims, (dx,))
    return dx


def _cpu_backward(g: np.ndarray, x: np.ndarray, dim: Any) -> np.ndarray:
    dims = normal_dims("prod", dim, x.ndim)
    values = x.astype(dtypes.accumulator(x.dtype), copy=False)
    others = np.multiply.reduce(values, axis=dims, keepdims=True) / values
    if not values.all():
        zeros = np.logical_or.reduce(values == 0, axis=dims, keepdims=True)
        others = np.where(zeros, _products_of_others(values, dims), others)
    return np.asarray(others * g.reshape(reduced(x.shape, dims, True)), x.dtype)


def _products_of_others(x: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    """For each element the product of the others that are reduced with it: of those before it, times that of those behind it."""
    order = tuple(a for a in range(x.ndim) if a not in dims) + dims
    moved = x.transpose(order)
    rows = moved.reshape(-1, count(x.shape, dims))
    others = np.ones(rows.shape, x.dtype)
    np.multiply.accumulate(rows[:, :-1], axis=1, out=others[:, 1:])
    others[:, :-1] *= np.multiply.accumulate(rows[:, :0:-1], axis=1)[:, ::-1]
    return others.reshape(moved.shape).transpose(inverse(order))


def _samples(rng: np.random.Generator) -> list[Sample]:
    zeros = rng.normal(size=(4, 5)) + 1.5
    zeros[1, 2] = zeros[2, 1] = zeros[2, 3] = 0
    return [
        Sample(1 + 0.3 * rng.random(size=(3, 7)), dim=(0, 1), keepdim=False),
        Sample(1 + 0.3 * rng.random(size=(3, 5, 2)), dim=(1,), keepdim=True),
        Sample(zeros, dim=(1,), keepdim=False),
        Sample(rng.normal(size=(3, 0)), dim=(1,), keepdim=False),
        Sample(1 + 1e-2 * rng.normal(size=(1, 4200)), dim=(1,), keepdim=False, smooth=False),  # a long product
    ]


reduction(
    "prod", _prod, cpu=_cpu, map=value, combine=_multiply, finish=None, identity=lambda states: (1,), rule=_rule, backward=_backward,
    cpu_backward=_cpu_backward,
    result=_result, kinds=NUMBERS, samples=_samples,
)  # fmt: skip
