"""Group normalisation: each instance's channels in groups, every group by its mean and variance; one channel a group is instance normalisation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import triton

from tritensor.ground import dtypes
from tritensor.ground.errors import ShapeError
from tritensor.ground.strides import is_channels_last
from tritensor.kernels.normalization import affine, groups_cpu
from tritensor.kernels.parts import elementwise, maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import to_c_order
from tritensor.kernels.parts.reduction import ReductionFunctions, add_pairs, fold, spread, zero
from tritensor.kernels.parts.view_arithmetic import reshaped
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, op, ops

Arrays = tuple[Any, ...]


def _split(shape: tuple[int, ...], groups: int) -> tuple[int, int, int, int]:
    """(batch, groups, channels of a group, elements of a channel)."""
    return shape[0], groups, shape[1] // groups, math.prod(shape[2:])


def specs(name: str, x: Any, weight: Any, bias: Any, groups: int) -> tuple[Spec, Spec, Spec]:
    """Those of y, mean and variance; raises for what does not fit."""
    affine.refuse_images(name, x)
    if x.shape[1] % groups:
        raise ShapeError(f"{name}: x {tuple(x.shape)} has {x.shape[1]} channels, which {groups} groups do not share evenly; give a divisor")
    affine.refuse_images(name, x, weight=weight, bias=bias)
    kept = Spec((x.shape[0], groups), dtypes.accumulator(x.dtype))
    return Spec(x.shape, x.dtype), kept, kept


# Kernels.
def _grouped(x: CudaArray, groups: int) -> CudaArray:
    """An image as a view (batch, groups, channels of a group, elements of a channel)."""
    n, g, d, s = _split(x.shape, groups)
    steps = x.strides
    return x.as_strided((n, g, d, s), (steps[0], steps[1] * d, steps[1], steps[-1] if len(steps) > 2 else 0), 0)


def _whole(x: CudaArray) -> CudaArray:
    """x itself where the elements of a channel lie evenly, else a C-ordered copy."""
    return x if len(x.shape) > 3 and is_channels_last(x.shape, x.strides) else to_c_order(x)


def _of_group(v: CudaArray, shape: tuple[int, ...]) -> CudaArray:
    """One number for each group, (batch, groups), beside (batch, groups, channels, elements)."""
    return v.as_strided(shape, (shape[1], 1, 0, 0), 0)


def _of_channel(v: CudaArray, shape: tuple[int, ...]) -> CudaArray:
    """One number for each channel beside them."""
    return v.as_strided(shape, (0, v.strides[0] * shape[2], v.strides[0], 0), 0)


def normalised(x: CudaArray, weight: Any, bias: Any, groups: int, eps: float, formula: Any) -> Arrays:
    """(y, mean, var): y as the formula has it of x, mean, variance, and weight and bias where they are given."""
    kept = dtypes.accumulator(x.dtype)
    shape = _split(x.shape, groups)
    mean, var = allocate(shape[:2], kept, x), allocate(shape[:2], kept, x)
    y, whole = affine.allocate_image(x), _whole(x)
    view = _grouped(whole, groups)
    fold(affine.MOMENTS, (view,), (2, 3), (mean, var), (kept,) * 3, (np.float64(shape[2] * shape[3]),))
    vectors = [_of_group(mean, shape), _of_group(var, shape), *[_of_channel(v, shape) for v in (weight, bias) if v is not None]]
    spread(formula, (view, *vectors), (3,), (_grouped(y, groups),), (np.float64(eps),))
    return y, mean, var


@triton.jit
def _pair(a, b, index):
    return a, b


@triton.jit
def _weighed_pair(a, b, w, index):
    return a * w, b * w


# dw = sum over the batch of sc / sqrt(var + eps), db = sum of s: sc and s of one instance's channel
@triton.jit
def _scaled_pair(s, sc, var, index):
    return s, sc * var


@triton.jit
def _reciprocal_root(var, eps):
    return maths.rsqrt(var + eps)


def gradients(
    g: CudaArray, x: CudaArray, weight: Any, bias: Any, mean: CudaArray, var: CudaArray, groups: int, eps: float, needs: tuple[bool, ...], formulas: Any
) -> Arrays:  # fmt: skip
    """Those of x, weight and bias; `formulas` (see activated/formulas.py) where an activation comes behind."""
    kept, shape = dtypes.accumulator(x.dtype), _split(x.shape, groups)
    dx, xs, gs = affine.allocate_image(x), _grouped(_whole(x), groups), _grouped(_whole(g), groups)
    # sums of channels serve dw and db as well as, weighed and added, the groups' sums for dx: x and g are read once for all of them
    s, sc = allocate(shape[:3], kept, x), allocate(shape[:3], kept, x)  # of each instance's channel
    whole = [*[_of_group(v, shape) for v in (mean, var)], *[_of_channel(v, shape) for v in (weight, bias) if v is not None]]
    if formulas is None:
        fold(affine.PRODUCTS, (xs, gs, whole[0]), (3,), (s, sc), (kept, kept))
    else:
        fold(formulas.products, (xs, gs, *whole), (3,), (s, sc), (kept, kept), numbers=(np.float64(eps),))
    channels = shape[:3]
    w = None if weight is None else weight.as_strided(channels, (0, weight.strides[0] * shape[2], weight.strides[0]), 0)
    if needs[0]:
        su, suc = allocate(shape[:2], kept, x), allocate(shape[:2], kept, x)
        functions = ReductionFunctions(_pair if w is None else _weighed_pair, add_pairs, None, zero)
        fold(functions, (s, sc) if w is None else (s, sc, w), (2,), (su, suc), (kept, kept))
        sums, n = [_of_group(v, shape) for v in (su, suc)], np.float64(shape[2] * shape[3])
        vectors = [*whole[:2], *sums, *([] if weight is None else [_of_channel(weight, shape)])] if formulas is None else [*whole, *sums]
        formula = affine.BACKWARD[weight is not None] if formulas is None else formulas.backward
        spread(formula, (xs, gs, *vectors), (3,), (_grouped(dx, groups),), (n, np.float64(eps)))
    if not (needs[1] or needs[2]):
        return dx, None, None
    # one root for each group, not one for each channel of each instance
    rstd = allocate(var.shape, kept, x)
    elementwise.run((_reciprocal_root,), ((0, 1),), (var, eps), (rstd,), kept)
    beside = rstd.as_strided(channels, (shape[1], 1, 0), 0)
    db, dw = (allocate((x.shape[1],), kept if v is None else v.dtype, x) for v in (bias, weight))
    fold(ReductionFunctions(_scaled_pair, add_pairs, None, zero), (s, sc, beside), (0,), (db, dw), (kept, kept))
    return dx if needs[0] else None, dw if needs[1] else None, db if needs[2] else None


def _rule(g: Any, x: Any, weight: Any, bias: Any, groups: int, eps: float, needs: tuple[bool, ...]) -> Arrays:
    """The gradient in our own ops, from x alone, so that it can be differentiated again."""
    given, whole = x._array.dtype, tuple(x.shape)
    kept, shape = dtypes.accumulator(given), _split(whole, groups)
    g, x = (reshaped(ops.cast(v, dtype=kept), shape) for v in (g, x))
    h, rstd = affine.standardise(x, (2, 3), eps)
    dx = dw = db = None
    if needs[0]:
        u = g if weight is None else ops.mul(g, ops.reshape(ops.cast(weight, dtype=kept), shape=(1, *shape[1:3], 1)))
        dx = ops.cast(ops.reshape(affine.gradient_of_input(u, h, rstd, (2, 3)), shape=whole), dtype=given)
    if needs[1]:
        dw = ops.cast(ops.reshape(ops.sum(ops.mul(g, h), dim=(0, 3), keepdim=False), shape=(whole[1],)), dtype=weight._array.dtype)
    if needs[2]:
        db = ops.cast(ops.reshape(ops.sum(g, dim=(0, 3), keepdim=False), shape=(whole[1],)), dtype=bias._array.dtype)
    return dx, dw, db


def _gradient_scales(g: np.ndarray, inputs: Arrays, attrs: dict[str, Any]) -> Arrays:
    x, weight = inputs[:2]
    shape = _split(x.shape, attrs["groups"])
    up = np.abs(g).reshape(shape)
    u = up if weight is None else up * np.abs(weight).reshape(1, *shape[1:3], 1)
    dx, h = affine.gradient_scales(u, x.reshape(shape), (2, 3), attrs["eps"])
    return dx.reshape(x.shape), (up * h).sum((0, 3)).reshape(-1), up.sum((0, 3)).reshape(-1)


def _samples(rng: np.random.Generator) -> list[Sample]:
    """Of 2 to 5 dims, one group, as many as channels, with and without weight and bias."""
    found = []
    shapes = (((4, 6, 5), 2), ((3, 4), 2), ((2, 4, 3, 2), 4), ((2, 2, 2, 3, 2), 1))
    for i, (shape, groups) in enumerate(shapes):
        weight, bias = 1 + 0.3 * rng.normal(size=shape[1]), rng.normal(size=shape[1])
        vectors = weight if i != 1 else None, bias if i < 2 else None
        found.append(Sample(rng.normal(size=shape) + 0.5, *vectors, groups=groups, eps=1e-5 if i else 1e-3))
    return found


def _sizes(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.standard_normal(s), rng.standard_normal(s[1]), rng.standard_normal(s[1]), groups=32, eps=1e-5)
        for s in ((32, 128, 64, 64), (64, 512, 8, 8))
    ]


def reference(x: np.ndarray, weight: np.ndarray | None = None, bias: np.ndarray | None = None, *, groups: int, eps: float = 1e-5) -> Arrays:
    """(x - mean) / sqrt(var + eps) * weight + bias, mean and variance (of n) those of each instance's groups of channels; also those two."""
    grouped = x.reshape(_split(x.shape, groups))
    mean, var = affine.moments_of(grouped, (2, 3))
    h = affine.normalise(grouped, mean, var, None, None, eps).reshape(x.shape)
    return affine.scale_and_shift(h, *[affine.beside_channels(v, x.ndim) for v in (weight, bias)]), mean[:, :, 0, 0], var[:, :, 0, 0]


op(
    "group_norm", reference, cpu=groups_cpu.forward, rule=_rule,
    cpu_backward=groups_cpu.backward, outputs=("y", "mean", "var"), residuals=("mean", "var"), layout="images", samples=_samples, sizes=_sizes,
    borrows=("bias",), condition=("measured", _gradient_scales),
    shape=lambda x, weight=None, bias=None, *, groups, eps=1e-5: specs("group_norm", x, weight, bias, groups),
    forward=lambda x, weight=None, bias=None, *, groups, eps=1e-5:
        normalised(x, weight, bias, groups, eps, affine.FORWARD[weight is not None, bias is not None]),
    backward=lambda g, x, weight, bias, mean, var, groups, eps, needs: gradients(g, x, weight, bias, mean, var, groups, eps, needs, None),
    work=lambda x, weight=None, bias=None, **attrs: Work(8 * x.size, 3 * x.size * x.dtype.itemsize),
)  # fmt: skip
