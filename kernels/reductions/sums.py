"""Sums and moments over dims: sum, sum_of_squares, mean, var."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.ground import dtypes
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.axes import along, along_host, count, deviations, reduced, stretch
from tritensor.kernels.parts.cpu.summation import centred, few, is_one_reduce, total
from tritensor.kernels.parts.reduction import NUMBERS, ReductionFunctions, add, fold, reduction, spread, value, zero
from tritensor.kernels.parts.tapes.moments import merged, walked
from tritensor.kernels.reductions.scan import scan_result
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Work, normal_dims, ops


# References: plain mathematics.
def _sum(x: np.ndarray, *, dim: Any, keepdim: bool = False) -> np.ndarray:
    """Sum over dims; integers and bools in int64, 16-bit floats in float32."""
    return np.sum(x, axis=dim, keepdims=keepdim)


def _sum_of_squares(x: np.ndarray, *, dim: Any, keepdim: bool = False) -> np.ndarray:
    """Sum of squares over dims; 16-bit floats in float32."""
    return np.sum(x * x, axis=dim, keepdims=keepdim)


def _mean(x: np.ndarray, *, dim: Any, keepdim: bool = False) -> np.ndarray:
    """Mean over dims; NaN over none."""
    return np.true_divide(np.sum(x, axis=dim, keepdims=keepdim), np.sum(np.ones(x.shape), axis=dim, keepdims=keepdim))


def _var(x: np.ndarray, *, dim: Any, correction: float = 1, keepdim: bool = False) -> np.ndarray:
    """Variance over dims in two passes: sum((x - mean)^2) / max(0, n - correction)."""
    away = x - _mean(x, dim=dim, keepdim=True)
    n = np.sum(np.ones(x.shape), axis=dim, keepdims=keepdim)
    return np.true_divide(np.sum(away * away, axis=dim, keepdims=keepdim), np.maximum(n - correction, 0))


# The CPU.
_FEW = 4096  # elements


def _sum_cpu(x: np.ndarray, *, dim: Any, keepdim: bool = False) -> np.ndarray:
    dims = normal_dims("sum", dim, x.ndim)
    if dims and (small := few(x, dims, keepdim)) is not None:
        return small
    out = total(x, dims, keepdim, dtypes.accumulator(x.dtype))
    return np.asarray(out, x.dtype) if dtypes.is_float(x.dtype) else out


def _planned_sum(x: np.ndarray, *, dim: Any, keepdim: bool = False) -> Callable[..., Any] | None:
    dims = normal_dims("sum", dim, x.ndim)
    if dims and few(x, dims, keepdim) is not None:
        return lambda x: few(x, dims, keepdim)
    return functools.partial(np.add.reduce, axis=dims, keepdims=keepdim) if is_one_reduce(x, dims) else None


_sum_cpu.planned = _planned_sum  # type: ignore[attr-defined]


def _sum_of_squares_cpu(x: np.ndarray, *, dim: Any, keepdim: bool = False) -> np.ndarray:
    dims = normal_dims("sum_of_squares", dim, x.ndim)
    kept = dtypes.accumulator(x.dtype)
    values = x.astype(kept, copy=False)
    inner = count(x.shape, dims)
    if values.flags.c_contiguous and dims and dims == tuple(range(x.ndim - len(dims), x.ndim)) and x.size:
        # einsum adds one element after the other: short runs keep the error of a long sum flat
        run = next((r for r in (128, 100, 64, 50, 32) if inner % r == 0), inner if inner <= 256 else 0)
        if run:
            runs = values.reshape(-1, run)
            out = np.add.reduce(np.einsum("ij,ij->i", runs, runs).reshape(-1, inner // run), axis=1)
            return np.asarray(out, x.dtype).reshape(reduced(x.shape, dims, keepdim))
    return np.asarray(total(np.multiply(values, values), dims, keepdim), x.dtype)


def _mean_cpu(x: np.ndarray, *, dim: Any, keepdim: bool = False) -> np.ndarray:
    dims = normal_dims("mean", dim, x.ndim)
    if dims and (small := few(x, dims, keepdim)) is not None:
        small /= count(x.shape, dims)
        return small
    n = count(x.shape, dims)
    out = total(x, dims, keepdim, dtypes.accumulator(x.dtype))
    if n:
        return np.true_divide(out, out.dtype.type(n)).astype(x.dtype, copy=False)
    return np.full_like(out, np.nan, x.dtype)


def _planned_mean(x: np.ndarray, *, dim: Any, keepdim: bool = False) -> Callable[..., Any] | None:
    dims = normal_dims("mean", dim, x.ndim)
    if not dims or few(x, dims, keepdim) is None:
        return None
    n = np.array(count(x.shape, dims), x.dtype)

    def mean(x: np.ndarray) -> np.ndarray:
        y = few(x, dims, keepdim)
        return np.true_divide(y, n, y)

    return mean


_mean_cpu.planned = _planned_mean  # type: ignore[attr-defined]


def _var_cpu(x: np.ndarray, *, dim: Any, correction: float = 1, keepdim: bool = False) -> np.ndarray:
    dims = normal_dims("var", dim, x.ndim)
    kept = dtypes.accumulator(x.dtype)
    values, left = x.astype(kept, copy=False), max(count(x.shape, dims) - correction, 0)
    if kept.itemsize < 8 and x.size <= _FEW:  # float64 holds every square
        away = values - np.add.reduce(values, axis=dims, dtype=np.float64, keepdims=True) / count(x.shape, dims)
        return np.asarray(np.true_divide(np.add.reduce(away * away, axis=dims, keepdims=keepdim), left), x.dtype)
    away, _ = centred(values, dims)
    np.multiply(away, away, out=away)
    squares = np.asarray(total(away, dims, keepdim))
    if kept.itemsize < 8 and np.isinf(squares).any():  # a square overflowed float32, though the variance may not
        return _var_cpu(x.astype(np.float64), dim=dims, correction=correction, keepdim=keepdim).astype(x.dtype)
    return np.asarray(squares / kept.type(left)).astype(x.dtype)


# The functions of the reductions.
@triton.jit
def _square(x, index):
    return x * x


# Moments about the first of the reduced elements, which is as far from 0 as all of them: a mean of 1e4 kept in float32 loses four digits.
@triton.jit
def _moments(x, origin, index):
    return tl.zeros_like(x) + 1, x - _finite(origin), tl.zeros_like(x)


@triton.jit
def _finite(origin):
    """The origin that moments are counted from: 0 where the first element is no finite number, since distances from it say nothing."""
    return tl.where(tl.abs(origin) < float("inf"), origin, 0)


@triton.jit
def _variance(n, mean, m2, divisor):
    return maths.div(m2, divisor)


def _sum_result(dtype: np.dtype) -> tuple[np.dtype, ...]:
    return (scan_result(dtype),)


# Gradients.
def _sum_rule(g: Any, x_shape: tuple[int, ...], dim: Any) -> Any:
    return stretch(g, x_shape, normal_dims("sum", dim, len(x_shape)))


# d sum x^2 = 2 x
def _squares_rule(g: Any, x: Any, dim: Any) -> Any:
    return ops.mul(stretch(ops.mul(g, 2.0), x.shape, normal_dims("sum_of_squares", dim, len(x.shape))), x)


@triton.jit
def _twice(x, g, index):
    return (g * 2) * x


def _squares_backward(g: CudaArray, x: CudaArray, dim: Any) -> CudaArray:
    dims, dx = normal_dims("sum_of_squares", dim, len(x.shape)), allocate(x.shape, x.dtype, x)
    spread(_twice, (x, along(g, x.shape, dims)), dims, (dx,))
    return dx


def _squares_cpu_backward(g: np.ndarray, x: np.ndarray, dim: Any) -> np.ndarray:
    dims, kept = normal_dims("sum_of_squares", dim, x.ndim), dtypes.accumulator(x.dtype)
    twice = (g.astype(kept, copy=False) * kept.type(2)).reshape(reduced(x.shape, dims, True))
    return np.asarray(twice * x.astype(kept, copy=False)).astype(x.dtype, copy=False)


def _mean_rule(g: Any, x_shape: tuple[int, ...], dim: Any) -> Any:
    dims = normal_dims("mean", dim, len(x_shape))
    return stretch(ops.div(g, float(count(x_shape, dims) or 1)), x_shape, dims)


@triton.jit
def _share(g, index, n):
    return maths.div(g, n)


def _mean_backward(g: CudaArray, x_shape: tuple[int, ...], dim: Any) -> CudaArray:
    dims = normal_dims("mean", dim, len(x_shape))
    share = allocate(g.shape, g.dtype, g)
    spread(_share, (g,), (), (share,), (np.float64(count(x_shape, dims) or 1),))
    return along(share, x_shape, dims)


def _mean_cpu_backward(g: np.ndarray, x_shape: tuple[int, ...], dim: Any) -> np.ndarray:
    dims = normal_dims("mean", dim, len(x_shape))
    kept = dtypes.accumulator(g.dtype)
    return along_host(np.asarray(np.true_divide(g, count(x_shape, dims) or 1, dtype=kept)).astype(g.dtype, copy=False), x_shape, dims)


def _var_rule(g: Any, x: Any, dim: Any, correction: float) -> Any:
    dims = normal_dims("var", dim, len(x.shape))
    away = deviations(x, dims)
    return ops.mul(stretch(ops.mul(g, _slope(x.shape, dims, correction)), x.shape, dims), away)


def _slope(shape: tuple[int, ...], dims: tuple[int, ...], correction: float) -> float:
    """2 / (n - correction), infinite where nothing is left to divide by; below that negative, as PyTorch has it."""
    left = count(shape, dims) - correction
    return 2.0 / left if left != 0 else float("inf")


def _origin(x: CudaArray, dims: tuple[int, ...]) -> CudaArray:
    """The first of the reduced elements, as a view of x's shape; x itself where it has none."""
    # there is no first element to count from, and none will be read
    if 0 in x.shape:
        return x
    return x[tuple(slice(0, 1) if a in dims else slice(None) for a in range(len(x.shape)))].expand(x.shape)


