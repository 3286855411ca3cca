"""Printing of what was noted: calls as a function in Python, which runs."""

from __future__ import annotations

import keyword
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.autograd.modes import no_grad
from tritensor.fusion.graph import FORWARD, WRITE, Call, Value, Window, values_in
from tritensor.fusion.running import lay, run_corner
from tritensor.fusion.running import write as write_over
from tritensor.ground.device import device
from tritensor.ops.array import device_of
from tritensor.ops.lazy_array import settle, window_of
from tritensor.ops.table import registry
from tritensor.tensor.core import Tensor, new_tensor

HEAD = """import ml_dtypes
from numpy import dtype
from tritensor import device, ops
from tritensor.compilation.printed import all_results, gradient, window, write
"""


class Graph:
    """The calls of one segment. `code` is Python that defines `f`, a function of the segment's inputs which gives what was held of it; calling this runs it.

    inputs: (shape, type) of each. ops: the names of what was called, in order.
    """

    def __init__(self, calls: Sequence[Call], wanted: Sequence[Value]) -> None:
        made = _Printer(calls, wanted)
        self.code = made.text()
        self.inputs = [(v.shape, v.dtype.name) for v in made.leaves]
        self.ops = [c.name for c in calls]
        self._constants = made.constants
        self._function: Callable[..., Any] | None = None

    def __call__(self, *inputs: Tensor) -> Any:
        if self._function is None:
            names: dict[str, Any] = {"constants": self._constants}
            exec(compile(self.code, "<graph>", "exec"), names)
            self._function = names["f"]
        with no_grad():
            return self._function(*inputs)

    def print_readable(self, print_output: bool = True) -> str:
        """The code, printed too unless print_output=False."""
        if print_output:
            print(self.code)
        return self.code

    def __str__(self) -> str:
        return self.code

    def __repr__(self) -> str:
        return f"Graph({len(self.ops)} calls, {len(self.inputs)} inputs)"


def leaves_of(calls: Sequence[Call], wanted: Sequence[Value]) -> list[Value]:
    """The values that no call makes, in the order in which they are first read."""
    return [v for v in dict.fromkeys([*[v for c in calls for v in values_in(c.inputs)], *wanted]) if v.call is None]


class _Printer:
    """Calls as lines, with names for the values that are met."""

    def __init__(self, calls: Sequence[Call], wanted: Sequence[Value]) -> None:
        self.names: dict[Value, str] = {}
        self.taken = {
            "constants",
            "dtype",
            "device",
            "ops",
            "all_results",
            "gradient",
            "window",
            "write",
            "ml_dtypes",
            "f",
            "float",
            "slice",
        }
        self.constants: list[Any] = []
        self.read = {v for c in calls for v in values_in(c.inputs)} | set(wanted)
        self.leaves = leaves_of(calls, wanted)
        self.names |= {v: self.name("x") for v in self.leaves}
        self.lines: list[str] = []
        line = ""
        for call in calls:
            if call.line != line:
                line = call.line
                self.lines.append(f"# {line}")
            self.lines.append(self.call(call))
        self.lines.append(f"return {', '.join([self.names[v] for v in wanted]) or None}")

    def text(self) -> str:
        given = "".join([f"    {self.names[v]},  # {v.dtype.name} {v.shape} on {v.device}\n" for v in self.leaves])
        head = f"def f(\n{given}):\n" if given else "def f():\n"
        return f"{HEAD}\n\n{head}" + "".join([f"    {line}\n" for line in self.lines])

    def name(self, stem: str) -> str:
        """A name that is not taken yet."""
        stem = stem if stem.isidentifier() and not keyword.iskeyword(stem) else f"{stem}_"
        found, k = stem, 0
        while found in self.taken:
            k += 1
            found = f"{stem}_{k}"
        self.taken.add(found)
        return found

    def call(self, call: Call) -> str:
        """The line of a call."""
        # before the results are named: a value never stands among its own inputs
        what = self.written(call) if call.corner == WRITE else self.forward(call) if call.corner == FORWARD else self.gradient(call)
        targets = []
        shown = call.results if what.startswith(("all_results", "gradient")) else call.results[: getattr(call.op, "public", 1)]
        for y in shown:
            if y is None or y not in self.read:
                targets.append("_")
                continue
            self.names[y] = self.name({WRITE: "written", FORWARD: call.op.name}.get(call.corner, f"{call.op.name}_grad"))
            targets.append(self.names[y])
        return f"{', '.join(targets)} = {what}"

    def forward(self, call: Call) -> str:
        given = [self.value(x) for x in call.inputs] + [f"{k}={self.value(v)}" for k, v in call.attrs.items()]
        if any([y in self.read for y in call.results[call.op.public :]]):
            return f"all_results({', '.join([repr(call.op.name), *given])})"
        return f"ops.{call.op.name}({', '.join(given)})"

    def gradient(self, call: Call) -> str:
        given = [self.value(x) for x in call.inputs]
        return f"gradient({', '.join([repr(call.op.name), repr(call.part), str(len(call.results)), *given])})" + (
            "" if len(call.results) > 1 else "[0]"
        )

    def written(self, call: Call) -> str:
        base, item, place = call.inputs
        (made,) = call.results
        assert made is not None
        where = "None" if place is None else f"({place[0]}, {self.value(place[1])}, {place[2]}, {place[3]})"
        return f"write({self.value(base)}, {self.value(item)}, shape={made.shape}, strides={made.strides}, place={where})"

    def value(self, x: Any) -> str:
        """An argument as it is written."""
        kind = type(x)
        if kind is Value:
            return self.names[x]
        if kind is Window:
            of = x.value
            return f"window({self.names[of]}, {of.strides}, shape={x.shape}, dtype={self.value(x.dtype)}, strides={x.strides}, first={x.first})"
        if kind is tuple or kind is list:
            items = ", ".join([self.value(y) for y in x])
            return f"[{items}]" if kind is list else f"({items}{',' * (len(x) == 1)})"
        if isinstance(x, np.dtype):
            return f'dtype("{x.name}")'
        if isinstance(x, device):
            return f'device("{x}")'
        if kind is float and not math.isfinite(x):
            return f'float("{x}")'
        if kind in (int, float, complex, bool, str, slice, type(None)):
            return repr(x)
        self.constants.append(x)
        return f"constants[{len(self.constants) - 1}]"


