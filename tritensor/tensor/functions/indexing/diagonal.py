"""fill_diagonal_: one value on the main diagonal, in place."""

from __future__ import annotations

from typing import Any

from tritensor.ground.errors import ShapeError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.pointwise.operators import fill_
from tritensor.tensor.functions.shaping.reshaping import diagonal
from tritensor.tensor.public_api.publish import function


@function(free=False)
def fill_diagonal_(x: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Write one value on the main diagonal of a matrix, or of a tensor of more dimensions of one size; returns x.

    wrap: in a tall matrix (rows, n) the diagonal begins anew with each n + 1 rows.

    Raises ShapeError for a vector, and for more than two dimensions that are not of one size.
    """
    shape = tuple(x.array.shape)
    if len(shape) < 2:
        raise ShapeError(f"fill_diagonal_: input {shape} has {len(shape)} dimensions and no diagonal; give a matrix or more dimensions")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise ShapeError(f"fill_diagonal_: input {shape}: more than two dimensions must be of one size; take x.diagonal(...).fill_(value)")
    line = x
    for _ in shape[1:]:
        line = diagonal(line, 0, 0, 1)
    fill_(line, fill_value)
    period = shape[1] + 1
    if wrap and len(shape) == 2 and shape[0] > period:
        whole = shape[0] // period
        if whole > 1:
            fill_(diagonal(x[period : whole * period].view(whole - 1, period, shape[1]), 0, 1, 2), fill_value)
        if shape[0] % period:
            fill_(diagonal(x[whole * period :], 0, 0, 1), fill_value)
    return x
