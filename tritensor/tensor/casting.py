"""Casts that a program asks for: of complex numbers to real ones, too, which drop the imaginary part and say so once."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.call_site import user_frame
from tritensor.ground.strides import preserve_format
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor

_warned_at: list[str] = []  # not empty once the warning has been given in this process


def warn_imaginary_dropped() -> None:
    """Say, once in a process and in PyTorch's words, that imaginary parts are dropped."""
    if not _warned_at:
        # The user's line, not the library's: warnings are filtered and shown by line.
        frame = user_frame(sys._getframe(1))
        _warned_at.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        message = "Casting complex values to real discards the imaginary part; .real or .abs() says which is meant"
        warnings.warn_explicit(message, UserWarning, frame.f_code.co_filename, frame.f_lineno)


def drops_imaginary(have: np.dtype, want: np.dtype) -> bool:
    """Whether a cast drops imaginary parts; a number is True by either part."""
    return have.kind == "c" and dtypes.of(want).kind not in ("complex", "bool")


def cast(x: Tensor, dtype: np.dtype) -> Tensor:
    """x in another type, itself where it has it; of complex numbers the real parts, and their gradient is real.

    The op of that name refuses complex numbers for real ones, so that no function drops a part by mistake.
    """
    have = x._array.dtype
    if have == dtype:
        return x
    if not drops_imaginary(have, dtype):
        return ops.cast(x, dtype=dtype)
    warn_imaginary_dropped()
    # A view of the real parts: the gradient of the dropped ones is 0, as in PyTorch.
    part = ops.real(x)
    return ops.copy(part, memory_format=preserve_format) if part._array.dtype == dtype else ops.cast(part, dtype=dtype)


def to_accumulator(x: Tensor) -> Tensor:
    """16-bit floats as float32, for what is computed in several steps: a sum of squares leaves float16 long before its root does."""
    kept = dtypes.accumulator(x._array.dtype)
    return ops.cast(x, dtype=kept) if dtypes.is_float(x._array.dtype) and kept != x._array.dtype else x


def to_dtype(y: Tensor, dtype: np.dtype) -> Tensor:
    """y in a type, itself where it has it. Complex numbers are refused for real ones, unlike `cast`."""
    return y if y._array.dtype == dtype else ops.cast(y, dtype=dtype)


def compute_in_float32(function: Callable[..., Tensor], x: Tensor, *others: Any) -> Tensor:
    """A function of several steps; where its result is a 16-bit float they are taken in float32, and rounded once."""
    operands = (x, *others)
    # The common case, decided without promotion: a tensor with dimensions outranks numbers and 0-d tensors.
    if x._array.shape and x._array.dtype.itemsize > 2:  # so is the result, then
        return function(*operands)
    kind = dtypes.result_type([x._array if isinstance(x, Tensor) else x for x in operands])
    if not dtypes.is_float(kind) or kind.itemsize > 2:
        return function(*operands)
    return to_dtype(function(*[to_accumulator(x) if isinstance(x, Tensor) else x for x in operands]), kind)
