"""Norms of vectors and of matrices, and the condition numbers that they give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.autograd.saved import borrow_saved
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, DTypeError, EmptyError, ShapeError
from tritensor.ops.table import normal_dim, normal_dims, ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.factorizations.matrices import is_floating, require_inexact, require_matrices
from tritensor.tensor.functions.factorizations.spectra import singular_values
from tritensor.tensor.functions.reductions.distances import vector_norm
from tritensor.tensor.functions.reductions.reductions import p_norm
from tritensor.tensor.functions.shaping.reshaping import forget_base
from tritensor.tensor.public_api.publish import function

Dims = int | Sequence[int] | None


def _cast_to_norm_type(name: str, x: Tensor, dtype: Any) -> Tensor:
    """x in the type that is asked for, which must not be narrower, and in a floating one."""
    if dtype is not None:
        wanted = dtypes.as_dtype(dtype)
        if wanted.kind not in ("float", "complex"):
            raise DTypeError(f"{name}: dtype is {wanted.name}; give a floating type")
        # PyTorch refuses to narrow: the norm of a float64 in float32 could overflow.
        if is_floating(x) and (
            dtypes.promote(x._array.dtype, wanted.numpy) != wanted.numpy or x.is_complex() != (wanted.kind == "complex")
        ):
            raise DTypeError(f"{name}: dtype {wanted.name} does not hold x's {x.dtype.name}; give a wider type of its kind")
        x = ops.cast(x, dtype=wanted.numpy)
    require_inexact(name, x, "x")
    return x


_ORDERS = (1, -1, 2, -2, math.inf, -math.inf, "fro", "nuc")


def _parse_two_dims(name: str, x: Tensor, dim: Any) -> tuple[int, int]:
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) != 2:
        raise ShapeError(f"{name}: dim {dim}; a matrix has two dims, give a tuple of two")
    if x.ndim < 2:
        raise ShapeError(f"{name}: x {tuple(x.shape)} has {x.ndim} dimensions; give a matrix, or a batch of them")
    first, second = (normal_dim(name, d, x.ndim) for d in dims)
    if first == second:
        raise ShapeError(f"{name}: dim {dim} names a dimension twice")
    return first, second


def _matrix_norm(name: str, x: Tensor, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
    """A norm of the matrices along two dims."""
    if isinstance(ord, bool) or ord not in _ORDERS:
        raise ArgumentError(f"{name}: ord {ord!r}; it is 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2")
    first, second = _parse_two_dims(name, x, dim)
    x = _cast_to_norm_type(name, x, dtype)
    if ord == "fro":
        return p_norm(x, 2.0, tuple(sorted((first, second))), keepdim)
    if ord in ("nuc", 2, -2):
        return _singular_value_norm(name, x, ord, first, second, keepdim)
    number = float(ord)
    # 1 sums columns and takes the largest, inf sums rows.
    summed, chosen = (first, second) if abs(number) == 1 else (second, first)
    if x.shape[chosen] == 0 and number < 0:
        raise EmptyError(f"{name}: x {tuple(x.shape)} has no element along dim {chosen}, and ord {ord} chooses one")
    sums = ops.sum(ops.abs(x), dim=(summed,), keepdim=True)
    # Of no sums the largest is 0, the least that a sum can be, and so is the sum of them.
    choose = ops.sum if x.shape[chosen] == 0 else ops.amax if number > 0 else ops.amin
    y = choose(sums, dim=(chosen,), keepdim=True)
    return y if keepdim else _drop_dims(y, first, second)


def _singular_value_norm(name: str, x: Tensor, ord: Any, first: int, second: int, keepdim: bool) -> Tensor:
    others = [d for d in range(x.ndim) if d not in (first, second)]
    values = singular_values(ops.permute(x, dims=(*others, first, second)))
    last = (values.ndim - 1,)
    if ord == -2 and values.shape[-1] == 0:
        raise EmptyError(f"{name}: x {tuple(x.shape)} has no singular value, and ord {ord} chooses one")
    y = (ops.sum if ord == "nuc" or values.shape[-1] == 0 else ops.amax if ord > 0 else ops.amin)(values, dim=last, keepdim=False)
    if not keepdim:
        return y
    return forget_base(ops.reshape(y, shape=tuple(1 if d in (first, second) else n for d, n in enumerate(x.shape))))


def _drop_dims(y: Tensor, first: int, second: int) -> Tensor:
    return forget_base(ops.reshape(y, shape=tuple(n for d, n in enumerate(y.shape) if d not in (first, second))))


@function(namespace="linalg", out=True, also={"input": "A"})
def matrix_norm(A: Tensor, ord: float | str = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """A norm of the matrices along two dims: "fro" the root of the sum of squares, "nuc" the sum of singular values, inf and -inf the largest and
    smallest sum of a row's absolute values, 1 and -1 of a column's, 2 and -2 the largest and smallest singular value."""
    return _matrix_norm("matrix_norm", A, ord, dim, bool(keepdim), dtype)


@function(namespace="linalg", out=True, also={"input": "x", "A": "x"})
def norm(x: Tensor, ord: float | str | None = None, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """A norm of vectors (dim is an int, or x has one dimension) or of matrices (dim is two, or x has two dimensions), by `ord`.

    Without ord the 2-norm over dim, or of all elements; see vector_norm and matrix_norm.
    """
    if ord is None:
        x = _cast_to_norm_type("norm", x, dtype)
        return p_norm(x, 2.0, normal_dims("norm", None if isinstance(dim, list | tuple) and not dim else dim, x.ndim), bool(keepdim))
    if dim is None:
        if x.ndim not in (1, 2):
            raise ShapeError(f"norm: x {tuple(x.shape)} with ord {ord!r} and no dim: it must have one dimension or two; give dim")
        dim = tuple(range(x.ndim))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if isinstance(ord, str) or len(dims) == 2:
        return _matrix_norm("norm", x, ord, dims, bool(keepdim), dtype)
    if len(dims) != 1:
        raise ShapeError(f"norm: dim {dim} with ord {ord!r}; give one dim for norms of vectors, two for norms of matrices")
    return vector_norm(x, ord, dims, keepdim, dtype=dtype)


@function(method=False, out=True)
def frobenius_norm(x: Tensor, dim: int | Sequence[int], keepdim: bool = False) -> Tensor:
    """The root of the sum of squares along one dim or two; along all for an empty tuple. linalg.matrix_norm and vector_norm are its newer names."""
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) > 2:
        raise ShapeError(f"frobenius_norm: dim {dim} names {len(dims)} dims; give at most two, or use linalg.vector_norm")
    require_inexact("frobenius_norm", x, "x")
    return p_norm(x, 2.0, normal_dims("frobenius_norm", dims or None, x.ndim), bool(keepdim))


@function(method=False, out=True)
def nuclear_norm(x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The sum of the singular values of matrices, of the last two dims or of `dim`; `nuclear_norm(x, True)` keeps the dims."""
    # The deprecated overload nuclear_norm(x, keepdim).
    if isinstance(dim, bool):
        dim, keepdim = None, dim
    return _matrix_norm("nuclear_norm", x, "nuc", (-2, -1) if dim is None else dim, bool(keepdim), None)


