"""Norms of vectors and the distances that they measure: vector_norm, renorm, cdist, pdist."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, DTypeError, EmptyError, ShapeError
from tritensor.ops.table import broadcast, normal_dim, ops
from tritensor.ops.transfer import from_host
from tritensor.tensor.casting import to_accumulator
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.functions.reductions.reductions import Dims, cast_if_given, p_norm, parse_dims
from tritensor.tensor.functions.shaping.reshaping import reshape_to, to_c_order
from tritensor.tensor.public_api.publish import function


@function(namespace="linalg", out=True)
def vector_norm(x: Tensor, ord: float = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """(sum |x|^ord)^(1/ord) over dims, of x seen as vectors, for every number `ord`: 0 counts what is not zero, inf and -inf are the largest and smallest.

    `dtype`: cast x first. The gradient at 0 is 0. Raises DTypeError for types that are not floating, EmptyError where nothing is left to choose from.
    """
    # bool is an int, and True no order.
    if isinstance(ord, str | bool) or not isinstance(ord, int | float | np.number):
        raise TypeError(f"vector_norm: ord {ord!r} is no number")
    if dtype is not None:
        wanted = dtypes.as_dtype(dtype)
        if wanted.kind not in ("float", "complex"):
            raise DTypeError(f"vector_norm: dtype is {wanted.name}; give a floating type")
        if x.is_complex() and wanted.kind != "complex":
            raise DTypeError(f"vector_norm: x is {x.dtype.name}, dtype {wanted.name}; give a complex type")
        if dtypes.of(x._array.dtype).kind in ("float", "complex") and dtypes.promote(x._array.dtype, wanted.numpy) != wanted.numpy:
            raise DTypeError(f"vector_norm: dtype {wanted.name} is narrower than x's {x.dtype.name}; leave it away")
        x = cast_if_given(x, dtype)
    if not x.is_floating_point() and not x.is_complex():
        raise DTypeError(f"vector_norm: x is {x.dtype.name}; vector_norm takes floating types; cast it with .to(float32) or give dtype")
    dims = parse_dims("vector_norm", x, dim)
    if 0 in [x.shape[d] for d in dims] and (ord < 0 or math.isinf(ord)):
        raise EmptyError(f"vector_norm: x {tuple(x.shape)} has no element along dim {dims}, and ord {ord} needs one")
    return p_norm(x, float(ord), dims, keepdim)


@function(out=True, inplace=True)
def renorm(x: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """x with each slice along dim whose p-norm is larger than maxnorm scaled down to it. Raises ArgumentError for p <= 0 and maxnorm < 0."""
    ndim = x.ndim
    if not isinstance(p, int | float) or p <= 0:
        raise ArgumentError(f"renorm: p {p} is not positive; give a positive number")
    if maxnorm < 0:
        raise ArgumentError(f"renorm: maxnorm {maxnorm} is negative; give 0 or more")
    if ndim < 2:
        raise ShapeError(f"renorm: x {tuple(x.shape)} has {x.ndim} dimensions; it needs two, so that slices are vectors")
    axis = normal_dim("renorm", dim, x.ndim)
    over = tuple(a for a in range(x.ndim) if a != axis)
    # Which slices are scaled has no gradient; the scale itself has.
    large = ops.gt(vector_norm(to_accumulator(x.detach()), p, over, True), float(maxnorm))
    norms = vector_norm(ops.where(large, to_accumulator(x), 0.0), p, over, True)  # what stays, with a NaN in it say, has no part in a scale
    scale = ops.where(large, ops.div(float(maxnorm), ops.add(norms, 1e-7)), 1.0)
    return to_c_order(ops.mul(x, cast_if_given(scale, x.dtype)))


# Distances
_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


def _check_points(name: str, x: Tensor, p: float, label: str) -> None:
    if x.ndim < 2:
        raise ShapeError(f"{name}: {label} {tuple(x.shape)} has {x.ndim} dimensions; give at least two, (points, coordinates)")
    if not x.is_floating_point():
        raise DTypeError(f"{name}: {label} is {x.dtype.name}; {name} takes floating types; cast it with .to(float32)")
    if p < 0 or math.isnan(p):
        raise ArgumentError(f"{name}: p {p} is negative; give 0 or more")


@function(method=False)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """p-norm distances (..., points, others) of points x1 (..., points, n) to others x2 (..., others, n); batches broadcast.

    Args:
        p: 0 (how many coordinates differ), any positive number, or inf (the largest difference).
        compute_mode: Euclidean distances of more than 25 points come from a matrix product on the CPU, faster and less exact where they are
            small; "use_mm_for_euclid_dist" and "donot_use_mm_for_euclid_dist" decide otherwise.

    The gradient is 0 where the distance is. Raises ShapeError, DTypeError and ArgumentError for other shapes, types and p.
    """
    _check_points("cdist", x1, p, "x1")
    _check_points("cdist", x2, p, "x2")
    if x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(
            f"cdist: x1 {tuple(x1.shape)}, x2 {tuple(x2.shape)}: the last sizes {x1.shape[-1]} and {x2.shape[-1]} differ; give points of as many coordinates"
        )
    if compute_mode is not None and compute_mode not in _MODES and compute_mode not in (0, 1, 2):
        raise ArgumentError(f"cdist: compute_mode {compute_mode!r} is none of {', '.join(_MODES)}")
    # PyTorch also takes the modes by number.
    mode = 0 if compute_mode is None else _MODES.index(compute_mode) if isinstance(compute_mode, str) else compute_mode
    rows, columns, n = x1.shape[-2], x2.shape[-2], x1.shape[-1]
    lead = broadcast("cdist", tuple(x1.shape[:-2]), tuple(x2.shape[:-2]), labels=("x1's batch", "x2's batch"))
    batch = math.prod(lead)
    a, b = (reshape_to(ops.expand(x, shape=(*lead, *x.shape[-2:])), (batch, x.shape[-2], n)) for x in (x1, x2))
    fast = p == 2 and (mode == 1 or (mode == 0 and (rows > 25 or columns > 25)))
    return ops.reshape(ops.cdist(a, b, p=float(p), fast=fast), shape=(*lead, rows, columns))


@function(method=False)
def pdist(x: Tensor, p: float = 2.0) -> Tensor:
    """p-norm distances of every pair of rows i < j of x (n, columns): (n (n - 1) / 2,), those of row 0 first. See `cdist`."""
    if x.ndim != 2:
        raise ShapeError(f"pdist: x {tuple(x.shape)} has {x.ndim} dimensions; give two, (points, coordinates)")
    _check_points("pdist", x, p, "x")
    n = x.shape[0]
    if n < 2:
        return ops.sum(ops.mul(x, 0.0), dim=(1,), keepdim=False)[:0]
    # The exact mode: pdist has no fast one in PyTorch.
    all_pairs = cdist(x, x, p, "donot_use_mm_for_euclid_dist")
    keys = new_tensor(from_host(np.flatnonzero(~np.tri(n, dtype=np.bool_)), x.device))
    return ops.reshape(all_pairs, shape=(n * n,))[keys]
