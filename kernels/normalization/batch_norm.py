"""Batch normalisation: every channel by the mean and variance of its elements in the batch, or by given ones (evaluation)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import triton

from tritensor.ground import dtypes
from tritensor.ground.errors import ShapeError
from tritensor.kernels.normalization import affine, channels_cpu
from tritensor.kernels.parts import elementwise, maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.axes import deviations
from tritensor.kernels.parts.filling import filled
from tritensor.kernels.parts.reduction import fold, spread
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, op, ops, refuse_kind

Arrays = tuple[Any, ...]


# Shapes.
def others(shape: tuple[int, ...]) -> tuple[int, ...]:
    """All dims but that of the channels."""
    return (0, *range(2, len(shape)))


def count(shape: tuple[int, ...]) -> int:
    """The number of elements of a channel."""
    return shape[0] * math.prod(shape[2:])


def _shape(x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5) -> tuple[Spec, Spec, Spec]:
    affine.refuse_images("batch_norm", x, weight=weight, bias=bias)
    kept = Spec((x.shape[1],), dtypes.accumulator(x.dtype))
    return Spec(x.shape, x.dtype), kept, kept


def _given_shape(x: Any, mean: Any, var: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5) -> Spec:
    affine.refuse_images("batch_norm_by", x, mean=mean, var=var, weight=weight, bias=bias)
    return Spec(x.shape, x.dtype)


# Kernels.
def along(v: CudaArray, shape: tuple[int, ...]) -> CudaArray:
    """One number for each channel as a view of all elements."""
    return v.as_strided(shape, (0, v.strides[0], *(0,) * (len(shape) - 2)), 0)


def _normalised(x: CudaArray, mean: CudaArray, var: CudaArray, weight: Any, bias: Any, eps: float) -> CudaArray:
    y = affine.allocate_image(x)
    vectors = [v for v in (mean, var, weight, bias) if v is not None]
    formula = affine.FORWARD[weight is not None, bias is not None]
    spread(formula, (x, *[along(v, x.shape) for v in vectors]), others(x.shape), (y,), (np.float64(eps),))
    return y


def mean_and_variance(x: CudaArray) -> tuple[CudaArray, CudaArray]:
    """Those of each channel, in the accumulator's type."""
    kept = dtypes.accumulator(x.dtype)
    mean, var = allocate((x.shape[1],), kept, x), allocate((x.shape[1],), kept, x)
    fold(affine.MOMENTS, (x,), others(x.shape), (mean, var), (kept,) * 3, (np.float64(count(x.shape)),))
    return mean, var


def _forward(x: CudaArray, weight: CudaArray | None = None, bias: CudaArray | None = None, *, eps: float = 1e-5) -> Arrays:
    mean, var = mean_and_variance(x)
    return _normalised(x, mean, var, weight, bias, eps), mean, var


def _products(g: CudaArray, x: CudaArray, mean: CudaArray) -> tuple[CudaArray, CudaArray]:
    """The sums of g and of g (x - mean) of each channel."""
    kept = dtypes.accumulator(x.dtype)
    sums = allocate(mean.shape, kept, x), allocate(mean.shape, kept, x)
    fold(affine.PRODUCTS, (x, g, along(mean, x.shape)), others(x.shape), sums, (kept, kept))
    return sums


# dw = sum g (x - mean) / sqrt(var + eps), db = sum g
@triton.jit
def _weight_gradient(products, var, eps):
    return products * maths.rsqrt(var + eps)


@triton.jit
def _same(x):
    return x


def vector_gradients(sums: Any, var: CudaArray, weight: Any, bias: Any, eps: float, needs: tuple[bool, bool]) -> tuple[Any, Any]:
    dw = allocate(weight.shape, weight.dtype, weight) if needs[0] else None
    db = allocate(bias.shape, bias.dtype, bias) if needs[1] else None
    # both in one launch
    if dw is not None and db is not None:
        elementwise.run((_weight_gradient, _same), ((0, 1, 2), (3,)), (sums[1], var, eps, sums[0]), (dw, db), var.dtype)
    elif dw is not None:
        elementwise.run((_weight_gradient,), ((0, 1, 2),), (sums[1], var, eps), (dw,), var.dtype)
    elif db is not None:
        elementwise.run((_same,), ((0,),), (sums[0],), (db,), db.dtype)
    return dw, db


