"""Operands as the standard takes them: arrays promote as equals, those without dimensions too; Python's numbers take the arrays' type."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.tensor.casting import to_dtype as to_dtype
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import namespaces, public

# What tritensor/tensor has published, under PyTorch's names and with PyTorch's meaning: the functions of this package are made of it.
functions: Any = SimpleNamespace(**public, linalg=SimpleNamespace(**namespaces["linalg"]), fft=SimpleNamespace(**namespaces["fft"]))

Number = bool | int | float | complex
Axes = int | tuple[int, ...] | None


class _EqualOperand:
    """A type that counts in full: what promotion sees of an array, whatever its shape."""

    __slots__ = ("dtype",)
    shape = (1,)

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype


def common_type(name: str, *values: Any) -> np.dtype:
    """The type that arrays and types promote to, all as equals; Python's numbers count only where their kind is higher.

    Raises DTypeError where no type holds all, TypeError for what is no operand.
    """
    seen: list[Any] = []
    for v in values:
        if isinstance(v, Tensor):
            seen.append(_EqualOperand(v._array.dtype))
        elif isinstance(v, dtypes.DType):
            seen.append(_EqualOperand(v.numpy))
        # numpy scalars are numbers here: as arrays they would outrank the arrays' types.
        elif isinstance(v, np.generic):
            seen.append(v.item())
        elif isinstance(v, bool | int | float | complex):
            seen.append(v)
        else:
            raise TypeError(f"{name}: {type(v).__name__} {str(v)[:40]!r} is neither an array nor a number; use asarray(...)")
    return dtypes.result_type(seen, name)


def promote_operands(name: str, *values: Any) -> list[Any]:
    """Operands whose arrays have the type that all promote to; numbers stay numbers. Raises TypeError where there is no array."""
    if not any([isinstance(v, Tensor) for v in values]):
        raise TypeError(f"{name}: none of the arguments is an array; wrap one with asarray(...)")
    common = common_type(name, *values)
    return [to_dtype(v, common) if isinstance(v, Tensor) else v for v in values]


def require_array(name: str, x: Any) -> Tensor:
    """x, which must be an array. Raises TypeError for others."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: x is a {type(x).__name__}, no array; wrap it with asarray(...)")
    return x


def normal_axes(name: str, x: Tensor, axis: Axes) -> tuple[int, ...]:
    """Axes counted from the front, all of them for None. Raises IndexError for one that x has not, ValueError for one given twice."""
    rank = len(x._array.shape)
    given = tuple(range(rank)) if axis is None else axis if isinstance(axis, tuple | list) else (axis,)
    for a in given:
        if not -rank <= a < rank:
            raise IndexError(f"{name}: axis {a} is out of range for shape {tuple(x._array.shape)}")
    found = tuple([int(a) % rank for a in given])
    if len(set(found)) != len(found):
        raise ValueError(f"{name}: axis {axis} names one axis twice")
    return found
