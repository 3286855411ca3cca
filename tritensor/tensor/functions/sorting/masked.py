"""tritensor.masked.median: the middle element of what a mask shows."""

from __future__ import annotations

from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.ops.table import normal_dim, ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.reductions.masked import cast_operand, fill_masked
from tritensor.tensor.functions.reductions.reductions import cast_if_given
from tritensor.tensor.functions.sorting.ordering import nanmedian
from tritensor.tensor.public_api.publish import function


@function(namespace="masked")
def median(x: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The middle element along dim, the lower one of two, of what the mask shows and is not NaN; NaN of nothing.

    Of integers in their own type, or `dtype`; ArgumentError where the mask shows nothing of some row, which they have no number for.
    """
    wanted = x.dtype if dtype is None else dtype
    values = fill_masked("masked.median", cast_operand(x, None, floating=True), mask, float("nan"))
    found = nanmedian(values, normal_dim("masked.median", dim, x.ndim), keepdim).values
    if x.is_floating_point():
        return found
    if bool(ops.any(ops.isnan(found), dim=tuple(range(found.ndim)), keepdim=False)):
        raise ArgumentError(
            f"masked.median: the mask shows nothing of some row, for which {x.dtype.name} has no NaN; convert with .float()"
        )
    return cast_if_given(found, wanted)