def _var_forward(x: CudaArray, *, dim: Any, correction: float = 1, keepdim: bool = False) -> CudaArray:
    dims = normal_dims("var", dim, len(x.shape))
    y = allocate(reduced(x.shape, dims, keepdim), x.dtype, x)
    divisor = np.float64(max(count(x.shape, dims) - correction, 0))
    functions = ReductionFunctions(_moments, merged, _variance, zero, walked)
    fold(functions, (x, _origin(x, dims)), dims, (y,), (dtypes.accumulator(x.dtype),) * 3, (divisor,))
    return y


@triton.jit
def _from_origin(x, origin, index):
    return x - _finite(origin)


# dx = 2 (x - mean) g / (n - correction), the mean counted from the first element
@triton.jit
def _deviation(x, origin, mean, g, index, slope):
    return ((x - _finite(origin)) - mean) * (g * slope.to(g.dtype))


def _var_backward(g: CudaArray, x: CudaArray, dim: Any, correction: float) -> CudaArray:
    dims = normal_dims("var", dim, len(x.shape))
    kept = dtypes.accumulator(x.dtype)
    mean, origin = allocate(reduced(x.shape, dims, True), kept, x), _origin(x, dims)
    fold(ReductionFunctions(_from_origin, add, maths.div, zero), (x, origin), dims, (mean,), (kept,), (np.float64(count(x.shape, dims)),))
    dx = allocate(x.shape, x.dtype, x)
    slope = np.float64(_slope(x.shape, dims, correction))
    spread(_deviation, (x, origin, mean.expand(x.shape), along(g, x.shape, dims)), dims, (dx,), (slope,))
    return dx


