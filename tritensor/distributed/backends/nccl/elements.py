"""NCCL's element types: the number of each for moving and for reducing, and how many of NCCL's elements one of a numpy dtype is."""

from __future__ import annotations

from typing import Any, NamedTuple

from tritensor.distributed.reduce_op import BITWISE, ReduceOp
from tritensor.ground import dtypes
from tritensor.ground.dtypes import DType
from tritensor.ground.errors import DTypeError


class Elements(NamedTuple):
    """One element of ours is `each` of NCCL's type `kind`."""

    kind: int
    each: int


# ncclDataType_t
_INT8, _UINT8 = 0, 1
_OWN = {
    "int8": 0, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5, "float16": 6, "float32": 7, "float64": 8, "bfloat16": 9,
}  # fmt: skip
# ncclRedOp_t
_OPS = {ReduceOp.SUM: 0, ReduceOp.PRODUCT: 1, ReduceOp.MAX: 2, ReduceOp.MIN: 3, ReduceOp.AVG: 4}
# Of bytes that are 0 or 1 the sum (any) and the bits' OR are the largest, the product (all) and the bits' AND the least.
_OF_BOOL = {ReduceOp.SUM: 2, ReduceOp.MAX: 2, ReduceOp.BOR: 2, ReduceOp.PRODUCT: 3, ReduceOp.MIN: 3, ReduceOp.BAND: 3}


def get_move_type(dtype: Any) -> Elements:
    """NCCL's type to move a numpy dtype, and how many of it an element is: as they are where NCCL knows them, as their parts or bytes where it does not."""
    found = dtypes.of(dtype)
    if found.kind == "bool":
        return Elements(_UINT8, 1)
    if found.kind == "complex":
        return Elements(_OWN[found.to_real().name], 2)
    own = _OWN.get(found.name)
    return Elements(_INT8, found.itemsize) if own is None else Elements(own, 1)


def get_reduce_type(call: object, dtype: Any, op: ReduceOp) -> tuple[Elements, int]:
    """How elements of a numpy dtype are reduced, and NCCL's number of the op. Raises DTypeError for what NCCL has not."""
    found = dtypes.of(dtype)
    if found.kind == "bool":
        if op not in _OF_BOOL:
            raise _refuse_reduction(call, found, op, "convert the tensor to int32 and reduce that (SUM, then % 2, is the XOR)")
        return Elements(_UINT8, 1), _OF_BOOL[op]
    if op in BITWISE:
        raise _refuse_reduction(
            call, found, op, "reduce a copy on the CPU over a group of backend 'mpi', or each bit as an element of its own"
        )
    if found.kind == "complex":
        if op not in (ReduceOp.SUM, ReduceOp.AVG):
            raise _refuse_reduction(call, found, op, "gather the tensors with all_gather and reduce them here")
        return get_move_type(dtype), _OPS[op]
    if found.name not in _OWN:
        wider = "bfloat16" if found.kind == "float8" else "int32"
        raise _refuse_reduction(call, found, op, f"convert the tensor to {wider} before, and back")
    return Elements(_OWN[found.name], 1), _OPS[op]


def _refuse_reduction(call: object, dtype: DType, op: ReduceOp, mend: str) -> DTypeError:
    return DTypeError(f"{call}: NCCL has no {op.name} of {dtype.name}; {mend}")
