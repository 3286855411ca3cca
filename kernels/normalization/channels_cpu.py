"""Batch normalisation on the CPU: images as planes (batch, channels, elements), channels that lie last as rows of channels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.strides import is_channels_last
from tritensor.kernels.normalization.channels_llvm import walk_for
from tritensor.kernels.parts.cpu.summation import centred, total
from tritensor.llvm.loops import takes_rows
from tritensor.ops.array import element_strides

Arrays = tuple[Any, ...]


def _last(x: np.ndarray) -> bool:
    return x.ndim > 3 and not x.flags.c_contiguous and is_channels_last(x.shape, element_strides(x))


def _planes(x: np.ndarray, last: bool) -> np.ndarray:
    """x as C-ordered (batch, channels, elements); where channels lie last, or there is nothing else, (rows, channels, 1)."""
    if last:
        # a view: channels-last memory has this order already
        return np.ascontiguousarray(x.transpose(0, *range(2, x.ndim), 1)).reshape(-1, x.shape[1], 1)
    return np.ascontiguousarray(x).reshape(x.shape[0], x.shape[1], math.prod(x.shape[2:]))


def _image(y: np.ndarray, shape: tuple[int, ...], last: bool) -> np.ndarray:
    """Planes in the shape they came in."""
    if last:
        return y.reshape(shape[0], *shape[2:], shape[1]).transpose(0, len(shape) - 1, *range(1, len(shape) - 1))
    return y.reshape(shape)


def _sums(x: np.ndarray) -> np.ndarray:
    """The sum of every channel."""
    return total(x[:, :, 0], (0,)) if x.shape[2] == 1 else total(x, (0, 2))


def _beside(v: np.ndarray | None, kept: np.dtype) -> Any:
    return None if v is None else v.astype(kept, copy=False)[:, None]


def _applied(y: np.ndarray, scale: np.ndarray, bias: Any, kept: np.dtype, given: np.dtype) -> np.ndarray:
    """y scale + bias, in place."""
    y *= scale
    if bias is not None:
        y += bias
    return y.astype(given, copy=False)


def forward(x: np.ndarray, weight: np.ndarray | None = None, bias: np.ndarray | None = None, *, eps: float = 1e-5) -> Arrays:
    """batch_norm: the result, means and variances."""
    kept, last = dtypes.accumulator(x.dtype), _last(x)
    planes = _planes(x, last)
    # machine code reads memory once for the statistics and once for the result, numpy once for each operation
    if takes_rows(planes):
        made, moments = np.empty(planes.shape, x.dtype), (np.empty(x.shape[1], kept), np.empty(x.shape[1], kept))
        if walk_for(planes.shape).forward(planes, weight, bias, eps, made, *moments):
            return _image(made, x.shape, last), *moments
    # the mean is taken twice: a constant channel would keep the roundings of one sum as its deviations, magnified by 1 / sqrt(eps)
    y, mean = centred(planes.astype(kept, copy=False), (0, 2))
    var = (_sums(y * y) / kept.type(planes.shape[0] * planes.shape[2]))[:, None]
    scale = 1 / np.sqrt(var + kept.type(eps))
    if weight is not None:
        scale = scale * _beside(weight, kept)
    out = _applied(y, scale, _beside(bias, kept), kept, x.dtype)
    return _image(out, x.shape, last), mean.reshape(-1), var[:, 0]


def backward(
    g: Any, x: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None, mean: np.ndarray, var: np.ndarray, eps: float,
    needs: tuple[bool, ...],
) -> Arrays:  # fmt: skip
    """Gradients of x, weight and bias, of those of y, means and variances."""
    kept, last = dtypes.accumulator(x.dtype), _last(x)
    planes, n = _planes(x, last), kept.type(x.size // max(x.shape[1], 1))
    up, dm, dv = g
    # gradients of the statistics themselves come only from losses that use them, which is rare: numpy computes those
    if dm is None and dv is None and takes_rows(planes):
        made = np.empty(planes.shape, x.dtype) if needs[0] else None
        found = walk_for(planes.shape).backward(_planes(up, last), planes, mean, var, weight, eps, made)
        if found is not None:
            return None if made is None else _image(made, x.shape, last), *as_given(found, (weight, bias), needs[1:])
    u = np.zeros(planes.shape, kept) if up is None else _planes(up, last).astype(kept, copy=False)
    c = planes.astype(kept, copy=False) - _beside(mean, kept)
    sums, products = _sums(u), _sums(u * c)
    rstd = 1 / np.sqrt(var.astype(kept, copy=False) + kept.type(eps))
    dx = None
    if needs[0]:
        slope = -(rstd * rstd) * products / n
        level = -sums / n
        scale = rstd if weight is None else rstd * weight.astype(kept, copy=False)
        # y's part carries weight / std, that of the variance does not
        if dv is not None:
            slope = slope * scale + dv * (2 / n)
        out = c * (slope if dv is not None else slope * scale)[:, None]
        out += u * scale[:, None]
        out += (level * scale if dm is None else level * scale + dm / n)[:, None]
        dx = _image(out.astype(x.dtype, copy=False), x.shape, last)
    return dx, *as_given((products * rstd, sums), (weight, bias), needs[1:])


def as_given(found: Arrays, likes: Arrays, needs: tuple[bool, ...]) -> Arrays:
    """Gradients of vectors in their types, None where there is nothing, or nobody asks."""
    return tuple(
        [f.astype(v.dtype, copy=False) if need and v is not None else None for f, v, need in zip(found, likes, needs, strict=True)]
    )


def given_forward(
    x: np.ndarray, mean: np.ndarray, var: np.ndarray, weight: np.ndarray | None = None, bias: np.ndarray | None = None, *, eps: float = 1e-5
) -> np.ndarray:
    """batch_norm_by: the result with given means and variances."""
    kept, last = dtypes.accumulator(x.dtype), _last(x)
    planes = _planes(x, last)
    scale = 1 / np.sqrt(_beside(var, kept) + kept.type(eps))
    if weight is not None:
        scale = scale * _beside(weight, kept)
    out = np.empty(planes.shape, x.dtype)
    if takes_rows(planes) and walk_for(planes.shape).affine(planes, mean, scale[:, 0], bias, out):
        return _image(out, x.shape, last)
    y = planes.astype(kept, copy=False) - _beside(mean, kept)
    return _image(_applied(y, scale, _beside(bias, kept), kept, x.dtype), x.shape, last)


def given_backward(
    g: np.ndarray, x: np.ndarray, mean: np.ndarray, var: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None, eps: float,
    needs: tuple[bool, ...],
) -> Arrays:  # fmt: skip
    """Gradients of x, means, variances, weight and bias."""
    kept, last = dtypes.accumulator(x.dtype), _last(x)
    up = _planes(g, last)
    fast = walk_for(up.shape) if takes_rows(up) else None
    rstd = 1 / np.sqrt(var.astype(kept, copy=False) + kept.type(eps))
    scale = rstd if weight is None else rstd * weight.astype(kept, copy=False)
    dx = None
    if needs[0]:
        out = np.empty(up.shape, x.dtype)
        if fast is None or not fast.scaled(up, scale, out):
            out = (up.astype(kept, copy=False) * scale[:, None]).astype(x.dtype, copy=False)
        dx = _image(out, x.shape, last)
    # evaluation with frozen statistics and weights: no sums over the channels
    if not any(needs[1:]):
        return dx, None, None, None, None
    planes = _planes(x, last)
    pair = fast.products(up, planes, mean) if fast is not None else None
    if pair is None:
        wide = up.astype(kept, copy=False)
        pair = _sums(wide), _sums(wide * (planes.astype(kept, copy=False) - _beside(mean, kept)))
    sums, products = pair
    found = (-sums * scale, products * scale * rstd * rstd * -0.5, products * rstd, sums)
    return dx, *as_given(found, (mean, var, weight, bias), needs[1:])
