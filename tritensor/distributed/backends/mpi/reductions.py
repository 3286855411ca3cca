"""MPI's types and reductions for tritensor's element types; reductions that MPI lacks are made of numpy's functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tritensor.distributed.backends.mpi.library import mpi
from tritensor.distributed.reduce_op import ReduceOp
from tritensor.ground import dtypes

_TYPES = {
    "int8": "INT8_T", "int16": "INT16_T", "int32": "INT32_T", "int64": "INT64_T", "uint8": "UINT8_T", "uint16": "UINT16_T",
    "uint32": "UINT32_T", "uint64": "UINT64_T", "float32": "FLOAT", "float64": "DOUBLE", "complex64": "C_FLOAT_COMPLEX",
    "complex128": "C_DOUBLE_COMPLEX",
}  # fmt: skip
_OPS = {
    ReduceOp.SUM: "SUM", ReduceOp.AVG: "SUM", ReduceOp.PRODUCT: "PROD", ReduceOp.MIN: "MIN", ReduceOp.MAX: "MAX", ReduceOp.BAND: "BAND",
    ReduceOp.BOR: "BOR", ReduceOp.BXOR: "BXOR",
}  # fmt: skip
# Of truth values, kept in bytes: a sum is whether any is true, a product whether all are.
_OF_BOOL = {ReduceOp.SUM: "BOR", ReduceOp.MAX: "BOR", ReduceOp.PRODUCT: "BAND", ReduceOp.MIN: "BAND"}
_NUMPY: dict[ReduceOp, Any] = {
    ReduceOp.SUM: np.add, ReduceOp.AVG: np.add, ReduceOp.PRODUCT: np.multiply, ReduceOp.MIN: np.minimum, ReduceOp.MAX: np.maximum,
}  # fmt: skip
BLOCK = 1 << 16  # elements of 16-bit floats that are widened at once: they stay in the cache


@cache
def get_reduction(dtype: np.dtype, op: ReduceOp) -> tuple[np.dtype | None, Any, Any]:
    """(type to look at the array as, or None for its own; MPI's type; MPI's op) of a reduction.

    Sums and products of 16-bit floats are taken in float32 and rounded once for each two that meet. The least and largest of floats are
    numpy's: a NaN anywhere is one everywhere, where C's comparison would drop it or not as the order has it.
    """
    MPI = mpi("all_reduce")
    kind = dtypes.of(dtype).kind
    # MPI has no 16-bit floats: it moves them as 16-bit integers, and the op looks at them as what they are.
    if dtype.name in ("float16", "bfloat16"):
        return np.dtype(np.uint16), MPI.UINT16_T, _create_op(_combine_widened(dtype, _NUMPY[op]))
    if kind == "bool":
        return np.dtype(np.uint8), MPI.UINT8_T, getattr(MPI, _OF_BOOL.get(op) or _OPS[op])
    if kind == "float" and op in (ReduceOp.MIN, ReduceOp.MAX):
        return None, getattr(MPI, _TYPES[dtype.name]), _create_op(_combine_plain(dtype, _NUMPY[op]))
    return None, getattr(MPI, _TYPES[dtype.name]), getattr(MPI, _OPS[op])


def _create_op(combine: Callable[[Any, Any, Any], None]) -> Any:
    return mpi("all_reduce").Op.Create(combine, commute=True)


def _combine_plain(dtype: np.dtype, function: Any) -> Callable[[Any, Any, Any], None]:
    def combine(given: Any, out: Any, datatype: Any) -> None:
        y = np.frombuffer(out, dtype)
        function(np.frombuffer(given, dtype), y, out=y)

    return combine


def _combine_widened(dtype: np.dtype, function: Any) -> Callable[[Any, Any, Any], None]:
    def combine(given: Any, out: Any, datatype: Any) -> None:
        x, y = np.frombuffer(given, np.uint16).view(dtype), np.frombuffer(out, np.uint16).view(dtype)
        for i in range(0, len(y), BLOCK):
            part = slice(i, i + BLOCK)
            y[part] = function(x[part].astype(np.float32), y[part].astype(np.float32))

    return combine


def divide_sum(array: np.ndarray, size: int) -> None:
    """Divide the sum of `size` contributions in place; integers toward 0, as NCCL does."""
    # numpy's // rounds down; one is added where a negative sum had a remainder.
    if array.dtype.kind in "iu":
        rest = (array < 0) & (array % size != 0)
        array //= size
        array += rest.astype(array.dtype)
    elif array.dtype.name in ("float16", "bfloat16"):
        # Divided in float32 and rounded once, as the sums are.
        array[...] = array.astype(np.float32) / np.float32(size)
    else:
        np.divide(array, size, out=array)
