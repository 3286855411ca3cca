"""Tapes made step by step beside eager's launches of the same formulas, and the bits of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.ground.device import device
from tritensor.kernels.parts import elementwise, reduction
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.tapes.tape import Fold, Step, Tape
from tritensor.ops.array import CudaArray, from_host, to_host

CUDA = device("cuda", 0)


def on_device(x: np.ndarray) -> CudaArray:
    """A host array on the emulated device."""
    made = from_host(x, CUDA)
    assert isinstance(made, CudaArray)
    return made


class Chain:
    """A tape over arrays and numbers, and the value of each of its places as eager's launches, one an op, make it.

    numbers: pairs of a Python number and the type of the arrays that it meets.
    """

    def __init__(self, inputs: Sequence[CudaArray], numbers: Sequence[tuple[Any, np.dtype]] = ()) -> None:
        self.inputs = tuple(inputs)
        self.numbers = tuple([elementwise.scalar(value, dtype) for value, dtype in numbers])
        self.values: list[Any] = [*inputs, *[value for value, _ in numbers]]
        self.steps: list[Step | Fold] = []

    def step(self, formula: Any, *picks: int, dtype: Any = None) -> int:
        """Add a step and run it by a launch of its own; its place. dtype: that of the result, left out that of the last array that it takes, which is
        also what numbers are for."""
        taken = [self.values[k] for k in picks]
        arrays = [x for x in taken if isinstance(x, CudaArray)]
        kind = arrays[-1].dtype if dtype is None else np.dtype(dtype)
        out = allocate(np.broadcast_shapes(*[x.shape for x in arrays]), kind, arrays[0])
        elementwise.run((formula,), (tuple(range(len(picks))),), taken, (out,), arrays[-1].dtype)
        self.values.append(out)
        self.steps.append(Step(formula, picks, kind, any(x.dtype == np.float64 for x in arrays)))
        return len(self.values) - 1

    def fold(self, functions: reduction.ReductionFunctions, *picks: int, states: Sequence[Any], dtypes: Sequence[Any] = (), scalars: Sequence[int] = (),
             numbers: Sequence[int] = ()) -> int:  # fmt: skip
        """Add a fold of rows and run it by launches of its own; the place of its first value. dtypes: those of its values, left out the picked array's."""
        rows, n = np.broadcast_shapes(*[x.shape for x in self.inputs])
        arrays = [self.values[k].expand((rows, n)) for k in picks]
        made = [allocate((rows,), np.dtype(d), arrays[0]) for d in dtypes or (arrays[0].dtype,)]
        kept = tuple(map(np.dtype, states))
        given = [tuple([self.numbers[k - len(self.inputs)] for k in places]) for places in (scalars, numbers)]
        reduction.fold(functions, arrays, (1,), made, kept, given[0], numbers=given[1])
        first = len(self.values)
        self.values += [y.reshape((rows, 1)) for y in made]
        self.steps.append(Fold(functions, picks, tuple(scalars), tuple(numbers), kept, tuple([y.dtype for y in made])))
        return first

    def tape(self, *stores: int) -> Tape:
        """The tape so far, with these values as results."""
        numbers = tuple([np.dtype(type(n)) if isinstance(n, np.generic) else np.dtype(np.float32) for n in self.numbers])
        return Tape(tuple([x.dtype for x in self.inputs]), numbers, tuple(self.steps), stores)


def bits(x: CudaArray, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """The bits of an array, broadcast to a shape; of NaNs one pattern."""
    host = to_host(x)
    host = np.ascontiguousarray(host if shape is None else np.broadcast_to(host, shape))
    found = host.view(f"u{host.dtype.itemsize}").copy()
    if host.dtype.kind in "fV":
        found[np.isnan(host.astype(np.float64))] = 1
    return found
