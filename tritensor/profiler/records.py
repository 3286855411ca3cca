"""Records of probes: plain tuples, of which events are made when the profile is over.

A record is (kind, what, start, end, thread, sequence, detail): times in nanoseconds of `clock`, the thread's ident, the sequence number of the graph node that
the call left or ran (0: none), and a Detail where shapes, memory or stacks are asked for, else None. Records stand in the order in which calls ended. Without
details they hold strings and numbers alone, which the garbage collector need not walk over.
"""

from __future__ import annotations

import math
from time import perf_counter_ns
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

clock = perf_counter_ns

# Kinds; behind each the meaning of `what`.
OP = 0  # the op's name
NAMED = 1  # the name of a view or a write in place that goes past the table
BACKWARD = 2  # the node's name
ACCUMULATE = 3  # the name of the step
RANGE = 4  # the name that the user gave
MODULE = 5  # the module
OPTIMIZER = 6  # the name
LOADER = 7  # the name
RUNTIME = 8  # the name of a call of the driver's: a launch, a copy, a wait
FUNCTION = 9  # the name of an autograd.Function

Record = tuple[int, Any, int, int, int, int, Any]


class ArrayInfo:
    """An array's shape and type, as an op's `work` reads them, without the memory: a profile keeps no tensor alive."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype = shape, dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


class Detail(NamedTuple):
    """The details of a call beside its times. `given`: its inputs, arrays as Given; `attrs` its attributes; `before` and `after`: bytes held by
    (C library, GPUs); `stack`: (code, line) of the user's frames, the innermost first; `op`: of an op's call, or of a node, its record; `needs`: of a node,
    how many of its first two inputs want gradients."""

    given: tuple[Any, ...] | None
    attrs: dict[str, Any] | None
    before: tuple[int, int] | None
    after: tuple[int, int] | None
    stack: tuple[tuple[CodeType, int], ...] | None
    op: Any = None
    needs: int = 0


class DeviceWork(NamedTuple):
    """Work given to a device: times in nanoseconds, those of the device None until they are resolved.

    name: of the kernel, or what is copied where. launched, returned: when the host gave it over and went on, on the thread. begin, end: events of
    the driver's around it, or times on an emulated device. about: grid, block, bytes and what else is known.
    """

    name: str
    kind: str  # "kernel", "memcpy", "memset" or "graph"
    device: int
    stream: int
    thread: int
    launched: int
    returned: int
    begin: Any
    end: Any
    about: Any
