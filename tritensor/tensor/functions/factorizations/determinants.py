"""Determinants and their logarithms."""

from __future__ import annotations

import math

from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.factorizations.results import SignLog
from tritensor.tensor.public_api.publish import function, namespaces
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


namespaces.setdefault("linalg", {}).update(det=det)
