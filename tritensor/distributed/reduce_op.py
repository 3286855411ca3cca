"""ReduceOp: the reductions of collectives, and those that each element type allows."""

from __future__ import annotations

import enum
import math
from typing import Any

from tritensor.ground.dtypes import DType
from tritensor.ground.errors import DTypeError


class ReduceOp(enum.Enum):
    """The reduction of contributions. AVG divides the sum by the number of processes; of integers it rounds toward 0."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7

    @classmethod
    def PREMUL_SUM(cls, factor: float) -> Any:
        """Raises NotImplementedError: multiply before you reduce."""
        raise NotImplementedError("ReduceOp.PREMUL_SUM: not in tritensor; multiply the tensor before you reduce it")


# Type of the members, by PyTorch's name.
ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]


class reduce_op:
    """The older spelling of ReduceOp."""

    SUM, PRODUCT, MIN, MAX = ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX


def get_norm_op(order: float) -> ReduceOp:
    """The reduction that joins the processes' parts of a norm of this order, as nn/utils/clip_grad.py has them."""
    return ReduceOp.SUM if math.isfinite(order) else ReduceOp.MAX if order > 0 else ReduceOp.MIN


BITWISE = frozenset({ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR})


def check_op(name: str, op: Any, dtype: DType) -> ReduceOp:
    """The op, where elements of that type can be reduced by it.

    Raises TypeError for what is no ReduceOp, and DTypeError for bits of floats, an order of complex numbers, and 8-bit floats.
    """
    if not isinstance(op, ReduceOp):
        raise TypeError(f"{name}: op is {op!r}; give a ReduceOp, such as ReduceOp.SUM")
    kind = dtype.kind
    # The libraries' own errors name neither the op nor the type.
    if op in BITWISE and kind not in ("int", "uint", "bool"):
        raise DTypeError(
            f"{name}: {op.name} is of the bits of integers, and the tensor is {dtype.name}; convert it, or use another ReduceOp"
        )
    if op in (ReduceOp.MIN, ReduceOp.MAX) and kind == "complex":
        raise DTypeError(f"{name}: {op.name} asks for an order, and complex numbers ({dtype.name}) have none; reduce abs() of them")
    # A mean of truth values is a fraction; rounded to bool it would depend on the backend.
    if op is ReduceOp.AVG and kind == "bool":
        raise DTypeError(f"{name}: AVG of bool is none; convert the tensor to a float, or use MAX (any) or MIN (all)")
    # Neither library adds 8-bit floats.
    if kind == "float8":
        raise DTypeError(f"{name}: {dtype.name} is a type for storage and cannot be added; convert the tensor to bfloat16 before, and back")
    return op