# -- what printed code calls
def all_results(name: str, *inputs: Any, **attrs: Any) -> Any:
    """The results of an op, with those that only its gradient reads."""
    op = registry[name]
    arrays = [_array(x) for x in inputs]
    on = next((device_of(a) for a in arrays if hasattr(a, "dtype")), None) or attrs["device"]
    return tuple([new_tensor(a) for a in run_corner(op, FORWARD, None, arrays, attrs, on, len(op.outputs))])


def gradient(name: str, part: int | None, count: int, *given: Any) -> Any:
    """What one function of an op's gradient gives for its arguments: `count` results; part: which function, None where there is one for all inputs."""
    op = registry[name]
    arrays = [_array(x) for x in given]
    on = next(device_of(a) for a in _flat(arrays) if hasattr(a, "dtype") and hasattr(a, "shape"))
    corner: Any = op.cpu_backward if on.type == "cpu" else op.backward
    function = corner.steps[0][1] if corner.joint else next(f for i, f, *_ in corner.steps if i == part)
    return tuple(
        [
            None if a is None else new_tensor(np.asarray(a) if isinstance(a, np.generic) else a)
            for a in run_corner(op, "backward", function, arrays, {}, on, count)
        ]
    )


def window(of: Tensor, lies: tuple[int, ...], *, shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...], first: int) -> Tensor:
    """A view of a tensor that lies with the strides `lies`; `first` in bytes."""
    return new_tensor(window_of(lay(_array(of), lies), shape, dtype, strides, first))


def write(base: Tensor | None, item: Tensor, *, shape: tuple[int, ...], strides: tuple[int, ...], place: tuple[Any, ...] | None) -> Tensor:
    """A copy of a tensor with another one written over a window of it."""
    arrays = None if base is None else _array(base), _array(item)
    made = arrays[1] if arrays[0] is None else arrays[0]
    return new_tensor(write_over((*arrays, place), shape, made.dtype, strides, device_of(made)))


def _array(x: Any) -> Any:
    if isinstance(x, Tensor):
        return settle(x._array)
    return tuple([_array(y) for y in x]) if type(x) is tuple else x


def _flat(given: Any) -> Any:
    for x in given:
        if type(x) is tuple:
            yield from _flat(x)
        else:
            yield x