@triton.jit
def _added(a, b):
    return a + b


def add_moment_gradients(x: CudaArray, mean: CudaArray, dm: Any, dv: Any, write: Any) -> CudaArray:
    """The gradient of x that `write` puts into an array, plus the shares of those of mean and variance, where there are any."""
    dx = affine.allocate_image(x)
    # as a rule no loss uses the statistics: dx is written as it is
    if dm is None and dv is None:
        write(dx)
        return dx
    kept = dtypes.accumulator(x.dtype)
    # two parts, added in the accumulator's type and rounded once
    main, more = (allocate(x.shape, kept, x, dx.strides) for _ in range(2))
    write(main)
    dm, dv = (filled(mean.shape, mean.dtype, x.device, 0.0) if v is None else v for v in (dm, dv))
    spread(affine.of_moments, (x, *[along(v, x.shape) for v in (mean, dm, dv)]), others(x.shape), (more,), (np.float64(count(x.shape)),))
    elementwise.run((_added,), ((0, 1),), (main, more), (dx,), kept)
    return dx


def _backward(
    g: Any, x: CudaArray, weight: Any, bias: Any, mean: CudaArray, var: CudaArray, eps: float, needs: tuple[bool, ...]
) -> tuple[Any, Any, Any]:
    up, dm, dv = g
    # the loss uses the statistics alone: zeros, so that one kernel serves all cases
    if up is None:
        up = filled(x.shape, x.dtype, x.device, 0.0)
    sums = _products(up, x, mean)

    def write(out: CudaArray) -> None:
        vectors = [along(v, x.shape) for v in (mean, var, *sums, weight) if v is not None]
        numbers = np.float64(count(x.shape)), np.float64(eps)
        spread(affine.BACKWARD_OF_ONE[weight is not None], (x, up, *vectors), others(x.shape), (out,), numbers)

    dx = add_moment_gradients(x, mean, dm, dv, write) if needs[0] else None
    return dx, *vector_gradients(sums, var, weight, bias, eps, needs[1:])  # type: ignore[arg-type]


# dx = g w / sqrt(var + eps)
@triton.jit
def _scaled(g, var, index, eps):
    return g * maths.rsqrt(var + eps.to(var.dtype))


@triton.jit
def _scaled_weighed(g, var, w, index, eps):
    return g * (maths.rsqrt(var + eps.to(var.dtype)) * w)


# dmean = -w r sum g, dvar = -w r^3 sum g (x - mean) / 2, r = 1 / sqrt(var + eps)
@triton.jit
def _mean_gradient(sums, var, w, eps):
    return -sums * w * maths.rsqrt(var + eps)


@triton.jit
def _var_gradient(products, var, w, eps):
    r = maths.rsqrt(var + eps)
    return -0.5 * products * w * r * r * r


def _given_backward(
    g: CudaArray, x: CudaArray, mean: CudaArray, var: CudaArray, weight: Any, bias: Any, eps: float, needs: tuple[bool, ...]
) -> Arrays:
    dx = None
    if needs[0]:
        dx = affine.allocate_image(x)
        vectors = [along(v, x.shape) for v in (var, weight) if v is not None]
        spread(_scaled if weight is None else _scaled_weighed, (g, *vectors), others(x.shape), (dx,), (np.float64(eps),))
    # evaluation with frozen statistics and weights: no sums over the channels
    if not any(needs[1:]):
        return dx, None, None, None, None
    return dx, *given_gradients(_products(g, x, mean), mean, var, weight, bias, eps, needs[1:])


