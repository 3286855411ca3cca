"""torch._prims_common: which types an elementwise operation computes in and returns, as published generators of kernels ask."""

from __future__ import annotations

from enum import Enum
from typing import Any

from tritensor.ground import dtypes
from tritensor.ground.dtypes import DType
from tritensor.tensor.core import Tensor


class ELEMENTWISE_TYPE_PROMOTION_KIND(Enum):
    """How an operation's result type follows from its operands': as they are, or integers to floats, to bool, complex to real, bool to int64."""

    DEFAULT = (0,)  # tuples, as PyTorch's are
    NO_OPMATH = (1,)
    INT_TO_FLOAT = (2,)
    ALWAYS_BOOL = (3,)
    COMPLEX_TO_FLOAT = (4,)
    BOOL_TO_LONG = (5,)


_WIDER = {dtypes.float16: dtypes.float32, dtypes.bfloat16: dtypes.float32}


def elementwise_dtypes(*operands: Any, type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND) -> tuple[DType, DType]:
    """(the type to compute in, the result's type) of tensors and numbers; None stands for an operand that is left out.

    16-bit floats are computed in float32, except under NO_OPMATH. Raises DTypeError where no type holds all operands, TypeError where there is none.
    """
    kind = ELEMENTWISE_TYPE_PROMOTION_KIND(type_promotion_kind)
    result = dtypes.of(dtypes.result_type([x._array if isinstance(x, Tensor) else x for x in operands], "elementwise_dtypes"))
    whole = result.kind in ("bool", "int", "uint")
    if kind is kind.INT_TO_FLOAT and whole:
        result = dtypes.default_float()
    elif kind is kind.BOOL_TO_LONG and result is dtypes.bool_:
        return dtypes.int64, dtypes.int64
    compute = result if kind is kind.NO_OPMATH else _WIDER.get(result, result)  # opmath: 16-bit floats are rounded once, at the end
    if kind is kind.ALWAYS_BOOL:
        return compute, dtypes.bool_
    if kind is kind.COMPLEX_TO_FLOAT and result.is_complex:
        return compute, dtypes.float32 if result is dtypes.complex64 else dtypes.float64
    return compute, result


def is_boolean_dtype(dtype: DType) -> bool:
    """Whether it is bool."""
    return dtype is dtypes.bool_


def is_integer_dtype(dtype: DType) -> bool:
    """Whether it holds whole numbers; bool is none."""
    return dtype.kind in ("int", "uint")


def is_float_dtype(dtype: DType) -> bool:
    """Whether it is a real floating type."""
    return dtype.is_floating_point


def is_complex_dtype(dtype: DType) -> bool:
    """Whether it is a complex type."""
    return dtype.is_complex
