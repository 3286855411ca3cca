"""Type promotion of operands, and predicates of a tensor's type."""

from __future__ import annotations

from typing import Any

from tritensor.ground import dtypes
from tritensor.ground.dtypes import DType
from tritensor.ground.errors import ShapeError
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.types.storages import TypedStorage, UntypedStorage
from tritensor.tensor.public_api.arguments import Operand
from tritensor.tensor.public_api.publish import function


def _to_operand(label: str, x: Any) -> Any:
    if isinstance(x, Tensor):
        return x._array
    # numpy scalars would promote by numpy's rules.
    if not isinstance(x, bool | int | float | complex):
        raise TypeError(f"result_type: {label} is a {type(x).__name__}; give a tensor (tritensor.tensor(...)) or a number")
    return x


@function(method=False, also={"tensor1": "tensor", "scalar1": "tensor", "scalar": "tensor", "tensor2": "other", "scalar2": "other"})
def result_type(tensor: Operand, other: Operand) -> DType:
    """The type of an elementwise result of two tensors or numbers: dimensions outrank single values, those outrank Python's numbers.

    Raises DTypeError where no type holds both.
    """
    return dtypes.of(dtypes.result_type((_to_operand("tensor", tensor), _to_operand("other", other)), "result_type"))


@function(method=False)
def promote_types(type1: Any, type2: Any) -> DType:
    """The smallest type of the higher kind that holds what both hold. Raises DTypeError where there is none."""
    return dtypes.of(dtypes.promote(dtypes.as_dtype(type1).numpy, dtypes.as_dtype(type2).numpy, "promote_types"))


_RANKS = {"bool": 0, "uint": 1, "int": 1, "float": 2, "float8": 2, "complex": 3}


@function(method=False, also={"from": "from_"})
def can_cast(from_: Any, to: Any) -> bool:
    """Whether an in-place result of one type may be stored as another: the kind (bool, integer, floating, complex) must not fall."""
    # Signedness and width do not count: int64 may be written into int8, as in PyTorch.
    return _RANKS[dtypes.as_dtype(from_).kind] <= _RANKS[dtypes.as_dtype(to).kind]


@function
def is_complex(x: Tensor) -> bool:
    """Whether a tensor's type is a complex one."""
    return x.dtype.is_complex


@function
def is_signed(x: Tensor) -> bool:
    """Whether a tensor's type holds negative numbers."""
    return x.dtype.is_signed


@function
def is_nonzero(x: Tensor) -> bool:
    """Whether the one element of a tensor is not 0; waits for the device. Raises ShapeError for more or fewer elements."""
    if x._array.size != 1:
        raise ShapeError(f"is_nonzero: shape {tuple(x._array.shape)} holds {x._array.size} values, not one; use .any() or .all()")
    return bool(x.item())


@function
def is_same_size(x: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape."""
    return x._array.shape == other._array.shape


def _require_tensor(name: str, x: Any) -> Any:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: input is a {type(x).__name__}; give a tensor (tritensor.tensor(...))")
    return x


@function
def is_inference(x: Tensor) -> bool:
    """False: a tensor made in inference_mode is an ordinary one."""
    return _require_tensor("is_inference", x) is None


@function(method=False)
def is_storage(obj: Any) -> bool:
    """Whether obj is what a tensor's storage() or untyped_storage() gave."""
    return isinstance(obj, UntypedStorage | TypedStorage)


@function
def get_device(x: Tensor) -> int:
    """The number of a tensor's GPU, -1 on the CPU."""
    return (x.device.index or 0) if x.is_cuda else -1
