"""Arithmetic of sizes that PyTorch's tracer follows, `sym_max` and its kin: of plain numbers, as nothing is traced."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.tensor.core import Tensor

_NUMBERS = (bool, int, float, np.number, Tensor)


def _number(name: str, value: Any) -> Any:
    if not isinstance(value, _NUMBERS):
        raise TypeError(f"{name}: {value!r} is of type {type(value).__name__}; give a number")
    return value.item() if isinstance(value, Tensor | np.generic) else value  # sizes are read off tensors, too: x.shape[0] // t


def sym_int(a: Any) -> int:
    """A number without its fraction."""
    return math.trunc(_number("sym_int", a))


def sym_float(a: Any) -> float:
    """A number as a float."""
    return float(_number("sym_float", a))


def sym_not(a: Any) -> bool:
    """Whether a number is 0, or a truth is none."""
    return not _number("sym_not", a)


def sym_max(a: Any, b: Any) -> int | float:
    """The larger of two numbers; a float where one of them is."""
    return _chosen(max, _number("sym_max", a), _number("sym_max", b))


def sym_min(a: Any, b: Any) -> int | float:
    """The smaller of two numbers; a float where one of them is."""
    return _chosen(min, _number("sym_min", a), _number("sym_min", b))


def _chosen(choose: Any, a: Any, b: Any) -> Any:
    return choose(float(a), float(b)) if isinstance(a, float) or isinstance(b, float) else choose(a, b)


def sym_sqrt(a: Any) -> float:
    """The root of a number. Raises ValueError below 0."""
    value = _number("sym_sqrt", a)
    if value < 0:
        raise ValueError(f"sym_sqrt: {value} is negative; give 0 or more")
    return math.sqrt(value)


def sym_sum(*args: Any) -> int | float:
    """The sum of numbers, or of one list of them."""
    given = args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else args
    total: int | float = sum(_number("sym_sum", v) for v in given)
    return total


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """t where b is true, else f; both of one type."""
    if not isinstance(b, bool) or type(t) is not type(f):  # as PyTorch asserts, so that a program that runs here runs there
        raise TypeError(f"sym_ite: {b!r}, {t!r}, {f!r}; give a bool and two values of one type")
    return t if b else f
