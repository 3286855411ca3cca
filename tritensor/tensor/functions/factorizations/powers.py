"""Determinants, powers and the exponential of matrices; powers of vectors by Vandermonde."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.autograd.engine import is_followed
from tritensor.ground.errors import DTypeError, ShapeError
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.factorizations.matrices import expand_batch, identity, require_matrices, submatrix
from tritensor.tensor.functions.factorizations.results import SignLog
from tritensor.tensor.functions.factorizations.solving import invert
from tritensor.tensor.functions.shaping.reshaping import reshape_to
from tritensor.tensor.public_api.publish import function, namespaces, twin
from tritensor.tensor.return_types import return_type


@function(out=True, also={"A": "x"})
def det(x: Tensor) -> Tensor:
    """Determinants of square matrices (..., n, n). Its gradient, the cofactors, exists for singular matrices too."""
    return ops.det(x)


@function(namespace="linalg", out=True, also={"input": "A"})
def slogdet(A: Tensor) -> SignLog:
    """(sign, logabsdet) with det = sign e^logabsdet; of complex matrices the sign is a number of absolute value 1. Of a singular one 0 and -inf."""
    return return_type("linalg_slogdet", SignLog)(*ops.slogdet(A))


@function
def logdet(x: Tensor) -> Tensor:
    """The logarithm of the determinant: NaN where a real one is negative, -inf where it is 0."""
    sign, log = ops.slogdet(x)
    if x.is_complex():
        return ops.add(log, ops.log(sign))
    return ops.where(ops.eq(sign, -1.0), math.nan, log)


@function(out=True, also={"A": "x"})
def matrix_power(x: Tensor, n: int) -> Tensor:
    """x to the power of an int: the identity for 0, powers of the inverse below, by repeated squaring. Raises LinAlgError for a singular x and n < 0."""
    require_matrices("matrix_power", x, "input", square=True)
    if isinstance(n, bool) or not isinstance(n, int | np.integer):
        raise TypeError(f"matrix_power: n is {n!r}; it must be an int")
    # In the graph through `where`, so that its gradient is 0 and not missing.
    if n == 0:
        eye = ops.copy(expand_batch(identity(x, x.shape[-1]), tuple(x.shape[:-2])))
        return ops.where(ops.full(shape=(), value=False, dtype=np.dtype(np.bool_), device=x.device), x, eye) if is_followed(x) else eye
    square, left = (x, int(n)) if n > 0 else (invert("matrix_power", x), -int(n))
    # A copy, as every other power is: writes to the result must not reach x.
    if left == 1:
        return ops.copy(square) if n > 0 else square
    y: Any = None
    while True:
        if left & 1:
            y = square if y is None else ops.matmul(y, square)
        left >>= 1
        if not left:
            return y
        square = ops.matmul(square, square)


@function(also={"A": "x"})
def matrix_exp(x: Tensor) -> Tensor:
    """The exponential 1 + x + x^2 / 2 + ... of square matrices (..., n, n), by scaling and squaring (Higham 2005)."""
    return ops.matrix_exp(x)


@function(namespace="linalg", also={"input": "x"})
def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Powers 0 to N - 1 (N: x's last size) of the elements of x (..., n) along a new last dim. int64 of integers."""
    if x.dtype.kind == "bool":
        raise DTypeError("vander: x is bool; cast it with .to(int64)")
    # PyTorch takes a number for a vector of one.
    if x.ndim < 1:
        x = reshape_to(x, (1,))
    n = x.shape[-1] if N is None else int(N)
    if n <= 1:
        raise ShapeError(f"vander: N is {n}; it must be 2 or more")
    if x.dtype.kind in ("int", "uint") and x._array.dtype != np.int64:
        x = ops.cast(x, dtype=np.dtype(np.int64))
    column = reshape_to(x, (*x.shape, 1))
    y = ops.full(shape=tuple(column.shape), value=1, dtype=x._array.dtype, device=x.device)
    factor = column  # x to the power of how many columns there are: each round doubles them
    while (have := y.shape[-1]) < n:
        y = ops.cat(y, ops.mul(submatrix(y, columns=slice(0, min(have, n - have))) if y.ndim > 1 else y, factor), dim=y.ndim - 1)
        factor = ops.mul(factor, factor)
    return y


namespaces.setdefault("linalg", {}).update({f.__name__: twin(f, f.__name__, "tritensor.linalg") for f in (det, matrix_power, matrix_exp)})