@function(method=False)
@borrow_saved
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The pow-norm over all dims but one, which and whose neighbours' places are kept: (n, ...) -> (n, 1, ...). dim=-1 is over all dims, with none kept."""
    require_inexact("norm_except_dim", v, "v")
    if dim == -1:
        return p_norm(v, float(pow), tuple(range(v.ndim)), False)
    if not v.ndim:
        raise IndexError(f"norm_except_dim: v has no dimensions, and dim {dim} is to be kept; give dim=-1")
    kept = normal_dim("norm_except_dim", dim, v.ndim)
    return p_norm(v, float(pow), tuple(d for d in range(v.ndim) if d != kept), True)


@function(namespace="linalg", out=True, also={"input": "A"})
def cond(A: Tensor, p: float | str | None = None) -> Tensor:
    """The condition number |A| |A^-1| in the matrix norm p: None and 2 the ratio of the largest singular value to the smallest, -2 its inverse,
    "fro", "nuc", inf, -inf, 1, -1 of square matrices, inf where A is singular."""
    require_matrices("cond", A)
    require_inexact("cond", A)
    if p is None or p in (2, -2):
        values = singular_values(A)
        if values.shape[-1] == 0:
            if A._array.size == 0 and A.ndim > 2 and 0 in A.shape[:-2]:
                return ops.sum(values, dim=(values.ndim - 1,), keepdim=False)
            return ops.full(shape=tuple(A.shape[:-2]), value=0, dtype=values._array.dtype, device=A.device)
        last = (values.ndim - 1,)
        large, small = ops.amax(values, dim=last, keepdim=False), ops.amin(values, dim=last, keepdim=False)
        return ops.div(small, large) if p == -2 else ops.div(large, small)
    require_matrices("cond", A, square=True)
    # The order is validated on a 1 x 1 matrix: PyTorch refuses a wrong one even where nothing is computed.
    if A.shape[-1] == 0:
        _matrix_norm("cond", ops.full(shape=(1, 1), value=1, dtype=A._array.dtype, device=A.device), p, (-2, -1), False, None)
        return ops.full(shape=tuple(A.shape[:-2]), value=0, dtype=np.dtype(A._array.real.dtype), device=A.device)
    inverse, info = ops.inv(A)
    singular = ops.reshape(ops.ne(info, 0), shape=(*A.shape[:-2], 1, 1))
    inverse = ops.where(singular, 0.0, inverse)  # which has norms: there are no singular values of NaN
    product = ops.mul(_matrix_norm("cond", A, p, (-2, -1), False, None), _matrix_norm("cond", inverse, p, (-2, -1), False, None))
    return ops.where(ops.ne(info, 0), math.inf, product)
