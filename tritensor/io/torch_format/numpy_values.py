"""numpy's scalars, arrays and dtypes as pickles name them: made of bytes that are there, never of objects."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from tritensor.io.torch_format.pickle_errors import Damaged, told

_NAME = re.compile(r"[<|=]?(?:[biufc]\d{1,2}|[SU]\d{1,9})")  # numbers and text; no objects, no records


def dtype(_: Any, name: Any, align: Any = False, copy: Any = True) -> np.dtype:
    """numpy.dtype of a type of numbers or text."""
    text = name.decode("latin1") if type(name) is bytes else name
    if type(text) is not str or not _NAME.fullmatch(text):
        raise Damaged(f"numpy.dtype({told(text)}) is no type of numbers or text in this machine's byte order")
    return np.dtype(text)


def build_dtype(made: np.dtype, state: Any) -> None:
    """What numpy writes of a dtype beside its name: it must say that the bytes are in this machine's order, and nothing else."""
    if (
        type(state) is not tuple
        or len(state) < 8
        or type(state[1]) not in (str, bytes)
        or state[1] not in ("<", "|", "=", b"<", b"|", b"=")
    ):
        raise Damaged(
            f"a numpy.dtype of another byte order, or of a state that it cannot have: {told(state)}; convert it where it was saved"
        )
    if any(x is not None for x in state[2:5]) or type(state[5]) is not int or state[5] not in (-1, made.itemsize):
        raise Damaged("a numpy.dtype of fields; tensors and plain arrays have none")


def _kind(given: Any) -> np.dtype:
    if not isinstance(given, np.dtype) or given.hasobject:
        raise Damaged(f"a {type(given).__name__} stands where a numpy.dtype should")
    return given


def _bytes(given: Any) -> bytes | bytearray:
    if type(given) is str:  # of Python 2
        return given.encode("utf-8", "surrogateescape")
    if type(given) not in (bytes, bytearray):
        raise Damaged(f"a {type(given).__name__} stands where bytes should")
    return given  # type: ignore[no-any-return]


def _shape(given: Any) -> tuple[int, ...]:
    if type(given) is not tuple or len(given) > 64 or not all(type(n) is int and 0 <= n < 2**48 for n in given):
        raise Damaged(f"{told(given)} is no shape")
    return given


def _filled(kind: np.dtype, shape: tuple[int, ...], data: bytes | bytearray, order: str) -> np.ndarray:
    if math.prod(shape) * kind.itemsize != len(data) or not kind.itemsize:
        raise Damaged(f"{len(data)} bytes are no array of shape {shape} of {kind}")
    if kind.kind == "U" and (np.frombuffer(data, np.uint32) > 0x10FFFF).any():
        raise Damaged("an array of text whose characters are none of Unicode's")
    if not data:
        return np.empty(shape, kind, order=order)  # type: ignore[call-overload, no-any-return]
    return np.frombuffer(bytearray(data), kind).reshape(shape, order=order)  # type: ignore[call-overload, no-any-return]


def scalar(machine: Any, kind: Any, data: Any) -> Any:
    """A numpy scalar."""
    machine.charge(len(_bytes(data)))
    return _filled(_kind(kind), (1,), _bytes(data), "C")[0]


def reconstruct(_: Any, cls: Any, shape: Any, code: Any) -> np.ndarray:
    """An array before its state is known."""
    if cls is not np.ndarray or _shape(shape) != (0,):
        raise Damaged("an array of another class")
    return np.ndarray.__new__(np.ndarray, (0,), np.uint8)


def array(_: Any, *args: Any) -> np.ndarray:
    """Arrays are reconstructed; numpy.ndarray itself is not called."""
    raise Damaged("numpy.ndarray is called")


def build_array(machine: Any, made: np.ndarray, state: Any) -> None:
    """Shape, type and values of an array."""
    if type(state) is not tuple or len(state) != 5 or made.shape != (0,) or not made.flags.owndata:
        raise Damaged("an array of a state that it cannot have")
    _, shape, kind, columns_first, data = state
    if type(columns_first) not in (bool, int):
        raise Damaged("an array of another order")
    machine.charge(2 * len(_bytes(data)))
    values = _filled(_kind(kind), _shape(shape), _bytes(data), "F" if columns_first else "C")
    made.__setstate__((1, values.shape, values.dtype, bool(columns_first), bytes(_bytes(data))))  # type: ignore[arg-type]


def from_buffer(machine: Any, data: Any, kind: Any, shape: Any, order: Any, *axes: Any) -> np.ndarray:
    """An array of protocol 5."""
    if type(order) is not str or order not in ("C", "F") or any(axis is not None for axis in axes):
        raise Damaged("an array of another order")
    machine.charge(len(_bytes(data)))
    return _filled(_kind(kind), _shape(shape), _bytes(data), order)


MODULES = ("numpy.core", "numpy._core")  # before and since numpy 2
CONSTRUCTORS: dict[str, tuple[Any, Any]] = {  # by name: what stands for it, what makes it
    "numpy.dtype": (np.dtype, dtype),
    "numpy.ndarray": (np.ndarray, array),
}
for _module in MODULES:
    CONSTRUCTORS[f"{_module}.multiarray.scalar"] = (scalar, scalar)
    CONSTRUCTORS[f"{_module}.multiarray._reconstruct"] = (reconstruct, reconstruct)
    CONSTRUCTORS[f"{_module}.numeric._frombuffer"] = (from_buffer, from_buffer)
