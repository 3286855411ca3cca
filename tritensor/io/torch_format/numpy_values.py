"""Constructors of numpy's scalars, arrays and dtypes as pickles name them: of bytes that are there, never of objects."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from tritensor.io.torch_format.pickle_errors import DamagedPickle, describe, reject

_NAME = re.compile(r"[<|=]?(?:[biufc]\d{1,2}|[SU]\d{1,9})")  # numbers and text; no objects, no records


def make_dtype(_: Any, name: Any, align: Any = False, copy: Any = True) -> np.dtype:
    """numpy.dtype of a type of numbers or text."""
    text = name.decode("latin1") if type(name) is bytes else name
    if type(text) is not str or not _NAME.fullmatch(text):
        raise DamagedPickle(f"numpy.dtype({describe(text)}) is no type of numbers or text in this machine's byte order")
    return np.dtype(text)


def build_dtype(made: np.dtype, state: Any) -> None:
    """Check what numpy writes of a dtype beside its name: the bytes are in this machine's order, and nothing else."""
    if (
        type(state) is not tuple
        or len(state) < 8
        or type(state[1]) not in (str, bytes)
        or state[1] not in ("<", "|", "=", b"<", b"|", b"=")
    ):
        raise DamagedPickle(
            f"a numpy.dtype of another byte order, or of a state that it cannot have: {describe(state)}; convert it where it was saved"
        )
    if any(x is not None for x in state[2:5]) or type(state[5]) is not int or state[5] not in (-1, made.itemsize):
        raise DamagedPickle("a numpy.dtype of fields; tensors and plain arrays have none")


def _as_dtype(given: Any) -> np.dtype:
    return given if isinstance(given, np.dtype) and not given.hasobject else reject(given, "a numpy.dtype")


def _as_bytes(given: Any) -> bytes | bytearray:
    if type(given) is str:  # of Python 2
        return given.encode("utf-8", "surrogateescape")
    return given if type(given) in (bytes, bytearray) else reject(given, "bytes")


def _as_shape(given: Any) -> tuple[int, ...]:
    if type(given) is not tuple or len(given) > 64 or not all(type(n) is int and 0 <= n < 2**48 for n in given):
        raise DamagedPickle(f"{describe(given)} is no shape")
    return given


def _make_array(kind: np.dtype, shape: tuple[int, ...], data: bytes | bytearray, order: str) -> np.ndarray:
    if math.prod(shape) * kind.itemsize != len(data) or not kind.itemsize:
        raise DamagedPickle(f"{len(data)} bytes are no array of shape {shape} of {kind}")
    # numpy makes a str of such a number only when the element is read, and fails there
    if kind.kind == "U" and (np.frombuffer(data, np.uint32) > 0x10FFFF).any():
        raise DamagedPickle("an array of text whose characters are none of Unicode's")
    if not data:
        return np.empty(shape, kind, order=order)  # type: ignore[call-overload, no-any-return]
    return np.frombuffer(bytearray(data), kind).reshape(shape, order=order)  # type: ignore[call-overload, no-any-return]


def make_scalar(vm: Any, kind: Any, data: Any) -> Any:
    """A numpy scalar."""
    vm.charge(len(_as_bytes(data)))
    return _make_array(_as_dtype(kind), (1,), _as_bytes(data), "C")[0]


def reconstruct(_: Any, cls: Any, shape: Any, code: Any) -> np.ndarray:
    """An array before its state is known."""
    if cls is not np.ndarray or _as_shape(shape) != (0,):
        raise DamagedPickle("an array of another class")
    return np.ndarray.__new__(np.ndarray, (0,), np.uint8)


def refuse_array(_: Any, *args: Any) -> np.ndarray:
    """Raise DamagedPickle: arrays are reconstructed, numpy.ndarray itself is not called."""
    raise DamagedPickle("numpy.ndarray is called")


def build_array(vm: Any, made: np.ndarray, state: Any) -> None:
    """Shape, type and values of an array."""
    if type(state) is not tuple or len(state) != 5 or made.shape != (0,) or not made.flags.owndata:
        raise DamagedPickle("an array of a state that it cannot have")
    _, shape, kind, columns_first, data = state
    if type(columns_first) not in (bool, int):
        raise DamagedPickle("an array of another order")
    vm.charge(2 * len(_as_bytes(data)))
    values = _make_array(_as_dtype(kind), _as_shape(shape), _as_bytes(data), "F" if columns_first else "C")
    made.__setstate__((1, values.shape, values.dtype, bool(columns_first), bytes(_as_bytes(data))))  # type: ignore[arg-type]


def make_from_buffer(vm: Any, data: Any, kind: Any, shape: Any, order: Any, *axes: Any) -> np.ndarray:
    """An array of protocol 5."""
    if type(order) is not str or order not in ("C", "F") or any(axis is not None for axis in axes):
        raise DamagedPickle("an array of another order")
    vm.charge(len(_as_bytes(data)))
    return _make_array(_as_dtype(kind), _as_shape(shape), _as_bytes(data), order)


MODULES = ("numpy.core", "numpy._core")  # before and since numpy 2
CONSTRUCTORS: dict[str, tuple[Any, Any]] = {  # by name: what stands for it, what makes it
    "numpy.dtype": (np.dtype, make_dtype),
    "numpy.ndarray": (np.ndarray, refuse_array),
}
for _module in MODULES:
    CONSTRUCTORS[f"{_module}.multiarray.scalar"] = (make_scalar, make_scalar)
    CONSTRUCTORS[f"{_module}.multiarray._reconstruct"] = (reconstruct, reconstruct)
    CONSTRUCTORS[f"{_module}.numeric._frombuffer"] = (make_from_buffer, make_from_buffer)
