"""Building of the graph from a merged trace: dead calls dropped, constants folded, ops translated one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.onnx import registry
from tritensor.onnx.element_types import raw_bytes
from tritensor.onnx.errors import DynamicAxisError, OnnxExporterError, UnsupportedOperatorError
from tritensor.onnx.graph import Graph, Value
from tritensor.onnx.merging import MergedTrace
from tritensor.onnx.sizes import varies
from tritensor.onnx.tracing.record import Call, Constant, Item, Result
from tritensor.ops.array import to_host

VIEWS = ("reshape", "permute", "expand", "index_view", "diagonal", "unfold", "as_strided")


class BuildOptions(NamedTuple):
    """What of an export concerns the graph."""

    opset: int
    fold: bool
    notes: bool
    custom: Mapping[str, Any] | None


class Builder:
    """A graph while it is built."""

    def __init__(self, merged: MergedTrace, input_names: Sequence[str], asked: BuildOptions) -> None:
        self.merged, self.options = merged, asked
        self.graph = Graph(asked.opset, asked.notes, asked.fold)
        self.graph.value_of = self.value
        self.values: dict[int, Value] = {}
        self.inputs: list[Value] = []
        for given, name in zip(merged.traced_inputs, input_names, strict=True):
            self.graph.taken.add(name)
            value = Value(name, given.dtype, given.shape)
            self.values[id(given)] = value
            self.inputs.append(value)
            self.graph.sizes.learn(value)

    # -- what is needed
    def find_live_calls(self) -> list[Call]:
        """The calls that outputs depend on, in order."""
        wanted: set[int] = set()
        stack: list[Any] = list(self.merged.outputs)
        while stack:
            x = stack.pop()
            if isinstance(x, Result) and not self.is_folded(x):
                self.graph.used.add((x.call.number, x.place))
                if x.call.number not in wanted:
                    wanted.add(x.call.number)
                    stack.extend(x.call.inputs)
        return [c for c in self.merged.calls if c.number in wanted]

    def is_folded(self, x: Result) -> bool:
        """Whether a result stands as a constant. Views of the module's own tensors do not: these keep their names, and are there once."""
        if not self.merged.is_static(x) or x.tensor is None:
            return False
        return not self._is_view_of_named(x) if self.options.fold else self._is_of_numbers_alone(x)

    def _is_view_of_named(self, x: Item) -> bool:
        if isinstance(x, Constant):
            return bool(x.name)
        return isinstance(x, Result) and x.call.name in VIEWS and self._is_view_of_named(x.call.inputs[0])

    def _is_of_numbers_alone(self, x: Item) -> bool:
        """Whether a result is made of numbers alone, as masks and positions are."""
        return isinstance(x, Result) and all(not isinstance(y, Item) or self._is_of_numbers_alone(y) for y in x.call.inputs)

    # -- values
    def value(self, x: Any) -> Any:
        """What an Item is in the graph; numbers and None are themselves."""
        if not isinstance(x, Item):
            return x
        found = self.values.get(id(x))
        if found is None:
            found = self.values[id(x)] = self._constant(x)
        return found

    def _constant(self, x: Item) -> Value:
        if isinstance(x, Constant):
            if varies(x.shape):
                return self.graph.full(x.shape, x.values.reshape(-1)[0], x.dtype)
            same = x.name and x.name in self.graph.initializers and self.graph.initializers[x.name] is not x.values
            # two constants may have one name only while they hold the same values
            if same and not np.array_equal(raw_bytes(self.graph.initializers[x.name]), raw_bytes(x.values)):
                return self.graph.const(x.values)  # a buffer that forward has changed in between
            return self.graph.const(x.values, name=x.name)
        assert isinstance(x, Result)
        assert x.tensor is not None
        return self.graph.const(np.asarray(to_host(x.tensor._array)))

    # -- calls
    def run(self) -> Builder:
        """Translate what is needed. Raises UnsupportedOperatorError that lists every op without a translation."""
        calls = self.find_live_calls()
        missing = [c for c in calls if c.name != "write_view" and registry.translation(c.name, self.options.custom) is None]
        if missing:
            lines = {f"{c.name} {c.where}: {registry.reason(c.name)}": None for c in missing}
            raise UnsupportedOperatorError("onnx.export: these ops cannot be written in ONNX:\n  " + "\n  ".join(lines))
        for c in calls:
            self._translate(c)
        return self

    def _translate(self, c: Call) -> None:
        f = registry.translation(c.name, self.options.custom)
        assert f is not None
        g = self.graph
        g.scope, g.line, g.call = c.scope, c.line, c
        try:
            found = f(g, *[self.value(x) for x in c.inputs], **c.attrs)
        except DynamicAxisError as error:
            raise DynamicAxisError(
                f"onnx.export: {c.name} {c.where}: {_strip_prefix(error)}; leave the axis out of dynamic_axes, or write it another way"
            ) from None
        except OnnxExporterError as error:
            raise type(error)(f"onnx.export: {c.name} {c.where}: {_strip_prefix(error)}") from None
        outs = found if isinstance(found, tuple) else (found,)
        if not all(isinstance(y, Value) for y in outs) or len(outs) > len(c.results):
            raise OnnxExporterError(
                f"onnx.export: {c.name} {c.where}: its translation returned {found!r}; it must return what g.op gives, one value for each of "
                f"{len(c.results)} outputs"
            )
        for y, result in zip(outs, c.results, strict=False):
            if y.shape is None:
                y.shape = result.shape
            if y.dtype != result.dtype:
                raise OnnxExporterError(
                    f"onnx.export: {c.name} {c.where}: its translation gives {y.dtype}, the op {result.dtype}; end it with g.cast(y, dtype)"
                )
            # a chain of reshapes or transposes has said already what it may be merged with
            if y.step is None:
                y.step = c
            self.values[id(result)] = y
            g.sizes.learn(y)

    # -- outputs
    def outputs(self, names: Sequence[str]) -> list[Value]:
        """The outputs under their names."""
        g = self.graph
        g.scope, g.line, g.call = "", "", None
        found: list[Value] = []
        for item, name in zip(self.merged.outputs, names, strict=True):
            x = self.value(item)
            free = name == x.name or (x.node is not None and x.name not in {v.name for v in (*found, *self.inputs)})
            if free and name not in g.taken and self._rename(x, name):
                y = x
            else:
                y = g.op("Identity", x, shape=x.shape)
                self._rename(y, name)
            y.shape = item.shape
            found.append(y)
        return found

    def _rename(self, x: Value, name: str) -> bool:
        """Let a value that a node makes have another name, everywhere."""
        old, g = x.name, self.graph
        # two values of one name make the graph invalid, and the checker's message names no argument of export
        if name in g.taken and name != old:
            raise OnnxExporterError(f"onnx.export: output_names: {name!r} is the name of an input or a tensor of the module; give another")
        for node in g.nodes:
            for names in (node.input, node.output):
                for k, n in enumerate(names):
                    if n == old:
                        names[k] = name
        g.taken.add(name)
        x.name = name
        return True

    def prune(self, outputs: Sequence[Value]) -> None:
        """Leave out nodes that nothing needs, and initializers that no node names."""
        g = self.graph
        needed = {y.name for y in outputs}
        kept = []
        for node in reversed(g.nodes):
            if any(name in needed for name in node.output):
                needed.update(n for n in node.input if n)
                kept.append(node)
        g.nodes = kept[::-1]
        g.initializers = {name: v for name, v in g.initializers.items() if name in needed}


def _strip_prefix(error: Exception) -> str:
    return str(error).removeprefix("onnx.export: ")
