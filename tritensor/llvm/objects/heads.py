"""The fields of Python's objects that machine code reads, found by looking, and the addresses of Python's and numpy's own functions.

numpy promises the order of an array's fields (`PyArrayObject_fields`, part of its stable interface), Python the size of what stands before them: it is larger
where there is no global lock. Nothing is taken on trust: each field is compared with what arrays of known make say of themselves, and where one differs
there is no machine code for objects.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any, NamedTuple

import numpy as np

C_ORDER, F_ORDER, ALIGNED = 1, 2, 0x100  # of an array's flags
_ABI = 0x02000000  # of numpy 2, whose fields and functions these are
_WORD = 8


class Heads(NamedTuple):
    """Bytes from the beginning of an object to a field of it; all fields but `type` and `value` are an array's, `value` is a float's."""

    type: int
    value: int
    data: int
    dims_count: int
    dims: int
    strides: int
    descr: int
    flags: int


def heads_behind(base: int) -> Heads:
    """The fields where those that every object has take `base` bytes."""
    return Heads(base - _WORD, base, *[base + _WORD * k for k in (0, 1, 2, 3, 5, 6)])


def are_right(at: Heads) -> bool:
    """Whether arrays and floats of this Python and this numpy keep their fields there."""
    room = np.arange(48, dtype=np.float32)
    read_only = np.arange(3)
    read_only.flags.writeable = False
    samples = (
        room, room.reshape(4, 12), room.reshape(2, 4, 6)[:, ::2, ::-1], room.reshape(8, 6).T, room[3:4].reshape(()), read_only,
        room.view(np.uint8)[1:9].view(np.float64), np.zeros((0, 3), np.bool_), np.zeros(2, ">i4"),
    )  # fmt: skip
    return all([_tells(x, at) for x in samples]) and all(
        [_read(v, at.type, ctypes.c_void_p) == id(float) and _read(v, at.value, ctypes.c_double) == v for v in (1.5, -(2.0**70))]
    )


def _tells(x: np.ndarray, at: Heads) -> bool:
    count = x.ndim
    if _read(x, at.type, ctypes.c_void_p) != id(np.ndarray) or _read(x, at.dims_count, ctypes.c_int) != count:
        return False
    places = [_read(x, f, ctypes.c_void_p) for f in (at.dims, at.strides)]
    if count and (None in places or [tuple((ctypes.c_ssize_t * count).from_address(p)) for p in places] != [x.shape, x.strides]):
        return False
    return (
        _read(x, at.data, ctypes.c_void_p) == x.__array_interface__["data"][0]
        and _read(x, at.descr, ctypes.c_void_p) == id(x.dtype)
        and _read(x, at.flags, ctypes.c_int) == x.flags.num
    )


def _read(x: object, offset: int, kind: type[ctypes.c_void_p | ctypes.c_int | ctypes.c_double]) -> Any:
    return kind.from_address(id(x) + offset).value


@functools.cache
def heads() -> Heads | None:
    """Where the fields are; None where they are not found."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != _WORD:
        return None
    at = heads_behind(object.__basicsize__)
    return at if are_right(at) and _array_functions() is not None else None


# What machine code calls and compares with, by name: a function of Python's stable interface, a place in numpy's table, or an object.
_OF_PYTHON = (
    "PyObject_Vectorcall", "Py_IncRef", "Py_DecRef", "PyLong_AsLongLongAndOverflow", "PyTuple_New", "PyTuple_SetItem", "PyTuple_GetItem", "PyTuple_Size",
)  # fmt: skip
_OF_NUMPY = {"PyArray_New": 93}
_OBJECTS = {"ndarray": np.ndarray, "float": float, "int": int, "None": None}
KNOWN = (*_OF_PYTHON, *_OF_NUMPY, *_OBJECTS)


@functools.cache
def addresses() -> tuple[int, ...]:
    """Where each of KNOWN lies in this process."""
    found = _array_functions()
    assert found is not None
    return (
        *[ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in _OF_PYTHON],
        *[found[place] for place in _OF_NUMPY.values()],
        *map(id, _OBJECTS.values()),
    )


@functools.cache
def _array_functions() -> ctypes.Array[ctypes.c_size_t] | None:
    """numpy's table of functions, whose places are fixed; None where it is not the table of numpy 2."""
    try:
        capsule = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]  # what `import_array` of every extension reads
    except AttributeError:
        return None
    pointer: Any = ctypes.PYFUNCTYPE(ctypes.c_size_t, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    table = (ctypes.c_size_t * (max(_OF_NUMPY.values()) + 1)).from_address(pointer(capsule, None))
    version = ctypes.PYFUNCTYPE(ctypes.c_uint)(table[0])
    return table if version() == _ABI and table[2] == id(np.ndarray) else None
