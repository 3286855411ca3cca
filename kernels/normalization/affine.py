"""Parts of normalisations: refusals, memory, formulas by a mean and a variance that many elements share, plain, of Tensors and in kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton

from tritensor.ground.errors import ShapeError
from tritensor.ground.strides import image_strides
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.axes import deviations
from tritensor.kernels.parts.reduction import ReductionFunctions, add_pairs, zero
from tritensor.kernels.parts.tapes.moments import merged, moments, walked
from tritensor.ops.array import CudaArray
from tritensor.ops.table import ops, refuse_kind


def refuse_images(name: str, x: Any, **vectors: Any) -> None:
    """Raise for an x that is not of floats or has no channels, and for vectors that have not one number for each."""
    refuse_kind(name, x.dtype, ("float",))
    if len(x.shape) < 2:
        raise ShapeError(f"{name}: x {tuple(x.shape)} has {len(x.shape)} dims; give (batch, channels, ...)")
    for label, v in vectors.items():
        if v is not None and tuple(v.shape) != (x.shape[1],):
            raise ShapeError(
                f"{name}: x {tuple(x.shape)} has {x.shape[1]} channels, {label} is {tuple(v.shape)}; give one number for each, ({x.shape[1]},)"
            )


def allocate_image(x: CudaArray) -> CudaArray:
    """A new array of x's shape and type, channels last where x's are."""
    return allocate(x.shape, x.dtype, x, image_strides(x.shape, ((x.shape, x.strides),)))


def moments_of(x: np.ndarray, dims: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the variance (of n, not n - 1) over dims, which stay with size 1."""
    mean = np.mean(x, dims, keepdims=True)
    return mean, np.mean((x - mean) ** 2, dims, keepdims=True)


def normalise(x: np.ndarray, mean: np.ndarray, var: np.ndarray, weight: Any, bias: Any, eps: float) -> np.ndarray:
    """(x - mean) / sqrt(var + eps) * weight + bias, of arrays that broadcast; without weight or bias where they are None."""
    return scale_and_shift((x - mean) / np.sqrt(var + eps), weight, bias)


def scale_and_shift(y: np.ndarray, weight: Any, bias: Any) -> np.ndarray:
    """y * weight + bias."""
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


# The same of Tensors, in our own ops and from x alone, so that it can be differentiated again.
def standardise(x: Any, dims: tuple[int, ...], eps: float, centred: bool = True) -> tuple[Any, Any]:
    """(h, rstd): x less its mean over dims (not `centred`: x itself) in root mean squares of that, and one over those."""
    c = deviations(x, dims) if centred else x
    rstd = ops.rsqrt(ops.add(ops.mean(ops.mul(c, c), dim=dims, keepdim=True), eps))
    return ops.mul(c, rstd), rstd


def gradient_of_input(u: Any, h: Any, scale: Any, dims: tuple[int, ...], centred: bool = True) -> Any:
    """scale (u - mean(u) - h mean(u h)) of a gradient u that arrives at h; without mean(u) where not `centred`."""
    along = ops.mul(h, ops.mean(ops.mul(u, h), dim=dims, keepdim=True))
    away = ops.sub(u, ops.mean(u, dim=dims, keepdim=True)) if centred else u
    return ops.mul(ops.sub(away, along), scale)


def gradient_scales(u: np.ndarray, x: np.ndarray, dims: tuple[int, ...], eps: float, centred: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Of that gradient and of h: the projections that it takes from u leave it the roundings of all three, however much they cancel."""
    mean = np.mean(x, dims, keepdims=True) if centred else np.zeros(())
    rstd = 1 / np.sqrt(np.mean((x - mean) ** 2, dims, keepdims=True) + eps)
    h = (np.abs(x) + np.abs(mean)) * rstd
    level = np.mean(u, dims, keepdims=True) if centred else 0
    return (u + level + h * np.mean(u * h, dims, keepdims=True)) * rstd, h


def beside_channels(v: Any, ndim: int) -> Any:
    """One number for each channel beside images of ndim dims (batch, channels, ...)."""
    return v if v is None else v.reshape(-1, *(1,) * (ndim - 2))


@triton.jit
def _mean_and_variance(n, mean, m2, count):
    return mean, maths.div(m2, count.to(m2.dtype))


MOMENTS = ReductionFunctions(moments, merged, _mean_and_variance, zero, walked)


# y = (x - mean) / sqrt(var + eps) * w + b
@triton.jit
def _plain(x, mean, var, index, eps):
    return (x - mean) * maths.rsqrt(var + eps.to(var.dtype))


@triton.jit
def _weighed(x, mean, var, w, index, eps):
    return (x - mean) * maths.rsqrt(var + eps.to(var.dtype)) * w


@triton.jit
def _shifted(x, mean, var, b, index, eps):
    return (x - mean) * maths.rsqrt(var + eps.to(var.dtype)) + b


@triton.jit
def _both(x, mean, var, w, b, index, eps):
    return (x - mean) * maths.rsqrt(var + eps.to(var.dtype)) * w + b


FORWARD = {(False, False): _plain, (True, False): _weighed, (False, True): _shifted, (True, True): _both}  # by: is there a weight, a bias


# dx = r (u - su / n - (x - mean) r^2 suc / n), r = 1 / sqrt(var + eps), u = g w, su = sum u, suc = sum u (x - mean)
@triton.jit
def away(x, u, mean, var, su, suc, n, eps):
    r = maths.rsqrt(var + eps.to(var.dtype))
    n = n.to(var.dtype)
    return r * (u - maths.div(su, n) - (x - mean) * (r * r * maths.div(suc, n)))


@triton.jit
def _back(x, g, mean, var, su, suc, index, n, eps):
    return away(x, g, mean, var, su, suc, n, eps)


@triton.jit
def _back_weighed(x, g, mean, var, su, suc, w, index, n, eps):
    return away(x, g * w, mean, var, su, suc, n, eps)


@triton.jit
def _back_scaled(x, g, mean, var, sg, sgc, w, index, n, eps):
    return away(x, g, mean, var, sg, sgc, n, eps) * w


BACKWARD = {False: _back, True: _back_weighed}  # by: is there a weight
BACKWARD_OF_ONE = {False: _back, True: _back_scaled}  # where all that share a mean share the weight


# the gradients of mean and variance, spread over what they were taken of: dm / n + 2 (x - mean) dv / n
@triton.jit
def of_moments(x, mean, dm, dv, index, n):
    n = n.to(mean.dtype)
    return maths.div(dm, n) + (x - mean) * maths.div(2.0 * dv, n)


# the sums of g and of g (x - mean)
@triton.jit
def _products(x, g, mean, index):
    return g, g * (x - mean)


PRODUCTS = ReductionFunctions(_products, add_pairs, None, zero)
