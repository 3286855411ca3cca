"""Types in the array API standard: conversion, promotion, kinds and limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tritensor.array_api.operands import Number, common_type, functions, require_array
from tritensor.ground import dtypes
from tritensor.ground.dtypes import DType
from tritensor.ground.errors import ArgumentError, DTypeError
from tritensor.tensor.core import Tensor

NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
_KINDS = {
    "bool": ("bool",),
    "signed integer": ("int",),
    "unsigned integer": ("uint",),
    "integral": ("int", "uint"),
    "real floating": ("float", "float8"),
    "complex floating": ("complex",),
    "numeric": ("int", "uint", "float", "float8", "complex"),
}


def astype(x: Tensor, dtype: DType, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """x in another type: a copy, unless copy=False and it has the type already. Raises DTypeError for complex numbers made real."""
    wanted = dtypes.as_dtype(dtype)
    # PyTorch drops the imaginary part with a warning; the standard calls that undefined.
    if require_array("astype", x).is_complex() and wanted.kind not in ("complex", "bool"):
        raise DTypeError(f"astype: {x.dtype.name} cannot become {wanted.name} without loss; take real(x) or imag(x)")
    found = x.to(wanted) if device is None else x.to(device, wanted)
    return found.clone() if copy and found is x else found


def result_type(*arrays_and_dtypes: Tensor | DType | Number) -> DType:
    """The type that arrays, types and numbers promote to. Raises ValueError where neither an array nor a type is given."""
    # Python's numbers take the type of the arrays beside them: alone they have none.
    if not any([isinstance(v, Tensor | DType) for v in arrays_and_dtypes]):
        raise ArgumentError("result_type: no array and no type was given; numbers alone have no type")
    return dtypes.of(common_type("result_type", *arrays_and_dtypes))


def can_cast(from_: DType | Tensor, to: DType, /) -> bool:
    """Whether promotion leads from one type to the other."""
    start, end = from_.dtype if isinstance(from_, Tensor) else dtypes.as_dtype(from_), dtypes.as_dtype(to)
    try:
        return dtypes.promote(start.numpy, end.numpy) == end.numpy
    except DTypeError:  # no type holds both
        return False


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> bool:
    """Whether a type is of a kind: a type, a word such as "integral" or "real floating", or one of several."""
    if isinstance(kind, tuple):
        return any([isdtype(dtype, k) for k in kind])
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ArgumentError(f"isdtype: kind is {kind!r}; it is one of {', '.join(_KINDS)}, a type, or a tuple of these")
        return dtype.kind in _KINDS[kind]
    if not isinstance(kind, DType):
        raise TypeError(f"isdtype: kind is a {type(kind).__name__}; give a word, a type, or a tuple of these")
    return dtype is kind


@dataclass(frozen=True)
class FloatLimits:
    """What a floating type holds."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True)
class IntegerLimits:
    """What an integer type holds."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: DType | Tensor, /) -> FloatLimits:
    """Limits of a floating type, or of a complex type's parts. Raises DTypeError for others."""
    given = type.dtype if isinstance(type, Tensor) else dtypes.as_dtype(type)
    if given.kind not in ("float", "float8", "complex"):
        raise DTypeError(f"finfo: {given.name} is no floating type; use iinfo")
    # The standard's limits of a complex type are those of its parts.
    part = {"complex64": dtypes.float32, "complex128": dtypes.float64}.get(given.name, given)
    found = ml_dtypes.finfo(part.numpy)
    numbers = [float(v) for v in (found.eps, found.max, found.min, found.smallest_normal)]
    return FloatLimits(8 * part.itemsize, numbers[0], numbers[1], numbers[2], numbers[3], part)


def iinfo(type: DType | Tensor, /) -> IntegerLimits:
    """Limits of an integer type. Raises DTypeError for others."""
    given = type.dtype if isinstance(type, Tensor) else dtypes.as_dtype(type)
    if given.kind not in ("int", "uint"):
        raise DTypeError(f"iinfo: {given.name} is no integer type; use finfo")
    found = np.iinfo(given.numpy)
    return IntegerLimits(8 * given.itemsize, int(found.max), int(found.min), given)


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Arrays as views of their common shape."""
    return list(functions.broadcast_tensors(*arrays)) if arrays else []


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """x as a view of a shape that it broadcasts to."""
    # PyTorch's expand reads -1 as "keep", which the standard does not know.
    if -1 in shape:
        raise ArgumentError(f"broadcast_to: shape {tuple(shape)} has a negative size")
    return functions.broadcast_to(require_array("broadcast_to", x), tuple(shape))


__all__ = ["astype", "broadcast_arrays", "broadcast_to", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]