def _var_cpu_backward(g: np.ndarray, x: np.ndarray, dim: Any, correction: float) -> np.ndarray:
    dims = normal_dims("var", dim, x.ndim)
    kept = dtypes.accumulator(x.dtype)
    values = x.astype(kept, copy=False)
    out, _ = centred(values, dims)
    out *= g.reshape(reduced(x.shape, dims, True)) * kept.type(_slope(x.shape, dims, correction))
    return out.astype(x.dtype, copy=False)


def _var_scales(g: np.ndarray, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> tuple[Any, ...]:
    """x and the mean are both counted from the first element, and keep the roundings of that however near they are."""
    (x,) = inputs
    dims = normal_dims("var", attrs["dim"], x.ndim)
    origin = x[tuple(slice(0, 1) if d in dims else slice(None) for d in range(x.ndim))] if x.size else np.zeros(())
    centred = np.abs(x - origin) + np.abs(x - origin).mean(dims, keepdims=True)
    return (np.abs(g).reshape(reduced(x.shape, dims, True)) * np.abs(_slope(x.shape, dims, attrs["correction"])) * (np.abs(x) + centred),)


# Samples and registration.
def samples(rng: np.random.Generator) -> list[Sample]:
    """All dims, one inner, one outer, several, none, no elements, several tiles, and rows shared among programs."""
    return [
        Sample(rng.normal(size=(5, 7)), dim=(0, 1), keepdim=False),
        Sample(rng.normal(size=(5, 7)), dim=(1,), keepdim=True),
        Sample(rng.normal(size=(70, 6)), dim=(0,), keepdim=False),
        Sample(rng.normal(size=(3, 4, 5, 2)), dim=(0, 2), keepdim=False),
        Sample(rng.normal(size=(3, 4, 2)), dim=(), keepdim=False),
        Sample(rng.normal(size=(3, 0, 2)), dim=(1,), keepdim=False),
        Sample(rng.normal(size=(2, 5000)), dim=(1,), keepdim=False),
    ]


def _var_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.normal(size=(5, 7)) + 3, dim=(0, 1), correction=1, keepdim=False),
        Sample(rng.normal(size=(5, 7, 3)), dim=(1,), correction=0, keepdim=True),
        Sample(rng.normal(size=(70, 6)), dim=(0,), correction=1, keepdim=False),
        Sample(rng.normal(size=(1, 5000)) + 2, dim=(1,), correction=1, keepdim=False),
    ]