def given_gradients(sums: Any, mean: CudaArray, var: CudaArray, weight: Any, bias: Any, eps: float, needs: tuple[bool, ...]) -> Arrays:
    """Those of given means and variances, of weight and bias, from the sums of g and of g (x - mean)."""
    w, dmean, dvar = 1.0 if weight is None else weight, None, None
    if needs[0]:
        dmean = allocate(mean.shape, mean.dtype, mean)
        elementwise.run((_mean_gradient,), ((0, 1, 2, 3),), (sums[0], var, w, eps), (dmean,), var.dtype)
    if needs[1]:
        dvar = allocate(var.shape, var.dtype, mean)
        elementwise.run((_var_gradient,), ((0, 1, 2, 3),), (sums[1], var, w, eps), (dvar,), var.dtype)
    return dmean, dvar, *vector_gradients(sums, var, weight, bias, eps, needs[2:])  # type: ignore[arg-type]


# running = kept running + share statistic
@triton.jit
def _followed(running, statistic, kept, share):
    return running * kept + statistic * share


def _follow_forward(
    running_mean: CudaArray, running_var: CudaArray, mean: CudaArray, var: CudaArray, *, momentum: float, correction: float
) -> None:
    operands = (running_mean, mean, running_var, var, 1 - momentum, momentum, momentum * correction)
    elementwise.run((_followed,) * 2, ((0, 1, 4, 5), (2, 3, 4, 6)), operands, (running_mean, running_var), mean.dtype)


def _follow_reference(
    running_mean: np.ndarray, running_var: np.ndarray, mean: np.ndarray, var: np.ndarray, *, momentum: float, correction: float
) -> None:
    running_mean[...] = (1 - momentum) * running_mean + momentum * mean
    running_var[...] = (1 - momentum) * running_var + momentum * correction * var


def _follow_cpu(
    running_mean: np.ndarray, running_var: np.ndarray, mean: np.ndarray, var: np.ndarray, *, momentum: float, correction: float
) -> None:
    for running, statistic, share in ((running_mean, mean, momentum), (running_var, var, momentum * correction)):
        kept = np.result_type(dtypes.accumulator(running.dtype), statistic.dtype)
        # 16-bit statistics are followed in float32 and rounded once: momentum 0.1 of a small step would vanish in them
        with np.errstate(all="ignore"):
            running[...] = running.astype(kept) * kept.type(1 - momentum) + statistic.astype(kept) * kept.type(share)


def _follow_shape(running_mean: Any, running_var: Any, mean: Any, var: Any, *, momentum: float, correction: float) -> Spec:
    for label, v in (("running_mean", running_mean), ("running_var", running_var), ("mean", mean), ("var", var)):
        refuse_kind("follow_statistics", v.dtype, ("float",), label)
        if tuple(v.shape) != tuple(mean.shape):
            raise ShapeError(f"follow_statistics: {label} is {tuple(v.shape)}, mean is {tuple(mean.shape)}; all four are (channels,)")
    return Spec(tuple(mean.shape), running_mean.dtype)


# The rules, from x alone, so that they can be differentiated again.
def _wide(v: Any, kept: np.dtype, ndim: int) -> Any:
    """One number for each channel, beside tensors of ndim dims."""
    return ops.reshape(ops.cast(v, dtype=kept), shape=(v.shape[0], *(1,) * (ndim - 2)))


def _rule(g: Any, x: Any, weight: Any, bias: Any, eps: float, needs: tuple[bool, ...]) -> tuple[Any, Any, Any]:
    given, dims, n = x._array.dtype, others(tuple(x.shape)), count(tuple(x.shape))
    kept = dtypes.accumulator(given)
    up, dm, dv = g
    x = ops.cast(x, dtype=kept)
    dx = dw = db = None
    if up is not None:
        up = ops.cast(up, dtype=kept)
        h, rstd = affine.standardise(x, dims, eps)
        if needs[0]:
            dx = affine.gradient_of_input(up, h, rstd if weight is None else ops.mul(rstd, _wide(weight, kept, x.ndim)), dims)
        if needs[1]:
            dw = ops.cast(ops.sum(ops.mul(up, h), dim=dims, keepdim=False), dtype=weight._array.dtype)
        if needs[2]:
            db = ops.cast(ops.sum(up, dim=dims, keepdim=False), dtype=bias._array.dtype)
    if needs[0]:
        dx = ops.mul(x, 0.0) if dx is None else dx
        if dm is not None:
            dx = ops.add(dx, ops.div(_wide(dm, kept, x.ndim), n))
        if dv is not None:
            dx = ops.add(dx, ops.mul(deviations(x, dims), ops.div(_wide(dv, kept, x.ndim), n / 2)))
        dx = ops.cast(dx, dtype=given)
    return dx, dw, db


