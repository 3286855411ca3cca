"""Graph: calls of ops' corners in order, on values that are computed once and never written."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from tritensor.ground.call_site import called_name, file_and_line, line_of
from tritensor.ground.device import device
from tritensor.ops.table import Op

FORWARD, BACKWARD, WRITE = "forward", "backward", "write"  # corners of an op, and a value with another written over a window of it


class Value:
    """An array of a graph: what a call makes, or, without a call, memory that there is (`array`).

    `array` holds it once it has been computed. Its strides, in elements, are those that the op's layout rule says; where somebody reads a window of it
    (`fixed`), or it is memory already, it lies so, else as the call lays it.
    """

    __slots__ = ("__weakref__", "array", "call", "device", "dtype", "fixed", "place", "shape", "strides")

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...], on: device, call: Call | None = None, place: int = 0, array: Any = None,
    ) -> None:  # fmt: skip
        self.shape, self.dtype, self.strides, self.device = shape, dtype, strides, on
        self.call, self.place, self.array = call, place, array
        self.fixed = array is not None

    def __repr__(self) -> str:
        made = "given" if self.call is None else f"{self.call.name}[{self.place}]"
        return f"Value({self.dtype} {self.shape} on {self.device}, {made})"


class Window(NamedTuple):
    """A view of a value: strides in elements of `dtype`, `first` in bytes from the value's first element."""

    value: Value
    shape: tuple[int, ...]
    dtype: np.dtype
    strides: tuple[int, ...]
    first: int


class DerivedNumber(NamedTuple):
    """A number in the place of an argument or an attribute: `by` of numbers among other calls' inputs, each a call and the place there."""

    by: Callable[..., Any]
    of: tuple[tuple[Call, int], ...]


class Call:
    """One call: of the op's forward corner, of one of its gradients, or a write.

    inputs: a Value, a Window, a number or None each; of a gradient the arguments of its function, attributes, shapes and needs among them.
    function: of a gradient, what computes it on arrays. part: which of the op's gradients it is; None for all of them at once.
    kernels: of a gradient whose function is not a GPU's, the functions of `op.backward` that make the same: the place of each, its arguments, and which of
        its results each of the call's is (-1: none). None: `function` is that itself, or there is none.
    drawn_by: of a gradient that draws what its forward call has drawn, that call, where seed and offset may be others when it is computed.
    at: the user's instruction that made it, who: what that called.
    """

    __slots__ = ("at", "attrs", "corner", "drawn_by", "function", "inputs", "kernels", "op", "part", "results", "who")

    def __init__(
        self, op: Op, corner: str, inputs: tuple[Any, ...], attrs: dict[str, Any], at: tuple[CodeType, int],
        function: Callable[..., Any] | None = None, part: int | None = None,
    ) -> None:  # fmt: skip
        self.op, self.corner, self.inputs, self.attrs, self.at = op, corner, inputs, attrs, at
        self.function, self.part = function, part
        self.drawn_by: Call | None = None
        self.kernels: tuple[tuple[int, tuple[Any, ...], tuple[int, ...]], ...] | None = None
        self.results: tuple[Value | None, ...] = ()
        self.who = called_name()

    @property
    def name(self) -> str:
        """ "mul", or "mul backward"."""
        return self.op.name if self.corner == FORWARD else f"{self.op.name} {self.corner}"

    @property
    def line(self) -> str:
        """ "train.py:42": the user's line that made the call."""
        return file_and_line(*line_of(*self.at))

    def values(self) -> list[Value]:
        """The values that it reads, be it as it is or by its kernels' steps."""
        found = list(values_in(self.inputs))
        for _, args, _ in self.kernels or ():
            found += values_in(args)
        return found

    def __repr__(self) -> str:
        return f"Call({self.name} at {self.line})"


class _WriteOp:
    """What a write shows as its op."""

    name = "write"
    reports = False


WRITE_OP: Any = _WriteOp()


def values_in(given: Any) -> Any:
    """The values among arguments, those of windows and of tuples too."""
    for x in given:
        if type(x) is Value:
            yield x
        elif type(x) is Window:
            yield x.value
        elif type(x) is tuple:
            yield from values_in(x)


def needed(calls: list[Call], wanted: set[Value]) -> list[Call]:
    """The calls that lead to wanted values, in order."""
    found: list[Call] = []
    todo = {v for v in wanted if v.array is None}
    for call in reversed(calls):
        if call.op.reports or any([r in todo for r in call.results]):  # a bad index is told though nobody holds what it picks
            found.append(call)
            todo.update([v for v in call.values() if v.array is None])
    found.reverse()
    return found
