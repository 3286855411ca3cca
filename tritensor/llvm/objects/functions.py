"""Machine code as Python functions without ctypes: built-in functions whose code is ours, one after the other until one takes the call.

CPython calls a built-in function of the kind METH_FASTCALL by jumping to an address with its arguments in a row: 30 ns, where ctypes takes 300 and its way to
an array's elements 1400. The kind, what describes such a function (PyMethodDef) and PyCFunction_NewEx are parts of Python's stable interface.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.llvm.objects.heads import KNOWN, addresses

_FAST_WITH_NAMES = 0x80 | 0x02  # METH_FASTCALL | METH_KEYWORDS
OTHERWISE = len(KNOWN)  # the place in a table of the function that takes what machine code does not; a function's own entries follow
OWN = OTHERWISE + 1
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)(("PyCFunction_NewEx", ctypes.pythonapi))


class _Definition(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (("name", ctypes.c_char_p), ("address", ctypes.c_void_p), ("kind", ctypes.c_int), ("doc", ctypes.c_char_p))


class Table(np.ndarray):
    """What a machine function finds as its `self`: addresses, the last ones its own. It keeps alive what they are addresses of."""

    held: tuple[Any, ...]

    def hand_on_to(self, otherwise: Callable[..., Any]) -> None:
        """Let this function answer the calls that machine code does not take. The one before stays alive: it may be at work."""
        self.held = (*self.held, otherwise)
        self[OTHERWISE] = id(otherwise)


def python_function(machine: Any, name: str, own: Sequence[Any], otherwise: Callable[..., Any]) -> tuple[Callable[..., Any], Table]:
    """A Python function of a ctypes function (self, arguments, how many, names), and its table; `own` are objects whose addresses the code wants, and
    numbers."""
    table = np.zeros(OWN + len(own), np.int64).view(Table)
    table[:OTHERWISE] = addresses()
    table[OWN:] = [x if type(x) is int else id(x) for x in own]
    definition = _Definition(name.encode(), ctypes.cast(machine, ctypes.c_void_p), _FAST_WITH_NAMES, None)
    table.held = (definition, machine, *own)  # CPython lets what `self` holds go after it has read the definition for the last time
    table.hand_on_to(otherwise)
    return _new(ctypes.addressof(definition), table, None), table


class ObjectFunction:
    """A function of arrays whose calls go to machine code that was made for their types, and to Python where there is none.

    `call` is what to call: Python at first, then the machine function of the types that came first, which hands on to that of the next types, and the last
    to Python again, which makes one more for types that it has not met.
    """

    __slots__ = ("call", "last", "make", "met", "name", "names", "plain")

    def __init__(
        self,
        name: str,
        names: tuple[str, ...],
        plain: Callable[..., Any],
        make: Callable[[tuple[Any, ...]], tuple[Any, Sequence[Any]] | None],
    ) -> None:
        """`names` are those of its last arguments, if they are given by name; `make(types)` gives a machine function for arguments of these types, arrays'
        dtypes and classes, as (ctypes function, own objects), or None."""
        self.name, self.names, self.plain, self.make = name, names, plain, make
        self.met: dict[tuple[Any, ...], Callable[..., Any] | None] = {}
        self.last: Table | None = None
        self.call: Callable[..., Any] = self._otherwise

    def _otherwise(self, *arguments: Any, **named: Any) -> Any:
        types = tuple([x.dtype if type(x) is np.ndarray else type(x) for x in (*arguments, *named.values())])
        if types in self.met or tuple(named) != self.names:
            return self.plain(*arguments, **named)
        made = self.make(types)
        if made is None:
            self.met[types] = None
            return self.plain(*arguments, **named)
        function, table = python_function(made[0], self.name, made[1], self._otherwise)
        self.met[types] = function
        if self.last is None:
            self.call = function
        else:
            self.last.hand_on_to(function)
        self.last = table
        return function(*arguments, **named)