def _given_rule(g: Any, x: Any, mean: Any, var: Any, weight: Any, bias: Any, eps: float, needs: tuple[bool, ...]) -> Arrays:
    given, dims, ndim = x._array.dtype, others(tuple(x.shape)), len(x.shape)
    kept = dtypes.accumulator(given)
    g = ops.cast(g, dtype=kept)
    rstd = ops.rsqrt(ops.add(_wide(var, kept, ndim), eps))
    scale = rstd if weight is None else ops.mul(rstd, _wide(weight, kept, ndim))
    dx = ops.cast(ops.mul(g, scale), dtype=given) if needs[0] else None
    if not any(needs[1:]):
        return dx, None, None, None, None
    h = ops.mul(ops.sub(ops.cast(x, dtype=kept), _wide(mean, kept, ndim)), rstd)

    def summed(y: Any, like: Any) -> Any:
        return ops.cast(ops.sum(y, dim=dims, keepdim=False), dtype=like._array.dtype)

    dmean = summed(ops.neg(ops.mul(g, scale)), mean) if needs[1] else None
    dvar = summed(ops.mul(ops.mul(ops.mul(g, h), ops.mul(scale, rstd)), -0.5), var) if needs[2] else None
    return dx, dmean, dvar, summed(ops.mul(g, h), weight) if needs[3] else None, summed(g, bias) if needs[4] else None


# What roundings are measured against, and samples.
def _gradient_scales(g: Any, inputs: Arrays, attrs: dict[str, Any]) -> Arrays:
    """With the shares of the gradients of means and variances."""
    x, weight = inputs[:2]
    up = np.zeros_like(x) if g[0] is None else np.abs(g[0])
    dims, n = others(x.shape), count(x.shape)
    beside = (-1, *(1,) * (x.ndim - 2))
    dx, h = affine.gradient_scales(up, x, dims, attrs["eps"])
    dx = dx if weight is None else dx * np.abs(weight).reshape(beside)
    size = np.abs(x) + np.abs(x.mean(dims, keepdims=True))
    for v, of in ((g[1], 1.0), (g[2], 2 * size)):
        if v is not None:
            dx = dx + np.abs(v).reshape(beside) * of / n
    return dx, (up * h).sum(dims), up.sum(dims)


def _given_scales(g: Any, inputs: Arrays, attrs: dict[str, Any]) -> Arrays:
    x, mean, var, weight, _ = inputs
    dims, beside = others(x.shape), (-1, *(1,) * (x.ndim - 2))
    rstd = 1 / np.sqrt(var + attrs["eps"])
    w = np.ones_like(rstd) if weight is None else np.abs(weight)
    up, size = np.abs(g), np.abs(x) + np.abs(mean).reshape(beside)
    sums, products = up.sum(dims), (up * size).sum(dims)
    return up * (rstd * w).reshape(beside), sums * rstd * w, products * rstd**3 * w, products * rstd, sums


SHAPES = ((4, 3, 5), (6, 2), (2, 3, 4, 2), (2, 2, 2, 3, 2))


def samples(rng: np.random.Generator) -> list[Sample]:
    """Of 2 to 5 dims, with and without weight and bias."""
    found = []
    for i, shape in enumerate(SHAPES):
        weight, bias = 1 + 0.3 * rng.normal(size=shape[1]), rng.normal(size=shape[1])
        vectors = weight if i % 4 != 1 else None, bias if i % 4 < 2 else None
        found.append(Sample(rng.normal(size=shape) + 0.5, *vectors, eps=1e-5 if i else 1e-3))
    return found


