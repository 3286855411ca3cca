"""Making arrays by the array API standard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.array_api.operands import Number, functions, promote_operands, require_array
from tritensor.ground import dtypes
from tritensor.ground.dtypes import DType
from tritensor.ground.errors import ArgumentError, NumberRangeError
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import rename_function

Shape = int | tuple[int, ...]


def _to_sizes(shape: Shape) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, tuple | list) else (shape,)


def asarray(obj: Any, /, *, dtype: DType | None = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """An array of a number, nested sequences (of numbers or arrays), an array, or an object with a buffer or DLPack.

    Raises ValueError where copy=False and it cannot be had without one, NumberRangeError for an integer that no type holds.
    """
    # PyTorch would raise of int64 alone; the standard has uint64 too.
    if isinstance(obj, int) and not -(2**63) <= obj < 2**64:
        raise NumberRangeError(f"asarray: {obj} does not fit int64 or uint64; give a float")
    # An array stays in its graph here, while PyTorch's asarray gives a leaf.
    if isinstance(obj, Tensor) and copy is not True:
        found = obj if dtype is None and device is None else obj.to(device=device, dtype=dtype)
        if copy is False and found is not obj:
            raise ArgumentError("asarray: another type or device takes a copy; leave copy=False out")
        return found
    return functions.asarray(_to_readable(obj), dtype=dtype, device=device, copy=copy)


def _to_readable(obj: Any) -> Any:
    """What asarray reads as it is; objects with DLPack, an array interface or a buffer as an array on their memory."""
    if isinstance(obj, Tensor | np.ndarray | np.generic | bool | int | float | complex | list | tuple | range):
        return obj
    # DLPack first: it carries the device, the other two protocols are of host memory.
    if hasattr(obj, "__dlpack__"):
        return functions.from_dlpack(obj)
    if hasattr(obj, "__array__") or hasattr(obj, "__array_interface__"):
        return np.asarray(obj)
    try:
        return np.asarray(memoryview(obj))
    except TypeError:  # no buffer: asarray says what it takes
        return obj


def arange(
    start: int | float, /, stop: int | float | None = None, step: int | float = 1, *, dtype: DType | None = None, device: Any = None
) -> Tensor:
    """Numbers from start (0 where stop is not given) up to but not including stop; none where the step leads away from it."""
    first, last = (0, start) if stop is None else (start, stop)
    if step == 0:
        raise ArgumentError("arange: step is 0; give the distance between the numbers")
    if dtype is None:
        dtype = dtypes.int64 if all([isinstance(v, int) for v in (first, last, step)]) else dtypes.default_float()
    # The standard gives an empty array where PyTorch raises.
    if (last - first) * (1 if step > 0 else -1) <= 0:
        return functions.empty((0,), dtype=dtype, device=device)
    return functions.arange(first, last, step, dtype=dtype, device=device)


_SHAPED = {"empty": "Uninitialised memory of a shape.", "ones": "Ones of a shape.", "zeros": "Zeros of a shape."}
_LIKE = {
    "empty_like": "Uninitialised memory of x's shape and type.",
    "ones_like": "Ones of x's shape and type.",
    "zeros_like": "Zeros of x's shape and type.",
}


def _make_shaped(name: str, doc: str) -> Callable[..., Tensor]:
    def call(shape: Shape, *, dtype: DType | None = None, device: Any = None) -> Tensor:
        return getattr(functions, name)(_to_sizes(shape), dtype=dtype, device=device)

    return rename_function(call, name, doc)


def _make_like(name: str, doc: str) -> Callable[..., Tensor]:
    def call(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
        return getattr(functions, name)(x, dtype=dtype, device=device)

    return rename_function(call, name, doc)


made = {n: _make_shaped(n, doc) for n, doc in _SHAPED.items()} | {n: _make_like(n, doc) for n, doc in _LIKE.items()}
globals().update(made)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Ones on the k-th diagonal, zeros elsewhere."""
    width = n_rows if n_cols is None else n_cols
    distance = functions.arange(width, device=device) - functions.arange(n_rows, device=device).reshape(n_rows, 1)
    return (distance == _clamp_diagonal(k, n_rows, width)).to(dtypes.default_float() if dtype is None else dtype)


def _clamp_diagonal(k: int, rows: int, columns: int) -> int:
    """The number of a diagonal, those beyond a matrix's corners all as the first one beyond: k may be any integer."""
    # The op counts in 64 bits, and the standard allows any integer.
    return max(-rows, min(k, columns))


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """An array on another library's memory, through DLPack; a copy where copy=True or another device asks for one."""
    return functions.from_dlpack(x, device=device, copy=copy)


def full(shape: Shape, fill_value: Number, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """One value in a shape; without dtype bool, int64 or the default floating or complex type, as the value is."""
    return functions.full(_to_sizes(shape), fill_value, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: Number, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """One value in x's shape and type."""
    return functions.full_like(x, fill_value, dtype=dtype, device=device)


def linspace(
    start: int | float | complex, stop: int | float | complex, /, num: int, *, dtype: DType | None = None, device: Any = None,
    endpoint: bool = True,
) -> Tensor:  # fmt: skip
    """`num` numbers at equal distances from start to stop, without stop where endpoint=False."""
    if num < 0:
        raise ArgumentError(f"linspace: num is {num}; it counts numbers")
    if isinstance(start, complex) or isinstance(stop, complex) or (dtype is not None and dtype.is_complex):
        # Both parts are spaced by themselves: PyTorch's linspace of complex ends has no endpoint=False.
        kind = dtypes.default_complex() if dtype is None else dtype
        part = dtypes.float64 if kind is dtypes.complex128 else dtypes.float32
        a, b = complex(start), complex(stop)
        real, imag = (_space_evenly(p, q, num, part, device, endpoint) for p, q in ((a.real, b.real), (a.imag, b.imag)))
        return functions.complex(real, imag)
    return _space_evenly(start, stop, num, dtypes.default_float() if dtype is None else dtype, device, endpoint)


def _space_evenly(start: Any, stop: Any, num: int, dtype: DType, device: Any, endpoint: bool) -> Tensor:
    # One number more, the stop, which is cut off again.
    return functions.linspace(start, stop, num if endpoint else num + 1, dtype=dtype, device=device)[:num]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Coordinates of a grid: an array for each vector, over all of them; "xy" has the first along columns."""
    return list(functions.meshgrid(*promote_operands("meshgrid", *arrays), indexing=indexing)) if arrays else []


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The part of matrices on and below the k-th diagonal, zeros above."""
    return functions.tril(require_array("tril", x), _clamp_diagonal(k, *x._array.shape[-2:]) if x.ndim > 1 else k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The part of matrices on and above the k-th diagonal, zeros below."""
    return functions.triu(require_array("triu", x), _clamp_diagonal(k, *x._array.shape[-2:]) if x.ndim > 1 else k)


__all__ = sorted([*made, "arange", "asarray", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid", "tril", "triu"])
