"""Python's operators on tensors, copies, and conversion between types."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor import dtypes
from tritensor.dispatch import binary_lane, takes_floats
from tritensor.dtypes import DType
from tritensor.table import ops, registry
from tritensor.tensor.core import Tensor
from tritensor.tensor.inplace import overwrite, write_over
from tritensor.tensor.moving import to
from tritensor.tensor.publish import function


def _known(x: Any) -> bool:
    return isinstance(x, Tensor | bool | int | float | complex | np.generic)


def bind_operators() -> None:
    """Put dispatch's fast lanes straight behind the operators; called once the table is filled."""
    for python, name in _BINARY.items():
        record = registry[name]
        if record.broadcasts and record.promote is not None and not record.attrs and takes_floats(record):
            setattr(Tensor, f"__{python}__", binary_lane(record, _forwards(name)))


def _forwards(name: str) -> Any:
    def operator(self: Tensor, other: Any) -> Any:
        return getattr(ops, name)(self, other) if _known(other) else _refuse(name, other)

    return operator


def _reflected(name: str) -> Any:
    def operator(self: Tensor, other: Any) -> Any:
        return getattr(ops, name)(other, self) if _known(other) else _refuse(name, other)

    return operator


def _in_place(name: str) -> Any:
    def operator(self: Tensor, other: Any) -> Any:
        if not _known(other):
            return _refuse(name, other)
        return self if write_over(name, self, (self, other), name + "_") else overwrite(self, getattr(ops, name)(self, other), name + "_")

    return operator


def _refuse(name: str, other: Any) -> Any:
    if isinstance(other, np.ndarray | list | tuple):
        hint = "from_numpy(...)" if isinstance(other, np.ndarray) else "tensor(...)"
        raise TypeError(f"{name}: a tensor with a {type(other).__name__}; wrap it with tritensor.{hint}")
    return NotImplemented


_BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow", "matmul": "matmul", "floordiv": "floor_divide",
    "mod": "remainder", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip
for _python, _name in _BINARY.items():
    setattr(Tensor, f"__{_python}__", _forwards(_name))
    setattr(Tensor, f"__r{_python}__", _reflected(_name))
    setattr(Tensor, f"__i{_python}__", _in_place(_name))
for _python in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Tensor, f"__{_python}__", _forwards(_python))
Tensor.__hash__ = object.__hash__  # type: ignore


def _negative(self: Tensor) -> Tensor:
    return ops.neg(self)


def _absolute(self: Tensor) -> Tensor:
    return ops.abs(self)


def _inverted(self: Tensor) -> Tensor:
    return ops.bitwise_not(self)


def _positive(self: Tensor) -> Tensor:
    return self


Tensor.__neg__ = _negative  # type: ignore
Tensor.__abs__ = _absolute  # type: ignore
Tensor.__invert__ = _inverted  # type: ignore
Tensor.__pos__ = _positive  # type: ignore


@function
def clone(x: Tensor) -> Tensor:
    """A copy in fresh memory, in the graph."""
    return ops.copy(x)


@function(free=False)
def contiguous(x: Tensor) -> Tensor:
    """x itself when its elements lie in C order without gaps, else a copy that does."""
    return x if x.is_contiguous() else ops.copy(x)


@function
def astype(x: Tensor, dtype: Any, copy: bool = True) -> Tensor:
    """x as another dtype (the array API's spelling)."""
    return to(x, dtype=dtype, copy=copy)


def _conversion(name: str, dtype: DType) -> None:
    def convert(x: Tensor) -> Tensor:
        return to(x, dtype=dtype)

    convert.__name__ = name
    convert.__doc__ = f"x as {dtype.name}; itself when it is."
    setattr(Tensor, name, convert)


for _name, _dtype in {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16, "long": dtypes.int64,
    "int": dtypes.int32, "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8, "bool": dtypes.bool_,
}.items():  # fmt: skip
    _conversion(_name, _dtype)


@function(free=False)
def type_as(x: Tensor, other: Tensor) -> Tensor:
    """x as other's dtype, on its device."""
    return to(x, other)


@function(free=False)
def copy_(x: Tensor, source: Any, non_blocking: bool = False) -> Tensor:
    """Write source (broadcast, cast, moved between devices) over x; returns x. `non_blocking` as in `to`, for a source on another device."""
    if isinstance(source, Tensor):
        # What is written on the CPU is read there at once, so a copy down has to be waited for.
        source = to(source, device=x.device, dtype=x.dtype, non_blocking=non_blocking and x.is_cuda)
    return overwrite(x, source, "copy_")


@function(free=False)
def fill_(x: Tensor, value: Any) -> Tensor:
    """Write one value everywhere; returns x."""
    return overwrite(x, value, "fill_")


@function(free=False)
def zero_(x: Tensor) -> Tensor:
    """Write zeros; returns x."""
    return overwrite(x, 0, "zero_")
