"""Casts by name that pointwise conversions do not have: cfloat and cdouble."""

from __future__ import annotations

from typing import Any

from tritensor.ground import dtypes
from tritensor.ground.strides import preserve_format
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.moving import to
from tritensor.tensor.public_api.publish import function


@function(free=False)
def cfloat(x: Tensor, memory_format: Any = preserve_format) -> Tensor:
    """x as complex64; itself when it is."""
    return to(x, dtype=dtypes.complex64, memory_format=memory_format)


@function(free=False)
def cdouble(x: Tensor, memory_format: Any = preserve_format) -> Tensor:
    """x as complex128; itself when it is."""
    return to(x, dtype=dtypes.complex128, memory_format=memory_format)