def _given_samples(rng: np.random.Generator) -> list[Sample]:
    found = []
    for i, shape in enumerate(SHAPES):
        c = shape[1]
        mean, var, weight, bias = rng.normal(size=c), 0.5 + rng.random(c), 1 + 0.3 * rng.normal(size=c), rng.normal(size=c)
        vectors = mean, var, weight if i % 4 != 1 else None, bias if i % 4 < 2 else None
        found.append(Sample(rng.normal(size=shape), *vectors, eps=1e-5 if i else 1e-3))
    return found


def _follow_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.normal(size=n), 0.5 + rng.random(n), rng.normal(size=n), 0.5 + rng.random(n), momentum=m, correction=c)
        for n, m, c in ((5, 0.1, 1.25), (1, 1.0, 1.0), (0, 0.5, 2.0), (300, 0.0, 1.5))
    ]


def _sizes(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.standard_normal(s), rng.standard_normal(s[1]), rng.standard_normal(s[1]), eps=1e-5)
        for s in ((128, 64, 32, 32), (64, 512, 7, 7), (8192, 1024))
    ]


def _given_sizes(rng: np.random.Generator) -> list[Sample]:
    c = 64
    vectors = rng.standard_normal(c), 0.5 + rng.random(c), rng.standard_normal(c), rng.standard_normal(c)
    return [Sample(rng.standard_normal((128, c, 32, 32)), *vectors, eps=1e-5)]


def reference(x: np.ndarray, weight: np.ndarray | None = None, bias: np.ndarray | None = None, *, eps: float = 1e-5) -> Arrays:
    """(x - mean) / sqrt(var + eps) * weight + bias, with the mean and the variance (of n, not n - 1) of each channel; also those two."""
    mean, var = (v.reshape(-1) for v in affine.moments_of(x, others(x.shape)))
    return given_reference(x, mean, var, weight, bias, eps=eps), mean, var


def given_reference(
    x: np.ndarray, mean: np.ndarray, var: np.ndarray, weight: np.ndarray | None = None, bias: np.ndarray | None = None, *, eps: float = 1e-5
) -> np.ndarray:
    """(x - mean) / sqrt(var + eps) * weight + bias, with one mean and variance given for each channel."""
    mean, var, weight, bias = (affine.beside_channels(v, x.ndim) for v in (mean, var, weight, bias))
    return affine.normalise(x, mean, var, weight, bias, eps)  # type: ignore[arg-type]


op(
    "batch_norm", reference, cpu=channels_cpu.forward, shape=_shape, forward=_forward, rule=_rule, backward=_backward,
    cpu_backward=channels_cpu.backward, outputs=("y", "mean", "var"), layout="images", samples=samples, sizes=_sizes, condition=("measured", _gradient_scales),
    borrows=("bias",),
    work=lambda x, *vectors, **attrs: Work(8 * x.size, 3 * x.size * x.dtype.itemsize),
)  # fmt: skip
op(
    "batch_norm_by", given_reference, cpu=channels_cpu.given_forward, shape=_given_shape, rule=_given_rule,
    backward=_given_backward, cpu_backward=channels_cpu.given_backward, layout="images", samples=_given_samples, sizes=_given_sizes,
    borrows=("bias",), condition=("measured", _given_scales),
    forward=lambda x, mean, var, weight=None, bias=None, *, eps=1e-5: _normalised(x, mean, var, weight, bias, eps),
    work=lambda x, *vectors, **attrs: Work(2 * x.size, 2 * x.size * x.dtype.itemsize),
)  # fmt: skip
op(
    "follow_statistics", _follow_reference,
    cpu=_follow_cpu, shape=_follow_shape, forward=_follow_forward, samples=_follow_samples,
    mutates=("running_mean", "running_var"), differentiable=False,
    doc="Running statistics become (1 - momentum) running + momentum new, the variance's new one times `correction`, in one launch.",
    sizes=lambda rng: [Sample(*[0.5 + rng.random(2048) for _ in range(4)], momentum=0.1, correction=1.0)],
    work=lambda running_mean, running_var, mean, var, **attrs: Work(6 * mean.size, 2 * mean.size * (2 * running_mean.dtype.itemsize + mean.dtype.itemsize)),
)  # fmt: skip