def _sizes(rng: np.random.Generator) -> list[Sample]:
    x = rng.standard_normal((4096, 8192))
    return [Sample(x, dim=(1,), keepdim=False), Sample(x, dim=(0,), keepdim=False), Sample(x, dim=(0, 1), keepdim=False)]


def _work(x: Any, *, dim: Any, keepdim: bool = False) -> Work:
    return Work(x.size, x.size * x.dtype.itemsize)


reduction(
    "sum", _sum, cpu=_sum_cpu, map=value, combine=add, finish=None, identity=zero, rule=_sum_rule,
    result=_sum_result, kinds=NUMBERS, samples=samples, sizes=_sizes, work=_work, condition="absolute",
    backward=lambda g, x_shape, dim: along(g, x_shape, normal_dims("sum", dim, len(x_shape))),
    cpu_backward=lambda g, x_shape, dim: along_host(g, x_shape, normal_dims("sum", dim, len(x_shape))),
)  # fmt: skip
reduction(
    "sum_of_squares", _sum_of_squares, cpu=_sum_of_squares_cpu, map=_square, combine=add, finish=None, identity=zero, rule=_squares_rule,
    backward=_squares_backward,
    cpu_backward=_squares_cpu_backward, kinds=("float",), samples=samples, sizes=_sizes, work=_work, condition="absolute",
)  # fmt: skip
reduction(
    "mean", _mean, cpu=_mean_cpu, map=value, combine=add, finish=maths.div, identity=zero, rule=_mean_rule, backward=_mean_backward,
    cpu_backward=_mean_cpu_backward, kinds=("float", "complex"), samples=samples, sizes=_sizes, work=_work,
    condition="absolute",
    scalars=lambda count: (np.float64(count),),
)  # fmt: skip
reduction(
    "var", _var, cpu=_var_cpu, map=_moments, combine=merged, finish=_variance, identity=zero, rule=_var_rule, backward=_var_backward,
    cpu_backward=_var_cpu_backward, forward=_var_forward, kinds=("float",), samples=_var_samples, condition=("measured", _var_scales),
)  # fmt: skip
